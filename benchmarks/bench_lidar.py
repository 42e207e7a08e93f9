"""A scan of 1,000 rays: one batched call of the engine against a Python loop over single rays.

Ratio of CPU time per ray, ours over the loop's; lower is better, and 0.2 is five times faster. Both
turn each direction from the scanner's frame and give distances with ``inf`` for no return; the scan
computes the poses of the present state besides.
"""

from __future__ import annotations

import math

import mujoco
import numpy as np
from _harness import Figure, Sample, Settings, main, paired, time_ratio, timed

from mjhost.bundled.frames import Frame, Mount
from mjhost.bundled.laser import Laser
from mjhost.bundled.rays import RayFan, directions
from mjhost.state.names import ObjectKind

BENCHMARK = "bench_lidar"
RAYS = 1_000
ROOM = """
<mujoco><worldbody>
  <geom type="plane" size="20 20 1"/>
  {things}
  <site name="scanner" pos="0 0 .5"/>
</worldbody></mujoco>
"""


def run(settings: Settings) -> list[Figure]:
    model = mujoco.MjModel.from_xml_string(ROOM.format(things="\n".join(things())))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    ways = directions(np.linspace(-math.pi, math.pi, RAYS, endpoint=False), [0.0])
    config = Laser(frame="scanner").config
    fan = RayFan(model, Mount(Frame("scanner", ObjectKind.SITE, 0)), ways, config)
    origin, matrix = data.site_xpos[0].copy(), data.site_xmat[0].reshape(3, 3).copy()
    geom = np.zeros(1, np.int32)

    def one_by_one() -> np.ndarray:
        found = np.empty(RAYS)
        for ray, way in enumerate(ways):
            distance = mujoco.mj_ray(model, data, origin, matrix @ way, None, 1, -1, geom)
            found[ray] = distance if 0.0 <= distance <= config.range_max else math.inf
        return found

    assert np.allclose(one_by_one(), fan.cast(data))

    def single() -> Sample:
        return timed(one_by_one, RAYS)

    def batched() -> Sample:
        return timed(lambda: fan.cast(data), RAYS)

    pairs = paired(batched, single, settings.rounds)
    measure = f"one scan of {RAYS} rays / loop of mj_ray"
    return [time_ratio(pairs, benchmark=BENCHMARK, measure=measure, model="room", high=0.2)]


def things() -> list[str]:
    """Forty boxes and balls around the scanner."""
    angles = np.linspace(0.0, 2 * math.pi, 40, endpoint=False)
    places = [(4 * math.cos(a), 4 * math.sin(a)) for a in angles]
    kinds = ("box", "sphere")
    return [
        f'<geom type="{kinds[i % 2]}" pos="{x:.3f} {y:.3f} .5" size=".2 .2 .5"/>'
        for i, (x, y) in enumerate(places)
    ]


if __name__ == "__main__":
    main(run)

"""A shape from an expression: a rounded box with a hole, hung on a peg."""

from __future__ import annotations

import importlib.util
import math

import mujoco

from mjhost.engine.builtin import sdf


def link(x, y, z):
    """A plate of 0.3 by 0.2 by 0.06 m with round edges, minus a cylinder of 0.05 m along z."""
    a, b, c = abs(x) - 0.14, abs(y) - 0.09, abs(z) - 0.02
    outside = math.sqrt(max(a, 0.0) ** 2 + max(b, 0.0) ** 2 + max(c, 0.0) ** 2)
    plate = outside + min(max(a, b, c), 0.0) - 0.01
    return max(plate, 0.05 - math.sqrt(x * x + y * y))


MODEL = """
<mujoco>
  <option sdf_initpoints="40" sdf_iterations="20"/>
  <extension><plugin plugin="gallery.link"><instance name="link"/></plugin></extension>
  <asset><mesh name="link" inertia="exact"><plugin instance="link"/></mesh></asset>
  <worldbody>
    <geom name="peg" type="capsule" size=".03" fromto="0 -.2 0 0 .2 0"/>
    <body name="link" euler="90 0 0" pos="0 0 -.01"><freejoint/>
      <geom type="sdf" mesh="link"><plugin instance="link"/></geom></body>
  </worldbody>
</mujoco>
"""


def main() -> None:
    fast = importlib.util.find_spec("numba") is not None
    sdf.function("gallery.link", link, box=(0.15, 0.1, 0.03), compiled=fast)
    model = mujoco.MjModel.from_xml_string(MODEL)
    data = mujoco.MjData(model)
    print(f"the mesh has {model.nmeshvert} vertices, the link {model.body('link').mass[0]:.3f} kg")
    assert abs(model.body("link").mass[0] - 3.082) < 0.01  # by hand
    mujoco.mj_step(model, data, 1000)
    print(f"it hangs {-data.qpos[2] * 1000:.1f} mm below the middle of the peg")
    assert abs(data.qpos[2] + 0.05 - 0.03) < 1e-3  # radius of the hole minus that of the peg


if __name__ == "__main__":
    main()

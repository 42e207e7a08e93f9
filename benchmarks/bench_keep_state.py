"""Reload that keeps the state: how much longer it holds up stepping than a plain one.

The time under the lock is that of the reload's own report, taken while physics runs unbound. Both
kinds are taken in turn from the same env, on a robot of thirty bodies with motors, servos, a free
base and mocap targets; once with an object more or less each time, so that nothing is where it was,
and once of the very same model. Nothing touches anything, at the start or later: a forward costs
what its state does, and the two kinds begin with different ones.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from _harness import Figure, Settings, main, quartiles

from mjhost import MujocoEnv

BENCHMARK = "bench_keep_state"
LINKS = 29
TIMES = 5  # reloads of each kind in a round

CRATE = '<body name="crate" pos="3 0 1"><freejoint name="crate"/><geom size=".1"/></body>'


def robot(extra: str) -> str:
    """MJCF of a chain on a free base, with ``extra`` before it."""
    chain = ""
    for link in reversed(range(LINKS)):
        kind = ("hinge", "hinge", "ball")[link % 3]
        chain = (
            f'<body name="link{link}" pos=".1 0 0"><joint name="joint{link}" type="{kind}" '
            f'damping="1" axis="0 {1 - link % 2} {link % 2}"/>'
            f'<geom size=".03" mass=".2" contype="0" conaffinity="0"/>{chain}</body>'
        )
    hinges = [link for link in range(LINKS) if link % 3 < 2]
    actuators = "".join(f'<position name="servo{k}" joint="joint{k}" kp="5"/>' for k in hinges)
    return f"""
    <mujoco>
      <option gravity="0 0 0"/>
      <worldbody>
        {extra}
        <body name="target" mocap="true" pos="0 0 2"/>
        <body name="base" pos="0 0 1">
          <freejoint name="base"/><geom type="box" size=".2 .2 .1" mass="20"/>{chain}
        </body>
      </worldbody>
      <actuator>{actuators}</actuator>
    </mujoco>"""


def run(settings: Settings) -> list[Figure]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "robot.xml"
        return [
            compare(path, "an object more or less", (CRATE, ""), settings),
            compare(path, "the same model", ("",), settings),
        ]


def compare(path: Path, what: str, variants: tuple[str, ...], settings: Settings) -> Figure:
    """Time under the lock with the state kept, over that without."""
    held: dict[bool, list[float]] = {True: [], False: []}
    path.write_text(robot(variants[-1]))
    with MujocoEnv(path, realtime=None, running=True) as env:
        for turn in range(2 * settings.rounds * TIMES + 4):
            path.write_text(robot(variants[turn // 2 % len(variants)]))
            keep = (turn + turn // 2) % 2 == 0
            report = env.reload(keep_state=keep)
            if turn >= 4:
                held[keep].append(report.pause_s)
    q1, middle, q3 = quartiles([k / p for k, p in zip(held[True], held[False], strict=True)])
    kept, plain = (1e3 * quartiles(held[keep])[1] for keep in (True, False))
    return Figure(
        BENCHMARK,
        "reload(keep_state=True) / reload(), time under the lock",
        f"31 bodies, {what}",
        middle,
        q1,
        q3,
        "x",
        f"{kept:.3f} ms held",
        f"{plain:.3f} ms held",
        len(held[True]),
        high=1.3,
    )


if __name__ == "__main__":
    main(run)

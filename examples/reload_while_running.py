"""A model edited on disk while it runs: a broken edit changes nothing, a good one is live."""

from __future__ import annotations

import tempfile
from pathlib import Path

import mjhost

MODEL = """
<mujoco model="ball">
  <worldbody>
    <geom type="plane" size="1 1 .1"/>
    <body pos="0 0 1"><freejoint name="ball"/><geom size=".1" mass="{mass}"/></body>
  </worldbody>
</mujoco>
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "ball.xml"
        file.write_text(MODEL.format(mass="1"))

        with mjhost.MujocoEnv(file, realtime=None, running=True) as env:
            before = env.generations.model

            file.write_text(MODEL.format(mass="heavy"))
            try:
                env.reload()
            except mjhost.ModelLoadError as error:
                print("refused:", error)
            print("still running:", not env.info.paused, "generation:", env.generations.model)

            file.write_text(MODEL.format(mass="2"))
            report = env.reload()
            print(f"stood still for {report.pause_s * 1e3:.2f} ms, now {env.generations.model}")
            with env.access() as (model, _):
                print("mass:", model.body_mass[1])
            assert env.generations.model > before


if __name__ == "__main__":
    main()

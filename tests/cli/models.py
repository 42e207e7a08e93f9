"""Model files for the command line."""

from __future__ import annotations

from pathlib import Path

# Diverges in its second step: the spring is far too stiff for the timestep.
EXPLOSIVE = """
<mujoco>
  <option timestep=".05"/>
  <worldbody>
    <body>
      <joint name="hinge" stiffness="1e6" springref="30"/><geom size=".1" pos=".2 0 0"/>
    </body>
  </worldbody>
</mujoco>
"""

# Odd, but hostable: a timestep above what is usual, a solref outside its sensible range.
ODD = """
<mujoco>
  <option timestep="0.2" impratio="1e5"/>
  <worldbody><body><joint name="hinge"/><geom size=".1" pos=".2 0 0"/></body></worldbody>
</mujoco>
"""

BROKEN = "<mujoco><worldbody><body><geom size='-1'/></body></worldbody></mujoco>"


def write(directory: Path, text: str, name: str = "model.xml") -> Path:
    path = directory / name
    path.write_text(text, encoding="utf-8")
    return path

"""Assets from a database: every ``db:`` name of a model is a row of a table."""

from __future__ import annotations

import sqlite3
import threading

import mujoco

from mjhost import engine

TETRAHEDRON = b"v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


class Assets:
    """A table of names and contents."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.connection = sqlite3.connect(":memory:", check_same_thread=False)
        self.connection.execute("create table assets (name text primary key, content blob)")

    def put(self, name: str, content: bytes) -> None:
        with self.lock, self.connection:
            self.connection.execute("insert or replace into assets values (?, ?)", (name, content))

    def open(self, uri: str) -> bytes:
        """Called by the engine, from several threads at once."""
        name = uri.removeprefix("db:").rpartition("/")[2]
        with self.lock:
            query = "select content from assets where name = ?"
            row = self.connection.execute(query, (name,)).fetchone()
        if row is None:
            raise FileNotFoundError(f"the database has no asset {name!r}")
        return row[0]


MODEL = """
<mujoco>
  <asset><mesh name="part" file="db:{name}" scale=".1 .1 .1"/></asset>
  <worldbody><body name="part"><freejoint/><geom type="mesh" mesh="part"/></body></worldbody>
</mujoco>
"""


def main() -> None:
    assets = Assets()
    engine.resource_provider("db")(assets)
    assets.put("part.obj", TETRAHEDRON)
    mass = mujoco.MjModel.from_xml_string(MODEL.format(name="part.obj")).body("part").mass[0]
    assets.put("part.obj", TETRAHEDRON.replace(b"v 0 0 1", b"v 0 0 2"))
    taller = mujoco.MjModel.from_xml_string(MODEL.format(name="part.obj")).body("part").mass[0]
    print(f"{mass:.4f} kg, and {taller:.4f} kg after the row has changed")
    assert abs(mass - 1000 * 0.1**3 / 6) < 1e-6
    assert abs(taller - 2 * mass) < 1e-6


if __name__ == "__main__":
    main()

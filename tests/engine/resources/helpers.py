"""Small meshes, models around them, and names that nothing else in the process has."""

from __future__ import annotations

import itertools
import struct
import zlib

import mujoco
import numpy as np

from mjhost import engine

VERTICES = ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
FACES = ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3))

_numbers = itertools.count()


def unique(stem: str) -> str:
    """A name that was not registered before in this process."""
    return f"{stem}{next(_numbers)}"


def obj(size: float = 1.0) -> bytes:
    """A cube in Wavefront's format."""
    corners = [(x, y, z) for x in (-size, size) for y in (-size, size) for z in (-size, size)]
    faces = "1 2 4 3", "5 7 8 6", "1 5 6 2", "3 4 8 7", "1 3 7 5", "2 6 8 4"
    lines = [f"v {x} {y} {z}" for x, y, z in corners] + [f"f {face}" for face in faces]
    return "\n".join(lines).encode()


def png(width: int = 4, height: int = 4, seed: int = 7) -> bytes:
    """A picture of 8 bits and three channels."""
    row = b"\0" + bytes(seed * x % 256 for x in range(3 * width))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    picture = zlib.compress(row * height)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", picture)
        + chunk(b"IEND", b"")
    )


FULL = """
<mujoco model="full">
  <compiler meshdir="meshes" texturedir="pictures"/>
  <default><mesh scale="2 2 2"/></default>
  <asset>
    <mesh name="a" file="a.obj"/>
    <mesh name="inline" vertex="0 0 0  1 0 0  0 1 0  0 0 1"/>
    <mesh name="other" file="deep/a.obj"/>
    <hfield name="h" file="h.png" size="1 1 1 .1"/>
    <texture name="plain" type="2d" builtin="flat" width="4" height="4"/>
    <texture name="t" type="2d" file="t.png"/>
    <texture name="c" type="cube" fileup="t.png" filedown="u.png" gridsize="1 1"/>
  </asset>
  <worldbody>
    <geom type="hfield" hfield="h"/>
    <body pos=".123456789012345 0 1"><freejoint/><geom type="mesh" mesh="a"/></body>
    <body><geom type="mesh" mesh="other"/><geom type="mesh" mesh="inline"/></body>
  </worldbody>
</mujoco>
"""
FILES = {
    "meshes/a.obj": obj(0.3),
    "meshes/deep/a.obj": obj(0.7),
    "meshes/h.png": png(seed=3),
    "pictures/t.png": png(seed=5),
    "pictures/u.png": png(seed=9),
}


def with_meshes(*files: str) -> str:
    """A model with a geom for each mesh file."""
    assets = "".join(f'<mesh name="m{i}" file="{file}"/>' for i, file in enumerate(files))
    geoms = "".join(f'<geom type="mesh" mesh="m{i}"/>' for i in range(len(files)))
    return (
        f"<mujoco><asset>{assets}</asset><worldbody><body><freejoint/>{geoms}</body></worldbody>"
        "</mujoco>"
    )


def load(xml: str) -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(xml)


class Store:
    """A provider that remembers how it was used."""

    def __init__(self, **files):
        self.files = {name.replace("_", "."): content for name, content in files.items()}
        self.calls = []

    def open(self, uri):
        self.calls.append(uri)
        return self.files[uri.partition(":")[2]]


def declared(prefix, **files):
    return engine.resource_provider(prefix)(Store(**files))


def volume(model):
    """Of the cube that `obj` makes; its mass, with the density of water."""
    return model.body_mass[1] / 1000


# Names of files are part of a model; where they come from is what differs here.
PATHS = {"npaths", "paths", "nbuffer"}


def content(model: mujoco.MjModel) -> dict[str, object]:
    """Everything in a model but the names of its files."""
    found = {}
    for name in dir(model):
        if name.startswith("_") or name in PATHS or name.endswith("pathadr"):
            continue
        value = getattr(model, name)
        if isinstance(value, np.ndarray):
            found[name] = (value.shape, value.dtype.str, value.tobytes())
        elif isinstance(value, (int, float, bytes)):
            found[name] = value
    found["opt"] = str(model.opt)
    return found

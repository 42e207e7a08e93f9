"""Mesh files of small solids, made here byte by byte, and what the engine makes of them."""

from __future__ import annotations

import struct

import mujoco
import numpy as np

CORNERS = np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)], float)
FACES = np.array([(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)])
VOLUME = 1 / 6
SQUARE = np.array([[(0, 0, 0), (1, 0, 0), (0, 1, 0)], [(1, 0, 0), (1, 1, 0), (0, 1, 0)]], float)


def stl(corners=None, header=b""):
    """Binary STL of triangles (m, 3, 3); by default the tetrahedron."""
    corners = (
        CORNERS[FACES] if corners is None else np.reshape(np.asarray(corners, float), (-1, 3, 3))
    )
    record = np.zeros(len(corners), [("n", "<f4", 3), ("c", "<f4", (3, 3)), ("b", "<u2")])
    record["c"] = corners
    return header.ljust(80, b"\0") + struct.pack("<I", len(corners)) + record.tobytes()


def ascii_stl(corners=None):
    corners = CORNERS[FACES] if corners is None else corners
    lines = ["solid part"]
    for face in corners:
        lines += ["facet normal 0 0 0", "outer loop"]
        lines += [f"vertex {x:g} {y:g} {z:g}" for x, y, z in face]
        lines += ["endloop", "endfacet"]
    return "\n".join([*lines, "endsolid part"]).encode()


def obj(start=0, shift=0.0):
    """Lines of an OBJ tetrahedron whose first vertex is number ``start`` + 1."""
    lines = [f"v {x + shift:g} {y:g} {z:g}" for x, y, z in CORNERS]
    lines += ["f " + " ".join(str(i + 1 + start) for i in face) for face in FACES]
    return "\n".join(lines)


def dae(*, unit='<unit name="meter" meter="1"/>', up="Z_UP", colours=("1 0 0 1",), nodes=""):
    """Collada with one tetrahedron per colour, and the nodes that place them."""
    numbers = " ".join(f"{v:g}" for v in CORNERS.ravel())
    index = " ".join(map(str, FACES.ravel()))
    effects = "".join(
        f'<effect id="e{i}"><profile_COMMON><technique sid="t"><phong><diffuse><color>{c}</color>'
        "</diffuse></phong></technique></profile_COMMON></effect>"
        for i, c in enumerate(colours)
    )
    materials = "".join(
        f'<material id="m{i}"><instance_effect url="#e{i}"/></material>'
        for i in range(len(colours))
    )
    shapes = "".join(
        f'<geometry id="g{i}"><mesh><source id="s{i}"><float_array id="a{i}" count="12">{numbers}'
        f'</float_array><technique_common><accessor source="#a{i}" count="4" stride="3">'
        '<param name="X" type="float"/><param name="Y" type="float"/><param name="Z" type="float"/>'
        f'</accessor></technique_common></source><vertices id="v{i}"><input semantic="POSITION" '
        f'source="#s{i}"/></vertices><triangles count="4" material="m{i}"><input semantic="VERTEX" '
        f'source="#v{i}" offset="0"/><p>{index}</p></triangles></mesh></geometry>'
        for i in range(len(colours))
    )
    nodes = nodes or "".join(dae_node(i) for i in range(len(colours)))
    return (
        '<?xml version="1.0"?><COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" '
        f'version="1.4.1"><asset>{unit}<up_axis>{up}</up_axis></asset>'
        f"<library_effects>{effects}</library_effects>"
        f"<library_materials>{materials}</library_materials>"
        f"<library_geometries>{shapes}</library_geometries>"
        f'<library_visual_scenes><visual_scene id="S">{nodes}</visual_scene>'
        '</library_visual_scenes><scene><instance_visual_scene url="#S"/></scene></COLLADA>'
    ).encode()


def dae_node(index, matrix="1 0 0 0 0 1 0 0 0 0 1 0 0 0 0 1"):
    return (
        f'<node id="n{index}x{abs(hash(matrix))}"><matrix>{matrix}</matrix>'
        f'<instance_geometry url="#g{index}"><bind_material><technique_common>'
        f'<instance_material symbol="m{index}" target="#m{index}"/></technique_common>'
        "</bind_material></instance_geometry></node>"
    )


def compiled(part, *, collides=True, inertia=""):
    """A model with one geom of a prepared mesh."""
    touch = "" if collides else 'contype="0" conaffinity="0"'
    text = (
        f'<mujoco><asset><mesh name="m" file="{part.name}" {inertia}/></asset><worldbody><body>'
        f'<geom type="mesh" mesh="m" density="1" {touch}/></body></worldbody></mujoco>'
    )
    return mujoco.MjModel.from_xml_string(text, assets={part.name: part.content})


def corners_of(part):
    """The corners of a prepared mesh as the engine has them, in the frame of the file."""
    model = compiled(part, inertia='inertia="shell"')
    turn = np.zeros(9)
    mujoco.mju_quat2Mat(turn, model.mesh_quat[0])
    return model.mesh_vert.astype(float) @ turn.reshape(3, 3).T + model.mesh_pos[0]

"""URDF, made ready for the engine's own reader.

Owns: checking what the engine would take without a word (links and joints of one name, parents that
are not there, inertias that no body has), and finding and converting meshes.
Invariants: no link disappears: fixed joints are kept as bodies, visual shapes as geoms that collide
with nothing. What the file says in a ``<mujoco>`` element of its own counts.
Failure: ``ModelLoadError`` naming link, joint or file.
"""

from __future__ import annotations

import copy
import math
from collections import Counter
from typing import Final, NamedTuple
from xml.etree import ElementTree as ET
from xml.etree.ElementTree import Element

import numpy as np

from mjhost.description import meshes
from mjhost.description.documents import number, numbers, parsed
from mjhost.description.packages import Packages
from mjhost.description.report import NoteKind, Notes
from mjhost.errors import ModelLoadError, did_you_mean

_TYPES: Final = frozenset({"revolute", "continuous", "prismatic", "fixed", "floating", "planar"})
_KNOWN: Final = frozenset({"link", "joint", "material", "mujoco", "transmission", "ros2_control"})
_ROUNDING: Final = 1e-6  # relative


class Limit(NamedTuple):
    """What a joint can do, as the description says; 0 where it does not.

    Attributes:
        lower, upper: rad or m.
        effort: N·m or N.
        velocity: rad/s or m/s.
    """

    lower: float
    upper: float
    effort: float
    velocity: float


class Mimic(NamedTuple):
    """A joint that follows another: position = multiplier · other + offset."""

    joint: str
    multiplier: float
    offset: float


class Joint(NamedTuple):
    """A joint that moves."""

    name: str
    type: str
    limit: Limit | None
    mimic: Mimic | None


class Prepared(NamedTuple):
    """A description that the engine can read.

    Attributes:
        name: of the robot.
        xml: text for the engine.
        assets: files that the text refers to, by name.
        root: the link that has no parent.
        joints: those that move, in the order of the file.
        visual_only: links that have shapes to be seen and none to collide.
        element: the parsed document, for what the engine does not read.
    """

    name: str
    xml: str
    assets: dict[str, bytes]
    root: str
    joints: tuple[Joint, ...]
    visual_only: frozenset[str]
    element: Element


def prepare(
    text: str | bytes,
    label: str,
    packages: Packages,
    notes: Notes,
    *,
    balance: bool,
    floats: bool = False,
) -> Prepared:
    """Checks a description and makes it ready.

    Args:
        text: the URDF.
        label: what to call it.
        packages: finds its files.
        notes: takes what is converted, guessed or left out.
        balance: mend inertias that no body has instead of refusing them.
        floats: whether the root link will move, so that it needs a mass.
    """
    robot = parsed(text, label, "robot")
    links = _named(robot, "link", label)
    joints = _named(robot, "joint", label)
    root = _root(links, joints, label)
    moving = tuple(_joint(name, joint) for name, joint in joints.items() if _moves(joint))
    _check_mimics(moving)
    _note_dropped(robot, notes)
    assets: dict[str, bytes] = {}
    work = copy.deepcopy(robot)
    compiler = _compiler(work)
    carried = {_ends(name, joint)[1] for name, joint in joints.items() if _moves(joint)}
    if floats:
        carried.add(root)
    strict = compiler.get("discardvisual") == "false"
    mends = balance or compiler.get("balanceinertia") == "true"
    for name, link in _named(work, "link", label).items():
        _check_inertia(name, link, notes, mends=mends)
        if name in carried:
            _give_mass(name, link, notes)
        _place_meshes(name, link, packages, assets, notes, strict=strict)
    _settle(compiler, mends=mends)
    return Prepared(
        name=robot.get("name") or label,
        xml=ET.tostring(work, encoding="unicode"),
        assets=assets,
        root=root,
        joints=moving,
        visual_only=frozenset(n for n, link in links.items() if _is_visual_only(link)),
        element=robot,
    )


# -- links and joints ------------------------------------------------------------------------------


def _named(robot: Element, tag: str, label: str) -> dict[str, Element]:
    found: dict[str, Element] = {}
    for element in robot.findall(tag):
        name = element.get("name")
        if not name:
            raise ModelLoadError(f"{label} has a {tag} without a name")
        if name in found:
            raise ModelLoadError(f"{label} has two {tag}s of the name {name!r}")
        found[name] = element
    return found


def _ends(name: str, joint: Element) -> tuple[str, str]:
    ends = []
    for tag in ("parent", "child"):
        element = joint.find(tag)
        link = element.get("link") if element is not None else None
        if not link:
            raise ModelLoadError(f"joint {name!r} has no {tag} link")
        ends.append(link)
    return ends[0], ends[1]


def _root(links: dict[str, Element], joints: dict[str, Element], label: str) -> str:
    """The one link without a parent, if the joints make one tree of the links."""
    if not links:
        raise ModelLoadError(f"{label} has no link")
    parents: dict[str, str] = {}
    for name, joint in joints.items():
        parent, child = _ends(name, joint)
        for link in (parent, child):
            if link not in links:
                raise ModelLoadError(
                    f"joint {name!r} of {label} names a link {link!r} that is not there; "
                    f"{did_you_mean(link, links)}"
                )
        if child in parents:
            raise ModelLoadError(f"link {child!r} of {label} has two parents, one by {name!r}")
        parents[child] = parent
    roots = [link for link in links if link not in parents]
    if len(roots) != 1:
        what = (
            f"several links without a parent: {', '.join(map(repr, roots))}"
            if roots
            else ("no link without a parent: its joints go in a circle")
        )
        raise ModelLoadError(f"{label} has {what}; a robot is one tree")
    for link in links:
        _check_no_circle(link, parents, label)
    return roots[0]


def _check_no_circle(link: str, parents: dict[str, str], label: str) -> None:
    seen = set()
    at = link
    while at in parents:
        if at in seen:
            raise ModelLoadError(f"the joints of {label} go in a circle through link {at!r}")
        seen.add(at)
        at = parents[at]


def _moves(joint: Element) -> bool:
    return joint.get("type") != "fixed"


def _joint(name: str, joint: Element) -> Joint:
    kind = joint.get("type", "")
    if kind not in _TYPES:
        raise ModelLoadError(
            f"joint {name!r} is of type {kind!r}; types are {', '.join(sorted(_TYPES))}"
        )
    return Joint(name, kind, _limit(name, joint), _mimic(name, joint))


def _limit(name: str, joint: Element) -> Limit | None:
    element = joint.find("limit")
    if element is None:
        return None
    what = f"the limit of joint {name!r}"
    values = [number(element, a, 0.0, what) for a in ("lower", "upper", "effort", "velocity")]
    limit = Limit(*values)
    if limit.lower > limit.upper:
        raise ModelLoadError(f"{what} has lower {limit.lower:g} above upper {limit.upper:g}")
    return limit


def _mimic(name: str, joint: Element) -> Mimic | None:
    element = joint.find("mimic")
    if element is None:
        return None
    what = f"the mimic of joint {name!r}"
    return Mimic(
        element.get("joint", ""),
        number(element, "multiplier", 1.0, what),
        number(element, "offset", 0.0, what),
    )


def _check_mimics(joints: tuple[Joint, ...]) -> None:
    names = [joint.name for joint in joints]
    for joint in joints:
        if joint.mimic is not None and joint.mimic.joint not in names:
            raise ModelLoadError(
                f"joint {joint.name!r} mimics {joint.mimic.joint!r}, which does not move; "
                f"{did_you_mean(joint.mimic.joint, names)}"
            )


def _note_dropped(robot: Element, notes: Notes) -> None:
    for tag, count in Counter(e.tag for e in robot if e.tag not in _KNOWN).items():
        notes.add(NoteKind.DROPPED, f"<{tag}>", f"{count} element(s) that are not read")


# -- inertia ---------------------------------------------------------------------------------------


def _check_inertia(name: str, link: Element, notes: Notes, *, mends: bool) -> None:
    inertial = link.find("inertial")
    if inertial is None:
        return
    mass, inertia = inertial.find("mass"), inertial.find("inertia")
    if mass is not None and number(mass, "value", 0.0, f"the mass of link {name!r}") < 0:
        raise ModelLoadError(f"link {name!r} has a negative mass")
    if inertia is None:
        return
    what = f"the inertia of link {name!r}"
    xx, xy, xz, yy, yz, zz = (
        number(inertia, a, 0.0, what) for a in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    )
    least, middle, most = map(float, np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
    possible = most <= (least + middle) * (1 + _ROUNDING) + _ROUNDING * most
    if mends or (least > 0 and possible):
        return
    told = f"{least:.3g}, {middle:.3g}, {most:.3g}"
    if possible and most > 0 and least >= -_ROUNDING * most:  # thin: the engine wants some
        more = most * 10 * _ROUNDING
        _set_moments(inertia, xx + more, yy + more, zz + more)
        notes.add(NoteKind.SUSPICIOUS, f"link {name}", f"moments {told}: a little is added")
    elif most <= _NEGLIGIBLE:
        mean = max((xx + yy + zz) / 3, most / 3, _LEAST_INERTIA)
        _set_moments(inertia, mean, mean, mean)
        for pair in ("ixy", "ixz", "iyz"):
            inertia.set(pair, "0")
        text = f"no body has its moments {told}; made equal"
        notes.add(NoteKind.SUSPICIOUS, f"link {name}", text, "a placeholder of the description")
    else:
        raise ModelLoadError(
            f"{what} breaks A + B >= C: no body has the principal moments {told}; correct it, or "
            "let it be balanced (balance_inertia, --balance-inertia)"
        )


def _set_moments(inertia: Element, xx: float, yy: float, zz: float) -> None:
    for axis, value in (("ixx", xx), ("iyy", yy), ("izz", zz)):
        inertia.set(axis, repr(value))


def _give_mass(name: str, link: Element, notes: Notes) -> None:
    """A link that moves has to have some mass; one without any gets next to nothing."""
    inertial = link.find("inertial")
    mass = inertial.find("mass") if inertial is not None else None
    weighs = mass is not None and number(mass, "value", 0.0, f"the mass of link {name!r}") > 0
    if weighs or (inertial is None and link.find("collision") is not None):
        return
    if inertial is not None:
        link.remove(inertial)
    made = ET.SubElement(link, "inertial")
    ET.SubElement(made, "mass", value=repr(_LEAST_MASS))
    sides = dict.fromkeys(("ixx", "iyy", "izz"), repr(_LEAST_INERTIA))
    ET.SubElement(made, "inertia", {**dict.fromkeys(("ixy", "ixz", "iyz"), "0"), **sides})
    text = f"has no mass and moves; given {_LEAST_MASS:g} kg, {_LEAST_INERTIA:g} kg·m²"
    notes.add(NoteKind.DEFAULTED, f"link {name}", text, "give it its mass in the description")


_LEAST_MASS: Final = 1e-6
_LEAST_INERTIA: Final = 1e-9
_NEGLIGIBLE: Final = 1e-5  # kg·m²; that of 10 g in a ball of 5 cm


# -- meshes ----------------------------------------------------------------------------------------


def _place_meshes(
    name: str,
    link: Element,
    packages: Packages,
    assets: dict[str, bytes],
    notes: Notes,
    *,
    strict: bool,
) -> None:
    """Puts the names of converted files in the place of meshes, an element per part.

    A shape that is only seen may be missing, unless the file itself asks for all of them.
    """
    for element in [e for e in link if e.tag in ("visual", "collision")]:
        mesh = element.find("geometry/mesh")
        if mesh is None:
            continue
        file = mesh.get("filename")
        if not file:
            raise ModelLoadError(f"link {name!r} has a mesh without a file name")
        scale = numbers(mesh, "scale", "1 1 1", 3, f"the mesh {file} of link {name!r}")
        if not all(scale):
            raise ModelLoadError(f"the scale of {file} in link {name!r} must not be 0")
        path = packages.path(file)
        try:
            if not path.is_file():
                raise ModelLoadError(f"{file}: there is no file {path}")
            parts = meshes.prepare(path.read_bytes(), path.name, notes)
        except ModelLoadError as error:
            if strict or element.tag == "collision":
                raise
            notes.add(NoteKind.DROPPED, f"visual of link {name}", str(error))
            parts = ()
        at = list(link).index(element)
        link.remove(element)
        for offset, part in enumerate(parts):
            link.insert(at + offset, _with_part(element, part, scale, assets))


def _with_part(
    element: Element, part: meshes.PreparedMesh, scale: list[float], assets: dict[str, bytes]
) -> Element:
    made = copy.deepcopy(element)
    mesh = made.find("geometry/mesh")
    assert mesh is not None, "it was there in the original"
    # The engine knows a mesh by the stem of its file alone, so the scale has to be in it.
    stem, _, ending = part.name.rpartition(".")
    factor = "" if scale == [1.0, 1.0, 1.0] else f"_{abs(hash(tuple(scale))):x}"
    file = f"{stem}{factor}.{ending}"
    assets[file] = part.content
    mesh.set("filename", file)
    if part.rgba is not None and made.tag == "visual" and made.find("material") is None:
        material = ET.SubElement(made, "material", name=f"colour_{stem}")
        ET.SubElement(material, "color", rgba=" ".join(map(str, part.rgba)))
    return made


def _is_visual_only(link: Element) -> bool:
    return link.find("visual") is not None and link.find("collision") is None


# -- what the engine is told -----------------------------------------------------------------------


def _compiler(robot: Element) -> Element:
    """The file's own settings for the engine, or new ones."""
    extension = robot.find("mujoco")
    if extension is None:
        extension = ET.SubElement(robot, "mujoco")
    compiler = extension.find("compiler")
    return ET.SubElement(extension, "compiler") if compiler is None else compiler


def _settle(compiler: Element, *, mends: bool) -> None:
    compiler.attrib.pop("meshdir", None)  # every file is an asset in memory by now
    compiler.attrib.pop("assetdir", None)
    compiler.set("strippath", "false")
    compiler.attrib.setdefault("discardvisual", "false")
    compiler.attrib.setdefault("fusestatic", "false")
    if mends:
        compiler.set("balanceinertia", "true")


def is_limited(joint: Joint) -> bool:
    """Whether the position of a joint has bounds."""
    bounded = joint.limit is not None and joint.type in ("revolute", "prismatic")
    return bounded and math.isfinite(joint.limit.lower) and joint.limit.lower < joint.limit.upper  # type: ignore[union-attr]

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
from typing import Final, NamedTuple
from xml.etree import ElementTree as ET
from xml.etree.ElementTree import Element

from mjhost.description import elements, masses, meshes
from mjhost.description.documents import number, numbers, parsed
from mjhost.description.packages import Packages
from mjhost.description.report import NoteKind, Notes
from mjhost.errors import ModelLoadError, did_you_mean

_TYPES: Final = frozenset({"revolute", "continuous", "prismatic", "fixed", "floating", "planar"})
_SINGLE: Final = frozenset({"revolute", "continuous", "prismatic"})
_WORLD: Final = "world"  # what the engine calls the body that all others hang from


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
        weighed_by_shape: links whose mass is that of the shapes that collide.
        tree: parent link, child link, and whether the joint between them moves.
        element: the parsed document, for what the engine does not read.
    """

    name: str
    xml: str
    assets: dict[str, bytes]
    root: str
    joints: tuple[Joint, ...]
    visual_only: frozenset[str]
    weighed_by_shape: frozenset[str]
    tree: tuple[tuple[str, str, bool], ...]
    element: Element


def prepare(
    text: str | bytes,
    label: str,
    packages: Packages,
    notes: Notes,
    *,
    balance: bool,
    floats: bool = False,
    visuals: bool = True,
) -> Prepared:
    """Checks a description and makes it ready.

    Args:
        text: the URDF.
        label: what to call it.
        packages: finds its files.
        notes: takes what is converted, guessed or left out.
        balance: mend inertias that no body has instead of refusing them.
        floats: whether the root link will move, so that it needs a mass.
        visuals: keep what is only seen.
    """
    robot = parsed(text, label, "robot")
    links = _named(robot, "link", label)
    joints = _named(robot, "joint", label)
    root = _root(links, joints, label)
    moving = _checked(links, joints, root, label)
    elements.note_unread(robot, notes)
    assets: dict[str, bytes] = {}
    shelf = meshes.Shelf(packages, notes)
    work = copy.deepcopy(robot)
    compiler = _compiler(work)
    tree = [(*_ends(name, joint), _moves(joint)) for name, joint in joints.items()]
    strict = compiler.get("discardvisual") == "false"
    mends = balance or compiler.get("balanceinertia") == "true"
    made = _named(work, "link", label)
    for name, link in made.items():
        masses.check(name, link, notes, mends=mends)
    weighed = masses.complete(made, tree, root if floats else None, notes)
    for name, link in made.items():
        if not visuals:
            _drop_visuals(name, link, notes)
        _place_meshes(name, link, shelf, assets, notes, strict=strict)
    _settle(compiler, mends=mends)
    for joint in work.findall("joint"):
        _leave_out(joint)
    return Prepared(
        name=robot.get("name") or label,
        xml=ET.tostring(work, encoding="unicode"),
        assets=assets,
        root=root,
        joints=moving,
        visual_only=frozenset(n for n, link in links.items() if _is_visual_only(link)),
        weighed_by_shape=weighed,
        tree=tuple(tree),
        element=robot,
    )


def _checked(
    links: dict[str, Element], joints: dict[str, Element], root: str, label: str
) -> tuple[Joint, ...]:
    """The joints that move, if all that there is can be."""
    if _WORLD in links and root != _WORLD:
        raise ModelLoadError(f"link {_WORLD!r} of {label} is not the root; call it something else")
    moving = tuple(_joint(name, joint) for name, joint in joints.items() if _moves(joint))
    _check_mimics(moving)
    _check_floating(joints, root)
    elements.check(links, joints)
    return moving


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
    limit = _limits(name, element)
    if limit.lower > limit.upper:
        raise ModelLoadError(
            f"the limit of joint {name!r} has lower {limit.lower:g} above upper {limit.upper:g}"
        )
    return limit


def _limits(name: str, element: Element) -> Limit:
    what = f"the limit of joint {name!r}"
    return Limit(
        *(
            numbers(element, attribute, "0", 1, what, finite=False)[0]
            for attribute in ("lower", "upper", "effort", "velocity")
        )
    )


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


def _leave_out(joint: Element) -> None:
    """What the engine would take otherwise than it is meant: mimics, which we add; no bounds."""
    for element in joint.findall("mimic"):
        joint.remove(element)
    limit = joint.find("limit")
    if limit is None:
        return
    lower, upper, effort, _ = _limits(joint.get("name", ""), limit)
    bounded = joint.get("type") != "continuous" and -math.inf < lower < upper < math.inf
    if not bounded:  # 3.15 bounds continuous joints too, 4.0 prints a warning about equal bounds
        for attribute in ("lower", "upper"):
            limit.attrib.pop(attribute, None)
    if not 0 < effort < math.inf:
        limit.attrib.pop("effort", None)


def _check_mimics(joints: tuple[Joint, ...]) -> None:
    """Each follows another that moves about or along one axis, and nobody himself in the end."""
    followed = {joint.name: joint.mimic.joint for joint in joints if joint.mimic is not None}
    types = {joint.name: joint.type for joint in joints}
    for name, other in followed.items():
        if other not in types:
            raise ModelLoadError(
                f"joint {name!r} mimics {other!r}, which does not move; "
                f"{did_you_mean(other, types)}"
            )
        for end in (name, other):
            if types[end] not in _SINGLE:
                raise ModelLoadError(
                    f"joint {name!r} mimics {other!r}; both must turn or slide, {end!r} is "
                    f"{types[end]}"
                )
        at, passed = other, {name}
        while at in followed and at not in passed:
            passed.add(at)
            at = followed[at]
        if at in passed:
            raise ModelLoadError(
                f"joint {name!r} mimics {other!r}, and so in the end {at!r} itself"
            )


def _check_floating(joints: dict[str, Element], root: str) -> None:
    """A link can only float in the world."""
    for name, joint in joints.items():
        parent, _ = _ends(name, joint)
        if joint.get("type") == "floating" and (parent, root) != (_WORLD, _WORLD):
            raise ModelLoadError(
                f"joint {name!r} floats below link {parent!r}; a link floats in the world only: "
                f"let its parent be the root and be called {_WORLD!r}, or leave out the joint and "
                "load with base='free' (--base free)"
            )


# -- meshes ----------------------------------------------------------------------------------------


def _place_meshes(
    name: str,
    link: Element,
    shelf: meshes.Shelf,
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
        path = shelf.path(file)
        try:
            parts = shelf.parts(path, file)
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
    factor = "" if scale == [1.0, 1.0, 1.0] else "_" + "_".join(f"{each:.17g}" for each in scale)
    file = f"{stem}{factor}.{ending}"
    assets[file] = part.content
    mesh.set("filename", file)
    if part.rgba is not None and made.tag == "visual" and made.find("material") is None:
        material = ET.SubElement(made, "material", name=f"colour_{stem}")
        ET.SubElement(material, "color", rgba=" ".join(map(str, part.rgba)))
    return made


def _drop_visuals(name: str, link: Element, notes: Notes) -> None:
    """Leaves only what collides, primitives of a link with visuals only among that."""
    lends = _is_visual_only(link)
    seen = link.findall("visual")
    lent = [e for e in seen if lends and e.find("geometry/mesh") is None]
    for element in seen:
        if element in lent:
            element.tag = "collision"
        else:
            link.remove(element)
    if lent:
        text = f"has nothing that collides: {len(lent)} visual primitive(s) do"
        notes.add(NoteKind.DEFAULTED, f"link {name}", text)
    if seen:
        text = f"{len(seen) - len(lent)} visual shape(s) left out as asked"
        notes.add(NoteKind.DROPPED, f"visuals of link {name}", text)


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
    limit = joint.limit
    if limit is None or joint.type not in ("revolute", "prismatic"):
        return False
    return -math.inf < limit.lower < limit.upper < math.inf

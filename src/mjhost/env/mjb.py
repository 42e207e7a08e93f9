"""Binary models, looked at before the engine sees them.

An MJB file is a memory image without a checksum. The engine compares its header and sizes, but
follows the numbers inside: a plugin slot that is not the one meant runs another plugin or ends the
process, and so can a flipped bit.

Owns: reading the arrays of an MJB image without the engine; the rules of ``check_image``.
Invariants: an image that passes ``check_image`` has the installed engine's header, consistent sizes
and, if it uses plugins, slots that are registered in this process with as many attributes and the
capabilities that the model asks of them; one without plugins was also loaded and stepped once in a
child process, which had to live.
Threads: any; a child takes some tenths of a second, during which the GIL is free.
Failure: ``ModelLoadError``; nothing is left behind.
Not a goal: knowing which plugin was meant. The image holds slots, not names: save the model as XML
where that matters.
"""

from __future__ import annotations

import ctypes
import functools
import math
import signal
import subprocess
import sys
from typing import Any, Final

import mujoco
import numpy as np
from mujoco.introspect import ast_nodes, structs

from mjhost.errors import ModelLoadError
from mjhost.layout import constants, library, model_sizes

_ID: Final = 54321
_HEADER: Final = np.dtype("=5i4")
_CHILD_TIMEOUT_S: Final = 60.0
_PASSED_LIMIT: Final = 64
_TYPES: Final = {
    "char": "S1",
    "float": "=f4",
    "int": "=i4",
    "mjtBool": "=u1",
    "mjtByte": "=u1",
    "mjtNum": "=f8",
    "mjtSize": "=i8",
}
# What reads the image in the child: it has to live, whatever it says.
_CHILD: Final = """
import sys, mujoco
config = mujoco.MjLogConfig.get()
config.logto_console = config.logto_file = False
mujoco.MjLogConfig.set(config)
image = sys.stdin.buffer.read()
try:
    model = mujoco.MjModel.from_binary_path("model.mjb", {"model.mjb": image})
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    mujoco.mj_step(model, data)
except Exception:
    pass
"""
_passed: Final[dict[str, None]] = {}  # hashes of images that a child survived, oldest first


class _PluginHead(ctypes.Structure):
    """The part of ``mjpPlugin`` that is looked at."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("nattribute", ctypes.c_int),
        ("attributes", ctypes.c_void_p),
        ("capabilityflags", ctypes.c_int),
        ("needstage", ctypes.c_int),
    )


def check_image(image: bytes, label: str, digest: str) -> None:
    """Refuses a binary model that the engine would not read, or not survive.

    Args:
        image: the file's content.
        label: what to call it in an error.
        digest: a hash of the image; one that passed is not tried in a child again.

    Raises:
        ModelLoadError: with the reason.
    """
    _check_header(image, label)
    view = ImageView(image, label)
    if view.size("nplugin"):
        _check_plugins(view, label)
    elif digest not in _passed:
        _try_in_child(image, label)
        _passed[digest] = None
        while len(_passed) > _PASSED_LIMIT:
            del _passed[next(iter(_passed))]


def _check_header(image: bytes, label: str) -> None:
    if len(image) < _HEADER.itemsize:
        raise ModelLoadError(f"{label} is no MJB file: {len(image)} bytes do not hold a header")
    magic, real, sizes, version, _ = np.frombuffer(image, "=i4", 5).tolist()
    if magic != _ID:
        raise ModelLoadError(f"{label} is no MJB file: it does not begin like one")
    if version != _version_number():
        raise ModelLoadError(
            f"{label} was written by MuJoCo {_dotted(version)} and can be read by no other; this "
            f"is {mujoco.mj_versionString()}: save the model again, or load its XML"
        )
    if real != np.dtype(np.float64).itemsize or sizes != len(model_sizes()):
        raise ModelLoadError(f"{label} was written by a different build of MuJoCo; save it again")


@functools.cache
def _version_number() -> int:
    major, minor, patch = (int(part) for part in mujoco.mj_versionString().split(".")[:3])
    return major * 1_000_000 + minor * 1_000 + patch


def _dotted(version: int) -> str:
    return f"{version // 1_000_000}.{version // 1_000 % 1_000}.{version % 1_000}"


class ImageView:
    """Sizes and arrays of an MJB image; its arrays fill it up to the end."""

    def __init__(self, image: bytes, label: str) -> None:
        self._image = image
        names = model_sizes()
        start = _HEADER.itemsize
        if len(image) < start + 8 * len(names):
            raise ModelLoadError(f"{label} is cut short: {len(image)} bytes do not hold the sizes")
        values = np.frombuffer(image, "=i8", len(names), start).tolist()
        self._sizes = dict(zip(names, values, strict=True))
        self._known = constants() | self._sizes
        self._offsets, total = self._layout()
        if any(count < 0 for _, _, count in self._offsets.values()):
            raise ModelLoadError(f"{label} is damaged: it has a negative size")
        self._start = len(image) - total
        if self._start < start + 8 * len(names):
            raise ModelLoadError(
                f"{label} is cut short: its arrays take {total} bytes, the file has {len(image)}"
            )

    def size(self, name: str) -> int:
        """A size member of ``mjModel``."""
        size: int = self._sizes[name]
        return size

    def array(self, name: str) -> np.ndarray[Any, Any]:
        """A read-only view of one array of ``mjModel``, flat."""
        offset, kind, count = self._offsets[name]
        return np.frombuffer(self._image, kind, count, self._start + offset)

    def _layout(self) -> tuple[dict[str, tuple[int, str, int]], int]:
        offsets, total = {}, 0
        for name, kind, extents in _model_arrays():
            count = math.prod(self._extent(extent) for extent in extents)
            offsets[name] = total, kind, count
            total += count * np.dtype(kind).itemsize
        return offsets, total

    def _extent(self, extent: str) -> int:
        known = self._known
        return math.prod(int(f) if f.isdigit() else known[f] for f in extent.split("*"))


@functools.cache
def _model_arrays() -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    return tuple(
        (field.name, _TYPES[field.type.inner_type.name], tuple(map(str, field.array_extent)))
        for field in structs.STRUCTS["mjModel"].fields
        if isinstance(field.type, ast_nodes.PointerType) and field.array_extent
    )


# -- plugins -------------------------------------------------------------------------------------


def _check_plugins(view: ImageView, label: str) -> None:
    values = _attribute_values(view, label)
    needed = _capabilities(view, label)
    for instance, slot in enumerate(view.array("plugin").tolist()):
        plugin = _plugin_at(slot)
        problem = (
            "no plugin is registered there"
            if plugin is None
            else _misfit(plugin, values[instance], needed[instance])
        )
        if problem:
            raise ModelLoadError(
                f"{label} stores engine plugins as slot numbers, and its instance {instance} wants "
                f"slot {slot}: {problem}; registered: {_registered()}; load the model's XML, which "
                "names its plugins"
            )


def _misfit(plugin: _PluginHead, values: bytes, needed: int) -> str | None:
    name = plugin.name.decode("utf-8", "replace")
    count = values.count(b"\0")
    # Without attributes one zero byte is stored all the same.
    if plugin.nattribute != count and not (plugin.nattribute == 0 and values == b"\0"):
        return f"{name!r} there has {plugin.nattribute} attributes, the model stores {count}"
    if needed & ~plugin.capabilityflags:
        return f"{name!r} there cannot do what the model asks of it"
    return None


def _attribute_values(view: ImageView, label: str) -> list[bytes]:
    """The values of every instance, each ended by a zero byte."""
    values = view.array("plugin_attr").tobytes()
    starts = view.array("plugin_attradr").tolist()
    ends = [*starts[1:], len(values)]
    if any(not 0 <= a <= b for a, b in zip(starts, ends, strict=True)):
        raise ModelLoadError(f"{label} is damaged: its plugin attributes lie outside the file")
    return [values[a:b] for a, b in zip(starts, ends, strict=True)]


_USES: Final = {
    "actuator_plugin": "mjPLUGIN_ACTUATOR",
    "sensor_plugin": "mjPLUGIN_SENSOR",
    "body_plugin": "mjPLUGIN_PASSIVE",
    "geom_plugin": "mjPLUGIN_SDF",
}


def _capabilities(view: ImageView, label: str) -> list[int]:
    """What every instance is asked to do, as capability bits."""
    needed = [0] * view.size("nplugin")
    for array, capability in _USES.items():
        for instance in view.array(array).tolist():
            if instance >= len(needed):
                raise ModelLoadError(f"{label} is damaged: it uses plugin instance {instance}")
            if instance >= 0:
                needed[instance] |= constants()[capability]
    return needed


def _plugin_at(slot: int) -> _PluginHead | None:
    lookup = library().mjp_getPluginAtSlot
    lookup.argtypes, lookup.restype = (ctypes.c_int,), ctypes.POINTER(_PluginHead)
    if not 0 <= slot < library().mjp_pluginCount():
        return None
    found = lookup(slot)
    return found.contents if found else None


def _registered() -> str:
    found = (_plugin_at(slot) for slot in range(library().mjp_pluginCount()))
    return ", ".join(f"{i} {p.name.decode('utf-8', 'replace')!r}" for i, p in enumerate(found) if p)


# -- the trial -----------------------------------------------------------------------------------


def _try_in_child(image: bytes, label: str) -> None:
    """Loads and steps the image where a crash harms nobody."""
    if not sys.executable:
        return  # an embedded interpreter: there is no Python to start
    try:
        done = subprocess.run(  # noqa: S603 - this interpreter, a constant program
            [sys.executable, "-I", "-c", _CHILD],
            input=image,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_CHILD_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        problem = f"it did not load and step within {_CHILD_TIMEOUT_S:g} s"
    else:
        # A child that could not run at all (status 1) says nothing about the image.
        if done.returncode >= 0:
            return
        problem = f"it ended a trial process with {signal.Signals(-done.returncode).name}"
    raise ModelLoadError(f"{label} is damaged or unusable: {problem}; save the model again")

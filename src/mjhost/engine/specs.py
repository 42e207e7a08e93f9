"""Specs on their way between Python and the engine's extension points, where they are addresses.

Owns: the copy that the engine is given, and what encoders are given of a spec.
Invariants: the engine's spec is only read. Text has 17 digits, which keeps every number.
Threads: ``Encodable`` is used on the thread that encodes, while the engine waits for it.
Failure: ``ValueError`` with the engine's reason.
Not a goal: specs that are written back; the engine's writer loses some of them (see docs).
"""

from __future__ import annotations

import ctypes
import posixpath
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, cached_property
from typing import Final, NamedTuple
from xml.etree import ElementTree as ET

import mujoco
import numpy as np

from mjhost.engine.abi.structs import Address, text
from mjhost.engine.abi.symbols import _keeping, _releasing, engine
from mjhost.engine.surfacing import one_line
from mjhost.layout import offset_of

ENCODABLE: Final = ("spec", "model", "xml", "assets", "name")
"""What an encoder may ask for; attributes of ``Encodable``."""

_DIGITS: Final = 17
_REPORT_SIZE: Final = 1024
_TEXTURE_FILES: Final = (
    "file", "fileright", "fileleft", "fileup", "filedown", "filefront", "fileback",
)  # fmt: skip


class _Kind(NamedTuple):
    """Elements that refer to files: their type, their compiler's directory, their attributes."""

    type: int
    directory: str
    attributes: tuple[str, ...]


_KINDS: Final = {
    "mesh": _Kind(int(mujoco.mjtObj.mjOBJ_MESH), "meshdir", ("file",)),
    "hfield": _Kind(int(mujoco.mjtObj.mjOBJ_HFIELD), "meshdir", ("file",)),
    "skin": _Kind(int(mujoco.mjtObj.mjOBJ_SKIN), "meshdir", ("file",)),
    "texture": _Kind(int(mujoco.mjtObj.mjOBJ_TEXTURE), "texturedir", _TEXTURE_FILES),
}


class _Calls:
    """The engine's functions that are about specs as addresses."""

    def __init__(self) -> None:
        integer, string = ctypes.c_int, ctypes.c_char_p
        report = (string, integer)
        self.copy_spec = _releasing("mj_copySpec", Address, Address)
        self.compile = _releasing("mj_compile", Address, Address, Address)
        self.delete_model = _releasing("mj_deleteModel", None, Address)
        self.spec_error = _keeping("mjs_getError", string, Address)
        self.string = _keeping("mjs_getString", string, Address)
        self.save_xml = _releasing("mj_saveXMLString", integer, Address, *report, *report)
        self.get_precision = _keeping("_mjPRIVATE__get_xml_precision", integer)
        self.set_precision = _keeping("_mjPRIVATE__set_xml_precision", None, integer)
        self.first_element = _keeping("mjs_firstElement", Address, Address, integer)
        self.next_element = _keeping("mjs_nextElement", Address, Address, Address)
        self.compiler = _keeping("mjs_getCompiler", Address, Address)
        self.model_size = _keeping("mj_sizeModel", ctypes.c_int64, Address)
        self.save_model = _keeping("mj_saveModel", None, Address, string, Address, ctypes.c_int64)


@cache
def _calls() -> _Calls:
    return _Calls()


def copied(spec: mujoco.MjSpec) -> int:
    """Address of a copy of ``spec``, for the engine to own."""
    address = int(_calls().copy_spec(spec._address))
    if not address:
        raise ValueError("the spec cannot be copied")
    return address


# -- what encoders get ---------------------------------------------------------------------------


class Encodable:
    """A spec that is being encoded, as whatever an encoder asks for, made when it is asked for."""

    def __init__(self, spec: int, model: int, vfs: int, name: str) -> None:
        self._spec = spec
        self._model = model
        self._vfs = vfs
        self.name = name

    @property
    def xml(self) -> str:
        """MJCF text that refers to ``assets``."""
        return self._document[0]

    @property
    def assets(self) -> dict[str, bytes]:
        """Files by name."""
        return dict(self._document[1])

    @cached_property
    def spec(self) -> mujoco.MjSpec:
        """The same as an ``MjSpec``."""
        xml, assets = self._document
        return mujoco.MjSpec.from_string(xml, assets=dict(assets))

    @cached_property
    def model(self) -> mujoco.MjModel | None:
        """A copy of the model that ``encode`` was given."""
        if not self._model:
            return None
        image = np.empty(int(_calls().model_size(self._model)), np.uint8)
        _calls().save_model(self._model, None, image.ctypes.data, image.size)
        model = mujoco.MjModel.from_binary_path("model.mjb", {"model.mjb": image.tobytes()})
        # The one field that the image leaves out.
        offset = offset_of("mjModel", "signature")
        signature = ctypes.c_uint64.from_address(self._model + offset).value
        ctypes.c_uint64.from_address(model._address + offset).value = signature
        return model

    @cached_property
    def _document(self) -> tuple[str, dict[str, bytes]]:
        with _compiled(self._spec, self._vfs) as spec:
            root = ET.fromstring(_saved(spec))  # noqa: S314 - written by the engine
            assets = _collected(root, spec, self._vfs)
        return ET.tostring(root, encoding="unicode"), assets


@contextmanager
def _compiled(spec: int, vfs: int) -> Iterator[int]:
    """The spec, or a compiled copy of one that was not compiled: only those can be written."""
    calls = _calls()
    if calls.save_xml(spec, None, 0, None, 0) >= 0:
        yield spec
        return
    copy = int(calls.copy_spec(spec))
    try:
        model = int(calls.compile(copy, vfs))
        if not model:
            raise ValueError(f"it does not compile: {one_line(text(calls.spec_error(copy)))}")
        calls.delete_model(model)
        yield copy
    finally:
        engine().delete_spec(copy)


def _saved(spec: int) -> str:
    calls, report = _calls(), ctypes.create_string_buffer(_REPORT_SIZE)
    before = calls.get_precision()
    calls.set_precision(_DIGITS)  # this thread's
    try:
        size = 1 << 16
        while True:
            buffer = ctypes.create_string_buffer(size)
            needed = int(calls.save_xml(spec, buffer, size, report, _REPORT_SIZE))
            if needed < 0:
                raise ValueError(f"it cannot be written: {one_line(text(report.value))}")
            if needed < size:
                return buffer.value.decode()
            size = needed + 1
    finally:
        calls.set_precision(before)


def _collected(root: ET.Element, spec: int, vfs: int) -> dict[str, bytes]:
    """The files that a document refers to; it then refers to them by the names returned."""
    taken: dict[str, bytes] = {}
    home = text(_calls().string(_pointer(spec + offset_of("mjSpec", "modelfiledir"))))
    strip = bool(ctypes.c_bool.from_address(spec + offset_of("mjSpec", "strippath")).value)
    for tag, kind in _KINDS.items():
        elements = [element for element in root.iter(tag) if _is_asset(root, element, tag)]
        for element, directory in zip(elements, _directories(spec, kind), strict=True):
            for attribute in kind.attributes:
                file = element.get(attribute)
                if file:
                    name = _located(file, directory, strip=strip)
                    element.set(attribute, _filed(taken, file, _file(name, home, vfs)))
    for compiler in root.iter("compiler"):
        for attribute in ("meshdir", "texturedir", "assetdir", "strippath"):
            compiler.attrib.pop(attribute, None)
    return taken


def _is_asset(root: ET.Element, element: ET.Element, tag: str) -> bool:
    # `<mesh>` is also what defaults call theirs.
    parents = ("asset", "deformable") if tag == "skin" else ("asset",)
    return any(element in parent for name in parents for parent in root.iter(name))


def _directories(spec: int, kind: _Kind) -> list[str]:
    """The directory of each element, which is that of the document it came from."""
    calls, found = _calls(), list[str]()
    offset = offset_of("mjsCompiler", kind.directory)
    element = calls.first_element(spec, kind.type)
    while element:
        compiler = calls.compiler(element)
        found.append(text(calls.string(_pointer(compiler + offset))) if compiler else "")
        element = calls.next_element(spec, element)
    return found


def _located(file: str, directory: str, *, strip: bool) -> str:
    """Where the engine looks for a file, seen from the document."""
    if engine().find_provider(file) is not None:
        return file
    return posixpath.join(directory, posixpath.basename(file) if strip else file)


def _pointer(address: int) -> int:
    return ctypes.c_size_t.from_address(address).value


def _file(name: str, directory: str, vfs: int) -> bytes:
    resource, complaint = engine().open_resource(name, directory=directory, vfs=vfs)
    if not resource:
        raise ValueError(f"the file {name!r} of the spec cannot be opened: {one_line(complaint)}")
    try:
        content = engine().read_resource(resource)
    finally:
        engine().close_resource(resource)
    if content is None:
        raise ValueError(f"the file {name!r} of the spec cannot be read")
    return content


def _filed(taken: dict[str, bytes], file: str, content: bytes) -> str:
    """Puts ``content`` among the assets, under a plain name that nothing else has."""
    base = "".join(c if c.isalnum() or c in "._-" else "_" for c in posixpath.basename(file))
    stem, suffix = posixpath.splitext(base)
    # The engine finds files in memory without regard to upper and lower case.
    lower = {name.lower(): name for name in taken}
    name, number = base, 1
    while (other := lower.get(name.lower())) is not None and taken[other] != content:
        number += 1
        name = f"{stem}-{number}{suffix}"
    if other is not None:
        return other
    taken[name] = content
    return name

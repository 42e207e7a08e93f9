"""Models: how one is named, and how it becomes a pair of model and data.

Owns: ``ModelSource``, which can be compiled again and again, and ``compile_source``.
Invariants: a source keeps private copies of the objects it was made of; a file is read again at
each compile. Whatever is in ``CompiledModel`` has survived a forward and has options that the
engine survives. Compiled through ``MjSpec`` where there is one, which gives the very bytes of the
engine's own loader.
Threads: any; the GIL is free while the engine compiles. Compiles wait for each other: the engine's
asset cache is emptied before each and must not be filled by another one meanwhile. A resource
provider that compiles a model of its own on one of the compiler's threads would wait for itself.
Failure: ``ModelLoadError`` with the engine's reason in one line; nothing is printed, no log file is
written, nothing else changes.
Not a goal: URDF beyond the engine's own reader, xacro, ``package://``: ``mjhost.description``.
"""

from __future__ import annotations

import contextlib
import copy
import ctypes
import hashlib
import os
import re
import stat
import threading
import time
import warnings as python_warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeAlias

import mujoco
import numpy as np

from mjhost import description
from mjhost.description import ImportReport, is_description
from mjhost.description.packages import Packages
from mjhost.env import engine_log
from mjhost.env.engine_log import WarningCounters
from mjhost.env.extensions import (
    hint_for,
    model_suffixes,
    prepare_decoder,
    raise_failure,
    raise_interrupt,
    register_bundled,
    told,
)
from mjhost.env.mjb import check_image
from mjhost.errors import InvalidArgumentError, ModelLoadError, did_you_mean
from mjhost.layout import library
from mjhost.options import check_runnable

ModelInput: TypeAlias = "str | os.PathLike[str] | mujoco.MjSpec | mujoco.MjModel"
"""What a model can be given as: a path, MJCF or URDF text, a spec or a model (both are copied)."""

Kind: TypeAlias = Literal["path", "resource", "text", "spec", "model"]

_SPEC_SUFFIXES: Final = (".xml", ".urdf", ".xacro", ".mjz", ".zip")
_SUFFIXES: Final = (*_SPEC_SUFFIXES, ".mjb")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_ENGINE_ERRORS: Final = (
    mujoco.FatalError,
    mujoco.UnexpectedError,
    MemoryError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)
_compiling = threading.RLock()


def _forget_compiles() -> None:
    """In a forked child nobody compiles, whatever a vanished thread did."""
    global _compiling
    _compiling = threading.RLock()


os.register_at_fork(after_in_child=_forget_compiles)


@dataclass(frozen=True, slots=True, eq=False)
class ModelSource:
    """How a model is named, and what it takes to compile it again.

    Make one with ``ModelSource.of``.

    Attributes:
        kind: what it was made of.
        label: what to call it: the path, or a description.
        path: the file, absolute; ``None`` if there is none.
        origin: what was loaded before structural edits were made of it; ``None`` without any.
        edits: how many there were.
    """

    kind: Kind
    label: str
    path: Path | None
    _content: Any
    _assets: dict[str, bytes] | None = None
    origin: ModelSource | None = None
    edits: int = 0

    @classmethod
    def of(cls, model: ModelInput | ModelSource, *, assets: dict[str, bytes] | None = None) -> Self:
        """A source of ``model``.

        Args:
            model: a path to an MJCF, URDF, MJB or mjz file (relative ones are resolved now); text
                with MJCF or URDF, told by its ``<``; the name of something that a registered
                resource provider opens; an ``MjSpec`` or ``MjModel``, copied now.
            assets: files that the text refers to, by name.

        Raises:
            InvalidArgumentError: not one of these, or assets for anything but text.
            ModelLoadError: of a kind that is not supported, or it cannot be copied.
        """
        if isinstance(model, cls):
            return model
        if isinstance(model, str) and "<" in model:
            kept = None if assets is None else _checked_assets(assets)
            return cls("text", "XML text", None, model, kept)
        if assets is not None:
            raise InvalidArgumentError(
                "assets go with a model given as XML text; a file finds them next to it, a spec "
                "has its own"
            )
        return cls._of_object(model)

    def edited(self, spec: mujoco.MjSpec) -> ModelSource:
        """This source after one more structural edit; nobody else has ``spec``."""
        origin = self.origin or self
        label = f"{origin.label} (edited)"
        return ModelSource("spec", label, None, spec, None, origin, self.edits + 1)

    @classmethod
    def _of_object(cls, model: Any) -> Self:
        if isinstance(model, mujoco.MjSpec):
            return cls("spec", f"MjSpec {model.modelname!r}", None, _copied(model))
        if isinstance(model, mujoco.MjModel):
            return cls("model", f"MjModel {_model_name(model)!r}", None, _copied(model))
        if isinstance(model, (str, os.PathLike)):
            name = os.fspath(model)
            if isinstance(name, str) and name.strip():
                try:
                    return cls._of_name(name)
                except (OSError, RuntimeError, UnicodeError) as error:
                    raise ModelLoadError(f"{_shown(name)} is no usable path: {error}") from error
        raise InvalidArgumentError(
            "a model is given as a path, XML text, an MjSpec or an MjModel, got "
            f"{type(model).__name__} {_shown(model)}"
        )

    @classmethod
    def _of_name(cls, name: str) -> Self:
        if "\0" in name:
            raise ModelLoadError(f"{_shown(name)} is no usable path: it has a null character")
        if name.startswith("package://"):
            name = str(Packages(beside=Path.cwd()).path(name))
        if _SCHEME.match(name) and not Path(name).exists() and _is_provided(name):
            return cls("resource", name, None, name)
        path = Path(name).expanduser().absolute()
        suffix = path.suffix.lower()
        if suffix not in _SUFFIXES and not path.is_dir():
            known = (*_SUFFIXES, *sorted(model_suffixes()))
            if suffix not in known:
                raise ModelLoadError(
                    f"{path}: a model file ends in {', '.join(known)}, this one in "
                    f"{suffix or 'nothing'!r}; engine.decoder adds more"
                )
        return cls("path", str(path), path, path)

    def __repr__(self) -> str:
        return f"<ModelSource {self.label}>"


@dataclass(frozen=True, slots=True, eq=False)
class CompiledModel:
    """A model and its data, ready to be owned: nobody else has them.

    Attributes:
        model: the model.
        data: its data, after one forward.
        spec: what it was compiled from, for structural edits; ``None`` for MJB and ``MjModel``.
        source: where it came from.
        content_hash: SHA-256 of the model's MJB bytes, hexadecimal.
        warnings: what the engine said about it while compiling and in the first forward.
        compile_s: reading and compiling, s wall.
        data_s: making the data, s wall.
        forward_s: the first forward, s wall.
        import_report: what became of a robot description; ``None`` for anything else.
    """

    model: mujoco.MjModel
    data: mujoco.MjData
    spec: mujoco.MjSpec | None
    source: ModelSource
    content_hash: str
    warnings: tuple[str, ...]
    compile_s: float
    data_s: float
    forward_s: float
    import_report: ImportReport | None = None

    @property
    def label(self) -> str:
        """What to call the model."""
        return self.source.label


def compile_source(
    source: ModelSource, *, guard: AbstractContextManager[Any] | None = None
) -> CompiledModel:
    """Compiles a source, makes data and runs one forward on the pair.

    Args:
        source: what to compile.
        guard: entered around everything the engine does. The compiler runs a step of its own, and
            fails if a foreign Python ``mjcb_*`` is installed then.

    Raises:
        ModelLoadError: it cannot be read, does not compile, or cannot be run.
    """
    with engine_log.captured() as messages, guard or contextlib.nullcontext():
        started = time.perf_counter()
        model, spec, report = _compiled(source, messages)
        _check_hostable(source, model)
        compiled = time.perf_counter()
        data = _made_data(source, model)
        made = time.perf_counter()
        _forward(source, model, data)
        done = time.perf_counter()
    return CompiledModel(
        model=model,
        data=data,
        spec=spec,
        source=source,
        content_hash=content_hash(model),
        warnings=tuple(dict.fromkeys([*messages, *_compiler_warnings(spec)])),
        compile_s=compiled - started,
        data_s=made - compiled,
        import_report=report,
        forward_s=done - made,
    )


def content_hash(model: mujoco.MjModel) -> str:
    """SHA-256 of a model's MJB bytes, hexadecimal."""
    image = np.empty(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, image)
    return hashlib.sha256(image.data).hexdigest()


# -- compiling -----------------------------------------------------------------------------------


_Compiled: TypeAlias = tuple[mujoco.MjModel, mujoco.MjSpec | None, ImportReport | None]


def _compiled(source: ModelSource, messages: list[str]) -> _Compiled:
    if source.path is not None:
        _check_file(source.path)
    try:
        try:
            return _freshly_compiled(source)
        except _ENGINE_ERRORS as error:
            if not register_bundled(str(error)):
                raise
            return _freshly_compiled(source)
    except _ENGINE_ERRORS as error:
        if isinstance(error, ModelLoadError):
            raise
        raise_interrupt()
        reason = _one_line(error) or type(error).__name__
        said = "".join(f"; {message}" for message in messages if message not in reason)
        hint = hint_for(reason)
        message = f"{source.label} does not compile: {reason}{said}{hint}"
        raise ModelLoadError(told(message)) from error


def _freshly_compiled(source: ModelSource) -> _Compiled:
    with _fresh_assets(keep=_description_of(source) is not None):
        return _engine_model(source)


@contextlib.contextmanager
def _fresh_assets(*, keep: bool) -> Iterator[None]:
    """No asset of an earlier compile may stand in for one that was edited since.

    The engine's cache tells files apart by times in whole seconds, on 3.15 also assets in memory by
    a hash that collides, and there it forgets mesh settings: all of that gives a stale model. Those
    of a description are named by what is in them, so they may stay (``keep``).
    """
    with _compiling:
        if not keep:
            mujoco.mj_clearCache(mujoco.mj_getCache())
        yield


def _engine_model(source: ModelSource) -> _Compiled:
    if source.kind == "model":
        return copy.copy(source._content), None, None
    if source.path is not None and source.path.suffix.lower() == ".mjb":
        return _from_image(source), None, None
    described = _description_of(source)
    if described is not None:
        found = description.load(described)
        return found.model or found.spec.compile(), found.spec, found.report
    spec = _spec(source)
    # The bindings repeat the compiler's warnings as Python warnings of the calling module: here.
    python_warnings.filterwarnings("ignore", category=UserWarning, module=re.escape(__name__))
    return spec.compile(), spec, None


def _description_of(source: ModelSource) -> Path | str | None:
    """The robot description that a source is, if it is one."""
    if source.kind not in ("path", "text") or source._assets is not None:
        return None
    described: Path | str = source.path if source.path is not None else source._content
    return described if is_description(described) else None


def _spec(source: ModelSource) -> mujoco.MjSpec:
    if source.kind == "spec":
        return source._content.copy()
    if source.kind == "text":
        return _spec_of_text(source._content, source._assets or {})
    if source.path is not None:
        prepare_decoder(source.path)
    return mujoco.MjSpec.from_file(str(source._content))


def _spec_of_text(text: str, assets: dict[str, bytes]) -> mujoco.MjSpec:
    """A spec of text; what it includes and what its assets are come from one mapping."""
    included = {name: part for name, part in assets.items() if name.lower().endswith(".xml")}
    return mujoco.MjSpec.from_string(text, include=included, assets=assets)


def _from_image(source: ModelSource) -> mujoco.MjModel:
    assert source.path is not None
    image = source.path.read_bytes()
    check_image(image, source.label, hashlib.sha256(image).hexdigest())
    # From memory: the bytes that were checked, whatever happened to the file since.
    return mujoco.MjModel.from_binary_path("model.mjb", {"model.mjb": image})


def _compiler_warnings(spec: mujoco.MjSpec | None) -> list[str]:
    if spec is None:
        return []
    count, get = library().mjs_numWarnings, library().mjs_getWarning
    count.argtypes, count.restype = (ctypes.c_void_p,), ctypes.c_int
    get.argtypes, get.restype = (ctypes.c_void_p, ctypes.c_int), ctypes.c_char_p
    found = (get(spec._address, index) for index in range(count(spec._address)))
    return [" ".join(text.decode("utf-8", "replace").split()) for text in found if text]


def _made_data(source: ModelSource, model: mujoco.MjModel) -> mujoco.MjData:
    try:
        data = mujoco.MjData(model)
        raise_failure(data)
        return data
    except _ENGINE_ERRORS as error:
        raise ModelLoadError(
            f"no data can be made for {source.label}: {_one_line(error)}"
        ) from error


def _forward(source: ModelSource, model: mujoco.MjModel, data: mujoco.MjData) -> None:
    try:
        mujoco.mj_forward(model, data)
        raise_failure(data)
    except _ENGINE_ERRORS as error:
        message = f"{source.label} compiles, but its first forward fails: {_one_line(error)}"
        raise ModelLoadError(told(message)) from error
    WarningCounters(data).clear()


def _check_hostable(source: ModelSource, model: mujoco.MjModel) -> None:
    problems = check_runnable(model.opt)
    if problems:
        raise ModelLoadError(
            f"{source.label} has options that the engine does not survive: "
            + "; ".join(str(problem) for problem in problems)
        )
    try:
        model.names.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ModelLoadError(f"{source.label} has names that are not UTF-8: {error}") from error


# -- files ---------------------------------------------------------------------------------------


def _check_file(path: Path) -> None:
    """Says what is wrong with a file that the engine would only call unopenable or empty."""
    if path.is_dir():
        raise ModelLoadError(f"{path} is a directory; name the model file in it: {_beside(path)}")
    try:
        # A pipe or device would be read for ever, with every other load waiting behind it.
        if not stat.S_ISREG(path.stat().st_mode):
            raise ModelLoadError(f"{path} is not a regular file")
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise ModelLoadError(f"{path} does not exist; {_beside(path)}") from error
    except OSError as error:
        raise ModelLoadError(f"{path} cannot be read: {error.strerror or error}") from error
    if not content:
        raise ModelLoadError(f"{path} is empty")
    if path.suffix.lower() == ".xml":  # a description may have another encoding, and say so
        _check_utf8(path, content)


def _check_utf8(path: Path, content: bytes) -> None:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ModelLoadError(
            f"{path} is not UTF-8: byte {content[error.start]:#04x} in line {line}; convert it"
        ) from error


def _beside(path: Path) -> str:
    """What models there are in a directory, or next to a file that does not exist."""
    folder = path if path.is_dir() else path.parent
    if not folder.is_dir():
        return f"the directory {folder} does not exist either"
    try:
        names = [entry.name for entry in folder.iterdir() if entry.suffix.lower() in _SUFFIXES]
    except OSError as error:
        return f"{folder} cannot be listed: {error.strerror or error}"
    return did_you_mean(path.name, names) if names else f"there is no model file in {folder}"


def _is_provided(name: str) -> bool:
    """Whether a resource provider is registered for the name's scheme."""
    engine = library()
    find = getattr(engine, "mjp_findProvider", None) or engine.mjp_getResourceProvider
    find.argtypes, find.restype = (ctypes.c_char_p,), ctypes.c_void_p
    return bool(find(name.encode()))


# -- small things --------------------------------------------------------------------------------


def _copied(model: Any) -> Any:
    try:
        return model.copy() if isinstance(model, mujoco.MjSpec) else copy.copy(model)
    except _ENGINE_ERRORS as error:
        raise ModelLoadError(
            f"the {type(model).__name__} cannot be copied: {_one_line(error)}"
        ) from error


def _checked_assets(assets: Any) -> dict[str, bytes]:
    sound = isinstance(assets, dict) and all(
        isinstance(name, str) and isinstance(content, bytes) for name, content in assets.items()
    )
    if not sound:
        raise InvalidArgumentError(f"assets map file names to bytes, got {_shown(assets)}")
    return dict(assets)


def _model_name(model: mujoco.MjModel) -> str:
    return bytes(model.names).partition(b"\0")[0].decode("utf-8", "replace")


def _one_line(error: BaseException) -> str:
    # The engine repeats a compiler's warnings.
    lines = dict.fromkeys(" ".join(line.split()) for line in str(error).splitlines())
    return "; ".join(line for line in lines if line)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"

"""What is registered with the engine: plugins, decoders, encoders, resource providers.

Owns: ``registered`` and its records.
Invariants: a record is a copy; nothing is registered, loaded or changed by looking.
Threads: any.
Failure: ``UnsupportedEngineError`` for an engine whose structs are not what mjhost takes them for.
Not a goal: decoders and encoders of others. The engine has no list of them: those of the wheel are
asked for by extension, those of a native library stay unseen.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import mujoco

from mjhost.callbacks.symbols import code_at
from mjhost.engine import libraries, registry
from mjhost.engine.abi.structs import Plugin, Resource, text
from mjhost.engine.abi.symbols import engine
from mjhost.engine.abi.verify import verify
from mjhost.engine.attributes import AttributeSpec
from mjhost.engine.libraries import LibraryRecord
from mjhost.engine.methods import STAGES, capability_names

_STAGE_NAMES: Final = {number: name for name, number in STAGES.items()}
_WHEEL: Final = (".obj", ".stl", ".mjz", ".zip", ".usd", ".usda", ".usdc", ".usdz")


@dataclass(frozen=True, slots=True)
class AttributeRecord:
    """A key of ``<config>``.

    Attributes:
        name: the key.
        expects: what a text has to be; empty where only the plugin knows.
        default: the value without a text, in words; ``None`` where nothing is known.
        doc: what it is for.
    """

    name: str
    expects: str = ""
    default: str | None = None
    doc: str = ""

    def __str__(self) -> str:
        return self.name if self.default is None else f"{self.name}={self.default}"


@dataclass(frozen=True, slots=True)
class PluginRecord:
    """A registered engine plugin.

    Attributes:
        slot: the engine's number of it; models refer to it by that.
        name: what models call it.
        capabilities: what it can be.
        attributes: keys of its ``<config>``.
        stage: when its sensors are computed; ``None`` for what is no sensor.
        source: ``engine`` (of the wheel), ``library`` (another native one) or ``mjhost``.
        origin: file, and for ``mjhost`` class and line.
        compiled: whether it runs without Python.
        generation: how often it was declared; 0 for native ones.
        instances: how many live; ``None`` for native ones, whose number nobody knows.
    """

    slot: int
    name: str
    capabilities: tuple[str, ...]
    attributes: tuple[AttributeRecord, ...]
    stage: str | None
    source: str
    origin: str
    compiled: bool
    generation: int = 0
    instances: int | None = None


@dataclass(frozen=True, slots=True)
class ResourceRecord:
    """A decoder, encoder or resource provider.

    Attributes:
        kind: ``decoder``, ``encoder``, ``resource provider`` or ``archive provider``.
        name: its extension, content type or prefix.
        origin: where its code is.
    """

    kind: str
    name: str
    origin: str


@dataclass(frozen=True, slots=True)
class EngineReport:
    """Everything that is registered.

    Attributes:
        engine: version of MuJoCo.
        plugins: in the order of their slots.
        resources: what reads and writes files.
        libraries: native libraries that were tried with ``load_library``.
    """

    engine: str
    plugins: tuple[PluginRecord, ...]
    resources: tuple[ResourceRecord, ...]
    libraries: tuple[LibraryRecord, ...]


def registered() -> EngineReport:
    """What is registered with the engine at this moment."""
    verify()
    return EngineReport(
        engine=mujoco.mj_versionString(),
        plugins=tuple(_plugins()),
        resources=tuple(_resources()),
        libraries=libraries.libraries(),
    )


# -- plugins -------------------------------------------------------------------------------------


def _plugins() -> Iterator[PluginRecord]:
    own = registry.plugins()
    for slot in range(engine().plugin_count()):
        plugin = engine().plugin_at(slot)
        if plugin is not None:
            entry = own.get(text(plugin.name))
            yield _native(slot, plugin) if entry is None else _own(slot, plugin, entry)


def _native(slot: int, plugin: Plugin) -> PluginRecord:
    file = libraries.file_of(plugin)
    is_wheel = file is not None and Path(mujoco.__file__).parent in Path(file).parents
    return PluginRecord(
        slot=slot,
        name=text(plugin.name),
        capabilities=capability_names(plugin.capabilityflags),
        attributes=tuple(AttributeRecord(name) for name in plugin.attribute_names),
        stage=stage_of(plugin),
        source="engine" if is_wheel else "library",
        origin=file or "code that no library holds",
        compiled=True,
    )


def _own(slot: int, plugin: Plugin, entry: registry.Registered) -> PluginRecord:
    declaration = entry.declaration
    return PluginRecord(
        slot=slot,
        name=declaration.name,
        capabilities=declaration.capabilities,
        attributes=tuple(_attribute(spec) for spec in declaration.attributes.values()),
        stage=stage_of(plugin),
        source="mjhost",
        origin=str(declaration.origin),
        compiled=declaration.compiled,
        generation=entry.generation,
        instances=len(entry.lives),
    )


def stage_of(plugin: Plugin) -> str | None:
    """When a plugin's sensors are computed; the engine takes none for the first."""
    if "sensor" not in capability_names(plugin.capabilityflags):
        return None
    return _STAGE_NAMES.get(plugin.needstage or 1, f"stage {plugin.needstage}, which never comes")


def _attribute(spec: AttributeSpec) -> AttributeRecord:
    default = None if spec.required else str(spec.default)
    return AttributeRecord(spec.name, spec.expectation, default, spec.doc)


# -- files ---------------------------------------------------------------------------------------


def _resources() -> Iterator[ResourceRecord]:
    own = registry.others()
    for kind, find in (("decoder", _decoder), ("encoder", _encoder)):
        declared = [name for known, name in own if known == kind]
        for name in dict.fromkeys((*_WHEEL, *declared)):
            origin = own.get((kind, name)) or find(name)
            if origin:
                yield ResourceRecord(kind, name, origin)
    for slot in range(1, engine().provider_count() + 1):
        provider = engine().provider_at(slot)
        if provider is not None:
            name = text(provider.prefix)
            origin = own.get(("resource provider", name.lower())) or code_at(provider.open or 0)
            yield ResourceRecord("resource provider", name, origin)
    for name in _WHEEL:
        archive = engine().find_archive_provider(f"x{name}")
        if archive is not None:
            yield ResourceRecord("archive provider", name, code_at(archive.open or 0))


def _decoder(extension: str) -> str | None:
    resource = Resource(name=f"x{extension}".encode())
    return _code(engine().find_decoder(ctypes.addressof(resource)), "decode")


def _encoder(extension: str) -> str | None:
    return _code(engine().find_encoder(f"x{extension}"), "encode")


def _code(found: Any, slot: str) -> str | None:
    return None if found is None else code_at(getattr(found, slot) or 0)

"""Proof, before anything is registered, that the engine's memory is what mjhost takes it for.

MuJoCo does not say how its plugin structs lie in memory, and a registration made with a wrong
layout is executed much later. But the engine has registered plugins, codecs and archives of its
own, whose contents are known: they are read through mjhost's structs and compared.

Owns: what is known about them, and about the versions that were tried.
Invariants: ``verify`` returned once means that all of it was right; it is not asked again. No
pointer is followed before the numbers and addresses around it proved right: with a wrong layout it
would lead anywhere.
Threads: any; two at once check twice.
Failure: ``UnsupportedEngineError`` says which fact differs; nothing was registered or changed.
Not a goal: the single-precision build, which is not what the wheels hold.
"""

from __future__ import annotations

import ctypes
import functools
import keyword
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, NoReturn

import mujoco
import numpy as np

from mjhost import layout
from mjhost.callbacks import router
from mjhost.callbacks.symbols import _look_up, code_at
from mjhost.engine.abi import structs
from mjhost.engine.abi.structs import Decoder, Encoder, Resource, text
from mjhost.engine.abi.symbols import Engine, engine
from mjhost.errors import UnsupportedEngineError

FIRST_VERSION: Final = 3_015_000
END_VERSION: Final = 4_001_000  # 3.15, 3.16, 3.17 and 4.0 were compared

# One of each kind, so that few arrays are empty: an empty one has no address to compare.
_MODEL: Final = """
<mujoco>
  <size nuserdata="1" nuser_body="1" nuser_jnt="1" nuser_geom="1" nuser_site="1" nuser_cam="1"
        nuser_tendon="1" nuser_actuator="1" nuser_sensor="1"/>
  <extension>
    <plugin plugin="mujoco.pid">
      <instance name="pid"><config key="kp" value="2"/></instance>
    </plugin>
  </extension>
  <asset>
    <texture name="t" type="2d" builtin="flat" width="1" height="1"/>
    <material name="m" texture="t"/>
    <mesh name="mesh" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/>
    <hfield name="h" nrow="2" ncol="2" size="1 1 1 1"/>
  </asset>
  <worldbody>
    <light/><camera/><site name="s"/>
    <body name="a" mocap="true"/>
    <body name="b"><joint name="j"/><geom name="g" size="1"/></body>
    <body name="c"><freejoint/><geom name="k" size="1" material="m"/></body>
    <body name="d"><joint/><geom type="mesh" mesh="mesh"/></body>
  </worldbody>
  <deformable>
    <flex name="e" dim="1" body="b c" vertex="0 0 0 0 0 0" element="0 1">
      <edge stiffness="1"/>
    </flex>
  </deformable>
  <contact><pair geom1="g" geom2="k"/><exclude body1="b" body2="d"/></contact>
  <equality><connect body1="b" body2="c" anchor="0 0 0"/></equality>
  <tendon><fixed name="f"><joint joint="j" coef="1"/></fixed></tendon>
  <actuator>
    <general joint="j" dyntype="integrator" delay="0.01" nsample="2"/>
    <plugin joint="j" instance="pid"/>
  </actuator>
  <sensor><jointpos joint="j"/></sensor>
  <custom>
    <numeric name="n" data="1"/><text name="x" data="y"/>
    <tuple name="u"><element objtype="body" objname="b"/></tuple>
  </custom>
  <keyframe><key/></keyframe>
</mujoco>
"""


def verify() -> None:
    """Compares the engine with what mjhost knows about it, once per process.

    Contract: not from inside an engine callback, since it compiles a small model.

    Raises:
        UnsupportedEngineError: it is another one; nothing must be registered.
    """
    _verified()


@functools.cache
def _verified() -> None:
    check_version(mujoco.mj_version())
    functions = engine()
    check_library(int(layout.library().mj_version()))
    check_plugins(functions)
    check_codecs(functions)
    check_resource(functions, Path(mujoco.__file__))
    check_live_objects()


def _refuse(fact: str, expected: object, found: object) -> NoReturn:
    raise UnsupportedEngineError(
        f"engine extensions cannot be used with MuJoCo {mujoco.__version__}: {fact} is expected to "
        f"be {expected}, is {found}; reinstall mujoco from one wheel, of a version 3.15 to 4.0, or "
        "install an mjhost that knows this one"
    )


def _require(fact: str, expected: object, found: object) -> None:
    if expected != found:
        _refuse(fact, repr(expected), repr(found))


# -- the version ---------------------------------------------------------------------------------


def check_version(version: int) -> None:
    """Refuses a version whose plugin interface nobody has compared."""
    if not FIRST_VERSION <= version < END_VERSION:
        _refuse("the version", f"from {FIRST_VERSION} and below {END_VERSION}", version)


def check_library(version: int) -> None:
    """Refuses a library that is not of the bindings' version."""
    _require("the version of the library beside the bindings", mujoco.mj_version(), version)


# -- what the engine has registered --------------------------------------------------------------

# Every function of the table that a plugin of the wheel does not have.
_PID_NULL: Final = {
    "nsensordata",
    "copy",
    "visualize",
    "sdf_distance",
    "sdf_gradient",
    "sdf_staticdistance",
    "sdf_attribute",
    "sdf_aabb",
}
_TORUS_NULL: Final = {"nsensordata", "copy", "advance", "visualize", "actuator_act_dot"}


def check_plugins(functions: Engine) -> None:
    """Compares two plugins of the wheel, whose functions fill complementary parts of the table."""
    _check_size("mjpPlugin", functions.plugin_at(0), functions.plugin_at(1))
    _check_plugin(functions, "mujoco.pid", "actuator", "kp ki kd imax slewmax", _PID_NULL)
    _check_plugin(functions, "mujoco.sdf.torus", "sdf", "radius1 radius2", _TORUS_NULL)


def _check_plugin(
    functions: Engine, name: str, capability: str, attributes: str, null: Iterable[str]
) -> None:
    found = functions.get_plugin(name)
    if found is None:
        _refuse(f"plugin {name}", "registered", "not")
    slot, plugin = found
    _check_functions(name, plugin, structs.PLUGIN_PROTOTYPES, null)
    bit = layout.constants()[f"mjPLUGIN_{capability.upper()}"]
    _require(f"the capabilities of {name}", bit, plugin.capabilityflags)
    _require(f"the stage of {name}", 0, plugin.needstage)
    expected = attributes.split()
    _require(f"the number of attributes of {name}", len(expected), plugin.nattribute)
    _require(f"the name of plugin {name}", name, text(plugin.name))
    _require(f"the attributes of {name}", tuple(expected), plugin.attribute_names)
    again = functions.plugin_at(slot)
    _require(f"what is in slot {slot}", name, text(again.name) if again else None)


def check_codecs(functions: Engine) -> None:
    """Compares decoders, an encoder and an archive provider of the wheel."""
    _check_size("mjpDecoder", _decoder(functions, "x.mjz"), _decoder(functions, "x.zip"))
    for extension in (".obj", ".stl", ".mjz"):
        _check_codec("decoder", extension, _decoder(functions, f"x{extension}"))
    _check_size("mjpEncoder", *(functions.find_encoder(name) for name in ("x.mjz", "x.zip")))
    _check_codec("encoder", ".mjz", functions.find_encoder("x.mjz"))
    _check_archives(functions)


def _check_archives(functions: Engine) -> None:
    """The only providers that the engine brings along."""
    first, second = (functions.find_archive_provider(name) for name in ("x.mjz", "x.zip"))
    _check_size("mjpResourceProvider", first, second)
    assert first is not None
    owner = "the provider of .mjz"
    _check_functions(owner, first, structs.PROVIDER_PROTOTYPES, {"modified", "write"})
    _require(f"the data of {owner}", None, first.data)
    _require(f"the prefix of {owner}", ".mjz", text(first.prefix))


def _decoder(functions: Engine, name: str) -> Decoder | None:
    resource = Resource(name=name.encode())
    return functions.find_decoder(ctypes.addressof(resource))


def _check_codec(kind: str, extension: str, found: Decoder | Encoder | None) -> None:
    if found is None:
        _refuse(f"the {kind} of {extension}", "registered", "not")
    table = structs.DECODER_PROTOTYPES if kind == "decoder" else structs.ENCODER_PROTOTYPES
    _check_functions(f"the {kind} of {extension}", found, table, ())
    _require(f"the extension of the {kind} of {extension}", extension, text(found.extension))
    _require(f"the content type of the {kind} of {extension}", None, found.content_type)


def _check_functions(
    owner: str, struct: ctypes.Structure, slots: Iterable[str], null: Iterable[str]
) -> None:
    """Null where it should be; where not, code, all of it of one library."""
    home: bytes | None = None
    for slot in slots:
        address = getattr(struct, slot)
        _require(f"whether {owner} has {slot}", slot not in null, address is not None)
        if address is None:
            continue
        info = _look_up(address)
        if info is None or home not in {None, info.file}:
            _refuse(f"{slot} of {owner}", f"code of {text(home) or 'a library'}", code_at(address))
        home = info.file


def _check_size(name: str, first: ctypes.Structure | None, second: ctypes.Structure | None) -> None:
    """Two that were registered one after the other lie side by side."""
    if first is None or second is None:
        _refuse(f"each {name} of the wheel", "registered", "not")
    distance = ctypes.addressof(second) - ctypes.addressof(first)
    _require(f"the size of {name}", ctypes.sizeof(type(first)), distance)


# -- resources -----------------------------------------------------------------------------------


def check_resource(functions: Engine, file: Path) -> None:
    """Opens a file through the engine and compares what the resource holds with the file."""
    address, why = functions.open_resource(str(file))
    if not address:
        _refuse(f"the engine, asked to open {file},", "successful", f"not: {why}")
    try:
        resource = Resource.from_address(address)
        _require("the name of a resource", os.fsencode(file), resource.name)
        _require("the arguments of a resource", "", text(resource.args))
        _require(
            "the time stamp of an untouched resource",
            0,
            functions.is_modified_resource(address, resource.timestamp),
        )
        _require("the bytes of a resource", file.read_bytes(), functions.read_resource(address))
    finally:
        functions.close_resource(address)


# -- model and data ------------------------------------------------------------------------------


def check_live_objects() -> None:
    """Compares every member of a live model and data with what the bindings show."""
    with router.compile_guard():
        model = mujoco.MjModel.from_xml_string(_MODEL)
        data = mujoco.MjData(model)
    _require("the precision of mjtNum, bytes,", 8, model.opt.gravity.itemsize)
    for struct, owner in (("mjModel", model), ("mjData", data)):
        check_members(struct, owner, layout.structure(struct), layout.address_of(owner, struct))
    kp = engine().plugin_config(layout.address_of(model, "mjModel"), 0, "kp")
    _require("an attribute of a live plugin", "2", kp)


def check_members(path: str, owner: Any, mirror: Any, start: int) -> None:
    """Compares the memory at ``start``, seen through ``mirror``, with what the bindings show.

    Not compared: empty arrays, arrays that are null until a step fills them, and what the bindings
    show as neither a number, nor an array, nor a struct.
    """
    raw = mirror.from_address(start)
    for name, ctype in mirror._fields_:
        known = getattr(owner, f"{name}_" if keyword.iskeyword(name) else name, None)
        place = start + getattr(mirror, name).offset
        if issubclass(ctype, ctypes.Structure):
            check_members(f"{path}.{name}", known, ctype, place)
        elif isinstance(known, np.ndarray):
            found = place if issubclass(ctype, ctypes.Array) else getattr(raw, name)
            if known.size and found is not None:
                _require(f"the address of {path}.{name}", known.ctypes.data, found)
        elif isinstance(known, int | float) and ctype is not ctypes.c_void_p:
            _require(f"{path}.{name}", known, getattr(raw, name))

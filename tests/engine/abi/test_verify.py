from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import mujoco
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mjhost
from mjhost import layout
from mjhost.engine.abi import structs, verify
from mjhost.engine.abi.structs import Decoder, Plugin, Provider
from mjhost.engine.abi.symbols import engine
from mjhost.errors import UnsupportedEngineError


class Altered:
    """The engine, but for what is given."""

    def __init__(self, **functions):
        vars(self).update(functions)

    def __getattr__(self, name):
        return getattr(engine(), name)


def reread(struct, order):
    """The same memory through a struct of other members."""
    kinds = dict(type(struct)._fields_)
    members = [(name, kinds.get(name, ctypes.c_void_p)) for name in order]
    other = type(
        "Other",
        (ctypes.Structure,),
        {"_fields_": members, "attribute_names": Plugin.attribute_names},
    )
    return other.from_address(ctypes.addressof(struct))


def names(kind):
    return [name for name, _type in kind._fields_]


# -- the installed engine ------------------------------------------------------------------------


def test_the_installed_engine_is_the_expected_one():
    verify.verify()


def test_a_second_call_asks_nothing(monkeypatch):
    verify.verify()
    monkeypatch.setattr(verify, "check_version", lambda version: pytest.fail("asked again"))
    verify.verify()


def test_a_refusal_is_not_remembered_as_success(monkeypatch):
    monkeypatch.setattr(verify, "FIRST_VERSION", verify.END_VERSION)
    verify._verified.cache_clear()
    for _ in range(2):
        with pytest.raises(UnsupportedEngineError):
            verify.verify()
    monkeypatch.undo()
    verify.verify()


@pytest.mark.slow
def test_a_foreign_callback_does_not_disturb_it_and_nothing_is_said(tmp_path):
    body = """
import mujoco
calls = []
callback = lambda model, data: calls.append(1)
mujoco.set_mjcb_control(callback)
from mjhost.engine.abi.verify import verify
verify()
assert mujoco.get_mjcb_control() is callback and not calls
mujoco.set_mjcb_control(None)
"""
    done = subprocess.run(
        [sys.executable, "-c", body],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(Path(mjhost.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout + done.stderr == ""
    assert list(tmp_path.iterdir()) == []


# -- the version ---------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 3_014_999, 4_001_000, 5_000_000])
def test_an_unknown_version_is_refused_before_anything_is_read(version, monkeypatch):
    monkeypatch.setattr(mujoco, "mj_version", lambda: version)
    monkeypatch.setattr(verify, "engine", lambda: pytest.fail("the engine was asked"))
    verify._verified.cache_clear()
    with pytest.raises(UnsupportedEngineError, match=f"the version is expected .* is {version};"):
        verify.verify()


@pytest.mark.parametrize("version", [3_015_000, 3_016_002, 3_017_000, 4_000_000, 4_000_009])
def test_every_version_from_315_to_40_is_accepted(version):
    verify.check_version(version)


def test_a_library_of_another_version_is_refused():
    with pytest.raises(UnsupportedEngineError, match="library beside the bindings"):
        verify.check_library(mujoco.mj_version() + 1)


# -- plugins -------------------------------------------------------------------------------------

HEAD = ["name", "nattribute", "attributes", "capabilityflags", "needstage"]
SLOTS = names(Plugin)[len(HEAD) :]


def altered_plugins(order):
    def get(name):
        slot, plugin = engine().get_plugin(name)
        return slot, reread(plugin, order)

    return Altered(get_plugin=get)


@pytest.mark.parametrize("index", range(len(HEAD + SLOTS)))
def test_eight_bytes_too_many_anywhere_in_the_plugin_struct_are_refused(index):
    order = [*HEAD, *SLOTS]
    order.insert(index, "extra")
    with pytest.raises(UnsupportedEngineError, match=r" of mujoco\.| mujoco\..* has "):
        verify.check_plugins(altered_plugins(order))


def test_a_plugin_struct_of_another_order_is_refused():
    order = [*HEAD[:3], "needstage", "capabilityflags", *SLOTS]
    with pytest.raises(UnsupportedEngineError, match=r"the capabilities of mujoco\.pid"):
        verify.check_plugins(altered_plugins(order))


@pytest.fixture
def pid():
    """A copy of the wheel's plugin that may be changed."""
    _slot, found = engine().get_plugin("mujoco.pid")
    copy = Plugin()
    ctypes.memmove(ctypes.byref(copy), ctypes.byref(found), ctypes.sizeof(copy))
    return copy


def test_a_plugin_of_another_number_of_attributes_is_refused(pid):
    pid.nattribute = 4
    with pytest.raises(UnsupportedEngineError, match=r"number of attributes of mujoco\.pid"):
        verify.check_plugins(Altered(get_plugin=lambda name: (0, pid)))


def test_a_plugin_of_other_attributes_is_refused(pid):
    attributes = (ctypes.c_char_p * 5)(b"kp", b"ki", b"kd", b"imax", b"vmax")
    pid.attributes = ctypes.cast(attributes, ctypes.POINTER(ctypes.c_char_p))
    with pytest.raises(UnsupportedEngineError, match="'slewmax'.*'vmax'"):
        verify.check_plugins(Altered(get_plugin=lambda name: (0, pid)))


def test_an_engine_without_the_plugins_of_the_wheel_is_refused():
    with pytest.raises(UnsupportedEngineError, match="mujoco.pid is expected to be registered"):
        verify.check_plugins(Altered(get_plugin=lambda name: None))


def test_a_pointer_that_is_no_code_is_refused(pid):
    pid.compute = ctypes.addressof(pid)
    with pytest.raises(UnsupportedEngineError, match="compute of mujoco.pid .* code at 0x"):
        verify.check_plugins(Altered(get_plugin=lambda name: (0, pid)))


@pytest.mark.parametrize("kind", [Plugin, Decoder, structs.Encoder, Provider])
def test_a_struct_that_is_longer_in_the_engine_is_refused(kind):
    longer = type("Longer", (kind,), {"_fields_": [("extra", ctypes.c_void_p)]})
    table = (longer * 2)()
    with pytest.raises(UnsupportedEngineError, match="the size of it"):
        verify._check_size(
            "it", *(kind.from_address(ctypes.addressof(element)) for element in table)
        )


# -- codecs and resources ------------------------------------------------------------------------


def test_a_decoder_struct_of_other_members_is_refused():
    def find(resource, content_type=""):
        return reread(engine().find_decoder(resource), ["extra", *names(Decoder)])

    with pytest.raises(UnsupportedEngineError, match="the size of mjpDecoder"):
        verify.check_codecs(Altered(find_decoder=find))


def test_a_decoder_of_another_order_is_refused():
    def find(resource, content_type=""):
        return reread(engine().find_decoder(resource), reversed(names(Decoder)))

    with pytest.raises(UnsupportedEngineError, match=r"decode of the decoder of \.obj|has decode"):
        verify.check_codecs(Altered(find_decoder=find))


def test_a_provider_struct_of_another_order_is_refused():
    def find(name):
        prefix, opening, *others = names(Provider)
        return reread(engine().find_archive_provider(name), [opening, prefix, *others])

    with pytest.raises(UnsupportedEngineError, match=r"the provider of \.mjz"):
        verify.check_codecs(Altered(find_archive_provider=find))


@pytest.mark.parametrize(
    ("function", "struct"),
    [
        ("find_decoder", "mjpDecoder"),
        ("find_encoder", "mjpEncoder"),
        ("find_archive_provider", "mjpResourceProvider"),
    ],
)
def test_an_engine_without_its_own_codecs_is_refused(function, struct):
    with pytest.raises(UnsupportedEngineError, match=f"{struct} .* expected to be registered"):
        verify.check_codecs(Altered(**{function: lambda *arguments: None}))


def test_a_resource_of_other_bytes_is_refused(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"content")
    verify.check_resource(engine(), file)
    closed = []

    def close(address):
        engine().close_resource(address)
        closed.append(address)

    altered = Altered(read_resource=lambda address: b"other", close_resource=close)
    with pytest.raises(UnsupportedEngineError, match="the bytes of a resource"):
        verify.check_resource(altered, file)
    assert len(closed) == 1


def test_a_resource_that_does_not_open_is_refused_with_the_engines_reason(tmp_path):
    with pytest.raises(UnsupportedEngineError, match="asked to open .*missing"):
        verify.check_resource(engine(), tmp_path / "missing")


# -- model and data ------------------------------------------------------------------------------

MODEL = mujoco.MjModel.from_xml_string(verify._MODEL)
LIVE = {"mjModel": MODEL, "mjData": mujoco.MjData(MODEL)}


def shifted(struct, index):
    """A mirror with eight bytes too many before a member."""
    members = [*layout.structure(struct)._fields_]
    members.insert(index, ("extra", ctypes.c_int64))
    return type("Shifted", (ctypes.Structure,), {"_fields_": members})


@pytest.mark.parametrize("struct", LIVE)
@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_eight_bytes_too_many_are_noticed_wherever_a_known_member_follows(struct, data):
    last = {"mjModel": "mapD2M", "mjData": "qfrc_inverse"}[struct]
    end = [name for name, _kind in layout.structure(struct)._fields_].index(last)
    mirror = shifted(struct, data.draw(st.integers(0, end)))
    owner = LIVE[struct]
    with pytest.raises(UnsupportedEngineError, match=f"{struct}[.]"):
        verify.check_members(struct, owner, mirror, owner._address)


@pytest.mark.parametrize("struct", LIVE)
def test_the_right_mirror_is_accepted(struct):
    owner = LIVE[struct]
    verify.check_members(struct, owner, layout.structure(struct), owner._address)


def test_a_scalar_that_reads_otherwise_is_refused_with_both_values():
    owner = SimpleNamespace(timestep=0.5)
    mirror = layout.structure("mjOption")
    raw = mirror(timestep=0.25)
    with pytest.raises(UnsupportedEngineError, match=r"timestep is expected to be 0\.5, is 0\.25"):
        verify.check_members("mjOption", owner, mirror, ctypes.addressof(raw))


def test_a_refusal_names_the_installed_version_and_what_to_do():
    with pytest.raises(ImportError, match=f"MuJoCo {mujoco.__version__}: .* reinstall mujoco"):
        verify.check_version(1)

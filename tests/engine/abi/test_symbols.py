from __future__ import annotations

import ctypes
import re
import threading
from pathlib import Path

import mujoco
import pytest

from mjhost import layout
from mjhost.engine.abi import structs, symbols
from mjhost.engine.abi.guard import no_exit
from mjhost.engine.abi.structs import Address, Decoder, Encoder, Plugin, Provider, Resource
from mjhost.engine.abi.symbols import engine, symbol_address
from mjhost.errors import InvalidArgumentError, UnsupportedEngineError

PID_MODEL = """
<mujoco>
  <extension>
    <plugin plugin="mujoco.pid"><instance name="a"><config key="kp" value="3"/></instance></plugin>
  </extension>
  <worldbody><body><joint name="j"/><geom size="1"/></body></worldbody>
  <actuator><plugin joint="j" instance="a"/></actuator>
</mujoco>
"""


# -- signatures ----------------------------------------------------------------------------------


HEADER = re.sub(
    r"//[^\n]*",
    "",
    (Path(mujoco.__file__).parent / "include" / "mujoco" / "mujoco.h").read_text(),
)
# Parameter types of the header and what ctypes may call them.
TYPES = {"int": ctypes.c_int, "size_t": ctypes.c_size_t, "mjtSize": ctypes.c_int64}


def declared(name):
    """Result and parameters of an exported function as the header has them."""
    result, parameters = re.search(rf"MJAPI ([\w ]+\*?) ?{name}\(([^;()]*)\)", HEADER).groups()
    listed = [part for part in parameters.split(",") if part.strip() not in {"...", "void"}]
    return result, listed


def agrees(declaration, ctype):
    """Whether a function declared so may be called so."""
    if "*" in declaration:
        return ctype in {Address, ctypes.c_char_p} or hasattr(ctype, "contents")
    words = declaration.split()
    return ctype is (None if words == ["void"] else TYPES[words[0]])


FUNCTIONS = {
    function.__name__: function
    for function in vars(engine()).values()
    if not function.__name__.startswith("_mjPRIVATE")
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_signature_is_that_of_the_header(name):
    result, parameters = declared(name)
    own = type(FUNCTIONS[name])
    assert len(parameters) == len(own._argtypes_)
    assert all(map(agrees, parameters, own._argtypes_))
    assert agrees(result, own._restype_)


@pytest.mark.parametrize(
    ("name", "releases"),
    [
        ("_register_plugin", True),
        ("_register_decoder", True),
        ("_register_encoder", True),
        ("_register_provider", True),
        ("_open", True),
        ("_read", True),
        ("_close", True),
        ("_write", True),
        ("_modified", True),
        ("_parse", True),
        ("_delete_spec", True),
        ("_find_decoder", True),
        ("_warning", True),
        ("_get_plugin", False),
        ("_plugin_config", False),
        ("_set_thread_handler", False),
    ],
)
def test_what_may_wait_or_call_back_gives_up_the_gil(name, releases):
    keeps = type(getattr(engine(), name))._flags_ & ctypes._FUNCFLAG_PYTHONAPI
    assert bool(keeps) is not releases


def test_a_function_that_no_engine_has_is_refused_by_name():
    with pytest.raises(UnsupportedEngineError, match="no function mj_one or mj_two"):
        symbols._keeping(("mj_one", "mj_two"), None)
    with pytest.raises(UnsupportedEngineError, match="mj_one"):
        symbol_address("mj_one")


def test_a_symbol_address_is_where_the_loader_puts_it():
    pointer = ctypes.c_void_p.in_dll(layout.library(), "mju_error")
    assert symbol_address("mju_error") == ctypes.addressof(pointer)


def test_argument_types_are_not_set_on_the_shared_library():
    engine()
    assert layout.library().mjp_registerPlugin.argtypes is None


# -- plugins -------------------------------------------------------------------------------------


def test_a_plugin_is_found_by_name_in_any_case_and_by_slot():
    slot, plugin = engine().get_plugin("mujoco.PID")
    assert plugin.name == b"mujoco.pid"
    assert engine().plugin_at(slot).name == b"mujoco.pid"
    assert plugin.attribute_names == ("kp", "ki", "kd", "imax", "slewmax")


def test_what_is_not_registered_is_none():
    assert engine().get_plugin("no.such.plugin") is None
    assert engine().plugin_at(-1) is None
    assert engine().plugin_at(engine().plugin_count()) is None
    assert engine().find_provider("no-such-scheme:x") is None
    assert engine().provider_at(0) is None
    assert engine().find_encoder("x.nosuch") is None
    assert engine().find_archive_provider("x.nosuch") is None


@pytest.mark.parametrize("name", ["file", ""])
def test_a_name_without_extension_has_no_codec_and_the_engine_does_not_complain(name):
    resource = Resource(name=name.encode())
    with no_exit() as said:
        assert engine().find_decoder(ctypes.addressof(resource)) is None
        assert engine().find_encoder(name) is None
    assert said.message is None


def test_a_content_type_finds_the_encoder_of_a_file_without_extension():
    assert engine().find_encoder("file", "application/zip").content_type == b"application/zip"


def test_configuration_is_read_from_a_model():
    model = mujoco.MjModel.from_xml_string(PID_MODEL)
    read = lambda *key: engine().plugin_config(model._address, *key)
    assert read(0, "kp") == "3"
    assert read(0, "ki") == ""
    assert read(0, "nothing") is None
    assert read(1, "kp") is None
    assert read(-1, "kp") is None


def test_registering_an_equal_plugin_again_returns_its_slot():
    slot, plugin = engine().get_plugin("mujoco.pid")
    again = Plugin()
    ctypes.memmove(ctypes.byref(again), ctypes.byref(plugin), ctypes.sizeof(again))
    count = engine().plugin_count()
    with no_exit() as said:
        assert engine().register_plugin(again) == slot
    assert said.message is None
    assert engine().plugin_count() == count


@pytest.mark.parametrize("name", [None, b"", b"x" * 1024])
def test_a_plugin_name_that_the_engine_does_not_survive_is_refused(name):
    with pytest.raises(InvalidArgumentError, match="1 to 1023 bytes"):
        engine().register_plugin(Plugin(name=name))


def test_attributes_without_names_are_refused(fresh_name):
    with pytest.raises(InvalidArgumentError, match="counts 2 attributes and names none"):
        engine().register_plugin(Plugin(name=fresh_name.encode(), nattribute=2))


@pytest.mark.parametrize(
    ("register", "struct"),
    [("register_decoder", Decoder), ("register_encoder", Encoder)],
)
def test_a_codec_of_nothing_is_refused(register, struct):
    with pytest.raises(InvalidArgumentError, match="content type or an extension"):
        getattr(engine(), register)(struct())


def test_a_null_character_in_a_name_is_refused():
    with pytest.raises(InvalidArgumentError, match="null character"):
        engine().get_plugin("mujoco.pid\0x")
    with pytest.raises(InvalidArgumentError, match="null character"):
        engine().open_resource("a\0b")


# -- resources -----------------------------------------------------------------------------------


@pytest.fixture
def memory(fresh_name, filled):
    """A provider registered for good: its prefix, what it holds, and the names it was asked for."""
    files, buffers, asked = {}, {}, []

    def named(address):
        return Resource.from_address(address).name.decode().partition(":")[2]

    def open_(address):
        name = named(address)
        asked.append(name)
        if name not in files:
            return 0
        buffer = ctypes.create_string_buffer(files[name], len(files[name]))
        buffers[ctypes.addressof(buffer)] = buffer
        Resource.from_address(address).data = ctypes.addressof(buffer)
        Resource.from_address(address).timestamp = b"now"
        return 1

    def read(address, out):
        data = Resource.from_address(address).data
        if files[named(address)] == b"unreadable":
            return -1
        out[0] = data
        return len(buffers[data])

    def close(address):
        resource = Resource.from_address(address)
        del buffers[resource.data]
        resource.data = None  # or the engine complains

    def write(address, content, size):
        files[named(address)] = ctypes.string_at(content, size)
        return size

    functions = {
        "open": open_,
        "read": read,
        "close": close,
        "modified": lambda address, stamp: int(stamp != b"now"),
        "write": write,
    }
    provider = filled(Provider, functions, prefix=fresh_name.encode())
    with no_exit() as said:
        slot = engine().register_provider(provider)
    assert said.message is None
    assert engine().provider_at(slot).prefix == fresh_name.encode()
    yield fresh_name, files, asked
    assert buffers == {}


def test_a_resource_is_opened_read_and_closed_through_its_provider(memory):
    prefix, files, asked = memory
    files["a.txt"] = b"0\0content"
    address, why = engine().open_resource(f"{prefix}:a.txt")
    assert why == ""
    assert engine().read_resource(address) == b"0\0content"
    resource = Resource.from_address(address)
    assert resource.provider.contents.prefix == prefix.encode()
    assert engine().is_modified_resource(address, b"now") == 0
    assert engine().is_modified_resource(address, b"then") == 1
    engine().close_resource(address)
    assert asked == ["a.txt"]


def test_a_provider_is_found_by_prefix_in_any_case(memory):
    prefix, _files, _asked = memory
    assert engine().find_provider(f"{prefix.upper()}:x").prefix == prefix.encode()
    assert engine().provider_count() > 0


def test_a_resource_that_does_not_open_says_why(memory):
    prefix, _files, _asked = memory
    address, why = engine().open_resource(f"{prefix}:missing")
    assert address == 0
    assert "missing" in why


def test_a_resource_that_cannot_be_read_is_none_and_an_empty_one_is_empty(memory):
    prefix, files, _asked = memory
    for content, expected in ((b"unreadable", None), (b"", b"")):
        files["x"] = content
        address, _why = engine().open_resource(f"{prefix}:x")
        assert engine().read_resource(address) == expected
        engine().close_resource(address)


def test_bytes_are_written_through_the_provider(memory):
    prefix, files, _asked = memory
    assert engine().write_resource(f"{prefix}:new", b"a\0b") == (3, "")
    assert files["new"] == b"a\0b"


def test_resources_are_read_by_many_threads_at_once(memory):
    prefix, files, _asked = memory
    files["shared"] = b"shared"
    read = []

    def work():
        for _ in range(20):
            address, _why = engine().open_resource(f"{prefix}:shared")
            read.append(engine().read_resource(address))
            engine().close_resource(address)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert read == [b"shared"] * 80


def test_parsing_includes_what_a_provider_has(memory):
    prefix, files, asked = memory
    files["part.xml"] = b"<mujoco><option timestep='0.007'/></mujoco>"
    spec, complaint = engine().parse_xml_string(
        f"<mujoco><include file='{prefix}:part.xml'/></mujoco>"
    )
    assert spec
    assert complaint == ""
    assert asked == ["part.xml"]
    engine().delete_spec(spec)


def test_what_does_not_parse_is_null_and_says_why():
    spec, complaint = engine().parse_xml_string("<mujo/>")
    assert spec == 0
    assert "mujo" in complaint


# -- decoders and encoders -----------------------------------------------------------------------


@pytest.fixture
def decoding(fresh_name, filled):
    """A decoder of an extension of its own, which does what ``behaviour[0]`` does."""
    behaviour = []
    decoder = filled(
        Decoder,
        {
            "can_decode": lambda resource: 1,
            "decode": lambda *arguments: behaviour[0](*arguments),
        },
        extension=f".{fresh_name}".encode(),
    )
    with no_exit() as said:
        engine().register_decoder(decoder)
    assert said.message is None
    return f".{fresh_name}", behaviour


def test_a_python_decoder_makes_a_spec_of_the_bytes_of_a_file(decoding, tmp_path):
    extension, behaviour = decoding
    file = tmp_path / f"model{extension}"
    file.write_bytes(b"made-up")

    def decode(resource, vfs, error=0, size=0):
        name = engine().read_resource(resource).decode()
        return engine().parse_xml_string(f"<mujoco model='{name}'/>")[0]

    behaviour.append(decode)
    assert mujoco.MjSpec.from_file(str(file)).modelname == "made-up"


def test_a_python_decoder_that_fails_gives_its_reason_where_the_engine_has_a_place(
    decoding, tmp_path
):
    extension, behaviour = decoding
    file = tmp_path / f"model{extension}"
    file.write_bytes(b"x")
    reason = b"bad magic"

    def decode(resource, vfs, error=0, size=0):
        if error:
            ctypes.memmove(error, reason, len(reason) + 1)
        return 0

    behaviour.append(decode)
    with pytest.raises(ValueError, match="bad magic" if structs.DECODE_REPORTS else "decod"):
        mujoco.MjSpec.from_file(str(file))


def test_a_registered_decoder_is_found_by_the_extension_of_a_resource(decoding):
    extension, _behaviour = decoding
    resource = Resource(name=f"some/file{extension}".encode())
    found = engine().find_decoder(ctypes.addressof(resource))
    assert found.extension == extension.encode()


def test_a_python_encoder_makes_the_bytes_of_a_file(fresh_name, filled, tmp_path):
    content = ctypes.create_string_buffer(b"encoded", 7)
    closed = []

    def encode(spec, model, vfs, resource):
        Resource.from_address(resource).data = ctypes.addressof(content)
        return len(content)

    encoder = filled(
        Encoder,
        {"encode": encode, "close_resource": closed.append},
        extension=f".{fresh_name}".encode(),
    )
    with no_exit() as said:
        engine().register_encoder(encoder)
    assert said.message is None
    assert engine().find_encoder(f"x.{fresh_name}").encode == encoder.encode
    file = tmp_path / f"x.{fresh_name}"
    mujoco.MjSpec.from_string("<mujoco/>").encode(str(file))
    assert file.read_bytes() == b"encoded"
    assert len(closed) == 1


# -- words ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("message", ["100 %s of %n%%", "two\0words", "\ud800", "m²"])
def test_a_warning_is_said_as_written(message):
    with no_exit() as said:
        engine().warn(message)
    expected = message.replace("\0", " ").encode("utf-8", "backslashreplace").decode()
    assert said.warnings == [expected]


def test_a_long_warning_is_cut():
    with no_exit() as said:
        engine().warn("x" * 5000)
    assert said.warnings == ["x" * 1023]

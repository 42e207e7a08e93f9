"""What the engine asks of resource providers and decoders: structs of thunks, and mjhost's own."""

from __future__ import annotations

import ctypes
import itertools
from pathlib import Path

import mujoco
import pytest

from mjhost import engine
from mjhost.engine.abi import structs, symbols
from mjhost.engine.abi.guard import no_exit
from tests.engine.facts.kit import callbacks, compiled

OBJ = b"v 0 0 0\nv .1 0 0\nv 0 .1 0\nv 0 0 .1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
MESH = """
<mujoco><asset><mesh name="m" file="{file}"/></asset>
<worldbody><geom type="mesh" mesh="m"/></worldbody></mujoco>
"""
_numbers = itertools.count()
_kept = []


@pytest.fixture
def prefix():
    return f"testfact{next(_numbers)}"


class RawProvider:
    """A provider of thunks that log what the engine calls."""

    def __init__(self, prefix, *, opens=1, content=OBJ):
        self.calls = []
        self._buffer = ctypes.create_string_buffer(content or b"", max(1, len(content or b"")))
        self._opens, self._content = opens, content
        struct = structs.Provider(prefix=prefix.encode())
        for slot in ("open", "read", "close", "mount", "unmount"):
            thunk = structs.PROVIDER_PROTOTYPES[slot](getattr(self, slot))
            setattr(struct, slot, structs.address_of(thunk))
            _kept.append(thunk)
        with no_exit() as said:
            symbols.engine().register_provider(struct)
        assert said.message is None
        _kept.extend((self, struct))

    def open(self, _resource):
        self.calls.append("open")
        return self._opens

    def read(self, _resource, buffer):
        self.calls.append("read")
        buffer[0] = ctypes.addressof(self._buffer)
        return -1 if self._content is None else len(self._content)

    def close(self, _resource):
        self.calls.append("close")

    def mount(self, _resource):
        self.calls.append("mount")
        return 1

    def unmount(self, _resource):
        self.calls.append("unmount")
        return 1


def test_a_resource_is_mounted_opened_read_closed_and_unmounted(prefix):
    provider = RawProvider(prefix)
    model, _ = compiled(MESH.format(file=f"{prefix}:part.obj"))
    assert model.nmeshvert == 4
    assert provider.calls == ["mount", "open", "read", "close", "unmount"]


def test_a_resource_that_does_not_open_is_not_closed(prefix):
    provider = RawProvider(prefix, opens=0)
    with pytest.raises(ValueError, match=r"part\.obj"):
        compiled(MESH.format(file=f"{prefix}:part.obj"))
    assert provider.calls == ["mount", "open", "unmount"]


def test_a_resource_that_cannot_be_read_is_closed(prefix):
    provider = RawProvider(prefix, content=None)
    with pytest.raises(ValueError, match="(?i)mesh|read|decode"):
        compiled(MESH.format(file=f"{prefix}:part.obj"))
    assert provider.calls == ["mount", "open", "read", "close", "unmount"]


def test_a_provider_can_mount_unmount_and_write_and_names_no_directory():
    """The mirror is compared with the header elsewhere."""
    (header,) = Path(mujoco.__file__).parent.glob("include/mujoco/mjplugin.h")
    members = {name for name, _ in structs.Provider._fields_}
    assert members >= {"mount", "unmount", "write"}
    assert "getdir" not in header.read_text().lower()


def test_the_spec_that_a_decoder_returns_is_the_engines_to_delete(prefix):
    decoded = []

    def decode(_resource, _vfs, *_report):  # 3.15 has no room for a report
        spec, complaint = symbols.engine().parse_xml_string(
            '<mujoco><asset><mesh name="tetra" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset></mujoco>'
        )
        decoded.append((bool(spec), complaint))
        return spec

    decoder = structs.Decoder(
        content_type=f"test/{prefix}".encode(), extension=f".{prefix}".encode()
    )
    for slot, function in {"can_decode": lambda _: 1, "decode": decode}.items():
        thunk = structs.thunk(slot, function)
        setattr(decoder, slot, structs.address_of(thunk))
        _kept.append(thunk)
    with no_exit() as said:
        symbols.engine().register_decoder(decoder)
    assert said.message is None
    model, _ = compiled(MESH.format(file=f"a.{prefix}"), {f"a.{prefix}": b"anything"})
    assert model.nmeshvert == 4
    assert decoded == [(True, "")]


def test_a_model_may_use_every_mechanism_at_once(prefix):
    """A callback, a plugin, a decoder and a provider."""
    seen = []

    @engine.resource_provider(prefix)
    def fetch(uri):
        seen.append(uri)
        return b"0.1"

    @engine.decoder(f".{prefix}", f"test/{prefix}")
    def decode(content, name):
        size = float(content)
        corners = [(0, 0, 0), (size, 0, 0), (0, size, 0), (0, 0, size)]
        return corners, [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]

    @engine.plugin(f"test.{prefix}", capabilities=("passive",))
    class Push:
        def compute(self, model, data, instance, capability):
            data.qfrc_passive[0] += 2.0

    def passive(_model, data):
        data.qfrc_passive[0] += 1.0

    model, data = compiled(
        f"""<mujoco>
        <extension><plugin plugin="test.{prefix}"/></extension>
        <asset><mesh name="m" file="{prefix}:part.{prefix}"/></asset>
        <worldbody><body><plugin plugin="test.{prefix}"/><joint type="slide"/>
        <geom type="mesh" mesh="m"/></body></worldbody></mujoco>"""
    )
    assert (model.nmeshvert, seen) == (4, [f"{prefix}:part.{prefix}"])
    with callbacks(passive=passive):
        mujoco.mj_forward(model, data)
    assert data.qfrc_passive[0] == 3.0

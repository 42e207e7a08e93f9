"""Resource providers in Python: what they serve, what they refuse, how they fail."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import mujoco
import numpy as np
import pytest

from mjhost import engine
from mjhost.engine.abi.symbols import engine as native
from mjhost.errors import (
    EnginePluginError,
)
from tests.engine.resources.helpers import Store, declared, load, obj, unique, volume, with_meshes

# -- serving -------------------------------------------------------------------------------------


def test_a_mesh_comes_from_the_provider_of_its_prefix(prefix):
    store = declared(prefix, a_obj=obj())
    assert load(with_meshes(f"{prefix}:a.obj")).nmeshvert == 8
    assert set(store.calls) == {f"{prefix}:a.obj"}


def test_the_prefix_is_matched_in_upper_and_lower_case(prefix):
    declared(prefix, a_obj=obj())
    assert load(with_meshes(f"{prefix.upper()}:a.obj")).nmeshvert == 8


def test_a_document_finds_its_neighbours_at_the_provider(prefix):
    store = declared(prefix)
    store.files |= {
        "robot/m.xml": b'<mujoco><include file="inc.xml"/>' + with_meshes("a.obj")[8:].encode(),
        "robot/inc.xml": b'<mujoco><option timestep="0.25"/></mujoco>',
        "robot/a.obj": obj(),
    }
    for model in (
        mujoco.MjModel.from_xml_path(f"{prefix}:robot/m.xml"),
        mujoco.MjSpec.from_file(f"{prefix}:robot/m.xml").compile(),
    ):
        assert (model.opt.timestep, model.nmesh) == (0.25, 1)


def test_a_function_is_a_provider(prefix):
    @engine.resource_provider(prefix)
    def fetch(uri):
        return obj() if uri == f"{prefix}:a.obj" else b""

    assert load(with_meshes(f"{prefix}:a.obj")).nmeshvert == 8
    assert fetch(f"{prefix}:b.obj") == b""


def test_a_class_is_made_once(prefix):
    made = []

    @engine.resource_provider(prefix)
    class Provider:
        def __init__(self):
            made.append(self)

        def open(self, uri):
            return obj()

    load(with_meshes(f"{prefix}:a.obj", f"{prefix}:b.obj"))
    assert [type(one) for one in made] == [Provider]


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_what_a_provider_returns_is_any_kind_of_bytes(prefix, kind):
    declared(prefix, a_obj=kind(obj()))
    assert load(with_meshes(f"{prefix}:a.obj")).nmeshvert == 8


def test_every_byte_arrives(prefix):
    content = bytes(range(256)) * 3
    declared(prefix, a_bin=content)
    resource, complaint = native().open_resource(f"{prefix}:a.bin")
    assert (bool(resource), complaint) == (True, "")
    assert native().read_resource(resource) == content
    assert native().read_resource(resource) == content
    native().close_resource(resource)


def test_a_buffer_lives_until_close_and_no_longer(prefix):
    content = obj() + b"#"
    engine.resource_provider(prefix)(lambda _uri: content)
    idle = sys.getrefcount(content)
    resource, _ = native().open_resource(f"{prefix}:a.obj")
    assert sys.getrefcount(content) == idle + 1
    assert native().read_resource(resource) == content
    native().close_resource(resource)
    assert sys.getrefcount(content) == idle
    load(with_meshes(f"{prefix}:a.obj", f"{prefix}:b.obj"))
    assert sys.getrefcount(content) == idle


# -- the cache -----------------------------------------------------------------------------------


def test_content_that_changed_is_never_served_from_the_cache(prefix):
    store = declared(prefix)
    for digit in range(1, 10):
        for size in (digit / 10, digit / 10 + 0.01):
            store.files["a.obj"] = obj(size)
            model = load(with_meshes(f"{prefix}:a.obj"))
            assert volume(model) == pytest.approx((2 * size) ** 3, rel=1e-5)


def test_a_time_stamp_of_the_provider_is_believed(prefix):
    files = {"content": obj(1.0), "stamp": "first"}
    engine.resource_provider(prefix)(lambda _uri: (files["content"], files["stamp"]))
    sizes = []
    for content, stamp in ((1.0, "first"), (2.0, "first"), (2.0, "second")):
        files |= {"content": obj(content), "stamp": stamp}
        sizes.append(volume(load(with_meshes(f"{prefix}:a.obj"))))
    assert sizes == pytest.approx([8, 8, 64])


def test_modified_is_asked_with_the_time_stamp_of_what_is_in_the_cache(prefix):
    asked, answer = [], [False]

    class Provider(Store):
        def open(self, uri):
            return super().open(uri), f"stamp {len(asked)}"

        def modified(self, uri, timestamp):
            asked.append((uri, timestamp))
            return answer[0]

    store = engine.resource_provider(prefix)(Provider(a_obj=obj(1.0)))
    load(with_meshes(f"{prefix}:a.obj"))
    store.files["a.obj"] = obj(2.0)
    assert volume(load(with_meshes(f"{prefix}:a.obj"))) == pytest.approx(8)
    answer[0] = True
    assert volume(load(with_meshes(f"{prefix}:a.obj"))) == pytest.approx(64)
    assert set(asked) == {(f"{prefix}:a.obj", "stamp 0")}


def test_modified_that_raises_counts_as_modified(prefix):
    class Provider(Store):
        def modified(self, uri, timestamp):
            raise KeyError("clock")

    store = engine.resource_provider(prefix)(Provider(a_obj=obj(1.0)))
    load(with_meshes(f"{prefix}:a.obj"))
    store.files["a.obj"] = obj(2.0)
    assert volume(load(with_meshes(f"{prefix}:a.obj"))) == pytest.approx(64)


# -- mounting and writing ------------------------------------------------------------------------


def test_a_load_mounts_before_and_unmounts_after(prefix):
    events = []

    class Provider(Store):
        def open(self, uri):
            events.append("open")
            return super().open(uri)

        def mount(self, name):
            events.append(("mount", name))

        def unmount(self, name):
            events.append(("unmount", name))

    engine.resource_provider(prefix)(Provider(a_obj=obj()))
    load(with_meshes(f"{prefix}:a.obj"))
    assert events[0] == ("mount", prefix)
    assert "open" in events
    assert events.count(("mount", prefix)) == events.count(("unmount", prefix))
    assert events[-1] == ("unmount", prefix)


@pytest.mark.parametrize("refuse", [lambda _name: False, lambda _name: 1 / 0])
def test_a_provider_that_does_not_mount_is_not_opened(prefix, refuse):
    store = Store(a_obj=obj())
    store.mount = refuse
    engine.resource_provider(prefix)(store)
    for _ in range(2):
        with pytest.raises(ValueError, match="it was not mounted: (mount|division)"):
            load(with_meshes(f"{prefix}:a.obj"))
    assert store.calls == []
    store.mount = lambda _name: None
    engine.resource_provider(prefix)(store)
    assert load(with_meshes(f"{prefix}:a.obj")).nmesh == 1


def test_what_is_encoded_to_a_provider_is_written_there(prefix):
    store = Store()
    store.write = lambda uri, content: store.files.update({uri: content})
    engine.resource_provider(prefix)(store)
    spec = mujoco.MjSpec.from_string("<mujoco/>")
    spec.compile()
    assert spec.encode(f"{prefix}:out.mjz") == len(store.files[f"{prefix}:out.mjz"])
    assert store.files[f"{prefix}:out.mjz"][:2] == b"PK"


def test_a_provider_without_write_says_so(prefix):
    declared(prefix)
    spec = mujoco.MjSpec.from_string("<mujoco/>")
    spec.compile()
    with pytest.raises(mujoco.FatalError):
        spec.encode(f"{prefix}:out.mjz")
    with pytest.raises(EnginePluginError, match="no method write"):
        engine.check()


def test_an_error_while_writing_waits_for_check(prefix):
    store = Store()
    store.write = lambda _uri, _content: 1 / 0
    engine.resource_provider(prefix)(store)
    assert native().write_resource(f"{prefix}:x", b"abc")[0] == -1
    with pytest.raises(EnginePluginError, match="division by zero") as caught:
        engine.check()
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert caught.value.method == "write"


# -- failing -------------------------------------------------------------------------------------

DOCUMENT = "<mujoco>{}</mujoco>"
REFERENCES = {
    "mesh": with_meshes("{}.obj"),
    "texture": '<mujoco><asset><texture type="2d" name="t" file="{}.png"/></asset></mujoco>',
    "field": '<mujoco><asset><hfield name="h" size="1 1 1 1" file="{}.png"/></asset></mujoco>',
    "skin": '<mujoco><deformable><skin name="s" file="{}.skn"/></deformable></mujoco>',
    "include": '<mujoco><include file="{}.xml"/></mujoco>',
    "model": '<mujoco><asset><model name="m" file="{}.xml"/></asset></mujoco>',
}


@pytest.mark.parametrize("kind", REFERENCES)
def test_the_error_of_a_provider_is_in_the_error_of_the_load(prefix, kind):
    @engine.resource_provider(prefix)
    def fetch(uri):
        raise LookupError(f'100% of {uri} is <"not"> on the shelf\nsecond line')

    xml = REFERENCES[kind].format(f"{prefix}:gone")
    words = f'LookupError: 100% of {prefix}:gone.*is <"not"> on the shelf second line'
    for _ in range(3):
        with pytest.raises(ValueError, match=words):
            load(xml)
    del fetch


@pytest.mark.parametrize("opened", [mujoco.MjModel.from_xml_path, mujoco.MjSpec.from_file])
def test_the_error_of_a_provider_is_in_the_error_of_a_document(prefix, opened):
    declared(prefix)
    with pytest.raises(ValueError, match=f"KeyError: 'gone.xml' .in open\\('{prefix}:gone.xml'\\)"):
        opened(f"{prefix}:gone.xml")


def test_a_failure_that_the_engine_told_does_not_wait_for_check(prefix):
    store = declared(prefix)
    store.files["d/m.xml"] = with_meshes("gone.obj").encode()
    for _ in range(2):
        with pytest.raises(ValueError, match=r"KeyError: 'd/gone\.obj'"):
            mujoco.MjModel.from_xml_path(f"{prefix}:d/m.xml")
    engine.check()


def test_a_failure_that_the_engine_does_not_tell_waits_for_check(prefix):
    declared(prefix)
    assert native().open_resource(f"{prefix}:gone.bin")[0] == 0
    with pytest.raises(EnginePluginError, match=r"KeyError: 'gone\.bin'") as caught:
        engine.check()
    assert isinstance(caught.value.__cause__, KeyError)
    engine.check()


def test_a_later_success_makes_a_failure_void(prefix):
    store = declared(prefix)
    assert native().open_resource(f"{prefix}:a.bin")[0] == 0
    store.files["a.bin"] = b"there now"
    resource, _ = native().open_resource(f"{prefix}:a.bin")
    native().close_resource(resource)
    engine.check()


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ("text", "returns bytes, got str; encode it"),
        (None, "returns bytes, got NoneType"),
        ((b"x", 3), "a time stamp is text, got int"),
        ((b"x", "s" * 512), "at most 511 bytes"),
        (b"x" * 101, r"101 bytes, at most 100 are allowed \(max_bytes\)"),
    ],
)
def test_what_no_provider_may_return_is_refused_with_the_reason(prefix, result, words):
    engine.resource_provider(prefix, max_bytes=100)(lambda _uri: result)
    with pytest.raises(ValueError, match=words):
        load(with_meshes(f"{prefix}:a.obj"))


def test_a_failed_open_leaves_nothing_behind(prefix):
    store = declared(prefix)
    provider = sys.modules["mjhost.engine.providers"]._providers[prefix]
    for name in ("gone", "lost", "no"):
        for kind in ("mesh", "include"):
            with pytest.raises(ValueError, match="KeyError"):
                load(REFERENCES[kind].format(f"{prefix}:{name}"))
    store.files["empty.obj"] = b""
    with pytest.raises(ValueError, match="at least 4 vertices"):
        load(with_meshes(f"{prefix}:empty.obj"))
    assert provider._opened == {}


def test_an_interrupt_in_a_provider_fails_the_load_and_is_raised_by_check(prefix):
    @engine.resource_provider(prefix)
    def fetch(_uri):
        raise KeyboardInterrupt

    with pytest.raises(ValueError, match="KeyboardInterrupt"):
        load(with_meshes(f"{prefix}:a.obj"))
    with pytest.raises(KeyboardInterrupt):
        engine.check()
    del fetch


@pytest.mark.slow
def test_a_provider_may_use_the_bindings_and_still_fail():
    """Nested calls of the bindings and an engine error after them, on 3.15 too."""
    code = """
import mujoco, numpy as np
from mjhost import engine
@engine.resource_provider("nested")
def fetch(uri):
    mujoco.mju_normalize4(np.array([1.0, 2, 3, 4]))
    m = mujoco.MjModel.from_xml_string("<mujoco/>")
    mujoco.mj_step(m, mujoco.MjData(m))
    try:
        mujoco.MjModel.from_xml_string("<mujoco><worldbody><geom/></worldbody></mujoco>")
    except ValueError:
        pass
    raise RuntimeError("after all that")
for _ in range(5):
    names = [f"nested:{i}.obj" for i in range(3)]
    assets = "".join(f'<mesh name="m{i}" file="{n}"/>' for i, n in enumerate(names))
    try:
        mujoco.MjModel.from_xml_string(f"<mujoco><asset>{assets}</asset></mujoco>")
    except ValueError as error:
        assert "RuntimeError: after all that" in str(error), error
    else:
        raise SystemExit("loaded")
print("alive")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr


# -- worker threads ------------------------------------------------------------------------------


def test_the_compiler_opens_assets_on_its_own_threads(prefix):
    seen = set()

    @engine.resource_provider(prefix)
    def fetch(_uri):
        seen.add(threading.get_ident())
        return obj()

    load(with_meshes(*(f"{prefix}:{i}.obj" for i in range(4))))
    assert seen
    assert threading.get_ident() not in seen
    del fetch


def test_two_loads_are_inside_of_a_provider_at_the_same_time(prefix):
    together = threading.Barrier(2)

    @engine.resource_provider(prefix)
    def fetch(_uri):
        together.wait(20)  # passes only with the other one inside
        return obj()

    models = []
    threads = [
        threading.Thread(target=lambda: models.append(load(with_meshes(f"{prefix}:a.obj"))))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert [model.nmesh for model in models] == [1, 1]
    del fetch


def test_one_failure_among_many_assets_is_the_error(prefix):
    store = declared(prefix)
    names = [f"{i}.obj" for i in range(16)]
    store.files |= dict.fromkeys(names, obj())
    del store.files["11.obj"]
    with pytest.raises(ValueError, match=r"KeyError: '11\.obj'"):
        load(with_meshes(*(f"{prefix}:{name}" for name in names)))


def test_recompiling_finishes_while_another_thread_spins(prefix):
    stop = threading.Event()

    def spin():
        while not stop.is_set():
            np.ones(4).sum()

    declared(prefix, a_obj=obj(), b_obj=obj())
    thread = threading.Thread(target=spin)
    thread.start()
    try:
        spec = mujoco.MjSpec.from_string(with_meshes(f"{prefix}:a.obj"))
        model = spec.compile()
        data = mujoco.MjData(model)
        spec.add_mesh(name="b", file=f"{prefix}:b.obj")
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname="b")
        model, data = spec.recompile(model, data)
    finally:
        stop.set()
        thread.join(20)
    assert model.nmesh == 2


# -- many ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_thousands_of_assets_load_in_time_linear_in_their_number(prefix):
    store, spent = declared(prefix), {}
    for count in (1000, 4000):
        mujoco.mj_clearCache(mujoco.mj_getCache())
        names = [f"{index}.obj" for index in range(count)]
        store.files = {name: obj(1 + index / count) for index, name in enumerate(names)}
        store.calls.clear()
        began = time.process_time()
        model = load(with_meshes(*(f"{prefix}:{name}" for name in names)))
        spent[count] = time.process_time() - began
        assert model.nmesh == count
        assert len(store.calls) == count
    # 4 times as long if linear, 16 times if quadratic.
    assert spent[4000] < 9 * spent[1000]


def test_unique_names_are_unique():
    assert unique("x") != unique("x")

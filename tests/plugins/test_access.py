from __future__ import annotations

import gc
import logging
import threading
import weakref

import pytest

from mjhost.errors import (
    EnvClosedError,
    LockOrderError,
    NotLoadedError,
    PluginLoadError,
    ReentrancyError,
    ScopeClosedError,
    StaleGenerationError,
    UnknownNameError,
)
from mjhost.generation import ModelGeneration, PluginGeneration
from mjhost.plugins import Plugin, PluginFactory, PluginHost, access
from tests.plugins.probes import Boom, Generations, ProbeAdapter, host_of


class Tunable(Plugin):
    gain = 1.0
    items = ()

    def control(self, model, data): ...

    def double(self):
        self.gain *= 2
        return self

    def __len__(self):
        return 4

    def __getitem__(self, key):
        return key


@pytest.fixture
def generations(model, data):
    return host_of(model, data, Tunable)


def test_access_with_nothing_active_is_not_loaded():
    host = PluginHost(list)
    with pytest.raises(NotLoadedError):
        host.acquire_scoped_access()
    assert not host.lock.held_by_me()


def test_access_after_quiesce_is_not_loaded(generations):
    generations.host.quiesce_and_destroy()
    with pytest.raises(NotLoadedError):
        generations.host.acquire_scoped_access(generations.plugin_generation)


@pytest.mark.parametrize(
    "expected",
    [(PluginGeneration(7), None), (None, ModelGeneration(7)), (PluginGeneration(0), None)],
)
def test_access_expecting_another_generation_is_stale_at_once(generations, expected):
    with pytest.raises(StaleGenerationError):
        generations.host.acquire_scoped_access(*expected)
    assert not generations.host.lock.held_by_me()


def test_access_is_pinned_to_both_generations(generations):
    host = generations.host
    with host.acquire_scoped_access(PluginGeneration(1), ModelGeneration(1)) as scope:
        assert (scope.plugin_generation, scope.model_generation) == (
            PluginGeneration(1),
            ModelGeneration(1),
        )


def test_access_holds_the_lock_for_its_lifetime_and_no_longer(generations):
    host = generations.host
    scope = host.acquire_scoped_access()
    assert host.lock.held_by_me()
    with pytest.raises(ReentrancyError):
        host.quiesce_and_destroy()
    scope.close()
    assert scope.closed
    assert not host.lock.held_by_me()
    scope.close()


def test_a_scope_keeps_other_threads_from_dispatching(generations, model, data):
    host = generations.host
    with host.acquire_scoped_access():
        thread = threading.Thread(target=lambda: host.dispatch_control(model, data))
        thread.start()
        while not host.lock.contended:
            thread.join(0.001)
        assert host.statistics()[0].hooks["control"].calls == 0
    thread.join(10)
    assert host.statistics()[0].hooks["control"].calls == 1


def test_backend_object_is_the_plugin_and_is_checked_against_its_class(generations):
    with generations.host.acquire_scoped_access() as scope:
        assert isinstance(scope.backend_object("Tunable", f"{__name__}:Tunable", Tunable), Tunable)
        with pytest.raises(TypeError, match="must be a Boom"):
            scope.backend_object("Tunable", None, Boom)


def test_unknown_names_list_what_exists(generations):
    with generations.host.acquire_scoped_access() as scope:
        with pytest.raises(UnknownNameError, match="did you mean 'Tunable'"):
            scope.backend_object("Tuneable")
        with pytest.raises(UnknownNameError, match="Tunable"):
            scope.backend_object("Tunable", "another:Type")


def test_two_adapters_of_one_name_are_ambiguous(model, data):
    generations = Generations(lambda: [ProbeAdapter("x"), ProbeAdapter("x")], model, data)
    generations.load()
    with generations.host.acquire_scoped_access() as scope, pytest.raises(UnknownNameError):
        scope.backend_object("x")


def test_the_backend_of_a_failed_adapter_is_not_given(model, data):
    generations = Generations(lambda: [ProbeAdapter("x", fail={"activate"})], model, data)
    generations.load()
    with (
        generations.host.acquire_scoped_access() as scope,
        pytest.raises(PluginLoadError, match=r"not ready: Boom: activate of x"),
    ):
        scope.backend_object("x")


def test_an_adapter_without_a_backend_says_so(model, data):
    class Bare(ProbeAdapter):
        def backend_object(self):
            return None

    generations = Generations(lambda: [Bare("x")], model, data)
    generations.load()
    with (
        generations.host.acquire_scoped_access() as scope,
        pytest.raises(PluginLoadError, match="no backend"),
    ):
        scope.backend_object("x")


def test_every_use_of_the_access_after_its_scope_raises(generations):
    with generations.host.acquire_scoped_access() as scope:
        pass
    uses = [
        lambda: scope.backend_object("Tunable"),
        lambda: scope.proxy("Tunable"),
        scope.__enter__,
    ]
    for use in uses:
        with pytest.raises(ScopeClosedError, match="acquire a new one"):
            use()


def test_a_scope_ends_with_the_block_even_if_it_raises(generations):
    with pytest.raises(Boom), generations.host.acquire_scoped_access():
        raise Boom
    assert not generations.host.lock.held_by_me()


def test_a_scope_is_not_closed_by_another_thread(generations):
    scope = generations.host.acquire_scoped_access()
    caught = []

    def close():
        try:
            scope.close()
        except LockOrderError as error:
            caught.append(error)

    thread = threading.Thread(target=close)
    thread.start()
    thread.join()
    assert len(caught) == 1
    assert generations.host.lock.held_by_me()
    scope.close()


def test_a_scope_that_is_dropped_open_gives_the_lock_back_with_a_warning(generations):
    with pytest.warns(ResourceWarning, match="never closed"):
        generations.host.acquire_scoped_access()
    assert not generations.host.lock.held_by_me()


def test_a_scope_that_holds_up_stepping_is_reported(generations, monkeypatch, caplog):
    now = [0.0]
    monkeypatch.setattr(access, "perf_counter", lambda: now[0])
    with generations.host.acquire_scoped_access():
        now[0] = 0.1
    assert caplog.records == []
    with caplog.at_level(logging.WARNING), generations.host.acquire_scoped_access():
        now[0] = 0.35
    found = generations.host.diagnostics()
    assert (found.long_scopes, found.longest_scope_s) == (1, pytest.approx(0.25))
    assert "0.250 s" in caplog.text


# Handles and proxies.


def test_a_handle_lends_the_plugin_and_takes_it_back(generations):
    (handle,) = generations.host.handles()
    with handle.access() as plugin:
        plugin.gain = 3.0
        assert plugin.double() is plugin
        assert plugin.gain == 6.0
        assert len(plugin) == 4
        assert plugin["a"] == "a"
        assert isinstance(plugin, Tunable)
        assert "double" in dir(plugin)
        assert bool(plugin)
        plugin.extra = 1
        del plugin.extra
        assert not hasattr(plugin, "extra")
    with handle.access() as plugin:
        assert plugin.gain == 6.0


def test_every_use_of_a_proxy_after_its_scope_raises(generations):
    (handle,) = generations.host.handles()
    with handle.access() as plugin:
        method = plugin.double
    uses = [
        lambda: plugin.gain,
        lambda: setattr(plugin, "gain", 1),
        lambda: delattr(plugin, "gain"),
        lambda: len(plugin),
        lambda: plugin[0],
        plugin,
        lambda: iter(plugin),
        lambda: 1 in plugin,
        lambda: bool(plugin),
        lambda: dir(plugin),
        lambda: plugin.__setitem__(0, 1),
        lambda: plugin.__delitem__(0),
        method,
    ]
    for use in uses:
        with pytest.raises(ScopeClosedError):
            use()
    assert "scope is over" in repr(plugin)


def test_a_kept_proxy_does_not_keep_the_plugin_alive(generations):
    (handle,) = generations.host.handles()
    with generations.host.acquire_scoped_access() as scope:
        ref = weakref.ref(scope.backend_object("Tunable"))
    with handle.access() as plugin:
        method = plugin.double
    generations.host.quiesce_and_destroy()
    gc.collect()
    assert ref() is None
    assert plugin is not None
    assert method is not None


def test_stale_handle_raises_after_reload(generations):
    (handle,) = generations.host.handles()
    generations.load(new_model=False)
    for use in (handle.access().__enter__, handle.statistics):
        with pytest.raises(StaleGenerationError):
            use()
    assert not generations.host.lock.held_by_me()
    (fresh,) = generations.host.handles()
    assert (fresh.name, fresh.type) == (handle.name, handle.type)
    assert fresh.plugin_generation == PluginGeneration(2)


def test_a_handle_asks_for_admission_at_every_use(generations):
    asked = []

    def admit(operation):
        asked.append(operation)
        if len(asked) > 2:
            raise EnvClosedError("closed")

    (handle,) = generations.host.handles(admit)
    with handle.access():
        pass
    handle.statistics()
    with pytest.raises(EnvClosedError), handle.access():
        pass
    assert asked == ["scoped_access", "read_state", "scoped_access"]


def test_handles_of_failed_plugins_give_statistics_but_no_access(model, data):
    class Fails(Plugin):
        def load(self, model, data):
            raise Boom("no")

    generations = Generations(PluginFactory(Fails), model, data)
    generations.load()
    (handle,) = generations.host.handles()
    assert handle.statistics().state == "failed"
    with pytest.raises(PluginLoadError, match="not ready"), handle.access():
        pass


def test_handles_without_a_generation_are_none(generations):
    generations.host.quiesce_and_destroy()
    assert generations.host.handles() == ()


def test_access_from_inside_a_hook_is_refused_naming_the_hook(model, data):
    class Reaches(Plugin):
        def control(self, model, data):
            generations.host.acquire_scoped_access()

    generations = host_of(model, data, Reaches)
    with pytest.raises(ReentrancyError, match=r"inside plugin 'Reaches' .*, hook control"):
        generations.dispatch("control")
    assert not generations.host.lock.held_by_me()


def test_two_scopes_of_one_thread_nest(generations):
    (handle,) = generations.host.handles()
    with handle.access() as outer, handle.access() as inner:
        inner.gain = 9.0
        assert outer.gain == 9.0
    assert not generations.host.lock.held_by_me()

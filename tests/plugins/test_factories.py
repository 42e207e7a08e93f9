from __future__ import annotations

import dataclasses
import importlib.metadata
import linecache
import os
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mjhost.errors import InvalidArgumentError, PluginConfigError, PluginLoadError
from mjhost.plugins import Plugin, PluginAdapter, PluginFactory
from mjhost.plugins.config_files import SIZE_LIMIT, VALUE_LIMIT, read_records
from tests.plugins.probes import Boom, Generations


class Wind(Plugin):
    @dataclasses.dataclass
    class Config:
        speed: float = 0.0

    def passive(self, model, data): ...


class Plain(Plugin):
    def control(self, model, data): ...


SOURCE = """
from dataclasses import dataclass
from mjhost.plugins import Plugin

class Fan(Plugin):
    @dataclass
    class Config:
        speed: float = 1.0
    version = {version}
    def post_step(self, model, data):
        {body}
"""


@pytest.fixture
def module_dir(tmp_path, monkeypatch):
    """A folder on the path; modules imported from it are forgotten afterwards."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]
    linecache.clearcache()


def write_fan(path, version=1, body="pass"):
    path.write_text(SOURCE.format(version=version, body=body))
    # All versions look equally old: only the text tells them apart.
    os.utime(path, (1_000_000_000, 1_000_000_000))


@pytest.fixture
def load(model, data):
    """Load a plugin list and give the plugin objects (None for failed ones) and the report."""

    def load(*args, **kwargs):
        factory = args[0] if args and isinstance(args[0], PluginFactory) else None
        generations = Generations(factory or PluginFactory(*args, **kwargs), model, data)
        report = generations.load()
        adapters = [entry.adapter for entry in generations.host._entries]
        return [adapter.backend_object() for adapter in adapters], report

    return load


def test_a_class_is_built_with_its_default_config(load):
    (plugin,), report = load([Wind])
    assert report.ready == ("Wind",)
    assert plugin.config == Wind.Config(0.0)
    assert plugin.name == "Wind"


def test_one_plugin_needs_no_list(load):
    for source in (Wind, Wind(speed=1), {"type": Wind}, f"{__name__}:Wind"):
        assert load(source)[1].ready == ("Wind",)


def test_an_instance_is_a_template_and_never_loaded_itself(load):
    template = Wind(speed=3)
    factory = PluginFactory([template])
    (first,), _ = load(factory)
    (second,), _ = load(factory)
    assert len({id(template), id(first), id(second)}) == 3
    assert first.config == second.config == Wind.Config(3.0)
    first.config.speed = 9.0
    assert template.config.speed == second.config.speed == 3.0


def test_a_template_with_its_own_constructor_is_constructed_again_with_its_arguments(load):
    class Custom(Plugin):
        def __init__(self, log, *, gain):
            super().__init__()
            self.log, self.gain = log, gain

    log = []
    (plugin,), _ = load([Custom(log, gain=2)])
    assert plugin.log is log
    assert plugin.gain == 2


def test_a_rate_set_on_a_template_is_kept(model, data):
    class Post(Plugin):
        def post_step(self, model, data): ...

    template = Post()
    template.rate_hz = 50
    generations = Generations(PluginFactory(template), model, data)
    generations.load()
    assert [task.rate_hz for task in generations.host.rate_tasks()] == [50.0]


def test_a_record_gives_name_config_and_rate(load, model, data):
    class Post(Wind):
        def post_step(self, model, data): ...

    record = {"type": Post, "name": "gust", "config": {"speed": 4}, "rate_hz": 20}
    generations = Generations(PluginFactory([record]), model, data)
    assert generations.load().ready == ("gust",)
    (statistics,) = generations.host.statistics()
    assert (statistics.name, statistics.rate_hz) == ("gust", 20.0)
    assert statistics.type == f"{__name__}:{Post.__qualname__}"


def test_names_are_made_unique_and_configured_names_come_first():
    factory = PluginFactory(
        [Wind, Wind, {"type": Wind, "name": "Wind"}, {"type": Wind, "name": "Wind_2"}]
    )
    assert factory.names == ("Wind_3", "Wind_4", "Wind", "Wind_2")


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from(["a", "a_2", "a_3", "b", None]), max_size=8))
def test_any_names_end_unique_and_a_name_given_once_is_kept(names):
    records = [{"type": Wind, **({"name": name} if name else {})} for name in names]
    made = PluginFactory(records).names
    assert len(set(made)) == len(names)
    for wanted, name in zip(names, made, strict=True):
        if wanted and names.count(wanted) == 1 and wanted in {"a", "b"}:
            assert name == wanted


def test_every_call_makes_fresh_adapters():
    factory = PluginFactory([Wind])
    (first,), (second,) = factory(), factory()
    assert isinstance(first, PluginAdapter)
    assert first is not second


@pytest.mark.parametrize("source", [42, [42], [object()], [print], [int], [{"type": 3}]])
def test_what_cannot_be_a_plugin_is_refused_at_once(source):
    with pytest.raises(InvalidArgumentError, match="a plugin must be"):
        PluginFactory(source)


def test_a_wrong_config_is_a_problem_and_fails_the_load_of_that_plugin_only(load):
    factory = PluginFactory([{"type": Wind, "name": "w", "config": {"speed": "x"}}, Plain])
    assert len(factory.problems) == 1
    with pytest.raises(PluginConfigError, match="expected float, got str 'x'"):
        factory.require_no_problems()
    _, report = load(factory)
    (failure,) = report.failures
    assert (failure.name, failure.type, failure.phase) == ("w", f"{__name__}:Wind", "load")
    assert "key 'speed': expected float, got str 'x'" in failure.error
    assert report.ready == ("Plain",)


@pytest.mark.parametrize(
    ("record", "told"),
    [
        ({"typ": "a:B"}, "unknown key 'typ'; did you mean 'type'"),
        ({"name": "x"}, "key 'type' is missing"),
        ({"type": Plain, "name": 3}, "key 'name'"),
        ({"type": Plain, "name": ""}, "key 'name'"),
        ({"type": Plain, "name": "a\nb"}, "key 'name'"),
        ({"type": Plain, "config": [1]}, "key 'config': expected a mapping, got list"),
        ({"type": Plain, "config": {"a": 1}}, "takes no config, got 'a'"),
        ({"type": Plain, "rate_hz": "x"}, "key 'rate_hz'"),
        ({"type": "no_such_module_here:B"}, "No module named 'no_such_module_here'"),
        ({"type": f"{__name__}:Winds"}, "no 'Winds' in the module; .*'Wind'"),
        ({"type": f"{__name__}:Boom"}, "must be a subclass of mjhost.Plugin"),
        ({"type": "no-such-entry"}, "no plugin 'no-such-entry' among the entry points"),
        ({"type": ":"}, "must be 'module:Class'"),
        ({"type": "nothing.py:Fan"}, "does not exist"),
    ],
)
def test_a_record_that_cannot_be_built_says_why_and_stays_visible(load, record, told):
    factory = PluginFactory([record, Wind])
    with pytest.raises(AssertionError, match=told):
        raise AssertionError(str(factory.problems[0]))
    plugins, report = load(factory)
    assert report.ready == ("Wind",)
    assert plugins[0] is None
    assert told.split(";")[0] in report.failures[0].error


def test_two_problems_are_told_together():
    factory = PluginFactory(["no_such_module_a:B", "no_such_module_b:C"])
    with pytest.raises(PluginLoadError, match=r"2 plugins.*module_a.*module_b"):
        factory.require_no_problems()


def test_a_problem_raised_again_and_again_does_not_grow(load):
    factory = PluginFactory(["no_such_module_a:B"])
    sizes = [len(load(factory)[1].failures[0].traceback) for _ in range(3)]
    assert len(set(sizes)) == 1


@pytest.mark.parametrize(
    "text", ["raise RuntimeError('broken')", "import sys; sys.exit(3)", "x = ("]
)
def test_a_module_that_cannot_be_executed_is_a_problem_with_the_imports_traceback(
    module_dir, load, text
):
    (module_dir / "broken_mod.py").write_text(text)
    _, report = load(["broken_mod:Fan", Wind])
    assert report.ready == ("Wind",)
    assert "plugin module 'broken_mod' cannot be imported" in report.failures[0].error
    assert "broken_mod.py" in report.failures[0].traceback
    assert "broken_mod" not in sys.modules


def test_an_interrupt_while_importing_goes_on(module_dir):
    (module_dir / "slow_mod.py").write_text("raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        PluginFactory("slow_mod:Fan")


@pytest.mark.parametrize("text", ["fan_mod:Fan", "fan_mod.py:Fan", "fan_mod.py"])
def test_a_refresh_runs_the_new_source_and_leaves_the_old_objects_alone(module_dir, load, text):
    write_fan(module_dir / "fan_mod.py", 1)
    old_factory = PluginFactory([{"type": text, "config": {"speed": 2}}])
    (old,), _ = load(old_factory)
    write_fan(module_dir / "fan_mod.py", 2)
    new_factory = old_factory.refreshed()
    (new,), report = load(new_factory)
    assert (old.version, new.version) == (1, 2)
    assert type(old) is not type(new)
    assert new.config.speed == 2.0
    assert sys.modules[type(old).__module__] is not sys.modules.get("gone")
    assert type(new).__dict__["post_step"].__globals__ is vars(sys.modules[type(new).__module__])
    assert type(old).__dict__["post_step"].__globals__ is not vars(
        sys.modules[type(new).__module__]
    )
    assert load(old_factory)[0][0].version == 1
    assert new_factory.names == old_factory.names
    assert report.ok


@pytest.mark.parametrize("text", ["fan_mod:Fan", "fan_mod.py:Fan"])
def test_a_failing_refresh_changes_nothing(module_dir, load, text):
    write_fan(module_dir / "fan_mod.py", 1)
    write_fan(module_dir / "good_mod.py", 1)
    factory = PluginFactory(["good_mod:Fan", text])
    before = dict(sys.modules)
    write_fan(module_dir / "good_mod.py", 2)
    (module_dir / "fan_mod.py").write_text("raise RuntimeError('mid-edit')")
    with pytest.raises(PluginLoadError, match="mid-edit"):
        factory.refreshed()
    assert {n: m for n, m in sys.modules.items() if n in before} == before
    (good, fan), report = load(factory)
    assert (good.version, fan.version) == (1, 1)
    assert report.ok


def test_a_refresh_can_bring_another_list(module_dir, load):
    factory = PluginFactory([Wind])
    assert factory.refreshed([Plain, Wind]).names == ("Plain", "Wind")
    assert factory.names == ("Wind",)


def test_two_plugins_of_one_module_share_its_refreshed_module(module_dir, load):
    write_fan(module_dir / "fan_mod.py", 1)
    factory = PluginFactory(["fan_mod:Fan", "fan_mod:Fan"]).refreshed()
    (one, two), _ = load(factory)
    assert type(one) is type(two)


def test_a_refreshed_module_of_a_package_is_what_its_package_shows(module_dir, load):
    package = module_dir / "fan_pkg"
    package.mkdir()
    (package / "__init__.py").write_text("")
    write_fan(package / "fan.py", 1)
    factory = PluginFactory("fan_pkg.fan:Fan")
    write_fan(package / "fan.py", 2)
    (new,), _ = load(factory.refreshed())
    assert new.version == 2
    assert sys.modules["fan_pkg"].fan is sys.modules["fan_pkg.fan"]


def test_mjhosts_own_modules_are_never_executed_again(module_dir):
    import mjhost.plugins.plugin as own

    PluginFactory("mjhost.plugins.plugin:Plugin").refreshed()
    assert sys.modules["mjhost.plugins.plugin"] is own


def test_tracebacks_after_a_refresh_show_the_new_text(module_dir, model, data):
    write_fan(module_dir / "fan_mod.py", 1, body="raise ValueError('old')")
    factory = PluginFactory("fan_mod.py:Fan")
    generations = Generations(factory, model, data)
    generations.load()
    with pytest.raises(ValueError, match="old"):
        generations.dispatch("post_step")
    write_fan(module_dir / "fan_mod.py", 1, body="raise ValueError('new')")
    generations.load(factory=factory.refreshed())
    with pytest.raises(ValueError, match="new"):
        generations.dispatch("post_step")
    (failure,) = generations.host.diagnostics()
    assert "raise ValueError('new')" in failure.traceback


def test_a_file_with_several_plugins_must_name_one(module_dir):
    (module_dir / "two.py").write_text(
        "from mjhost.plugins import Plugin\nclass A(Plugin): pass\nclass B(Plugin): pass\n"
    )
    (problem,) = PluginFactory("two.py").problems
    assert "exactly one subclass of Plugin, it has A, B" in str(problem)


def test_entry_points_are_found_by_name(module_dir, load, monkeypatch):
    write_fan(module_dir / "fan_mod.py", 5)
    point = importlib.metadata.EntryPoint("fan", "fan_mod:Fan", "mjhost.plugins")
    asked = []

    def entry_points(*, group):
        asked.append(group)
        return [point]

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    (plugin,), report = load(["fan"])
    assert asked == ["mjhost.plugins"]
    assert plugin.version == 5
    assert report.ready == ("fan",)
    (problem,) = PluginFactory("fun").problems
    assert "did you mean 'fan'" in str(problem)


# Files.

YAML_TEXT = """
plugins:
  - type: {module}:Wind
    name: gust
    config: {{speed: 3}}
  - {module}:Plain
  - type: fan_mod.py:Fan
    rate_hz: 50
"""

TOML_TEXT = """
[[plugins]]
type = "{module}:Wind"
name = "gust"
config = {{ speed = 3 }}

[[plugins]]
type = "{module}:Plain"

[[plugins]]
type = "fan_mod.py:Fan"
rate_hz = 50
"""


@pytest.mark.parametrize(
    ("suffix", "text"), [("yaml", YAML_TEXT), ("yml", YAML_TEXT), ("toml", TOML_TEXT)]
)
def test_a_plugin_file_is_read_relative_to_itself(module_dir, load, suffix, text, monkeypatch):
    write_fan(module_dir / "fan_mod.py")
    file = module_dir / f"plugins.{suffix}"
    file.write_text(text.format(module=__name__))
    monkeypatch.chdir("/")
    for source in (file, str(file), [file]):
        factory = PluginFactory(source)
        plugins, report = load(factory)
        assert report.failures == ()
        assert report.ready == ("gust", "Plain", "Fan")
        assert plugins[0].config.speed == 3.0
    assert set(factory.watched_files) >= {file, module_dir / "fan_mod.py"}


def test_a_refresh_reads_the_file_again(module_dir, load):
    file = module_dir / "plugins.yaml"
    file.write_text(f"- {__name__}:Wind\n")
    factory = PluginFactory(file)
    file.write_text(f"- {__name__}:Plain\n")
    assert factory.refreshed().names == ("Plain",)
    file.write_text("- [\n")
    with pytest.raises(PluginConfigError, match="line 2"):
        factory.refreshed()


def deep(levels):
    return "plugins: " + "[" * levels + "]" * levels


BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join(['*' + chr(97 + i)] * 10)}]\n" for i in range(8)
)


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.yaml", "- a: [", "is no YAML: line"),
        ("a.yaml", "!!python/object/apply:os.system ['true']", "is no YAML"),
        ("a.yaml", "- type: a\n  type: b\n", "key 'type' appears twice"),
        ("a.yaml", "plugin: []", "unknown key 'plugin'; did you mean 'plugins'"),
        ("a.yaml", "plugins: 3", "must hold a list of plugins, got int"),
        ("a.yaml", "just text", "must hold a list of plugins, got str"),
        ("a.yaml", "- other.yaml", "must not name another file"),
        ("a.yaml", deep(200), "nested deeper"),
        ("a.yaml", deep(20_000), "nested deeper"),
        ("a.yaml", "- " * 20_000, "is no YAML"),
        ("a.yaml", BOMB, f"more than {VALUE_LIMIT} values"),
        ("a.yaml", "# " + "x" * SIZE_LIMIT, "larger than"),
        ("a.yaml", "- \x00", "is no YAML"),
        ("a.toml", "plugins = [", "is no TOML"),
        ("a.toml", "plugins = " + "[" * 20_000 + "]" * 20_000, "is no TOML"),
    ],
)
def test_a_file_that_is_no_plugin_list_is_refused_at_once(tmp_path, name, text, told):
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(PluginConfigError) as caught:
        PluginFactory(file)
    assert told in str(caught.value)
    assert str(file) in str(caught.value)


def test_a_missing_file_lists_the_near_ones(tmp_path):
    (tmp_path / "plugins.yaml").write_text("")
    with pytest.raises(PluginConfigError, match="did you mean 'plugins.yaml'"):
        PluginFactory(tmp_path / "plugin.yaml")


def test_a_folder_and_foreign_bytes_are_refused(tmp_path):
    (tmp_path / "d.yaml").mkdir()
    (tmp_path / "b.yaml").write_bytes(b"\xff\xfe")
    for name in ("d.yaml", "b.yaml"):
        with pytest.raises(PluginConfigError):
            PluginFactory(tmp_path / name)


def test_an_empty_file_is_an_empty_list(tmp_path):
    (tmp_path / "a.yaml").write_text("")
    (tmp_path / "b.toml").write_text("")
    assert len(PluginFactory([tmp_path / "a.yaml", tmp_path / "b.toml"])) == 0


@settings(deadline=None, max_examples=100)
@given(
    st.text(alphabet="abc:-[]{}&*!#'\" \n\t|>%0.1ty", max_size=60),
    st.sampled_from(["yaml", "toml"]),
)
def test_any_text_is_a_list_or_a_config_error(tmp_path_factory, text, suffix):
    file = tmp_path_factory.getbasetemp() / f"fuzz.{suffix}"
    file.write_text(text)
    try:
        assert isinstance(read_records(file), list)
    except PluginConfigError:
        return


def test_a_constructor_that_raises_fails_that_plugin_only(load):
    class Fails(Plugin):
        def __init__(self, config=None):
            raise Boom("in init")

    _, report = load([Fails, Plain])
    assert [(f.name, f.error) for f in report.failures] == [("Fails", "Boom: in init")]
    assert report.ready == ("Plain",)


def test_one_shot_iterables_last_for_a_refresh():
    factory = PluginFactory(iter([Wind, Plain]))
    assert factory.refreshed().names == factory.names == ("Wind", "Plain")

"""Every rule on snippets that break and keep it, then on the package and on the tests."""

from __future__ import annotations

import functools
import re
import tomllib

import pytest

from tests.architecture import rules
from tests.architecture.allowed import ALLOWED
from tests.architecture.source import PACKAGE, ROOT, TESTS, Source, Violation, sources

LONG_FUNCTION = "def f():\n" + "    x = 1\n" * 60

# (rule, path, code)
BROKEN = [
    (rules.only_env_calls_the_plugin_host, "cli/run.py", "from mjhost.plugins import PluginHost"),
    (rules.only_env_calls_the_plugin_host, "render/core.py", "host.dispatch_render(m, d, s)"),
    (rules.only_env_calls_the_plugin_host, "cli/run.py", "env._host.quiesce_and_destroy()"),
    (rules.only_env_steps_data, "plugins/host.py", "mujoco.mj_step(m, d)"),
    (rules.only_env_steps_data, "cli/check.py", "from mujoco import mj_forward"),
    (rules.only_env_steps_data, "render/core.py", "step = mujoco.mj_step2"),
    (rules.only_env_steps_data, "cli/run.py", "getattr(lib, 'mj_resetDataKeyframe')(m, d, 0)"),
    (rules.only_env_steps_data, "plugins/access.py", "mujoco.mj_setState(m, d, s, 1)"),
    (rules.only_callbacks_touches_the_engine_hooks, "env/x.py", "mujoco.set_mjcb_control(None)"),
    (rules.only_callbacks_touches_the_engine_hooks, "env/x.py", "c_void_p.in_dll(l, 'mjcb_time')"),
    (rules.only_callbacks_touches_the_engine_hooks, "env/x.py", "mujoco.mj_resetCallbacks()"),
    (
        rules.only_the_registry_registers_with_the_engine,
        "engine/codecs.py",
        "l.mjp_registerDecoder()",
    ),
    (
        rules.only_the_registry_registers_with_the_engine,
        "engine/abi/verify.py",
        "l.mjp_registerPlugin(p)",
    ),
    (rules.only_the_registry_registers_with_the_engine, "cli/x.py", "m.mj_loadPluginLibrary('x')"),
    (rules.optional_dependencies_stay_in_their_package, "env/x.py", "def f():\n    import numba"),
    (rules.optional_dependencies_stay_in_their_package, "env/x.py", "from llvmlite import ir"),
    (rules.optional_dependencies_stay_in_their_package, "cli/x.py", "import requests.adapters"),
    (
        rules.adapters_do_not_know_each_other,
        "adapters/http/x.py",
        "import mjhost.adapters.ros2.wire",
    ),
    (
        rules.adapters_do_not_know_each_other,
        "adapters/ros1/x.py",
        "from mjhost.adapters.ros import x",
    ),
    (rules.queues_are_bounded, "env/x.py", "q = queue.Queue()"),
    (rules.queues_are_bounded, "env/x.py", "q = Queue(maxsize=0)"),
    (rules.queues_are_bounded, "env/x.py", "q = queue.SimpleQueue()"),
    (rules.queues_are_bounded, "env/x.py", "q = deque()"),
    (rules.queues_are_bounded, "env/x.py", "q = collections.deque([], maxlen=None)"),
    (rules.waits_have_a_deadline, "env/x.py", "event.wait()"),
    (rules.waits_have_a_deadline, "env/x.py", "event.wait(timeout=None)"),
    (rules.waits_have_a_deadline, "env/x.py", "thread.join()"),
    (rules.waits_have_a_deadline, "env/x.py", "q.get()"),
    (rules.waits_have_a_deadline, "env/x.py", "q.get(block=True)"),
    (rules.waits_have_a_deadline, "env/x.py", "lock.acquire()"),
    (rules.waits_have_a_deadline, "env/x.py", "lock.acquire(True)"),
    (rules.waits_have_a_deadline, "env/x.py", "future.result()"),
    (rules.waits_have_a_deadline, "env/x.py", "condition.wait_for(ready)"),
    (rules.waits_have_a_deadline, "env/x.py", "subprocess.run(['true'], check=True)"),
    (rules.waits_have_a_deadline, "env/x.py", "process.communicate()"),
    (rules.threads_are_no_daemons, "env/x.py", "Thread(target=f, daemon=True)"),
    (rules.tests_do_not_sleep, "x.py", "time.sleep(0.1)"),
    (rules.tests_do_not_sleep, "x.py", "from time import sleep\nsleep(1)"),
    (rules.modules_open_with_a_noun_phrase, "env/x.py", "x = 1"),
    (rules.modules_open_with_a_noun_phrase, "env/x.py", '"""This module steps."""'),
    (rules.modules_open_with_a_noun_phrase, "env/x.py", '"""Provides the pacer."""'),
    (rules.modules_open_with_a_noun_phrase, "env/x.py", '"""The pacer"""'),
    (rules.files_are_short, "env/x.py", "x = 1\n" * 501),
    (rules.functions_are_short, "env/x.py", LONG_FUNCTION),
    (
        rules.functions_are_short,
        "env/x.py",
        "class C:\n    async " + LONG_FUNCTION.replace("\n", "\n    "),
    ),
    (rules.error_messages_are_lower_case_without_full_stop, "x.py", "raise E('No such body')"),
    (rules.error_messages_are_lower_case_without_full_stop, "x.py", "raise E('no such body.')"),
    (rules.error_messages_are_lower_case_without_full_stop, "x.py", "raise E(f'got {x}, stop.')"),
]

KEPT = [
    (rules.only_env_calls_the_plugin_host, "env/x.py", "self._host.dispatch_control(m, d)"),
    (rules.only_env_calls_the_plugin_host, "cli/x.py", "env.plugins['wind'].access()"),
    (rules.only_env_steps_data, "env/x.py", "mujoco.mj_step(m, d, nstep=3)"),
    (rules.only_env_steps_data, "cli/x.py", "'what mj_step does'"),
    (rules.only_callbacks_touches_the_engine_hooks, "callbacks/x.py", "mujoco.set_mjcb_time(None)"),
    (rules.only_callbacks_touches_the_engine_hooks, "cli/x.py", "mujoco.get_mjcb_time()"),
    (
        rules.only_the_registry_registers_with_the_engine,
        "engine/registry.py",
        "l.mjp_registerPlugin",
    ),
    (rules.optional_dependencies_stay_in_their_package, "callbacks/x.py", "import llvmlite.ir"),
    (rules.optional_dependencies_stay_in_their_package, "env/x.py", "import os.path, mujoco, yaml"),
    (
        rules.adapters_do_not_know_each_other,
        "adapters/ros1/x.py",
        "import mjhost.adapters.ros1.wire",
    ),
    (
        rules.queues_are_bounded,
        "env/x.py",
        "deque([], 5), deque(maxlen=n), Queue(8), Queue(maxsize=n)",
    ),
    (rules.waits_have_a_deadline, "env/x.py", "event.wait(0.2); thread.join(timeout=t)"),
    (rules.waits_have_a_deadline, "env/x.py", "', '.join(names); table.get(key)"),
    (rules.waits_have_a_deadline, "env/x.py", "lock.acquire(False); lock.acquire(True, 0.2)"),
    (rules.waits_have_a_deadline, "env/x.py", "lock.acquire(timeout_s=t, asked='step')"),
    (rules.waits_have_a_deadline, "env/x.py", "subprocess.run(['true'], check=True, timeout=9)"),
    (rules.waits_have_a_deadline, "env/x.py", "app.run()"),
    (rules.threads_are_no_daemons, "env/x.py", "Thread(target=f, daemon=False)"),
    (rules.tests_do_not_sleep, "x.py", "waker.sleep(0.1)"),
    (rules.modules_open_with_a_noun_phrase, "env/x.py", '"""Pacing against the wall clock."""'),
    (rules.files_are_short, "env/x.py", "x = 1\n" * 499),
    (rules.functions_are_short, "env/x.py", LONG_FUNCTION.replace("    x = 1\n", "", 1)),
    (rules.error_messages_are_lower_case_without_full_stop, "x.py", "raise E(f'{x!r} is no body')"),
    (
        rules.error_messages_are_lower_case_without_full_stop,
        "x.py",
        "raise E('MJB of another engine…')",
    ),
    (rules.error_messages_are_lower_case_without_full_stop, "x.py", "raise E(message)"),
]


def _id(value) -> str:
    return getattr(value, "__name__", None) or re.sub(r"\s+", " ", value)[:40]


@pytest.mark.parametrize(("rule", "path", "code"), BROKEN, ids=_id)
def test_rule_finds_a_violation(rule, path, code):
    assert rule(Source(path, code))


@pytest.mark.parametrize(("rule", "path", "code"), KEPT, ids=_id)
def test_rule_accepts_what_keeps_it(rule, path, code):
    assert rule(Source(path, code)) == []


def test_every_rule_has_a_snippet_that_breaks_it():
    assert {rule for rule, _, _ in BROKEN} == {*rules.PACKAGE_RULES, *rules.TEST_RULES}


def test_violations_name_file_scope_and_line():
    source = Source("env/x.py", "class A:\n    def f(self):\n        q.get()\n")
    (violation,) = rules.waits_have_a_deadline(source)
    assert str(violation).startswith("env/x.py:A.f (line 3): ")


@functools.cache
def _violations(tree) -> dict[str, list[Violation]]:
    """By rule, what breaks it in a tree: each file is parsed once for all rules, and let go."""
    of_tree = rules.PACKAGE_RULES if tree == PACKAGE else rules.TEST_RULES
    found: dict[str, list[Violation]] = {rule.__name__: [] for rule in of_tree}
    for source in sources(tree):
        for rule in of_tree:
            found[rule.__name__] += rule(source)
    return found


def _not_allowed(rule, tree) -> list[str]:
    allowed = ALLOWED.get(rule.__name__, {})
    found = _violations(tree)[rule.__name__]
    stale = set(allowed) - {violation.place for violation in found}
    return [str(violation) for violation in found if violation.place not in allowed] + [
        f"{place}: stands in the allow-list and is no violation" for place in sorted(stale)
    ]


@pytest.mark.parametrize("rule", rules.PACKAGE_RULES, ids=_id)
def test_package_keeps(rule):
    assert _not_allowed(rule, PACKAGE) == []


@pytest.mark.parametrize("rule", rules.TEST_RULES, ids=_id)
def test_tests_keep(rule):
    assert _not_allowed(rule, TESTS) == []


def test_allow_list_names_rules_and_gives_reasons():
    known = {rule.__name__ for rule in (*rules.PACKAGE_RULES, *rules.TEST_RULES)}
    assert set(ALLOWED) <= known
    reasons = [reason for places in ALLOWED.values() for reason in places.values()]
    assert all(len(reason.split()) > 3 for reason in reasons)


IMPORT_NAMES = {"pycollada": "collada", "pyyaml": "yaml"}


def _import_names(requirements: list[str]) -> set[str]:
    names = {re.match(r"[\w-]+", text)[0].lower() for text in requirements}
    return {IMPORT_NAMES.get(name, name) for name in names}


def test_dependency_lists_are_those_of_the_project_file():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    assert _import_names(project["dependencies"]) == rules.REQUIRED
    optional = [text for extra, texts in extras.items() if extra != "dev" for text in texts]
    assert _import_names(optional) == set(rules.OPTIONAL)

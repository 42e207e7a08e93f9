"""The invariants of the package as functions from a source file to its violations.

Each rule is tested twice: on small snippets that break it and that keep it, and on the package.
They read syntax, not types: a rule may ask for an entry in the allow-list, with its reason, where
the code is right and only looks wrong.
"""

from __future__ import annotations

import ast
import re
import sys

from tests.architecture.source import (
    Source,
    Violation,
    calls,
    imported_modules,
    is_none,
    keyword,
    mentions,
)

FILE_LINES = 500
FUNCTION_LINES = 60

# ------------------------------------------------------------------------------------- ownership

HOST_CALLS = r"PluginHost|load_generation|quiesce_and_destroy|dispatch_\w+|notify_geometry_changed"
STEPPING = (
    r"mj_(step[12]?|forward(Skip)?|inverse(Skip)?|resetData\w*|set(State|Keyframe)|Euler|RungeKutta"
    r"|implicit(Skip)?|fwd\w+|advance|copyData|copyState)"
)
CALLBACKS = r"set_mjcb_\w+|mjcb_\w+|mj_resetCallbacks"
REGISTRATION = r"mjp_register\w+|mj_load(All)?PluginLibrar(y|ies)"


def only_env_calls_the_plugin_host(source: Source) -> list[Violation]:
    if source.within("env/", "plugins/", "testing/"):
        return []
    return [
        source.violation(node, scope, f"{name}: only env/ talks to the plugin host")
        for node, scope, name in mentions(source, HOST_CALLS)
    ]


def only_env_steps_data(source: Source) -> list[Violation]:
    if source.within("env/"):
        return []
    return [
        source.violation(node, scope, f"{name}: only env/ steps, forwards, resets or writes data")
        for node, scope, name in mentions(source, STEPPING)
    ]


def only_callbacks_touches_the_engine_hooks(source: Source) -> list[Violation]:
    if source.within("callbacks/"):
        return []
    return [
        source.violation(node, scope, f"{name}: only callbacks/ sets engine callbacks")
        for node, scope, name in mentions(source, CALLBACKS)
    ]


def only_the_registry_registers_with_the_engine(source: Source) -> list[Violation]:
    # The ABI layer gives the names their prototypes; it registers nothing itself.
    if source.within("engine/registry", "engine/abi/symbols"):
        return []
    return [
        source.violation(node, scope, f"{name}: only engine/registry registers with the engine")
        for node, scope, name in mentions(source, REGISTRATION)
    ]


# --------------------------------------------------------------------------------------- imports

# Import names of the dependencies of pyproject.toml (a test compares the two).
REQUIRED = {"msgspec", "mujoco", "numpy", "typer", "yaml"}
# Import name of each optional dependency: where it may be imported.
OPTIONAL = {
    "llvmlite": ("callbacks/", "engine/"),
    "numba": ("callbacks/", "engine/"),
    "collada": ("description/",),
    "trimesh": ("description/",),
    "xacrodoc": ("description/",),
}
# In the standard library from 3.14 on.
NEWER = {"annotationlib"}
EVERYWHERE = REQUIRED | {"mjhost"} | NEWER | set(sys.stdlib_module_names)


def optional_dependencies_stay_in_their_package(source: Source) -> list[Violation]:
    found = []
    for node, scope in source.nodes:
        for module in imported_modules(node):
            top = module.partition(".")[0]
            if top not in EVERYWHERE and not source.within(*OPTIONAL.get(top, ("\0",))):
                found.append(source.violation(node, scope, f"import of {top}: not declared here"))
    return found


def adapters_do_not_know_each_other(source: Source) -> list[Violation]:
    match = re.match(r"adapters/(\w+)/", source.path)
    if match is None:
        return []
    own = f"mjhost.adapters.{match[1]}"
    return [
        source.violation(node, scope, f"import of {module}: an adapter imports no other adapter")
        for node, scope in source.nodes
        for module in imported_modules(node)
        if module.startswith("mjhost.adapters.") and not f"{module}.".startswith(f"{own}.")
    ]


# ---------------------------------------------------------------------------- bounds and deadlines


def queues_are_bounded(source: Source) -> list[Violation]:
    return [
        source.violation(call, scope, f"{name} without a bound")
        for call, scope, name in calls(source)
        if _is_unbounded_queue(call, name)
    ]


def _is_unbounded_queue(call: ast.Call, name: str) -> bool:
    if name == "SimpleQueue":
        return True
    if name == "deque":
        bound = keyword(call, "maxlen") or (call.args[1] if len(call.args) > 1 else None)
        return bound is None or is_none(bound)
    if name in {"Queue", "LifoQueue", "PriorityQueue"}:
        bound = keyword(call, "maxsize") or (call.args[0] if call.args else None)
        return bound is None or (isinstance(bound, ast.Constant) and bound.value == 0)
    return False


# Method: number of positional arguments from which on one of them is the timeout.
WAITS = {"wait": 1, "join": 1, "get": 1, "acquire": 2, "result": 1, "wait_for": 2}
PROCESS_WAITS = {"run", "call", "check_call", "check_output"}


def waits_have_a_deadline(source: Source) -> list[Violation]:
    return [
        source.violation(call, scope, f".{name}() may wait for ever: no timeout")
        for call, scope, name in calls(source)
        if isinstance(call.func, ast.Attribute) and _waits_for_ever(call, call.func, name)
    ]


def _waits_for_ever(call: ast.Call, function: ast.Attribute, name: str) -> bool:
    owner = function.value.id if isinstance(function.value, ast.Name) else ""
    if name == "communicate" or (owner == "subprocess" and name in PROCESS_WAITS):
        return not _has_timeout(call)
    return name in WAITS and not _polls(call) and not _has_deadline(call, WAITS[name])


def _has_timeout(call: ast.Call) -> bool:
    return any(
        word.arg is None or (word.arg in {"timeout", "timeout_s"} and not is_none(word.value))
        for word in call.keywords
    )


def _has_deadline(call: ast.Call, position: int) -> bool:
    given = len(call.args) >= position and not is_none(call.args[position - 1])
    return given or _has_timeout(call)


def _polls(call: ast.Call) -> bool:
    first = keyword(call, "blocking") or keyword(call, "block")
    first = first or (call.args[0] if call.args else None)
    return isinstance(first, ast.Constant) and first.value is False


def threads_are_no_daemons(source: Source) -> list[Violation]:
    return [
        source.violation(call, scope, "a daemon thread inside the engine at exit is a segfault")
        for call, scope, _ in calls(source)
        if isinstance(word := keyword(call, "daemon"), ast.Constant) and word.value is True
    ]


def tests_do_not_sleep(source: Source) -> list[Violation]:
    return [
        source.violation(call, scope, "sleeping is no way to wait for something")
        for call, scope, name in calls(source)
        if name == "sleep" and not _is_method_of_self_made_object(call)
    ]


def _is_method_of_self_made_object(call: ast.Call) -> bool:
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    return owner is not None and not (
        isinstance(owner, ast.Name) and owner.id in {"time", "asyncio"}
    )


# ------------------------------------------------------------------------------------------ shape

NO_NOUNS = re.compile(
    r"(this|it|contains?|provides?|implements?|defines?|handles?|returns?|gets?|makes?|checks?"
    r"|creates?|runs?|adds?|module|file|todo)(?=[\s:,])",
    re.IGNORECASE,
)


def modules_open_with_a_noun_phrase(source: Source) -> list[Violation]:
    docstring = ast.get_docstring(source.tree)
    if docstring is None:
        return [source.violation(source.tree, "", "no module docstring")]
    first = docstring.partition("\n\n")[0]
    if NO_NOUNS.match(first) or not first.endswith((".", ":", "::")):
        return [source.violation(source.tree, "", f"does not open with a noun phrase: {first!r}")]
    return []


def files_are_short(source: Source) -> list[Violation]:
    lines = source.text.count("\n") + 1
    if lines <= FILE_LINES:
        return []
    return [source.violation(source.tree, "", f"{lines} lines, at most {FILE_LINES}")]


def functions_are_short(source: Source) -> list[Violation]:
    return [
        source.violation(node, scope, f"{length} lines, at most {FUNCTION_LINES}")
        for node, scope in source.nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := (node.end_lineno or 0) - node.lineno + 1) > FUNCTION_LINES
    ]


def error_messages_are_lower_case_without_full_stop(source: Source) -> list[Violation]:
    found = []
    for node, scope in source.nodes:
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
            opening, closing = _ends_of_text(node.exc.args[0])
            if re.match(r"(?!Python\b)[A-Z][a-z]+ ", opening) or re.search(r"[^.]\.$", closing):
                found.append(source.violation(node, scope, f"message {opening!r} … {closing!r}"))
    return found


def _ends_of_text(node: ast.expr) -> tuple[str, str]:
    """The literal text that a message begins and ends with; empty where a value stands."""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    texts = [
        part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else ""
        for part in parts
    ]
    return (texts[0], texts[-1]) if texts else ("", "")


PACKAGE_RULES = (
    only_env_calls_the_plugin_host,
    only_env_steps_data,
    only_callbacks_touches_the_engine_hooks,
    only_the_registry_registers_with_the_engine,
    optional_dependencies_stay_in_their_package,
    adapters_do_not_know_each_other,
    queues_are_bounded,
    waits_have_a_deadline,
    threads_are_no_daemons,
    modules_open_with_a_noun_phrase,
    files_are_short,
    functions_are_short,
    error_messages_are_lower_case_without_full_stop,
)
TEST_RULES = (tests_do_not_sleep,)

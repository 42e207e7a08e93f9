"""What to add to an engine error about an extension that is missing or used wrongly.

Owns: what replaced the plugins and elements that MuJoCo dropped.
Invariants: a message is only added to; its own reason stays the caller's to show. What is said to
be registered is so at that moment.
Threads: any.
Failure: none; what is not understood has no explanation.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from types import MappingProxyType
from typing import Final

import mujoco

from mjhost.engine import codecs, libraries
from mjhost.engine.abi.structs import Plugin, text
from mjhost.engine.abi.symbols import engine
from mjhost.engine.methods import capability_names
from mjhost.errors import did_you_mean

_CABLE_PLUGIN: Final = "mjhost.cable"
_ROD: Final = (
    'a flexcomp of dim="1" with <elasticity young="..." shear="..."/> (bend and twist) and '
    '<edge equality="true"/>; its pins stand for initial="none" and "ball"'
)

REMOVED: Final = MappingProxyType(
    {
        "mujoco.elasticity.cable": ("4.0", _ROD),
        "mujoco.elasticity.solid": (
            "3.2.4",
            'a flexcomp of dim="3" with <elasticity young="..." poisson="..." damping="..."/>',
        ),
        "mujoco.elasticity.membrane": (
            "3.2.4",
            'a flexcomp of dim="2" with <elasticity young="..." elastic2d="stretch"/>',
        ),
        "mujoco.elasticity.plate": (
            "",
            'a flexcomp of dim="2" with <elasticity young="..." elastic2d="bend"/>',
        ),
        "mujoco.elasticity.shell": (
            "3.3.3",
            'a flexcomp of dim="2" with <elasticity young="..." elastic2d="both"/>',
        ),
    }
)
"""Plugin that MuJoCo once had → the first version without it, if known, and what to use instead."""


def explain_unknown_plugin(message: str) -> str:
    """What to add to an engine's error: what is missing, what exists, what to do.

    Args:
        message: what the engine said when a model did not compile.

    Returns:
        text to put after the message; empty where there is nothing to add.
    """
    for pattern, explain in _EXPLANATIONS:
        found = pattern.search(message)
        if found is not None:
            return explain(*found.groups())
    return codecs.hint(message)


def registered_names() -> tuple[str, ...]:
    """Every registered engine plugin, in the order of the slots."""
    found = (engine().plugin_at(slot) for slot in range(engine().plugin_count()))
    return tuple(text(plugin.name) for plugin in found if plugin is not None)


def _plugin(name: str) -> str | None:
    found = engine().get_plugin(name)
    return None if found is None else text(found[1].name)


# -- plugins -------------------------------------------------------------------------------------


def _missing(name: str) -> str:
    known = _plugin(name)
    if known is not None:
        return (
            f"the engine plugin {known!r} is registered, and the model does not declare it: add "
            f'<extension><plugin plugin="{known}"/></extension>'
        )
    if name in REMOVED:
        return _removed(name)
    names = registered_names()
    # What is near; where nothing is, the list says what exists.
    near = f"; {did_you_mean(name, names)}" if _has_near(name, names) else ""
    return (
        f"no engine plugin {name!r} is registered{near}; registered are {', '.join(names)}; import "
        "the module that declares it (engine.plugin), or load its library (engine.load_library), "
        f"before the model{_skipped_libraries()}"
    )


def _has_near(name: str, names: tuple[str, ...]) -> bool:
    return did_you_mean(name, names).startswith("did you mean")


def _skipped_libraries() -> str:
    skipped = [record for record in libraries.libraries() if not record.loaded]
    return "".join(f"; library {record}" for record in skipped[:3])


def _removed(name: str) -> str:
    version, instead = REMOVED[name]
    bundled = ""
    if name.endswith(".cable") and _has_bundled_cable():
        bundled = (
            f"; or the plugin {_CABLE_PLUGIN} of mjhost, with the same attributes and numbers "
            "(import mjhost.engine.builtin.cable), on bodies of your own"
        )
    since = f", it is gone since {version}" if version else ""
    return (
        f"MuJoCo {mujoco.__version__} has no engine plugin {name!r}{since}; use {instead}{bundled}"
    )


def _has_bundled_cable() -> bool:
    return importlib.util.find_spec("mjhost.engine.builtin.cable") is not None


def _composite() -> str:
    return (
        f"MuJoCo {mujoco.__version__} has no element 'composite', it is gone since 4.0, and so is "
        f"the plugin mujoco.elasticity.cable; use {_ROD}"
    )


def _unknown_attribute(attribute: str, name: str) -> str:
    found = engine().get_plugin(name)
    if found is None:
        return ""
    known = found[1].attribute_names
    if not known:
        return f"the engine plugin {name!r} has no attributes"
    near = f"{did_you_mean(attribute, known)}; " if _has_near(attribute, known) else ""
    return f"{near}the attributes of {name!r} are {', '.join(known)}"


def _unsupported(name: str) -> str:
    found = engine().get_plugin(name)
    return "" if found is None else f"{name!r} is for {_uses(found[1])} only"


def _uses(plugin: Plugin) -> str:
    return ", ".join(capability_names(plugin.capabilityflags)) or "nothing"


_EXPLANATIONS: Final[tuple[tuple[re.Pattern[str], Callable[..., str]], ...]] = (
    (re.compile(r"plugin (\S+) not found"), _missing),
    (re.compile(r"unrecognized plugin '([^']*)'"), _missing),
    (re.compile(r"unrecognized element[;\s]+Element 'composite'"), _composite),
    (
        re.compile(r"unrecognized attribute 'plugin:([^']*)' for plugin ([^'\s]+)"),
        _unknown_attribute,
    ),
    (re.compile(r"plugin '([^']*)' does not support"), _unsupported),
)

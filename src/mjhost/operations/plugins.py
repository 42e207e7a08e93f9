"""Operations about plugins: how they are, what they raised, loading them anew.

Invariants: a client never says what is to be loaded. A plugin is code: which ones run is decided by
who started the host.
"""

from __future__ import annotations

from typing import Annotated, Final

from mjhost.operations.fields import Real, Response, about
from mjhost.operations.responses import response_of
from mjhost.operations.spec import Site, described

_WALL: Final = "s wall"


class Failure(Response, frozen=True, kw_only=True):
    """One failure of one plugin."""

    name: Annotated[str, about("the plugin's name")]
    type: Annotated[str, about("where the plugin came from")]
    phase: Annotated[str, about("the hook or the part of its life in which it failed")]
    error: Annotated[str, about("class and text of the exception")]
    traceback: Annotated[str, about("as Python prints it")]


class PluginReport(Response, frozen=True, kw_only=True):
    """What a load of plugins did."""

    model_generation: Annotated[int, about("the model the set was loaded against", "1")]
    plugin_generation: Annotated[int, about("the generation of the set", "1")]
    ready: Annotated[tuple[str, ...], about("names of the plugins that run, in order")]
    failures: Annotated[tuple[Failure, ...], about("what went wrong, in the order it was found")]
    carried: Annotated[tuple[str, ...], about("names whose state was carried over")]
    not_carried: Annotated[dict[str, str], about("names whose state was not, and why")]
    load_s: Annotated[Real, about("how long stepping stood still for it", _WALL)]


class Timing(Response, frozen=True, kw_only=True):
    """The calls of one hook; null for what was not measured yet."""

    calls: Annotated[int, about("all of them", "1")]
    skipped: Annotated[int, about("calls that were kept out of the times", "1")]
    raised: Annotated[int, about("calls that ended in an exception", "1")]
    ema: Annotated[Real, about("moving average of a call", _WALL)]
    max: Annotated[Real, about("the longest call", _WALL)]
    last: Annotated[Real, about("the newest call", _WALL)]
    total: Annotated[Real, about("all measured calls together", _WALL)]


class PluginState(Response, frozen=True, kw_only=True):
    """One plugin and what it costs."""

    name: Annotated[str, about("its unique name")]
    type: Annotated[str, about("where it came from: module:Class or path.py:Class")]
    state: Annotated[str, about("ready, failed or loading")]
    error: Annotated[str, about("why it failed, else empty")]
    rate_hz: Annotated[Real, about("rate of its own steps; null: with every step", "Hz")]
    load_time: Annotated[Real, about("duration of its load", _WALL)]
    reset_time: Annotated[Real, about("duration of its newest reset", _WALL)]
    hooks: Annotated[dict[str, Timing], about("the hooks it has, by name")]


class PluginStates(Response, frozen=True, kw_only=True):
    """Every plugin, those that failed too."""

    plugins: Annotated[tuple[PluginState, ...], about("in the order of the configuration")]


class FailuresOfPhase(Response, frozen=True, kw_only=True):
    """The failures of one phase; of many, the first and the last are kept."""

    count: Annotated[int, about("how many there were", "1")]
    first: Annotated[tuple[Failure, ...], about("the first ones, oldest first")]
    last: Annotated[tuple[Failure, ...], about("the newest ones, oldest first")]


class Diagnosis(Response, frozen=True, kw_only=True):
    """What plugins raised since the newest load began."""

    phases: Annotated[dict[str, FailuresOfPhase], about("by phase in which something failed")]
    long_scopes: Annotated[int, about("access scopes that held up stepping for over 0.1 s", "1")]
    longest_scope_s: Annotated[Real, about("the longest of them, 0 without one", _WALL)]


class NewestLoad(Response, frozen=True, kw_only=True):
    """The newest load of plugins."""

    report: Annotated[PluginReport | None, about("what it did; null before the first")]


def plugin_statistics(site: Site) -> PluginStates:
    """Lists the plugins with their state and what their hooks cost."""
    return response_of(PluginStates, plugins=site.env.plugin_statistics)


def plugin_diagnostics(site: Site) -> Diagnosis:
    """Lists what plugins raised since the newest load began, bounded, by phase."""
    return response_of(Diagnosis, site.env.plugin_diagnostics)


def plugin_load_report(site: Site) -> NewestLoad:
    """Tells what became of the plugins at the newest load or reload."""
    return response_of(NewestLoad, report=site.env.plugin_load_report)


def reload_plugins(site: Site) -> PluginReport:
    """Reads the list of plugins and their code again and replaces them at a step boundary.

    Model, data, time and options stay. What is loaded is what the host was started with: a client
    cannot name code to run.
    """
    return response_of(PluginReport, site.env.reload_plugins())


SPECS: Final = tuple(
    described("Plugins", function)
    for function in (plugin_statistics, plugin_diagnostics, plugin_load_report, reload_plugins)
)

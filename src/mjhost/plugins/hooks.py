"""The table of hooks, and the frames through which plugin code is entered.

Owns: ``HOOKS``; ``HookSite`` (which hook of which plugin); ``measured`` and ``guarded``, the only
two frames between a dispatch and a hook; ``calling``, the frame of everything that is not
dispatched.
Invariants: a hook that raises is reported exactly once, here, and the exception goes on unchanged.
A retired hook never runs again: its frame leads to whatever took its place.
Threads: a bound hook is called, read and retired under the plugin-host lock.
Failure: counters include the call that raised; nothing else was touched.
Not a goal: deciding who is called. The host does that.

The frame of ``measured`` is on the path of every engine step, so it is one closure over plain
cells: no attribute, no call but the clock and the hook, no lock (the caller holds it for the whole
step).
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable
from time import perf_counter
from types import FrameType, MappingProxyType
from typing import Any, Final, NamedTuple

from mjhost.plugins.statistics import EMA_WEIGHT, HookTiming

HookFunction = Callable[..., object]
Report = Callable[["HookSite", BaseException], None]

HOOKS: Final = MappingProxyType(
    {
        "pre_step": ("pre_step", ("model", "data")),
        "control": ("control", ("model", "data")),
        "passive": ("passive", ("model", "data")),
        "last_stage": ("last_stage", ("model", "data")),
        "post_step": ("post_step", ("model", "data")),
        "render": ("render", ("model", "data", "scene")),
        "geometry": ("geometry_changed", ("model", "data", "geom_id")),
        "reset": ("reset", ()),
        "pause": ("on_pause", ()),
        "resume": ("on_resume", ()),
    }
)
"""Phase of a dispatch → (method of the plugin, its arguments)."""

STEP_PHASES: Final = ("pre_step", "control", "passive", "last_stage", "post_step")
"""The phases that run for every step, each with ``(model, data)``."""

RATED_PHASES: Final = ("pre_step", "post_step")
"""The phases that ``rate_hz`` turns into tasks of that rate."""


class HookSite(NamedTuple):
    """Which hook of which plugin.

    Attributes:
        name: the plugin's name.
        type: the plugin's type.
        phase: the phase of ``HOOKS``, or ``load``, ``statistics``, ``activate``, ``close``, …
    """

    name: str
    type: str
    phase: str

    def __str__(self) -> str:
        method = HOOKS[self.phase][0] if self.phase in HOOKS else self.phase
        return f"plugin {self.name!r} ({self.type}), hook {method}"


class BoundHook:
    """One hook of one ready adapter, as it is called.

    Attributes:
        call: takes the phase's arguments.
        retire: makes ``call`` lead to another function; the plugin is let go.
        timing: what was measured, or None for an adapter that measures on its own.
        total: seconds of all measured calls, or None likewise.
    """

    __slots__ = ("call", "retire", "timing", "total")

    def __init__(
        self,
        call: HookFunction,
        retire: Callable[[HookFunction], None],
        timing: Callable[[], HookTiming] | None = None,
        total: Callable[[], float] | None = None,
    ) -> None:
        self.call = call
        self.retire = retire
        self.timing = timing
        self.total = total


def measured(hook: HookFunction, site: HookSite, report: Report, skip: list[bool]) -> BoundHook:
    """Bind a two-argument ``hook`` with its timing.

    Args:
        hook: the plugin's method.
        site: what to report when it raises.
        report: told about every exception, which then goes on.
        skip: filled by the plugin when the running call is not to be measured.
    """
    samples = skipped = raised = 0
    ema = last = math.nan
    total = 0.0
    longest = -1.0  # below every duration, so that the first sample is one too

    def call(model: Any, data: Any) -> None:
        nonlocal samples, skipped, raised, ema, last, longest, total
        started = perf_counter()
        try:
            hook(model, data)
        except BaseException as error:
            raised += 1
            skip.clear()
            report(site, error)
            raise
        spent = perf_counter() - started
        if skip:
            skip.clear()
            skipped += 1
            return
        if spent > longest:
            longest = spent
            if not samples:
                ema = spent
        ema += EMA_WEIGHT * (spent - ema)
        last = spent
        total += spent
        samples += 1

    def timing() -> HookTiming:
        return HookTiming(
            calls=samples + skipped + raised,
            skipped=skipped,
            raised=raised,
            ema=ema,
            max=longest if samples else math.nan,
            last=last,
            total=total,
        )

    def seconds() -> float:
        return total

    def retire(successor: HookFunction) -> None:
        nonlocal hook, report
        hook, report = successor, _no_report

    return BoundHook(call, retire, timing, seconds)


def guarded(hook: HookFunction, site: HookSite, report: Report) -> BoundHook:
    """Bind a ``hook`` of any arguments without measuring it."""

    def call(*args: Any) -> None:
        try:
            hook(*args)
        except BaseException as error:
            report(site, error)
            raise

    def retire(successor: HookFunction) -> None:
        nonlocal hook, report
        hook, report = successor, _no_report

    return BoundHook(call, retire)


def measured_any(hook: HookFunction, site: HookSite, report: Report, skip: list[bool]) -> BoundHook:
    """``measured`` for a hook of any arguments, one frame dearer; not for every step."""

    def spread(args: Any, _: Any) -> None:
        hook(*args)

    bound = measured(spread, site, report, skip)
    inner = bound.call

    def call(*args: Any) -> None:
        inner(args, None)

    def retire(successor: HookFunction) -> None:
        nonlocal hook
        hook = successor
        bound.retire(spread)  # the same frame, without reports

    return BoundHook(call, retire, bound.timing, bound.total)


def calling(site: HookSite, function: Callable[..., Any], *args: Any) -> Any:  # noqa: ARG001
    """Call plugin code that is not dispatched, so that ``active_hook`` can name it.

    Returns:
        What ``function`` returned.
    """
    # active_hook reads `site` from this frame.
    return function(*args)


def active_hook() -> HookSite | None:
    """The innermost hook that the calling thread is inside of, or None.

    It is read from the thread's own frames: knowing it costs a dispatch nothing, and asking costs
    about a microsecond. A thread that a plugin started is not inside its hook.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code in _FRAMES:
            site: HookSite = frame.f_locals["site"]
            return site
        frame = frame.f_back
    return None


def overridden(obj: object, base: type, method: str) -> bool:
    """Whether ``obj`` has a ``method`` of its own: of its class or set on the instance."""
    own = getattr(obj, method)
    return getattr(own, "__func__", own) is not getattr(base, method)


def signature_problem(hook: HookFunction, arguments: tuple[str, ...]) -> str | None:
    """Why ``hook`` cannot be called with ``arguments``, or None."""
    if not callable(hook):
        return f"must be a method, got {type(hook).__name__}"
    if inspect.iscoroutinefunction(hook) or inspect.isgeneratorfunction(hook):
        return "must be a plain function: a coroutine or generator would never run"
    try:
        inspect.signature(hook).bind(*arguments)
    except TypeError as error:
        given = inspect.signature(hook)
        return f"must accept ({', '.join(arguments)}), got {given}: {error}"
    except ValueError:
        return None  # a builtin without a signature
    return None


def _no_report(site: HookSite, error: BaseException) -> None:
    """A retired hook's successor reports on its own."""


def _code_of_call(bound: BoundHook) -> Any:
    return bound.call.__code__


_NOWHERE = HookSite("", "", "")
_FRAMES: Final = frozenset(
    {
        _code_of_call(measured(print, _NOWHERE, _no_report, [])),
        _code_of_call(guarded(print, _NOWHERE, _no_report)),
        calling.__code__,
    }
)

"""What a plugin costs: one record that the command line, the dashboard and ROS read alike.

Owns: ``PluginStatistics``, ``HookTiming`` and the weight of the moving average.
Invariants: times are wall seconds; what was not measured yet is ``nan``. Records are frozen copies.
Threads: plain values, safe anywhere.
"""

from __future__ import annotations

import math
from typing import Final

import msgspec

EMA_WEIGHT: Final = 0.002
"""Weight of the newest sample; the average starts from the first one."""


class HookTiming(msgspec.Struct, frozen=True, kw_only=True):
    """The calls of one hook.

    Attributes:
        calls: all of them, those that raised or were not measured too.
        skipped: calls that ``skip_timing()`` kept out of the times.
        raised: calls that ended in an exception; not in the times either.
        ema: exponential moving average (s wall).
        max: the longest call (s wall).
        last: the newest call (s wall).
        total: all measured calls together (s wall).
    """

    calls: int = 0
    skipped: int = 0
    raised: int = 0
    ema: float = math.nan
    max: float = math.nan
    last: float = math.nan
    total: float = 0.0


class PluginStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """One plugin.

    Attributes:
        name: its unique name.
        type: where it came from, ``module:Class`` or ``path.py:Class``.
        state: ``ready``, ``failed`` or ``loading``; the host fills it in.
        error: why it failed, else empty; the host fills it in.
        rate_hz: rate of its ``pre_step`` and ``post_step``, None when they run with every step.
        load_time: duration of ``load`` (s wall), failed ones too.
        reset_time: duration of the newest ``reset`` (s wall).
        hooks: the hooks it overrides, by method name.
    """

    name: str
    type: str
    state: str = "loading"
    error: str = ""
    rate_hz: float | None = None
    load_time: float = math.nan
    reset_time: float = math.nan
    hooks: dict[str, HookTiming] = {}

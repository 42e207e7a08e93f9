"""Operations that make time pass: manual steps, running, the pace."""

from __future__ import annotations

from typing import Annotated, Final

from mjhost.env.records import StepReason
from mjhost.operations.fields import (
    Done,
    NotNegative,
    Positive,
    Real,
    Request,
    Response,
    about,
)
from mjhost.operations.responses import response_of
from mjhost.operations.spec import Site, described

_SHARE: Final = "share of the last second of wall time"


class Step(Request, frozen=True, kw_only=True):
    """How many steps to take."""

    n: Annotated[Positive, about("number of engine steps", "1")] = 1
    timeout: Annotated[
        NotNegative | None,
        about("stop at the first step boundary after so long; null waits for all", "s wall"),
    ] = None


class Advance(Request, frozen=True, kw_only=True):
    """How far to go."""

    seconds: Annotated[NotNegative, about("simulated time to let pass", "s sim")]


class StepAnswer(Response, frozen=True, kw_only=True):
    """What became of a request for steps."""

    completed: Annotated[int, about("engine steps that were taken, exactly", "1")]
    reason: Annotated[StepReason, about("completed if all of them were, else what ended it")]


class Cancelled(Response, frozen=True, kw_only=True):
    """How many requests for steps there were."""

    requests: Annotated[int, about("requests that were cancelled, waiting or under way", "1")]


class StopAt(Request, frozen=True, kw_only=True):
    """Where stepping is to stop by itself; at least one of the two."""

    steps: Annotated[
        Positive | None, about("step count, as in info.step_count, to stop at", "1")
    ] = None
    time: Annotated[
        float | None, about("stop at the first boundary at or after this time", "s sim")
    ] = None


class Realtime(Request, frozen=True, kw_only=True):
    """The pace."""

    factor: Annotated[
        NotNegative | None,
        about("simulated seconds per wall second; null or 0 is as fast as it goes", "1"),
    ]


class MeasuredPace(Response, frozen=True, kw_only=True):
    """What the last second of wall time brought."""

    factor: Annotated[Real, about("simulated seconds per wall second; null if none ran", "1")]
    step: Annotated[Real, about(f"{_SHARE} in the engine", "1")]
    plugins: Annotated[Real, about(f"{_SHARE} in plugins", "1")]
    publish: Annotated[Real, about(f"{_SHARE} in publishing", "1")]
    render: Annotated[Real, about(f"{_SHARE} in rendering", "1")]
    wait: Annotated[Real, about(f"{_SHARE} ahead of the clock, waiting", "1")]


def step(site: Site, request: Step) -> StepAnswer:
    """Takes exactly n engine steps while paused, and answers when they are done.

    A reset, reload, resume, cancel_steps or the timeout ends it early; the answer says so.
    """
    return response_of(StepAnswer, site.env.step(request.n, timeout=request.timeout))


def advance(site: Site, request: Advance) -> StepAnswer:
    """Takes the least number of steps that let so much simulated time pass, while paused."""
    return response_of(StepAnswer, site.env.advance(request.seconds))


def cancel_steps(site: Site) -> Cancelled:
    """Cancels every request for steps, waiting or under way."""
    return response_of(Cancelled, requests=site.env.cancel_steps())


def pause(site: Site) -> Done:
    """Stops the running simulation; no step is in flight when it answers."""
    site.env.pause()
    return Done()


def request_pause(site: Site) -> Done:
    """Asks for a pause at the next step boundary and does not wait for it."""
    site.env.request_pause()
    return Done()


def resume(site: Site) -> Done:
    """Lets the simulation run at the target real-time factor; cancels pending steps."""
    site.env.resume()
    return Done()


def stop_at(site: Site, request: StopAt) -> Done:
    """Arms a limit at which stepping stops by itself, exactly; a later one replaces it."""
    site.env.stop_at(steps=request.steps, time=request.time)
    return Done()


def set_realtime(site: Site, request: Realtime) -> Done:
    """Sets the target real-time factor, at once."""
    site.env.realtime = request.factor
    return Done()


def measured_realtime(site: Site) -> MeasuredPace:
    """Tells the real-time factor of the last second, and where that second went."""
    return response_of(MeasuredPace, site.env.measured_realtime)


_GROUP: Final = "Stepping and time"

SPECS: Final = (
    *(
        described(_GROUP, function)
        for function in (step, advance, cancel_steps, pause, request_pause, resume, stop_at)
    ),
    described(_GROUP, set_realtime, ("realtime",)),
    described(_GROUP, measured_realtime),
)

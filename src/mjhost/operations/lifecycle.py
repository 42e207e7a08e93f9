"""Operations about the life of a model: info, load, reload, reset, faults."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec

from mjhost.description import NoteKind
from mjhost.env.phases import Phase
from mjhost.env.records import FaultKind
from mjhost.operations.fields import Done, Name, Real, Request, Response, about
from mjhost.operations.plugins import PluginReport
from mjhost.operations.responses import response_of
from mjhost.operations.spec import Site, described
from mjhost.operations.state import JointValues

_SOURCE_LENGTH: Final = 16 * 2**20

Source = Annotated[str, msgspec.Meta(min_length=1, max_length=_SOURCE_LENGTH)]

_SOURCE: Final = "a path on the host (MJCF, MJB, mjz, URDF) or MJCF text"
_WALL: Final = "s wall"


class GenerationNumbers(Response, frozen=True, kw_only=True):
    """The four counters; each number is used once."""

    model: Annotated[int, about("one for every model and data that were hosted", "1")]
    plugins: Annotated[int, about("one for every set of plugins", "1")]
    frames: Annotated[int, about("one for every layout of rendered frames", "1")]
    options: Annotated[int, about("one for every options transaction", "1")]


class FaultInfo(Response, frozen=True, kw_only=True):
    """Why the simulation stands still; the state is that before the step that failed."""

    kind: Annotated[FaultKind, about("what sort of failure it was")]
    message: Annotated[str, about("one readable line")]
    source: Annotated[str, about("who raised: a plugin with its hook, a task, or the engine")]
    step: Annotated[int, about("the step that failed, the first one is 1", "1")]
    sim_time: Annotated[Real, about("simulation time at the start of that step", "s sim")]
    error_type: Annotated[str, about("class of the exception, empty for a divergence")] = ""
    traceback: Annotated[str, about("as Python prints it, empty for a divergence")] = ""
    plugin: Annotated[str | None, about("the plugin or engine plugin that raised")] = None
    hook: Annotated[str | None, about("where in the plugin")] = None


class Info(Response, frozen=True, kw_only=True):
    """Everything worth knowing about a host, as of one step boundary."""

    phase: Annotated[Phase, about("lifecycle phase")]
    source: Annotated[str | None, about("where the model came from; null without one")]
    content_hash: Annotated[str | None, about("SHA-256 of the compiled model, hexadecimal")]
    generations: Annotated[GenerationNumbers, about("the four counters")]
    load_count: Annotated[int, about("successful loads and reloads so far", "1")]
    load_error: Annotated[str | None, about("why the last load failed; null if it did not")]
    paused: Annotated[bool, about("whether nothing steps by itself")]
    pending_steps: Annotated[int, about("manual steps asked for and not yet taken", "1")]
    step_count: Annotated[int, about("steps since the last load, reload or reset", "1")]
    total_steps: Annotated[int, about("steps since the host began; never goes back", "1")]
    sim_time: Annotated[Real, about("simulation time; 0 without a model", "s sim")]
    session_time: Annotated[Real, about("simulated time in all; never goes back", "s sim")]
    realtime_target: Annotated[Real, about("target real-time factor; null is unbound", "1")]
    realtime_measured: Annotated[Real, about("that of the last second; null if none ran", "1")]
    fault: Annotated[FaultInfo | None, about("what stopped the simulation; null if nothing did")]
    engine: Annotated[str, about("version of MuJoCo")]


InitialStates: TypeAlias = dict[Name, JointValues]

_INITIAL: Final = "joint states to start from, from now on; null: those in force"


class Load(Request, frozen=True, kw_only=True):
    """What to host."""

    source: Annotated[Source, about(_SOURCE)]
    initial_state: Annotated[InitialStates | None, about(_INITIAL)] = None


class Reload(Request, frozen=True, kw_only=True):
    """What to host in the place of the present model, and what to keep of it."""

    source: Annotated[Source | None, about(f"{_SOURCE}; null reads the present one again")] = None
    options: Annotated[
        Literal["model", "keep"],
        about("model takes the model's own options, keep those that were changed since the load"),
    ] = "model"
    keep_state: Annotated[bool, about("carry the state over, by name; time goes on")] = False
    initial_state: Annotated[InitialStates | None, about(_INITIAL)] = None


class Carried(Response, frozen=True, kw_only=True):
    """What became of the old state; things by kind and name."""

    carried: Annotated[tuple[str, ...], about("what went on as it was")]
    new: Annotated[tuple[str, ...], about("what was not there before, at its defaults")]
    dropped: Annotated[tuple[str, ...], about("what is not there any more")]
    restarted: Annotated[tuple[str, ...], about("what has another type now, at its defaults")]
    exact: Annotated[bool, about("false with sleep or ipc, where the engine keeps more")]


class ImportedNote(Response, frozen=True, kw_only=True):
    """One thing that an import did or saw."""

    kind: Annotated[NoteKind, about("converted, defaulted, dropped or suspicious")]
    subject: Annotated[str, about("a link, joint or file")]
    text: Annotated[str, about("what was done or seen")]
    hint: Annotated[str, about("what to do about it; may be empty")]


class Imported(Response, frozen=True, kw_only=True):
    """What became of a robot description."""

    robot: Annotated[str, about("name of the robot")]
    links: Annotated[int, about("bodies of the model", "1")]
    joints: Annotated[int, about("joints that move", "1")]
    meshes: Annotated[int, about("meshes of the model", "1")]
    actuators: Annotated[int, about("actuators of the model", "1")]
    mass: Annotated[Real, about("of all of it", "kg")]
    notes: Annotated[tuple[ImportedNote, ...], about("in the order in which they came up")]


class LoadAnswer(Response, frozen=True, kw_only=True):
    """What a load did."""

    source: Annotated[str, about("label of the source: a path, or what kind of thing it was")]
    content_hash: Annotated[str, about("SHA-256 of the compiled model, hexadecimal")]
    generation: Annotated[int, about("the model generation that is current now", "1")]
    compile_s: Annotated[Real, about("time spent compiling, outside the lock", _WALL)]
    data_s: Annotated[Real, about("time spent making data, outside the lock", _WALL)]
    forward_s: Annotated[Real, about("time of the first forward, outside the lock", _WALL)]
    pause_s: Annotated[Real, about("how long stepping stood still", _WALL)]
    option_error: Annotated[str | None, about("why options were not applied")]
    kept_options: Annotated[tuple[str, ...], about("options carried over")]
    warnings: Annotated[tuple[str, ...], about("what the compiler had to say")]
    plugins: Annotated[PluginReport | None, about("what became of the plugins")]
    initial_state_problems: Annotated[
        tuple[str, ...], about("initial joint states that were left out, with the reason")
    ]
    carried: Annotated[Carried | None, about("what became of the old state, if it was kept")]
    import_report: Annotated[
        Imported | None, about("what became of a robot description; null for anything else")
    ]


class ReloadAnswer(LoadAnswer, frozen=True, kw_only=True):
    """What a reload did."""

    previous_source: Annotated[str, about("label of the source that was replaced")]
    edits_dropped: Annotated[int, about("structural edits that the new model is without", "1")]
    values_dropped: Annotated[
        tuple[str, ...], about("arrays of mjModel that had been changed live and are as compiled")
    ]


class Reset(Request, frozen=True, kw_only=True):
    """Where to go back to."""

    keyframe: Annotated[
        Name | Annotated[int, msgspec.Meta(ge=0)] | None,
        about("name or index of a keyframe; null goes back to the model's defaults", "1"),
    ] = None
    model: Annotated[bool, about("also undo every change of the model since the load")] = False
    initial_state: Annotated[InitialStates | None, about(_INITIAL)] = None


def info(site: Site) -> Info:
    """Tells phase, time, counters, generations and fault, as of one step boundary."""
    return response_of(Info, site.env.info)


def load(site: Site, request: Load) -> LoadAnswer:
    """Hosts a model; one that is there is replaced as by reload."""
    return response_of(LoadAnswer, site.env.load(request.source, initial_state=_start(request)))


def reload(site: Site, request: Reload) -> ReloadAnswer:
    """Compiles a model while the present one runs on, and swaps it in at a step boundary.

    What fails leaves the present model running as if nothing had happened.
    """
    report = site.env.reload(
        request.source,
        options=request.options,
        keep_state=request.keep_state,
        initial_state=_start(request),
    )
    return response_of(ReloadAnswer, report)


def reset(site: Site, request: Reset) -> Done:
    """Puts the simulation back to its defaults or a keyframe, completely; clears a fault."""
    site.env.reset(request.keyframe, model=request.model, initial_state=_start(request))
    return Done()


def _start(request: Load | Reload | Reset) -> dict[str, Any] | None:
    if request.initial_state is None:
        return None
    return {name: msgspec.structs.asdict(v) for name, v in request.initial_state.items()}


def clear_fault(site: Site) -> Done:
    """Forgets the fault; the state stays that before the step that failed."""
    site.env.clear_fault()
    return Done()


SPECS: Final = tuple(
    described("Model and life", function) for function in (info, load, reload, reset, clear_fault)
)

"""The commands ``mjhost state`` and ``mjhost set``: looking into and changing a checkpoint file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
import typer

from mjhost.checkpoint import Checkpoint
from mjhost.checkpoint.comparison import option_values
from mjhost.cli import output
from mjhost.cli.arguments import DebugFlag, JsonFlag
from mjhost.errors import InvalidArgumentError, UnknownNameError, did_you_mean
from mjhost.options import prepare_runtime_options

FileArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="A checkpoint file.", show_default=False)
]
NamesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[NAME]...",
        help="What to show: joint.NAME.qpos, joint.NAME, option.NAME, a component such as qpos, "
        "wrench.BODY or a plugin.NAME. Without any, all that has a name.",
        show_default=False,
    ),
]
ValuesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="NAME=VALUE...",
        help="Names as mjhost state shows them; several numbers are parted by commas.",
        show_default=False,
    ),
]
OutFlag = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Write here and leave the file as it is.",
        show_default=False,
    ),
]  # fmt: skip


class StateRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a checkpoint file says of itself.

    Attributes:
        sim_time, session_time: s sim.
        exact: whether it holds everything, as far as can be known.
        values: numbers by name; plugins show the keys of their state.
    """

    file: str
    model: str
    content_hash: str
    engine: str
    mjhost: str
    steps: int
    sim_time: float
    session_time: float
    exact: bool
    inexact_because: tuple[str, ...]
    values: dict[str, Any]


def state(
    file: FileArgument,
    names: NamesArgument = None,
    *,
    json: JsonFlag = False,
    _debug: DebugFlag = False,
) -> None:
    """Show what is in a checkpoint file, by name.

    Positions in m and rad, velocities per s, quaternions w x y z, as in MuJoCo.

    * `mjhost state settled.ckpt`
    * `mjhost state settled.ckpt joint.knee option.timestep --json`
    """
    taken = Checkpoint.load(file)
    known = _values(taken)
    shown = known if not names else _chosen(known, names, taken)
    record = StateRecord(
        file=str(file),
        model=taken.model.label,
        content_hash=taken.model.content_hash,
        engine=taken.engine,
        mjhost=taken.mjhost,
        steps=taken.counters.steps,
        sim_time=taken.time,
        session_time=taken.counters.session_time,
        exact=taken.exact,
        inexact_because=taken.inexact_because,
        values=shown,
    )
    if json:
        output.say_json(record)
    elif names:
        for name, value in shown.items():
            output.say(f"{name} {_shown(value)}")
    else:
        _say(record)


def set_state(
    file: FileArgument,
    values: ValuesArgument,
    *,
    out: OutFlag = None,
    json: JsonFlag = False,
    _debug: DebugFlag = False,
) -> None:
    """Change numbers in a checkpoint file; all of them or none.

    Quaternions are normalised by the engine when the state is restored.

    * `mjhost set settled.ckpt joint.knee.qpos=0.3 -o bent.ckpt`
    * `mjhost set settled.ckpt joint.root.qpos=0,0,1,1,0,0,0 option.timestep=0.002`
    """
    taken = Checkpoint.load(file)
    numbers, options = _pairs(values)
    changed = _with_options(taken.with_named(numbers), options)
    changed.save(out or file)
    done = {name: _values(changed)[name] for name in (*numbers, *options)}
    if json:
        output.say_json({"file": str(out or file), "values": done})
    else:
        for name, value in done.items():
            output.say(f"{name} {_shown(value)}")


# -- values by name --------------------------------------------------------------------------------


def _values(taken: Checkpoint) -> dict[str, Any]:
    values: dict[str, Any] = {name: _plain(taken.named(name)) for name in taken.names}
    values |= {f"option.{name}": value for name, value in option_values(taken).items()}
    values |= {f"edit.{name}": _plain(array.ravel()) for name, array in taken.edits.items()}
    values |= dict(_wrenches(taken.wrenches))
    for plugin in taken.plugins:
        keys = sorted(plugin.state) if isinstance(plugin.state, dict) else []
        values[f"plugin.{plugin.name}"] = keys if plugin.saved else None
    return values


def _wrenches(kept: Any) -> Iterator[tuple[str, list[float]]]:
    """Force and torque of each wrench, by body and name."""
    for wrench in kept or ():
        numbers = np.concatenate((wrench["force"], wrench["torque"]))
        words = ("wrench", wrench["body"], wrench["name"])
        yield ".".join(filter(None, words)), _plain(numbers)


def _chosen(known: dict[str, Any], names: Iterable[str], taken: Checkpoint) -> dict[str, Any]:
    """What was asked for: a name, all below a name, or a component of the state as a whole."""
    chosen: dict[str, Any] = {}
    for name in names:
        below = {key: v for key, v in known.items() if key == name or key.startswith(f"{name}.")}
        if not below and name in taken.layout.names:
            below = {name: _plain(taken.component(name))}
        if not below:
            near = did_you_mean(name, [*known, *taken.layout.names])
            raise UnknownNameError(f"the checkpoint has nothing by the name {name!r}; {near}")
        chosen |= below
    return chosen


def _plain(numbers: Any) -> Any:
    listed = [_finite(number) for number in np.asarray(numbers).tolist()]
    return listed[0] if len(listed) == 1 else listed


def _finite(number: Any) -> Any:
    """JSON has no word for the others."""
    finite = not isinstance(number, float) or math.isfinite(number)
    return number if finite else str(number)


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(_shown, value)) if value else "-"
    return repr(value) if isinstance(value, float) else str(value)


def _say(record: StateRecord) -> None:
    output.say(f"model      {record.model}")
    output.say(f"taken with MuJoCo {record.engine}, mjhost {record.mjhost}")
    output.say(
        f"at         step {record.steps:,}, {record.sim_time:.9g} s, session "
        f"{record.session_time:.9g} s"
    )
    output.say(f"exact      {'yes' if record.exact else '; '.join(record.inexact_because)}")
    output.say("")
    rows = [(name, _shown(value)) for name, value in record.values.items()]
    output.say_table(("NAME", "VALUE"), rows)


# -- changing --------------------------------------------------------------------------------------


def _pairs(values: Iterable[str]) -> tuple[dict[str, Any], dict[str, str]]:
    numbers: dict[str, Any] = {}
    options: dict[str, str] = {}
    for pair in values:
        name, assigned, text = pair.partition("=")
        if not assigned or not name.strip():
            raise typer.BadParameter(f"needs NAME=VALUE, got {pair!r}", param_hint="'NAME=VALUE'")
        if name.startswith("option."):
            options[name] = text
        else:
            numbers[name] = _numbers(name, text)
    return numbers, options


def _numbers(name: str, text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InvalidArgumentError(
            f"{name} needs numbers, parted by commas, got {text!r}"
        ) from None


def _with_options(taken: Checkpoint, options: dict[str, str]) -> Checkpoint:
    if not options:
        return taken
    patch = {name.removeprefix("option."): text for name, text in options.items()}
    snapshot = prepare_runtime_options(taken.options, patch).snapshot
    assert snapshot is not None, "problems are raised"
    edited = tuple(sorted({*taken.edited_options, *patch}))
    return taken.with_options(snapshot, edited)

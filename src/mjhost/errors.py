"""Every error mjhost raises on purpose, one class per condition.

Each class is also the builtin that a caller would naturally catch::

    MjhostError
    ├── EnvClosedError           RuntimeError     the env is closed, or lives in a forked child
    ├── PhaseError               RuntimeError     not possible in the present phase
    │   └── LoadingWindowError                    a model is being loaded; try again when it is done
    ├── NotLoadedError           RuntimeError     nothing is loaded that could answer
    ├── NotPausedError           RuntimeError     running; pause first
    ├── StaleGenerationError     ReferenceError   belongs to a generation that has been replaced
    ├── ScopeClosedError         ReferenceError   used after the access scope that lent it
    ├── LockOrderError           RuntimeError     a lower lock is held; waiting would deadlock
    ├── ReentrancyError          RuntimeError     called from inside a step
    ├── FaultError               RuntimeError     the simulation is stopped by a recorded fault
    │   └── DivergenceError      ArithmeticError  the engine found NaN, infinity or a huge value
    ├── QueueFullError           RuntimeError     a bounded queue has no room
    ├── InvalidArgumentError     ValueError       an argument that cannot be right
    │   ├── CallbackSignatureError  TypeError     no callable that takes what the engine gives
    │   ├── OptionsRejected                       an options patch with problems: ``.errors``
    │   └── RequestError                          a client's request: ``.problems``
    ├── CheckpointError          ValueError       no usable checkpoint, or of another model
    ├── UnknownNameError         LookupError      no such keyframe, joint, option, …
    ├── ModelLoadError           ValueError       a model that cannot be hosted
    ├── PluginLoadError          RuntimeError     a plugin that cannot be found, built or loaded
    │   └── PluginConfigError    ValueError       a wrong configuration; ``.problems`` lists how
    ├── CallbackTakenError       RuntimeError     the callback has one owner per env, and has it
    ├── ForeignCallbackError     RuntimeError     another library's callback is in the way
    ├── CallbackResultError      TypeError        a callback returned what the engine cannot use
    ├── EnginePluginError        RuntimeError     an engine extension raised; the step is undone
    ├── EngineDeclarationError   TypeError        a class that cannot be an engine extension
    │   └── NotCompilableError                    `compiled=True`, and Numba cannot
    ├── EngineNameTakenError     ValueError       another implementation is registered by that name
    ├── UnsupportedEngineError   ImportError      the installed MuJoCo is not what mjhost can host
    ├── NotOfferedError          RuntimeError     this host was not set up for it
    └── NotAuthorizedError       PermissionError  a mutating operation without the token

Invariants: messages are lower case without a final full stop and say what was asked, what must
hold, what was given, what exists and what to do. An error leaves the state it found.
Threads: plain values, safe anywhere.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mjhost.operations.requests import RequestProblem
    from mjhost.options.records import RuntimeOptionsError


class MjhostError(Exception):
    """Root of everything mjhost raises on purpose."""


class EnvClosedError(MjhostError, RuntimeError):
    """The env was closed, or this process is a fork of the one that owns it."""


class PhaseError(MjhostError, RuntimeError):
    """The operation is not admitted in the env's present phase."""


class LoadingWindowError(PhaseError):
    """A model is being loaded; the operation was formed against one that may be gone."""


class NotLoadedError(MjhostError, RuntimeError):
    """An object was asked for while nothing is loaded."""


class NotPausedError(MjhostError, RuntimeError):
    """A manual step was asked for while the simulation is running."""


class StaleGenerationError(MjhostError, ReferenceError):
    """Something of a generation that has been replaced was used."""


class ScopeClosedError(MjhostError, ReferenceError):
    """Something lent by an access scope was used after the scope had ended."""


class LockOrderError(MjhostError, RuntimeError):
    """A thread that holds a lower lock asked for a higher one."""


class ReentrancyError(MjhostError, RuntimeError):
    """An operation that steps, writes or waits was called from inside a step."""


class FaultError(MjhostError, RuntimeError):
    """The simulation is stopped by a fault; see ``env.fault``."""


class DivergenceError(FaultError, ArithmeticError):
    """The engine met NaN, infinity or a huge value; the state is that before the step.

    Attributes:
        completed: steps of this call that were completed before it.
    """

    def __init__(self, message: str, *, completed: int = 0) -> None:
        super().__init__(message)
        self.completed = completed


class QueueFullError(MjhostError, RuntimeError):
    """A bounded queue has no room for one more entry."""


class InvalidArgumentError(MjhostError, ValueError):
    """An argument that cannot be right, whatever the state."""


class OptionsRejected(InvalidArgumentError):
    """A patch of run-time options with at least one problem; nothing was changed.

    Attributes:
        errors: one record per problem, in the order of the patch.
    """

    def __init__(self, errors: Sequence[RuntimeOptionsError]) -> None:
        self.errors = tuple(errors)
        super().__init__("; ".join(str(error) for error in self.errors))

    def __reduce__(self) -> tuple[type[OptionsRejected], tuple[Any, ...]]:
        return type(self), (self.errors,)


class RequestError(InvalidArgumentError):
    """A request to the table of operations that cannot be understood; nothing was done.

    Attributes:
        operation: what was asked for.
        problems: one record per problem.
    """

    def __init__(self, operation: str, problems: Sequence[RequestProblem]) -> None:
        self.operation = operation
        self.problems = tuple(problems)
        super().__init__(f"{operation}: {'; '.join(str(problem) for problem in self.problems)}")

    def __reduce__(self) -> tuple[type[RequestError], tuple[Any, ...]]:
        return type(self), (self.operation, self.problems)


class CheckpointError(MjhostError, ValueError):
    """A checkpoint that cannot be read, written or restored; nothing was changed."""


class UnknownNameError(MjhostError, LookupError):
    """A name or index that does not exist; the message lists the near ones."""


class ModelLoadError(MjhostError, ValueError):
    """A model that does not compile, cannot be read, or could not be run safely."""


class PluginLoadError(MjhostError, RuntimeError):
    """A plugin cannot be found, imported, built or loaded; the others are not affected."""


class PluginConfigError(PluginLoadError, ValueError):
    """The configuration of a plugin is wrong; nothing was built from it.

    Attributes:
        where: what the configuration belongs to.
        problems: one text per problem.
    """

    def __init__(self, where: str, problems: Sequence[str]) -> None:
        self.where = where
        self.problems = tuple(problems)
        super().__init__(f"{where}: {'; '.join(self.problems)}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.where, self.problems), self.__dict__


class CallbackSignatureError(InvalidArgumentError, TypeError):
    """What was given as a callback cannot be called with the arguments of its kind."""


class CallbackTakenError(MjhostError, RuntimeError):
    """A callback kind that has one owner per env has it already."""


class ForeignCallbackError(MjhostError, RuntimeError):
    """Another library's Python callback is installed where it could not be kept working."""


class CallbackResultError(MjhostError, TypeError):
    """A callback returned something that is no answer; the state is that before the step."""


class EnginePluginError(MjhostError, RuntimeError):
    """A method of an engine extension raised, which is the cause; its step did not happen.

    Attributes:
        plugin: the registered name.
        instance: index of the plugin instance in the model; ``None`` outside of one.
        method: the method that raised.
    """

    def __init__(self, message: str, *, plugin: str, instance: int | None, method: str) -> None:
        super().__init__(message)
        self.plugin = plugin
        self.instance = instance
        self.method = method

    def __reduce__(self) -> tuple[Any, ...]:
        return _engine_plugin_error, (str(self), self.plugin, self.instance, self.method)


def _engine_plugin_error(
    message: str, plugin: str, instance: int | None, method: str
) -> EnginePluginError:
    return EnginePluginError(message, plugin=plugin, instance=instance, method=method)


class EngineDeclarationError(MjhostError, TypeError):
    """A class or function that cannot be the engine extension it is declared to be."""


class NotCompilableError(EngineDeclarationError):
    """A method that was to be compiled and cannot be; the message names its file and line."""


class EngineNameTakenError(MjhostError, ValueError):
    """The engine has another implementation under that name, for the life of the process."""


class UnsupportedEngineError(MjhostError, ImportError):
    """The installed MuJoCo does not have the memory layout that it describes."""


class NotOfferedError(MjhostError, RuntimeError):
    """A client asked for something that who started the host did not provide for."""


class NotAuthorizedError(MjhostError, PermissionError):
    """A mutating operation was asked for without the token of the evaluation mode."""


def did_you_mean(name: str, known: Iterable[str], *, limit: int = 8) -> str:
    """What to append to an error about an unknown ``name``: the near names, or what exists."""
    names = sorted(set(known))
    spelled = {known_name.lower(): known_name for known_name in names}
    close = difflib.get_close_matches(name.lower(), spelled, n=3, cutoff=0.6)
    near = [spelled[known_name] for known_name in close]
    if near:
        return "did you mean " + " or ".join(repr(n) for n in near) + "?"
    if not names:
        return "none exist"
    shown = ", ".join(repr(n) for n in names[:limit])
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return f"known: {shown}{more}"

"""mjhost hosts a MuJoCo simulation: one owner, generations, options as transactions.

Start with ``MujocoEnv``. Everything here is re-exported; the modules below say what they own.

Invariants: importing this imports neither the engine nor any module below: a name brings its module
along when it is first asked for. So an engine that cannot be imported is an error of who uses it,
and the command line can say so in a line.
Threads: any; a name that two threads ask for at once is the same object for both.
"""

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from mjhost.callbacks import CallContext, call_context
    from mjhost.env import MujocoEnv
    from mjhost.env.records import (
        EnvInfo,
        Fault,
        FaultKind,
        Generations,
        LoadReport,
        ReloadReport,
        StepReason,
        StepResult,
    )
    from mjhost.errors import (
        CallbackResultError,
        CallbackSignatureError,
        CallbackTakenError,
        DivergenceError,
        EngineDeclarationError,
        EngineNameTakenError,
        EnginePluginError,
        EnvClosedError,
        FaultError,
        ForeignCallbackError,
        InvalidArgumentError,
        LoadingWindowError,
        LockOrderError,
        MjhostError,
        ModelLoadError,
        NotAuthorizedError,
        NotCompilableError,
        NotLoadedError,
        NotOfferedError,
        NotPausedError,
        OptionsRejected,
        PhaseError,
        PluginConfigError,
        PluginLoadError,
        QueueFullError,
        ReentrancyError,
        RequestError,
        ScopeClosedError,
        StaleGenerationError,
        UnknownNameError,
    )
    from mjhost.generation import FrameGeneration, ModelGeneration, OptionsEpoch, PluginGeneration
    from mjhost.options import (
        UNSET,
        OptionsResult,
        RuntimeOptionInput,
        RuntimeOptionsPatch,
        RuntimeOptionsSnapshot,
    )
    from mjhost.plugins import (
        Plugin,
        PluginDiagnostics,
        PluginHandle,
        PluginLoadReport,
        PluginStatistics,
    )
    from mjhost.state.records import BodyState, JointState, MocapState, SensorReading

__version__ = "0.1.0"

__all__ = [
    "UNSET",
    "BodyState",
    "CallContext",
    "CallbackResultError",
    "CallbackSignatureError",
    "CallbackTakenError",
    "DivergenceError",
    "EngineDeclarationError",
    "EngineNameTakenError",
    "EnginePluginError",
    "EnvClosedError",
    "EnvInfo",
    "Fault",
    "FaultError",
    "FaultKind",
    "ForeignCallbackError",
    "FrameGeneration",
    "Generations",
    "InvalidArgumentError",
    "JointState",
    "LoadReport",
    "LoadingWindowError",
    "LockOrderError",
    "MjhostError",
    "MocapState",
    "ModelGeneration",
    "ModelLoadError",
    "MujocoEnv",
    "NotAuthorizedError",
    "NotCompilableError",
    "NotLoadedError",
    "NotOfferedError",
    "NotPausedError",
    "OptionsEpoch",
    "OptionsRejected",
    "OptionsResult",
    "PhaseError",
    "Plugin",
    "PluginConfigError",
    "PluginDiagnostics",
    "PluginGeneration",
    "PluginHandle",
    "PluginLoadError",
    "PluginLoadReport",
    "PluginStatistics",
    "QueueFullError",
    "ReentrancyError",
    "ReloadReport",
    "RequestError",
    "RuntimeOptionInput",
    "RuntimeOptionsPatch",
    "RuntimeOptionsSnapshot",
    "ScopeClosedError",
    "SensorReading",
    "StaleGenerationError",
    "StepReason",
    "StepResult",
    "UnknownNameError",
    "call_context",
]

# The same as above, for the interpreter; a test compares.
_HOMES: Final = {
    "mjhost.callbacks": ("CallContext", "call_context"),
    "mjhost.env": ("MujocoEnv",),
    "mjhost.env.records": (
        "EnvInfo",
        "Fault",
        "FaultKind",
        "Generations",
        "LoadReport",
        "ReloadReport",
        "StepReason",
        "StepResult",
    ),
    "mjhost.errors": (
        "CallbackResultError",
        "CallbackSignatureError",
        "CallbackTakenError",
        "DivergenceError",
        "EngineDeclarationError",
        "EngineNameTakenError",
        "EnginePluginError",
        "EnvClosedError",
        "FaultError",
        "ForeignCallbackError",
        "InvalidArgumentError",
        "LoadingWindowError",
        "LockOrderError",
        "MjhostError",
        "ModelLoadError",
        "NotAuthorizedError",
        "NotCompilableError",
        "NotLoadedError",
        "NotOfferedError",
        "NotPausedError",
        "OptionsRejected",
        "PhaseError",
        "PluginConfigError",
        "PluginLoadError",
        "QueueFullError",
        "ReentrancyError",
        "RequestError",
        "ScopeClosedError",
        "StaleGenerationError",
        "UnknownNameError",
    ),
    "mjhost.generation": (
        "FrameGeneration",
        "ModelGeneration",
        "OptionsEpoch",
        "PluginGeneration",
    ),
    "mjhost.options": (
        "UNSET",
        "OptionsResult",
        "RuntimeOptionInput",
        "RuntimeOptionsPatch",
        "RuntimeOptionsSnapshot",
    ),
    "mjhost.plugins": (
        "Plugin",
        "PluginDiagnostics",
        "PluginHandle",
        "PluginLoadReport",
        "PluginStatistics",
    ),
    "mjhost.state.records": ("BodyState", "JointState", "MocapState", "SensorReading"),
}
_HOME_OF: Final = {name: module for module, names in _HOMES.items() for name in names}
_MODULES: Final = frozenset(
    {
        "callbacks",
        "engine",
        "env",
        "errors",
        "generation",
        "models",
        "operations",
        "options",
        "plugins",
        "state",
    }
)

# Hidden from type checkers: for them a name that does not exist shall be an error.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return importlib.import_module(f"{__name__}.{name}")
        home = _HOME_OF.get(name)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
        value = globals()[name] = getattr(importlib.import_module(home), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})

"""mjhost hosts a MuJoCo simulation: one owner, generations, options as transactions.

Start with ``MujocoEnv``. Everything here is re-exported; the modules below say what they own.
"""

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
    DivergenceError,
    EnvClosedError,
    FaultError,
    InvalidArgumentError,
    LoadingWindowError,
    LockOrderError,
    MjhostError,
    ModelLoadError,
    NotAuthorizedError,
    NotLoadedError,
    NotPausedError,
    OptionsRejected,
    PhaseError,
    QueueFullError,
    ReentrancyError,
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

__version__ = "0.1.0"

__all__ = [
    "UNSET",
    "DivergenceError",
    "EnvClosedError",
    "EnvInfo",
    "Fault",
    "FaultError",
    "FaultKind",
    "FrameGeneration",
    "Generations",
    "InvalidArgumentError",
    "LoadReport",
    "LoadingWindowError",
    "LockOrderError",
    "MjhostError",
    "ModelGeneration",
    "ModelLoadError",
    "MujocoEnv",
    "NotAuthorizedError",
    "NotLoadedError",
    "NotPausedError",
    "OptionsEpoch",
    "OptionsRejected",
    "OptionsResult",
    "PhaseError",
    "PluginGeneration",
    "QueueFullError",
    "ReentrancyError",
    "ReloadReport",
    "RuntimeOptionInput",
    "RuntimeOptionsPatch",
    "RuntimeOptionsSnapshot",
    "StaleGenerationError",
    "StepReason",
    "StepResult",
    "UnknownNameError",
]

"""What of a model a range finder sees.

Owns: ``Sight``.
Invariants: what is not seen is taken out of the way in data that nobody else reads; the model and
the live data are only read.
Threads: under the physics lock.
Not a goal: skins, which the engine's rays do not see.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import mujoco
import numpy as np
import numpy.typing as npt

from mjhost.bundled.frames import Frame
from mjhost.bundled.instrument import RangeConfig
from mjhost.options.table import engine_version
from mjhost.state.names import ObjectKind
from mjhost.state.records import Array

_GROUPS: Final = 6
_AWAY: Final = 1e9  # m; beyond every range
_GRAIN: Final = 1e-9
_OWNERS: Final = {
    ObjectKind.SITE: "site_bodyid",
    ObjectKind.CAMERA: "cam_bodyid",
    ObjectKind.GEOM: "geom_bodyid",
}
Flags = npt.NDArray[np.bool_]


class Sight:
    """Which geoms and flexes are seen from a frame.

    Args:
        model: the model.
        frame: where from.
        config: what is to be seen.

    Attributes:
        groups: for the engine: which groups of geoms are seen, shape ``(6,)``.
        static: for the engine: whether geoms that never move are seen.
        exclude: for the engine: the body whose geoms are not seen, or -1.
    """

    def __init__(self, model: mujoco.MjModel, frame: Frame, config: RangeConfig) -> None:
        self._model, self._config = model, config
        own = body_of(model, frame)
        self.groups = np.isin(np.arange(_GROUPS), config.groups).astype(np.uint8)
        self.static = config.static
        self.exclude = own if own and not config.own_body else -1
        hidden = np.zeros(model.nbody, bool)
        if own and not config.own_tree:
            hidden |= model.body_rootid == model.body_rootid[own]
            hidden[own] = False
        self._hidden: Flags = hidden[model.geom_bodyid]
        hidden[own] = self.exclude >= 0
        self._flexes = [flex for flex in range(model.nflex) if self._shows(flex, hidden)]
        planes = model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE
        self._planes = np.flatnonzero(planes & (engine_version() < (4, 0)))

    @property
    def flexes(self) -> Iterator[int]:
        """The flexes that are seen now."""
        for flex in self._flexes:
            material = int(self._model.flex_matid[flex])
            rgba = self._model.flex_rgba[flex] if material < 0 else self._model.mat_rgba[material]
            if rgba[3] > 0.0 and rgba[3] >= self._config.alpha_min:
                yield flex

    def clear(self, private: mujoco.MjData) -> None:
        """Takes out of the way what is not seen and what the engine cannot leave out itself."""
        hidden = self._hidden
        if self._config.alpha_min > 0.0:
            hidden = hidden | (self._alphas() < self._config.alpha_min)
        if hidden.any():
            # Backwards along z: a plane, too, is seen from its front only.
            private.geom_xpos[hidden] -= _AWAY * private.geom_xmat[hidden][:, 2::3]

    def reach(self, private: mujoco.MjData, origin: Array) -> float:
        """How far the engine is to look, m; 3.x takes planes to be no larger than their middles."""
        farthest = self._config.range_max
        if len(self._planes):
            away = private.geom_xpos[self._planes] - origin
            distances = np.sqrt(np.einsum("ij,ij->i", away, away))
            near = distances[distances < 0.5 * _AWAY]
            farthest = max(farthest, float(near.max(initial=0.0)) * (1.0 + _GRAIN))
        return farthest

    def _alphas(self) -> Any:
        """How opaque each geom is, as the engine has it: its material, if it has one, says it."""
        model = self._model
        own, material = model.geom_rgba[:, 3], model.geom_matid
        if not model.nmat:
            return own
        return np.where(material < 0, own, model.mat_rgba[material, 3])

    def _shows(self, flex: int, hidden: Flags) -> bool:
        """Whether a flex is seen, as far as that never changes."""
        config, model = self._config, self._model
        bodies = _bodies_of(model, flex)
        return (
            config.flexes
            and int(model.flex_group[flex]) in config.groups
            and (config.static or bool(model.body_weldid[bodies].any()))
            and not bool(hidden[bodies].all())
        )


def body_of(model: Any, frame: Frame) -> int:
    """The body that a frame is on; 0 is the world."""
    owner = _OWNERS.get(frame.kind)
    return frame.id if owner is None else int(getattr(model, owner)[frame.id])


def _bodies_of(model: Any, flex: int) -> Any:
    """The bodies that a flex hangs on."""
    found = [
        getattr(model, f"flex_{part}bodyid")[start : start + count]
        for part in ("vert", "node")
        for start, count in [
            (getattr(model, f"flex_{part}adr")[flex], getattr(model, f"flex_{part}num")[flex])
        ]
    ]
    bodies = np.unique(np.concatenate(found))
    return bodies[bodies >= 0]

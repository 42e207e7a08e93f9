"""The part of ``MujocoEnv`` that changes properties of the model, and applies wrenches.

Invariants: as for ``MujocoEnv``; a face has no state of its own. Setters validate everything, then
write, then recompute what derives from it, without a hook firing and without the state moving. What
they change of the model is part of checkpoints, and undone by ``reset(model=True)``.
Threads: every method may be called from any thread, at a step boundary; from inside a step getters
see the present moment and setters raise ``ReentrancyError``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np

from mjhost.env.hosted import HostedModel
from mjhost.env.phases import Operation
from mjhost.env.schedule import steps_for
from mjhost.env.state_access import StateAccess
from mjhost.env.transaction import OptionsTransaction
from mjhost.errors import InvalidArgumentError
from mjhost.state import equality, geoms, inertial, wrenches
from mjhost.state.bodies import checked_frame
from mjhost.state.names import ObjectKind
from mjhost.state.numbers import vector
from mjhost.state.poses import rotated_back
from mjhost.state.records import (
    Array,
    BodyInertial,
    EqualityState,
    GeomProperties,
    WrenchState,
    frozen_copy,
)


class PropertiesFace:
    """Properties by name, and wrenches."""

    _access: StateAccess
    _options: OptionsTransaction

    # -- geoms -------------------------------------------------------------------------------

    def geom_properties(self, name: str) -> GeomProperties:
        """Type, size, friction, and the mass of its body.

        Raises:
            UnknownNameError: no such geom.
        """

        def look(hosted: HostedModel) -> GeomProperties:
            geom = hosted.names.id(ObjectKind.GEOM, name)
            body = hosted.names.name(ObjectKind.BODY, int(hosted.model.geom_bodyid[geom]))
            return geoms.geom_properties(hosted.model, geom, name, body)

        return self._access.read(look)

    def set_geom_properties(
        self,
        name: str,
        *,
        type: str | None = None,
        size: Any = None,
        friction: Any = None,
        mass: float | None = None,
    ) -> bool:
        """Changes a geom; what is not given stays. Plugins are told once, if anything changed.

        Args:
            name: the geom.
            type: a primitive: ``"sphere"``, ``"capsule"``, ``"ellipsoid"``, ``"cylinder"``,
                ``"box"``, and ``"plane"`` where the body does not move.
            size: as many numbers as the type uses, as in MJCF, m.
            friction: sliding, torsional (m) and rolling (m), or the first or first two of them.
            mass: of the body that the geom belongs to, kg; its inertia is scaled in proportion.

        Returns:
            Whether anything changed.

        Raises:
            UnknownNameError: no such geom.
            InvalidArgumentError: an argument cannot be right, or the shape is compiled (meshes,
                height fields); nothing changed.
        """
        change = geoms.GeomChange(name, type=type, size=size, friction=friction, mass=mass)

        def plan(hosted: HostedModel) -> Callable[[], bool]:
            write = geoms.plan_geom(hosted.model, hosted.names, name, change)
            derive = mass is not None or type is not None or size is not None
            return _with_constants(hosted, write, derive=derive)

        def tell(hosted: HostedModel, changed: bool) -> None:  # noqa: FBT001 - a result
            if changed:
                geom = hosted.names.id(ObjectKind.GEOM, name)
                self._access.core.plugging.geometry_changed(hosted, geom)

        return self._access.mutate(Operation.SET_STATE, plan, edits_model=True, after=tell)

    # -- inertia -----------------------------------------------------------------------------

    def body_inertial(self, name: str) -> BodyInertial:
        """Mass, centre of mass and inertia of a body.

        Raises:
            UnknownNameError: no such body.
        """
        return self._access.read(
            lambda hosted: inertial.body_inertial(
                hosted.model, hosted.names.id(ObjectKind.BODY, name), name
            )
        )

    def set_body_inertial(
        self,
        name: str,
        *,
        mass: float | None = None,
        com: Any = None,
        inertia: Any = None,
        quat: Any = None,
    ) -> bool:
        """Changes mass and inertia of a body; what is not given stays.

        Args:
            name: the body.
            mass: kg. The inertia does not follow; see ``set_geom_properties`` for that.
            com: centre of mass in the body's frame, shape (3,), m.
            inertia: about the centre of mass, kg·m²: the principal moments, shape (3,), or
                xx, yy, zz, xy, xz, yz along the body's axes, shape (6,).
            quat: orientation of the principal axes in the body's frame, shape (4,), wxyz.

        Returns:
            Whether anything changed.

        Raises:
            UnknownNameError: no such body.
            InvalidArgumentError: no body can have that; or the engine counts on the body's
                diagonal inertia, so that its centre cannot be moved. Nothing changed.
        """
        change = inertial.InertialChange(name, mass=mass, com=com, inertia=inertia, quat=quat)

        def plan(hosted: HostedModel) -> Callable[[], bool]:
            write = inertial.plan_inertial(hosted.model, hosted.names, name, change)
            return _with_constants(hosted, write, derive=True)

        return self._access.mutate(Operation.SET_STATE, plan, edits_model=True)

    # -- equalities --------------------------------------------------------------------------

    def equality_state(self, name: str) -> EqualityState:
        """What an equality constraint is between, whether it acts, and its numbers.

        Raises:
            UnknownNameError: no such constraint.
        """
        return self._access.read(
            lambda hosted: equality.equality_state(
                hosted.model,
                hosted.data,
                hosted.names,
                hosted.names.id(ObjectKind.EQUALITY, name),
                name,
            )
        )

    def set_equality(
        self,
        name: str,
        *,
        active: bool | None = None,
        hold: bool | None = None,
        anchor: Any = None,
        anchor2: Any = None,
        pos: Any = None,
        quat: Any = None,
        torquescale: float | None = None,
        polycoef: Any = None,
        solref: Any = None,
        solimp: Any = None,
    ) -> None:
        """Switches or changes an equality constraint; what is not given stays.

        Args:
            name: the constraint.
            active: whether it acts.
            hold: weld or connect: ask for what is now, so that nothing jumps.
            anchor: weld: the point of body 2 that is held, in body 2; connect: the point of body 1,
                in body 1; shape (3,), m.
            anchor2: connect: the point of body 2, in body 2, shape (3,), m; where the anchor is
                now if not given.
            pos: weld: position of body 2 in body 1, shape (3,), m.
            quat: weld: orientation of body 2 in body 1, shape (4,), wxyz.
            torquescale: weld: how rotation counts against translation, m.
            polycoef: joint and tendon: the polynomial's coefficients, shape (5,).
            solref: as in MJCF, shape (2,).
            solimp: as in MJCF, shape (5,).

        Raises:
            UnknownNameError: no such constraint.
            InvalidArgumentError: its type has no such number, or it cannot be right; nothing
                changed.
        """
        given = {
            key: value
            for key, value in {
                "active": active,
                "hold": hold,
                "anchor": anchor,
                "anchor2": anchor2,
                "pos": pos,
                "quat": quat,
                "torquescale": torquescale,
                "polycoef": polycoef,
                "solref": solref,
                "solimp": solimp,
            }.items()
            if value is not None
        }

        def plan(hosted: HostedModel) -> Callable[[], bool]:
            poses = hosted.data if hosted.extended else hosted.kinematics.of(hosted.data)
            moment = _Moment(hosted.data, poses)
            return equality.plan_equality(hosted.model, moment, hosted.names, name, given)

        self._access.mutate(Operation.SET_STATE, plan, edits_model=True)

    # -- gravity -----------------------------------------------------------------------------

    def gravity(self) -> Array:
        """Acceleration of gravity in the world, from the options, shape (3,), m/s²."""
        return frozen_copy(self._options.read().gravity)

    def set_gravity(self, gravity: Any) -> None:
        """Sets gravity, as a transaction of the options.

        Args:
            gravity: shape (3,), m/s².

        Raises:
            InvalidArgumentError: not three finite numbers; nothing changed.
        """
        values = vector(gravity, 3, "gravity")
        self._options.apply({"gravity": values.tolist()}, raise_on_error=True)

    # -- wrenches ----------------------------------------------------------------------------

    def apply_wrench(
        self,
        body: str,
        force: Any = (0.0, 0.0, 0.0),
        torque: Any = (0.0, 0.0, 0.0),
        *,
        point: Any = None,
        frame: str = "world",
        duration: float | None = None,
        name: str = "",
    ) -> None:
        """Applies a force and a torque to a body from the next step on.

        It adds to what users write to ``data.xfrc_applied`` and to wrenches of other names, and
        replaces one of the same name on the same body. It survives a pause, ends with a reset, and
        goes on over ``reload(keep_state=True)`` if its body does.

        Args:
            body: the body.
            force: shape (3,), N.
            torque: shape (3,), N·m.
            point: where the force acts, shape (3,), m, in ``frame`` as it is now; it goes with the
                body from then on. By default the centre of mass.
            frame: ``"world"``, or ``"body"`` for a wrench that turns with the body; what it exerts
                is then computed anew at the start of each step.
            duration: s sim; it acts in the steps that begin before its end. None: until it is
                cleared.
            name: tells it from other wrenches on the body.

        Raises:
            UnknownNameError: no such body.
            InvalidArgumentError: an argument cannot be right; nothing changed.
        """
        checked_frame(frame)
        exerted = (vector(force, 3, f"force on {body!r}"), vector(torque, 3, f"torque on {body!r}"))
        where = None if point is None else vector(point, 3, f"point of {body!r}")
        if not isinstance(name, str):
            raise InvalidArgumentError(f"the name of a wrench is text, got {type(name).__name__}")

        def plan(hosted: HostedModel) -> Callable[[], None]:
            index = hosted.names.id(ObjectKind.BODY, body)
            if index == 0:
                raise InvalidArgumentError("the world does not move: a wrench on it does nothing")
            if duration is not None:
                _check_duration(duration, hosted)
            wrench = wrenches.Wrench(
                body=index,
                label=body,
                name=name,
                force=exerted[0],
                torque=exerted[1],
                point=where if where is None or frame == "body" else _fixed(hosted, index, where),
                frame=frame,
                start=hosted.steps,
                duration=None if duration is None else float(duration),
                dt=hosted.dt,
            )
            return lambda: hosted.wrenches.apply(wrench)

        self._change_wrenches(plan)

    def clear_wrench(self, body: str | None = None, name: str | None = None) -> int:
        """Ends wrenches: of a body, of a name, or all; how many there were.

        Raises:
            UnknownNameError: no such body.
        """

        def plan(hosted: HostedModel) -> Callable[[], int]:
            index = None if body is None else hosted.names.id(ObjectKind.BODY, body)
            return lambda: hosted.wrenches.clear(index, name)

        return int(self._change_wrenches(plan))

    def wrench(self, body: str) -> WrenchState:
        """What the env applies to a body in the next step.

        Raises:
            UnknownNameError: no such body.
        """

        def look(hosted: HostedModel, data: mujoco.MjData) -> WrenchState:
            index = hosted.names.id(ObjectKind.BODY, body)
            acting = hosted.wrenches.of(index, hosted.steps)
            return wrenches.wrench_state(acting, hosted.model, data, body)

        return self._access.read_poses(look)

    def _change_wrenches(self, plan: Callable[[HostedModel], Callable[[], Any]]) -> Any:
        core = self._access.core

        def settle(_hosted: HostedModel, _result: Any) -> None:
            core.plugging.wrenches_changed()

        return self._access.mutate(Operation.APPLY_WRENCH, plan, refresh=False, after=settle)


class _Moment:
    """The live data's switches with poses of the present state."""

    def __init__(self, live: mujoco.MjData, poses: mujoco.MjData) -> None:
        self.eq_active, self.xpos, self.xquat = live.eq_active, poses.xpos, poses.xquat


def _with_constants(
    hosted: HostedModel, write: Callable[[], bool], *, derive: bool
) -> Callable[[], bool]:
    """``write``, and then what the compiler computes from masses and shapes, on data of its own."""

    def both() -> bool:
        changed = write()
        if changed and derive:
            with equality.kept_numbers(hosted.model):
                mujoco.mj_setConst(hosted.model, mujoco.MjData(hosted.model))
        return changed

    return both


def _check_duration(duration: float, hosted: HostedModel) -> None:
    if steps_for(duration, hosted.dt) == 0:
        raise InvalidArgumentError(f"the duration of a wrench must be above 0 s, got {duration!r}")


def _fixed(hosted: HostedModel, body: int, point: Array) -> Array:
    """A point of the world in the frame of a body, as it is now."""
    data = hosted.data if hosted.extended else hosted.kinematics.of(hosted.data)
    return rotated_back(point - np.array(data.xpos[body]), np.array(data.xquat[body]))

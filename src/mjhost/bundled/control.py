"""Controllers of joints: set points of three kinds, trajectories, an emergency stop.

Owns: what each joint is told, in which mode, and the trajectories that are under way.
Invariants: commands are checked whole before anything changes. Whatever changes hands (the start, a
mode, a trajectory, the stop and its release), what a drive is told does not jump: the difference
fades over ``handover``. All times are of the simulation. A step that is undone has not been: what
it changed here is rewound when it is taken again.
Failure: a command that cannot be is refused with the joint, the limit and the value.
Not a goal: kinematics; joints of several axes; mimic joints, which the model couples.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np

from mjhost.bundled.compensation import Compensation
from mjhost.bundled.drives import drives
from mjhost.bundled.joint_control import Gains, JointControl, Limits
from mjhost.bundled.trajectory import Trajectory, planned
from mjhost.bundled.undone import StepMemory
from mjhost.errors import InvalidArgumentError, PluginLoadError, UnknownNameError, did_you_mean
from mjhost.plugins import Plugin
from mjhost.state.names import Names
from mjhost.state.numbers import number, vector
from mjhost.state.records import Array
from mjhost.streams.records import (
    CancelTrajectory,
    ControllerReading,
    GroupCommand,
    JointCommand,
    StopCommand,
    TrajectoryCommand,
    TrajectoryOutcome,
)

_NotNegative = Annotated[float, msgspec.Meta(ge=0.0)]
_Positive = Annotated[float, msgspec.Meta(gt=0.0)]
_REST = "*"
MODES = ("position", "velocity", "effort")
_LIMITED = (("positions", "position"), ("velocities", "velocity"), ("efforts", "effort"))


class Group(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Joints that are told together.

    Attributes:
        joints: their names, in the order of the command's values.
        mode: what the values are.
    """

    joints: tuple[str, ...]
    mode: Literal["position", "velocity", "effort"] = "position"


class _Motion:
    """A trajectory that is under way.

    Attributes:
        number: by which it is known.
        plan: the way.
        start: ``data.time`` of its beginning, s sim.
    """

    def __init__(self, number: int, plan: Trajectory, start: float) -> None:
        self.number, self.plan, self.start = number, plan, start


class _Before(NamedTuple):
    """How things were before the newest step.

    Attributes:
        joints: what each joint was told.
        motions: what was under way.
    """

    joints: list[list[Any]]
    motions: dict[int, _Motion]


class Control(Plugin):
    """Controls hinges and slides through their motors and servos.

    Takes ``control/joint``, ``control/group/<name>``, ``control/trajectory``, ``control/cancel``
    and ``control/stop``; publishes ``control/state`` and ``control/outcome``. A joint driven by
    efforts is controlled by a PID law with gravity and Coriolis forces added; servos are told set
    points.
    """

    class Config(msgspec.Struct, frozen=True, kw_only=True):
        """What can be chosen.

        Attributes:
            joints: names of the controlled joints; empty: all that have a drive.
            forces: drive joints without an actuator by forces on them.
            gains: by joint, or ``"*"`` for the others.
            limits: by joint, or ``"*"`` for the others.
            groups: by name.
            bandwidth: of joints without gains of their own, Hz.
            compensate: add gravity and Coriolis forces of the joint to efforts.
            start: ``"hold"`` the joints where they are, or leave them ``"idle"`` until told.
            on_stop: ``"hold"`` at once, or ``"limp"``: no effort; servos hold.
            handover: how long a change fades, s sim.
            rate: of ``control/state``, Hz.
        """

        joints: tuple[str, ...] = ()
        forces: bool = False
        gains: dict[str, Gains] = {}
        limits: dict[str, Limits] = {}
        groups: dict[str, Group] = {}
        bandwidth: _Positive = 2.0
        compensate: bool = True
        start: Literal["hold", "idle"] = "hold"
        on_stop: Literal["hold", "limp"] = "hold"
        handover: _NotNegative = 0.1
        rate: _Positive = 100.0

    # -- loading -----------------------------------------------------------------------------

    def load(self, model: Any, data: Any) -> None:
        """Find the drives and declare streams and inlets."""
        config = self.config
        found, without = drives(model, Names(model), forces=config.forces)
        for joint in config.joints:
            if joint not in found:
                why = without.get(joint)
                told = f": {why}" if why else f"; {did_you_mean(joint, {**found, **without})}"
                raise UnknownNameError(f"joint {joint!r} cannot be controlled{told}")
        chosen = config.joints or tuple(found)
        if not chosen:
            whys = "; ".join(f"{joint}: {why}" for joint, why in without.items())
            raise PluginLoadError(f"no joint of the model can be controlled: {whys or 'none'}")
        self._check_names(chosen)
        self._joints = {
            name: JointControl(
                found[name],
                config.gains.get(name) or config.gains.get(_REST) or Gains(),
                config.limits.get(name) or config.limits.get(_REST) or Limits(),
                config.bandwidth,
                config.handover,
            )
            for name in chosen
        }
        efforts = any(joint.drive.kind == "effort" for joint in self._joints.values())
        self._compensation = Compensation(model) if efforts and config.compensate else None
        self._motions: dict[int, _Motion] = {}
        self._last_number = 0
        self._stopped = False
        self._started = False
        self._memory: StepMemory[_Before] = StepMemory()
        del data
        self._declare()

    def _check_names(self, chosen: tuple[str, ...]) -> None:
        config = self.config
        named = {joint for group in config.groups.values() for joint in group.joints}
        for joint in ({*config.gains, *config.limits} - {_REST}) | named:
            if joint not in chosen:
                raise UnknownNameError(
                    f"no joint {joint!r} is controlled; {did_you_mean(joint, chosen)}"
                )

    def _declare(self) -> None:
        streams = self.streams
        self._state = streams.declare("control/state", ControllerReading)
        self._outcome = streams.declare("control/outcome", TrajectoryOutcome)
        streams.accept("control/joint", JointCommand, self._take_joints)
        streams.accept("control/trajectory", TrajectoryCommand, self._take_trajectory)
        streams.accept("control/cancel", CancelTrajectory, self._take_cancel)
        streams.accept("control/stop", StopCommand, self._take_stop)
        for name, group in self.config.groups.items():
            streams.accept(f"control/group/{name}", GroupCommand, self._group_taker(group))

    # -- commands ----------------------------------------------------------------------------

    def _take_joints(self, model: Any, data: Any, command: JointCommand) -> None:
        del model
        if command.mode not in MODES:
            raise InvalidArgumentError(f"mode must be one of {MODES}, got {command.mode!r}")
        self._set(data, command.mode, dict(command.values))

    def _group_taker(self, group: Group) -> Any:
        def take(model: Any, data: Any, command: GroupCommand) -> None:
            del model
            values = vector(command.values, len(group.joints), "values of the group")
            self._set(data, group.mode, dict(zip(group.joints, values.tolist(), strict=True)))

        return take

    def _set(self, data: Any, mode: str, values: dict[str, float]) -> None:
        self._refuse_stopped()
        goals = {name: self._checked(name, mode, value) for name, value in values.items()}
        self._open(data)
        self._replace(goals, data, "a set point took its place")
        for name, goal in goals.items():
            self._joints[name].settle(data)
            self._joints[name].hand_over(float(data.time), mode, goal)

    def _checked(self, name: str, mode: str, value: Any) -> float:
        if name not in self._joints:
            raise UnknownNameError(
                f"no joint {name!r} is controlled; {did_you_mean(str(name), self._joints)}"
            )
        joint, goal = self._joints[name], number(value, f"{mode} of joint {name!r}")
        kind = joint.drive.kind
        if mode == "effort" and kind != "effort":
            raise InvalidArgumentError(
                f"joint {name!r} is driven by a {kind} servo, which takes no effort"
            )
        low, high = joint.bounds(mode)
        if not low <= goal <= high:
            raise InvalidArgumentError(
                f"{mode} of joint {name!r} must be from {low:g} to {high:g}, got {goal:g}"
            )
        return goal

    def _take_trajectory(self, model: Any, data: Any, command: TrajectoryCommand) -> int:
        del model
        self._refuse_stopped()
        self._rewind(data)
        stamp = self._state.now()
        at = stamp.session_time if command.start is None else number(command.start, "start")
        now = {name: joint.within(data) for name, joint in self._joints.items()}
        plan = planned(command, now)
        self._check_limits(plan)
        self._open(data)
        self._replace(plan.joints, data, "another trajectory took its place")
        self._last_number += 1
        start = float(data.time) + (at - stamp.session_time)
        self._motions[self._last_number] = _Motion(self._last_number, plan, start)
        for name in plan.joints:
            joint = self._joints[name]
            joint.settle(data)
            joint.hand_over(float(data.time), "trajectory", 0.0)
        return self._last_number

    def _check_limits(self, plan: Trajectory) -> None:
        saved = plan.save()
        for column, name in enumerate(plan.joints):
            for field, mode in _LIMITED:
                if saved[field] is None:
                    continue
                low, high = self._joints[name].bounds(mode)
                values = saved[field][:, column]
                wrong = np.flatnonzero((values < low) | (values > high))
                if len(wrong):
                    value = float(values[wrong[0]])
                    raise InvalidArgumentError(
                        f"{field} of joint {name!r} must be from {low:g} to {high:g}, got {value:g}"
                    )

    def _take_cancel(self, model: Any, data: Any, command: CancelTrajectory) -> int:
        """Cancels, and tells how many."""
        del model
        self._rewind(data)
        wanted = command.trajectory
        if wanted is not None and wanted not in self._motions:
            raise UnknownNameError(
                f"no trajectory {wanted!r} is under way; there are {[*self._motions]}"
            )
        self._open(data)
        numbers = [*self._motions] if wanted is None else [wanted]
        for each in numbers:
            self._hold(self._motions[each].plan.joints, data)
            self._finish(each, "cancelled", "")
        return len(numbers)

    def _take_stop(self, model: Any, data: Any, command: StopCommand) -> None:
        del model
        if bool(command.stop) == self._stopped:
            return
        self._open(data)
        self._stopped = bool(command.stop)
        for each in tuple(self._motions):
            self._finish(each, "stopped", "emergency stop")
        limp = self._stopped and self.config.on_stop == "limp"
        for name, joint in self._joints.items():
            if limp and joint.drive.kind == "effort":
                joint.go_limp()
            elif joint.mode != "idle" or self._stopped:
                self._hold([name], data)

    def _refuse_stopped(self) -> None:
        if self._stopped:
            raise InvalidArgumentError(
                "the emergency stop is in force; send StopCommand(stop=False) to control/stop first"
            )

    # -- motion ------------------------------------------------------------------------------

    def _hold(self, names: Iterable[str], data: Any) -> None:
        """Keeps joints where they are, within their limits."""
        for name in names:
            self._joints[name].hold(data)

    def _open(self, data: Any) -> None:
        """Before a command changes anything: what it changes is not to be rewound any more."""
        self._rewind(data)
        self._memory.forget()
        self._begin(data)

    def _rewind(self, data: Any) -> None:
        """Takes back what a step that was undone has changed here."""
        before = self._memory.recall(data)
        if before is None:
            return
        for joint, saved in zip(self._joints.values(), before.joints, strict=True):
            joint.restore(saved)
        self._motions = dict(before.motions)

    def _begin(self, data: Any) -> None:
        """What the joints do until they are told something else."""
        if self._started:
            return
        self._started = True
        for joint in self._joints.values():
            joint.told = joint.drive.get(data) or None  # at 0 nobody has driven it
        if self.config.start == "hold":
            self._hold(self._joints, data)

    def pre_step(self, model: Any, data: Any) -> None:
        """Move the set points on, and tell the drives."""
        self._begin(data)
        self._rewind(data)
        now, dt = float(data.time), float(model.opt.timestep)
        saved = [joint.saved() for joint in self._joints.values()]
        self._memory.keep(data, _Before(saved, dict(self._motions)))
        for motion in self._motions.values():
            self._follow(motion, now + dt)
        forces = None if self._compensation is None else self._compensation.of(data)
        for joint in self._joints.values():
            if joint.mode == "idle":
                continue
            joint.approach(dt)
            bias = 0.0 if forces is None else float(forces[joint.drive.dof])
            joint.drive.put(data, joint.command(data, now, bias))

    def _follow(self, motion: _Motion, time: float) -> None:
        """Sets what the joints of a trajectory are to do at the end of the step."""
        target = motion.plan.sample(time - motion.start)
        for column, name in enumerate(motion.plan.joints):
            joint = self._joints[name]
            joint.position = min(max(float(target.position[column]), joint.low), joint.high)
            joint.velocity = float(target.velocity[column])
            joint.feed = float(target.effort[column])

    # -- after the step ----------------------------------------------------------------------

    def post_step(self, model: Any, data: Any) -> None:
        """Settle what is counted once per step, end trajectories, publish."""
        now, dt = float(data.time), float(model.opt.timestep)
        for joint in self._joints.values():
            if joint.mode != "idle":
                joint.told = joint.drive.get(data)
                joint.integrate(data, dt)
        for motion in tuple(self._motions.values()):
            self._judge(motion, data, now, dt)
        if self._state.wanted:
            stamp = self._state.now()
            if stamp.step % max(1, round(1.0 / (self.config.rate * dt))) == 0:
                self._state.publish(self._reading(data), stamp)

    def _judge(self, motion: _Motion, data: Any, now: float, dt: float) -> None:
        plan, elapsed = motion.plan, now - motion.start
        if elapsed < -0.5 * dt:
            return
        here = np.array([data.qpos[self._joints[name].drive.qpos] for name in plan.joints])
        errors: Array = np.abs(here - plan.sample(elapsed).position)
        if (errors > plan.path_tolerance).any() and elapsed < plan.end:
            self._fail(motion, data, "path_tolerance", errors, plan.path_tolerance)
        elif elapsed >= plan.end - 1e-9 * dt:
            if (errors <= plan.goal_tolerance).all():
                self._stay(plan, data)
                self._finish(motion.number, "succeeded", "")
            elif elapsed >= plan.end + plan.goal_time - 1e-9 * dt:
                self._fail(motion, data, "goal_tolerance", errors, plan.goal_tolerance)

    def _fail(
        self, motion: _Motion, data: Any, status: str, errors: Array, tolerance: Array
    ) -> None:
        worst = int(np.argmax(errors / tolerance))
        name = motion.plan.joints[worst]
        self._hold(motion.plan.joints, data)
        self._finish(
            motion.number,
            status,
            f"joint {name!r} is {errors[worst]:.4g} off, {tolerance[worst]:.4g} is allowed",
        )

    def _stay(self, plan: Trajectory, data: Any) -> None:
        """Goes on at the last desired position."""
        for name in plan.joints:
            joint = self._joints[name]
            joint.hand_over(float(data.time), "position", joint.position)

    def _replace(self, joints: Iterable[str], data: Any, why: str) -> None:
        """Ends the trajectories that any of ``joints`` is part of; their other joints stay."""
        taken = {*joints}
        for motion in tuple(self._motions.values()):
            if taken & {*motion.plan.joints}:
                self._stay(motion.plan, data)
                self._finish(motion.number, "replaced", why)

    def _finish(self, number: int, status: str, message: str) -> None:
        del self._motions[number]
        outcome = TrajectoryOutcome(trajectory=number, status=status, message=message)
        self._outcome.publish(outcome)

    def _reading(self, data: Any) -> ControllerReading:
        joints = self._joints.values()
        return ControllerReading(
            names=tuple(self._joints),
            mode=tuple(joint.mode for joint in joints),
            desired_position=np.array([joint.desired(data)[0] for joint in joints]),
            desired_velocity=np.array([joint.desired(data)[1] for joint in joints]),
            position=np.array([data.qpos[joint.drive.qpos] for joint in joints]),
            velocity=np.array([data.qvel[joint.drive.dof] for joint in joints]),
            effort=np.array([data.qfrc_actuator[joint.drive.dof] for joint in joints]),
            stopped=self._stopped,
            trajectory=max(self._motions, default=0),
        )

    # -- the past ----------------------------------------------------------------------------

    def reset(self) -> None:
        """Begin anew: trajectories end, the stop is released."""
        for each in tuple(self._motions):
            self._finish(each, "cancelled", "the simulation was reset")
        self._stopped = self._started = False
        self._memory.forget()
        for joint in self._joints.values():
            joint.restore(("idle", 0.0, 0.0, 0.0, 0.0, 0.0, None, 0.0, 0.0))

    def save_state(self) -> dict[str, Any]:
        """All that the joints are told, and the trajectories."""
        return {
            "joints": {name: joint.saved() for name, joint in self._joints.items()},
            "motions": [[m.number, m.start, m.plan.save()] for m in self._motions.values()],
            "last": self._last_number,
            "stopped": self._stopped,
            "started": self._started,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on with it, as far as the joints are there."""
        self._memory.forget()
        for name, saved in state["joints"].items():
            if name in self._joints:
                self._joints[name].restore(saved)
        self._motions = {
            number: _Motion(number, Trajectory(plan), start)
            for number, start, plan in state["motions"]
            if all(name in self._joints for name in plan["joints"])
        }
        self._last_number = int(state["last"])
        self._stopped, self._started = bool(state["stopped"]), bool(state["started"])

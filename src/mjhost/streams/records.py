"""What plugins and the env publish, and what is sent to plugins, without a word of any transport.

Owns: the types of records. Each transport translates them, and knows nothing else of a plugin.
Invariants: SI units; quaternions are ``w x y z``; a pose is that of ``frame`` in ``parent``, or of
what is measured in ``frame``. Arrays are copies that nobody writes to any more.
Threads: immutable, safe anywhere.
Not a goal: time; every record is delivered with the stamp of the step boundary it belongs to.
"""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

WORLD = "world"
"""The frame that does not move: body 0."""


class Record(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Something that was measured, computed or asked for."""


class Framed(Record, frozen=True, kw_only=True, eq=False):
    """A record in coordinates.

    Attributes:
        frame: name of the frame it is expressed in: a body, site or camera, or ``world``.
    """

    frame: str = WORLD


# -- readings ------------------------------------------------------------------------------------


class ScalarReading(Framed, frozen=True, kw_only=True, eq=False):
    """One number.

    Attributes:
        value: the number.
        quantity: what it is, by the engine's name of the sensor type, lower case.
        unit: its unit, ``""`` for none.
    """

    value: float
    quantity: str = ""
    unit: str = ""


class VectorReading(Framed, frozen=True, kw_only=True, eq=False):
    """Three numbers that turn with their frame.

    Attributes:
        value: shape ``(3,)``.
        quantity: what it is, by the engine's name of the sensor type, lower case.
        unit: its unit, ``""`` for none.
    """

    value: Floats
    quantity: str = ""
    unit: str = ""


class ArrayReading(Framed, frozen=True, kw_only=True, eq=False):
    """Numbers without a better description, as user and plugin sensors have.

    Attributes:
        value: shape ``(n,)``.
        quantity: what it is, by the engine's name of the sensor type, lower case.
    """

    value: Floats
    quantity: str = ""


class OrientationReading(Framed, frozen=True, kw_only=True, eq=False):
    """A rotation.

    Attributes:
        value: shape ``(4,)``, unit quaternion w x y z.
    """

    value: Floats


class PoseReading(Framed, frozen=True, kw_only=True, eq=False):
    """A pose of ``child`` in ``frame``.

    Attributes:
        child: name of what has the pose.
        position: shape ``(3,)``, m.
        orientation: shape ``(4,)``, unit quaternion w x y z.
    """

    child: str
    position: Floats
    orientation: Floats


class OdometryReading(Framed, frozen=True, kw_only=True, eq=False):
    """Pose of ``child`` in ``frame`` and its velocity in its own axes.

    Attributes:
        child: name of the body.
        position: shape ``(3,)``, m.
        orientation: shape ``(4,)``, unit quaternion w x y z.
        linear: shape ``(3,)``, m/s, of the child's origin, in the child's axes.
        angular: shape ``(3,)``, rad/s, in the child's axes.
    """

    child: str
    position: Floats
    orientation: Floats
    linear: Floats
    angular: Floats


class ImuReading(Framed, frozen=True, kw_only=True, eq=False):
    """What an inertial measurement unit at the site ``frame`` reads, in the axes of the site.

    Attributes:
        orientation: of the site in the world, shape ``(4,)``, w x y z; None: not measured.
        angular_velocity: shape ``(3,)``, rad/s; None: not measured.
        linear_acceleration: specific force, +g upwards at rest, shape ``(3,)``, m/s²; None: not
            measured.
        variances: of the three above, 0 for unknown.
    """

    orientation: Floats | None = None
    angular_velocity: Floats | None = None
    linear_acceleration: Floats | None = None
    variances: tuple[float, float, float] = (0.0, 0.0, 0.0)


class WrenchReading(Framed, frozen=True, kw_only=True, eq=False):
    """A force and a torque on a body, in the axes of ``frame`` and about its origin.

    Attributes:
        force: shape ``(3,)``, N.
        torque: shape ``(3,)``, N·m.
    """

    force: Floats
    torque: Floats


class MagneticReading(Framed, frozen=True, kw_only=True, eq=False):
    """A magnetic flux density.

    Attributes:
        value: shape ``(3,)``, T.
    """

    value: Floats


class RangeReading(Framed, frozen=True, kw_only=True, eq=False):
    """A distance along the z axis of ``frame``.

    Attributes:
        value: m; ``inf`` if nothing is hit, ``-inf`` if it is nearer than ``minimum``, NaN if the
            reading was dropped.
        minimum: m.
        maximum: m; ``inf`` for none.
        field_of_view: width of the beam, rad.
    """

    value: float
    minimum: float = 0.0
    maximum: float = float("inf")
    field_of_view: float = 0.0


class JointReadings(Record, frozen=True, kw_only=True, eq=False):
    """Hinges and slides.

    Attributes:
        names: of the joints.
        position: shape ``(n,)``, rad or m.
        velocity: shape ``(n,)``, rad/s or m/s.
        effort: force of the actuators in joint space (``qfrc_actuator``), shape ``(n,)``, N·m or N.
    """

    names: tuple[str, ...]
    position: Floats
    velocity: Floats
    effort: Floats


class TransformReadings(Record, frozen=True, kw_only=True, eq=False):
    """Poses of frames in their parents.

    Attributes:
        parents: names of the parents.
        children: names of the frames.
        positions: shape ``(n, 3)``, m.
        orientations: shape ``(n, 4)``, unit quaternions w x y z.
    """

    parents: tuple[str, ...]
    children: tuple[str, ...]
    positions: Floats
    orientations: Floats


class ScanReading(Framed, frozen=True, kw_only=True, eq=False):
    """Distances in a plane: beam ``i`` goes out at ``angle_min + i * angle_step``, about z from x.

    Attributes:
        angle_min: rad.
        angle_step: rad between neighbouring beams.
        range_min: m; what is nearer reads ``-inf``.
        range_max: m; beyond it nothing is seen: ``inf``.
        period: between two scans, s sim.
        ranges: shape ``(n,)``, float32, m; ``inf`` no return, ``-inf`` too near, NaN dropped.
        intensities: shape ``(n,)``, float32, or empty.
    """

    angle_min: float
    angle_step: float
    range_min: float
    range_max: float
    period: float
    ranges: npt.NDArray[np.float32]
    intensities: npt.NDArray[np.float32]


class CloudReading(Framed, frozen=True, kw_only=True, eq=False):
    """Points that were hit.

    Attributes:
        points: shape ``(n, 3)``, float32, m, in ``frame``.
        rings: shape ``(n,)``, uint16: which row of beams saw the point.
        intensities: shape ``(n,)``, float32, or empty.
        width: points of a row if the cloud is organised (NaN where nothing was hit), else 0.
    """

    points: npt.NDArray[np.float32]
    rings: npt.NDArray[np.uint16]
    intensities: npt.NDArray[np.float32]
    width: int = 0


class ControllerReading(Record, frozen=True, kw_only=True, eq=False):
    """What a joint controller wants and what it gets.

    Attributes:
        names: of the joints.
        mode: of each: ``idle``, ``position``, ``velocity``, ``effort``, ``trajectory`` or ``limp``.
        desired_position: shape ``(n,)``, rad or m.
        desired_velocity: shape ``(n,)``, rad/s or m/s.
        position: shape ``(n,)``, rad or m.
        velocity: shape ``(n,)``, rad/s or m/s.
        effort: commanded, shape ``(n,)``, N·m or N.
        stopped: whether the emergency stop is in force.
        trajectory: number of the trajectory under way, or 0.
    """

    names: tuple[str, ...]
    mode: tuple[str, ...]
    desired_position: Floats
    desired_velocity: Floats
    position: Floats
    velocity: Floats
    effort: Floats
    stopped: bool = False
    trajectory: int = 0


class TrajectoryOutcome(Record, frozen=True, kw_only=True, eq=False):
    """The end of a trajectory.

    Attributes:
        trajectory: its number.
        status: ``succeeded``, ``cancelled``, ``replaced``, ``path_tolerance``, ``goal_tolerance``
            or ``stopped``.
        message: more, for people.
    """

    trajectory: int
    status: str
    message: str = ""


# -- commands ------------------------------------------------------------------------------------


class TrajectoryPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One point of a trajectory.

    Attributes:
        time: since its start, s sim.
        positions: rad or m, in the order of the joints.
        velocities: rad/s or m/s, or empty.
        accelerations: rad/s² or m/s², or empty.
        efforts: N·m or N, added to what the controller commands, or empty.
    """

    time: float
    positions: tuple[float, ...] = ()
    velocities: tuple[float, ...] = ()
    accelerations: tuple[float, ...] = ()
    efforts: tuple[float, ...] = ()


class TrajectoryCommand(Record, frozen=True, kw_only=True, eq=False):
    """Go through these points; one under way is replaced without a jump.

    Attributes:
        joints: names of the joints.
        points: in the order of their times.
        start: simulated time (``session_time``, s) of time 0; None: now.
        path_tolerance: greatest distance from the path by joint, rad or m.
        goal_tolerance: greatest distance at the end by joint, rad or m.
        goal_time: how much longer than planned it may take, s sim.
    """

    joints: tuple[str, ...]
    points: tuple[TrajectoryPoint, ...]
    start: float | None = None
    path_tolerance: dict[str, float] = msgspec.field(default_factory=dict)
    goal_tolerance: dict[str, float] = msgspec.field(default_factory=dict)
    goal_time: float = 0.0


class CancelTrajectory(Record, frozen=True, kw_only=True, eq=False):
    """Hold the joints of a trajectory where they are.

    Attributes:
        trajectory: its number; None: whichever is under way.
    """

    trajectory: int | None = None


class JointCommand(Record, frozen=True, kw_only=True, eq=False):
    """Set points of joints.

    Attributes:
        mode: ``position`` (rad or m), ``velocity`` (rad/s or m/s) or ``effort`` (N·m or N).
        values: by the name of the joint.
    """

    mode: str
    values: dict[str, float]


class GroupCommand(Record, frozen=True, kw_only=True, eq=False):
    """Set points of all joints of a group, in its order.

    Attributes:
        values: as many as the group has joints.
    """

    values: tuple[float, ...]


class StopCommand(Record, frozen=True, kw_only=True, eq=False):
    """The emergency stop.

    Attributes:
        stop: whether it is in force from now on.
    """

    stop: bool = True


class WrenchCommand(Framed, frozen=True, kw_only=True, eq=False):
    """A force and a torque to apply to a body.

    Attributes:
        force: N, along the axes of ``frame``.
        torque: N·m, along the axes of ``frame``.
        point: where the force acts, m, from the origin of the body, in the axes of ``frame``.
        duration: s sim; None: until the next command.
    """

    force: tuple[float, float, float] = (0.0, 0.0, 0.0)
    torque: tuple[float, float, float] = (0.0, 0.0, 0.0)
    point: tuple[float, float, float] = (0.0, 0.0, 0.0)
    duration: float | None = None


class PoseCommand(Framed, frozen=True, kw_only=True, eq=False):
    """Where a mocap body is to be.

    Attributes:
        position: m.
        orientation: quaternion w x y z, normalised when it is used.
    """

    position: tuple[float, float, float]
    orientation: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)

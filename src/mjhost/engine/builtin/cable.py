"""``mjhost.cable``: bending and torsion of a chain of bodies, with the numbers of MuJoCo's cable.

The bodies that name one instance are an elastic rod: each is the child of the one before, at whose
end it hangs by a ball joint, and has a capsule, cylinder or box as its first geom, along x. A joint
that is bent away from its rest shape turns both neighbours back, about the local x (``twist``) and
the local y and z (``bend``), with the stiffness of the rod that the geom is a piece of.

Numbers and attributes are those of ``mujoco.elasticity.cable``, which MuJoCo 4 has no more; nor has
it ``<composite>``, so write the bodies, or make them with ``MjSpec``. Refused instead of computed
from whatever is there: bodies that are no chain, another joint, another geom.

``vmax`` is for pictures: where it is given, the first geom of each body is coloured by its stress,
0 blue, ``vmax`` red. That changes ``geom_rgba`` of the model, as MuJoCo's does.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import mujoco
import numpy as np

from mjhost.engine import attribute
from mjhost.engine.builtin.choice import Indices, Matrix, Vector, bundled
from mjhost.engine.views import mj

_BALL: Final = int(mujoco.mjtJoint.mjJNT_BALL)
_ROUND: Final = (int(mujoco.mjtGeom.mjGEOM_CAPSULE), int(mujoco.mjtGeom.mjGEOM_CYLINDER))
_BOX: Final = int(mujoco.mjtGeom.mjGEOM_BOX)
_BODY: Final = int(mujoco.mjtObj.mjOBJ_BODY)


class _Memo(NamedTuple):
    """The rod, joint by joint; joint k is in front of body k, and joint 0 has no stiffness.

    Attributes:
        angles: where the orientation of each joint is in ``qpos``, ``(n,)``.
        lengths: from the body before to this one, m, ``(n,)``.
        stiffness: about x, y and z, N·m², ``(n, 3)``.
        rest: curvature without stress, rad, ``(n, 3)``.
        stress: torque of each joint on the body behind it, in its frame, N·m, ``(n, 3)``; scratch.
        torque: on each body, in its frame, N·m, ``(n, 3)``; scratch.
        quaternions: an orientation and its inverse, ``(2, 4)``; scratch.
        vectors: a rotation and a torque, ``(2, 3)``; scratch.
        no_force: zeros, ``(3,)``.
    """

    angles: Indices
    lengths: Vector
    stiffness: Matrix
    rest: Matrix
    stress: Matrix
    torque: Matrix
    quaternions: Matrix
    vectors: Matrix
    no_force: Vector


@bundled("mjhost.cable", "passive")
class Cable:
    """One rod, of every body that names the instance."""

    twist: float = attribute(0.0, minimum=0, doc="shear modulus, Pa")
    bend: float = attribute(0.0, minimum=0, doc="Young's modulus, Pa")
    flat: bool = attribute(False, doc="whether the rod is straight without stress")
    vmax: float = attribute(0.0, minimum=0, doc="stress that is shown red, N·m; 0 shows none")

    def init(self: Any, model: Any, _data: Any, _instance: int) -> _Memo:
        """The rod of the bodies, unstressed in the pose of ``qpos0``."""
        bodies = [int(body) for body in self.bodies]
        if not bodies:
            raise ValueError("no body names this instance; a cable needs its bodies")
        count = len(bodies)
        memo = _Memo(
            angles=np.zeros(count, np.int32),
            lengths=np.zeros(count),
            stiffness=np.zeros((count, 3)),
            rest=np.zeros((count, 3)),
            stress=np.zeros((count, 3)),
            torque=np.zeros((count, 3)),
            quaternions=np.zeros((2, 4)),
            vectors=np.zeros((2, 3)),
            no_force=np.zeros(3),
        )
        for k, body in enumerate(bodies):
            twist, bend_y, bend_z = _section(model, body)
            memo.stiffness[k] = twist * self.twist, bend_y * self.bend, bend_z * self.bend
            if k:
                angle = memo.angles[k] = _angle(model, body, bodies[k - 1])
                memo.lengths[k] = _length(model, body)
                if not self.flat:
                    here, turned = model.body_quat[body], model.qpos0[angle : angle + 4]
                    mj.mju_subQuat(memo.rest[k], here, turned)
        return memo

    def compute(self: Any, model: Any, data: Any, _instance: int, _capability: int) -> None:
        """Adds the torques of all joints to ``qfrc_passive``."""
        memo = self.memo
        torque, turned = memo.torque, memo.vectors[1]
        torque[:] = 0.0
        for k in range(1, len(self.bodies)):
            self.strain(model, data, k)
        for k in range(len(self.bodies)):
            body = self.bodies[k]
            mj.mju_rotVecQuat(turned, torque[k], data.xquat[body])
            place = data.xpos[body]
            mj.mj_applyFT(model, data, memo.no_force, turned, place, body, data.qfrc_passive)

    def strain(self: Any, model: Any, data: Any, k: int) -> None:
        """Adds what joint k does to its two bodies."""
        memo = self.memo
        turn, back, curvature = memo.quaternions[0], memo.quaternions[1], memo.vectors[0]
        angle = memo.angles[k]
        mj.mju_mulQuat(turn, model.body_quat[self.bodies[k]], data.qpos[angle : angle + 4])
        mj.mju_quat2Vel(curvature, turn, 1.0)
        for axis in range(3):
            strain = curvature[axis] - memo.rest[k, axis]
            curvature[axis] = -memo.stiffness[k, axis] * strain / memo.lengths[k]
        mj.mju_negQuat(back, turn)
        mj.mju_rotVecQuat(memo.stress[k], curvature, back)
        for axis in range(3):
            memo.torque[k, axis] += memo.stress[k, axis]
            memo.torque[k - 1, axis] -= curvature[axis]

    def visualize(
        self: Any, model: Any, _data: Any, _option: Any, _scene: Any, _instance: int
    ) -> None:
        """Colours the bodies."""
        if self.vmax == 0:
            return
        count, stress = len(self.bodies), self.memo.stress
        for k in range(count):
            front = stress[k] if k or count == 1 else stress[k + 1]
            behind = stress[k + 1] if k + 1 < count else front
            size = math.sqrt(sum(((front + behind) / 2) ** 2))
            model.geom_rgba[model.body_geomadr[self.bodies[k]], :3] = _colour(size / self.vmax)


def _colour(share: float) -> tuple[float, float, float]:
    """From blue for 0, by green, to red for 1."""
    share = 4 * min(share, 1.0)
    return min(max(share - 2, 0.0), 1.0), min(share, 4 - share, 1.0), min(max(2 - share, 0.0), 1.0)


def _named(model: Any, body: int) -> str:
    name = mj.mj_id2name(model, _BODY, body)
    return f"body {name!r} ({body})" if name else f"body {body}"


def _angle(model: Any, body: int, before: int) -> int:
    """Where the orientation of the joint of ``body`` is in ``qpos``."""
    if model.body_parentid[body] != before:
        raise ValueError(
            f"{_named(model, body)} is no child of {_named(model, before)}: the bodies of an "
            "instance must be a chain; give each cable an instance of its own"
        )
    joint = int(model.body_jntadr[body] + model.body_jntnum[body]) - 1
    if not model.body_jntnum[body] or model.jnt_type[joint] != _BALL:
        raise ValueError(
            f"{_named(model, body)} must hang by a ball joint, its last one; only the first body "
            "of a cable may be fixed or free"
        )
    return int(model.jnt_qposadr[joint])


def _length(model: Any, body: int) -> float:
    """From the body before; joints at rest do not move bodies."""
    length = math.dist(model.body_pos[body], (0.0, 0.0, 0.0))
    if length < mujoco.mjMINVAL:
        raise ValueError(
            f"{_named(model, body)} is where the one before is; the bodies of a cable have a length"
        )
    return length


def _section(model: Any, body: int) -> tuple[float, float, float]:
    """Torsion constant and second moments of area about y and z of a body's first geom, m⁴."""
    geom = int(model.body_geomadr[body])
    kind = int(model.geom_type[geom]) if geom >= 0 else -1
    if kind in _ROUND:
        fourth = math.pi * float(model.geom_size[geom, 0]) ** 4
        return fourth / 2, fourth / 4, fourth / 4
    if kind != _BOX:
        raise ValueError(
            f"the first geom of {_named(model, body)} must be a capsule, a cylinder or a box along "
            "x: the stiffness of a cable comes from its cross-section"
        )
    height, width = (float(size) for size in model.geom_size[geom, 1:])
    wide, thin = max(height, width), min(height, width)
    twist = wide * thin**3 * (16 / 3 - 3.36 * thin / wide * (1 - thin**4 / wide**4 / 12))
    return twist, (2 * width) ** 3 * 2 * height / 12, (2 * height) ** 3 * 2 * width / 12

"""State by name, on a paused env: what a name, a copy and a check of the generation cost.

Ratios of time per access, ours over the peer's; lower is better. The peers are MuJoCo's own
accessors, which hand out views of the live data, and bare writes by index.
"""

from __future__ import annotations

from collections.abc import Callable

import mujoco
from _harness import Figure, Sample, Settings, main, paired, time_ratio, timed

from mjhost import MujocoEnv

BENCHMARK = "bench_access"
ACCESSES = 20_000
QUICK_ACCESSES = 2_000


def run(settings: Settings) -> list[Figure]:
    accesses = QUICK_ACCESSES if settings.quick else ACCESSES
    figures = []
    for name, path, _ in settings.subjects():
        with MujocoEnv(path) as env:
            for measure, ours, peer, high in pairs_of(env, first_hinge(env)):
                share = accesses if high else accesses // 20
                pairs = paired(side(ours, share), side(peer, share), settings.rounds)
                figures.append(
                    time_ratio(pairs, benchmark=BENCHMARK, measure=measure, model=name, high=high)
                )
    return figures


def first_hinge(env: MujocoEnv) -> str:
    """A knee, where there is one."""
    hinges = [name for name in env.names("joint") if env.joint(name).type == "hinge"]
    return next((name for name in hinges if "knee" in name), hinges[0])


def pairs_of(env: MujocoEnv, joint: str):
    """What is measured: in words, both sides, and the target."""
    model, data = env.model, env.data
    kept, plain, motor = env.joint(joint), data.joint(joint), env.names("actuator")[0]
    controls = {motor: 0.0}

    def forward_after_write() -> None:
        plain.qpos[0] = 0.0
        mujoco.mj_forward(model, data)

    def write_ctrl() -> None:
        data.actuator(motor).ctrl[0] = 0.0

    # Loops without a call per access, which on both sides would hide what is compared.
    def read_ours(times: int) -> None:
        for _ in range(times):
            _ = kept.qpos

    def read_theirs(times: int) -> None:
        for _ in range(times):
            _ = plain.qpos

    def look_up(times: int) -> None:
        for _ in range(times):
            _ = data.joint(joint).qpos

    return [
        ("joint.qpos, kept / data.joint(name).qpos", read_ours, look_up, 0.7),
        ("joint.qpos, kept / MuJoCo's accessor, kept", read_ours, read_theirs, 3.0),
        (
            "set_ctrl of one / data.actuator(name).ctrl[0] =",
            calling(lambda: env.set_ctrl(controls)),
            calling(write_ctrl),
            None,
        ),
        (
            "set_joint_state / write and mj_forward",
            calling(lambda: env.set_joint_state(joint, 0.0)),
            calling(forward_after_write),
            None,
        ),
        (
            "body_states of all / mj_kinematics",
            calling(env.body_states),
            calling(lambda: mujoco.mj_kinematics(model, data)),
            None,
        ),
    ]


def calling(access: Callable[[], object]) -> Callable[[int], None]:
    def loop(times: int) -> None:
        for _ in range(times):
            access()

    return loop


def side(loop: Callable[[int], None], times: int) -> Callable[[], Sample]:
    return lambda: timed(lambda: loop(times), times)


if __name__ == "__main__":
    main(run)

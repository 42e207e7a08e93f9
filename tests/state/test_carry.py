"""What is carried from one model to another is what means the same in both."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mjhost.state.carry import CarryPlan
from tests.checkpoint.models import MUJOCO_4

JOINTS = {"hinge": (1, 1), "slide": (1, 1), "ball": (4, 3), "free": (7, 6)}


def compiled(text):
    model = mujoco.MjModel.from_xml_string(text)
    return model, mujoco.MjData(model)


def scene(bodies, more=""):
    """A model of (body, joint, type); a name that is empty is left out."""
    parts = []
    for index, (body, joint, kind) in enumerate(bodies):
        names = [f'name="{name}"' if name else "" for name in (body, joint)]
        parts.append(
            f'<body {names[0]} pos="{index} 0 0"><joint {names[1]} type="{kind}"/>'
            '<geom size=".1"/></body>'
        )
    return f"<mujoco><worldbody>{''.join(parts)}</worldbody>{more}</mujoco>"


def filled(model, data, rng):
    """Numbers everywhere, of which no two are the same."""
    data.time = 7.0
    for name in ("qpos", "qvel", "qacc_warmstart", "qfrc_applied", "ctrl", "xfrc_applied"):
        array = getattr(data, name)
        array[:] = rng.uniform(1, 2, array.shape)


def carried(old_text, new_text):
    old, new = compiled(old_text), compiled(new_text)
    filled(*old, np.random.default_rng(1))
    plan = CarryPlan(old[0], new[0])
    plan.apply(old, new)
    return old, new, plan.report


def coordinates(pair, joint):
    model, data = pair
    of, state = model.joint(joint), data.joint(joint)
    body = of.bodyid[0]
    return (
        *state.qpos,
        *state.qvel,
        *state.qacc_warmstart,
        *state.qfrc_applied,
        *data.xfrc_applied[body],
    )


NAMES = st.lists(
    st.tuples(st.sampled_from("abcdefgh"), st.sampled_from(sorted(JOINTS))),
    unique_by=lambda named: named[0],
    min_size=1,
)


@settings(deadline=None, max_examples=40)
@given(NAMES, NAMES)
def test_every_joint_of_the_same_name_and_type_is_carried_and_no_other(before, after):
    scenes = [scene([(n, f"j{n}", kind) for n, kind in part]) for part in (before, after)]
    old, new, report = carried(*scenes)
    fresh = compiled(scenes[1])
    kinds = dict(before)
    for name, kind in after:
        same = kinds.get(name) == kind
        found = coordinates(new, f"j{name}")
        if same:
            assert found == coordinates(old, f"j{name}")
        else:  # the body may be there with what is applied to it
            assert found[:-6] == coordinates(fresh, f"j{name}")[:-6]
        assert (f"joint j{name}" in report.carried) == same
        assert (f"joint j{name}" in report.restarted) == (name in kinds and not same)
        assert (f"joint j{name}" in report.new) == (name not in kinds)
    gone = {f"joint j{name}" for name in kinds.keys() - dict(after).keys()}
    assert {label for label in report.dropped if label.startswith("joint")} == gone
    assert new[1].time == 7.0


def test_nameless_ones_go_by_their_place_while_there_are_as_many():
    bodies = [("", "", "hinge"), ("", "", "free"), ("crate", "crate", "free")]
    old, new, report = carried(scene(bodies), scene([bodies[2], *bodies[:2]]))
    assert new[1].qpos[7:].tolist() == old[1].qpos[:8].tolist()
    assert report.new == report.dropped == ()


def test_nameless_ones_are_strangers_if_their_number_changed():
    """Which of three is the one that went can only be guessed."""
    bodies = [("", "", "hinge"), ("", "", "hinge"), ("", "", "hinge")]
    _, new, report = carried(scene(bodies), scene(bodies[1:]))
    assert not new[1].qpos.any()
    assert sum(label.startswith("joint") for label in report.dropped) == 3
    assert sum(label.startswith("joint") for label in report.new) == 2


def actuators(*lines):
    return scene(
        [("a", "ja", "hinge"), ("b", "jb", "hinge")], f"<actuator>{''.join(lines)}</actuator>"
    )


def test_nameless_actuators_go_by_what_they_act_on():
    on_a, on_b = '<motor joint="ja"/>', '<motor joint="jb"/>'
    old, new, _ = carried(actuators(on_a, on_b), actuators(on_b, on_a))
    assert new[1].ctrl.tolist() == old[1].ctrl[::-1].tolist()


@pytest.mark.parametrize(
    "other",
    ['<position name="m" joint="ja"/>', '<velocity name="m" joint="ja"/>',
     '<general name="m" joint="ja" dyntype="filter"/>'],
)  # fmt: skip
def test_a_control_is_carried_only_to_what_takes_it_the_same_way(other):
    motor = '<motor name="m" joint="ja"/>'
    _, new, report = carried(actuators(motor), actuators(other))
    assert new[1].ctrl.tolist() == [0]
    assert report.restarted == ("actuator m",)


def test_activations_and_delays_move_with_their_actuator():
    slow = '<general name="slow" joint="ja" dyntype="filter" dynprm=".5"/>'
    late = '<motor name="late" joint="jb" delay=".004" nsample="3"/>'
    old, new = (
        compiled(actuators(slow, late)),
        compiled(actuators('<motor joint="jb"/>', late, slow)),
    )
    filled(*old, np.random.default_rng(1))
    for _ in range(20):
        mujoco.mj_step(*old)
    CarryPlan(old[0], new[0]).apply(old, new)
    assert new[1].act.tolist() == old[1].act.tolist() != [0]
    assert new[1].history.tolist() == old[1].history.tolist()
    assert old[1].history.any()


EQUALITIES = """<equality>
  <connect body1="a" body2="b" anchor="0 0 0"/><joint joint1="ja" joint2="jb"/>{}
</equality>"""


def test_nameless_equalities_go_by_what_they_hold():
    bodies = [("a", "ja", "hinge"), ("b", "jb", "hinge")]
    first = compiled(scene(bodies, EQUALITIES.format("")))
    more = '<weld name="w" body1="a"/>'
    turned = "".join(reversed(EQUALITIES.format(more).split("\n")[1:2])) + more
    second = compiled(scene(bodies, f"<equality>{more}{turned.replace(more, '')}</equality>"))
    first[1].eq_active[:] = [False, True]
    CarryPlan(first[0], second[0]).apply(first, second)
    assert second[1].eq_active.tolist() == [True, False, True]


@pytest.mark.parametrize("flag", ["sleep", *(["ipc"] if MUJOCO_4 else [])])
def test_what_the_engine_keeps_besides_makes_it_inexact(flag):
    plain = scene([("a", "ja", "hinge")])
    other = plain.replace("<mujoco>", f'<mujoco><option><flag {flag}="enable"/></option>')
    model, _ = compiled(plain)
    try:
        special, _ = compiled(other)
    except ValueError:
        pytest.skip(f"this engine has no {flag}")
    assert CarryPlan(model, model).report.exact
    assert not CarryPlan(special, model).report.exact
    assert not CarryPlan(model, special).report.exact


def test_user_data_is_carried_if_there_is_as_much():
    sized = '<mujoco><size nuserdata="{}"/><worldbody/></mujoco>'
    old = compiled(sized.format(3))
    old[1].userdata[:] = [1, 2, 3]
    for size, expected in ((3, [1, 2, 3]), (4, [0, 0, 0, 0])):
        new = compiled(sized.format(size))
        CarryPlan(old[0], new[0]).apply(old, new)
        assert new[1].userdata.tolist() == expected

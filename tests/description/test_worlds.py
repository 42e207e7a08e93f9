"""Several robots in one world: nothing of one gets lost in another or is printed."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from mjhost import MujocoEnv, description
from mjhost.description import Robot
from mjhost.errors import InvalidArgumentError, ModelLoadError
from tests.cases.inputs import tetrahedron_stl

URDF = """<robot name="r"><mujoco><option timestep="0.001"/></mujoco>
  <link name="base"/>
  <link name="arm"><inertial><mass value="1"/>
    <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
  <joint name="j" type="continuous"><parent link="base"/><child link="arm"/></joint>
</robot>"""
MJCF = """<mujoco><compiler meshdir="meshes" angle="{angle}"/>{option}
  <asset><mesh name="part" file="part.stl" scale="{scale} {scale} {scale}"/></asset>
  <worldbody><body name="b"><joint name="j" range="-1 1"/><geom type="mesh" mesh="part"/></body>
  </worldbody>
  <actuator><position name="p" joint="j" kp="1"/></actuator>
  <keyframe><key name="k" qpos=".3" ctrl=".2"/></keyframe></mujoco>"""


@pytest.fixture
def two_models(tmp_path):
    """Two MJCF files that are alike but for angles, options, and a mesh of one name."""
    paths = []
    for name, angle, scale, option in (
        ("x", "degree", 1, '<option timestep=".001" integrator="RK4"/>'),
        ("y", "radian", 2, '<option gravity="0 0 -1"/>'),
    ):
        (tmp_path / name / "meshes").mkdir(parents=True)
        (tmp_path / name / "meshes" / "part.stl").write_bytes(tetrahedron_stl())
        path = tmp_path / name / "m.xml"
        path.write_text(MJCF.format(angle=angle, scale=scale, option=option))
        paths.append(path)
    return paths


def test_files_of_one_name_and_units_of_angles_stay_with_their_model(two_models):
    robots = [Robot(source=path, prefix=f"{path.parent.name}_") for path in two_models]
    with MujocoEnv(description.compose(robots, world="none").spec) as env:
        model = env.model
        assert model.geom_rbound[1] == pytest.approx(2 * model.geom_rbound[0])
        assert model.jnt_range[:, 1] == pytest.approx([np.pi / 180, 1])
        assert env.names("keyframe") == ("x_k", "y_k")
        env.reset("x_k")
        assert env.data.qpos.tolist() == [0.3, 0]
        assert env.data.ctrl.tolist() == [0.2, 0]


def test_options_are_those_of_the_first_robot_and_what_gave_way_is_told(two_models):
    robots = [Robot(source=path, prefix=f"{path.parent.name}_") for path in two_models]
    found = description.compose(robots)
    option = found.spec.compile().opt
    assert (option.timestep, option.integrator) == (0.001, mujoco.mjtIntegrator.mjINT_RK4)
    assert option.gravity.tolist() == [0, 0, -9.81]
    (note,) = found.report.of("dropped")
    assert note.subject == "robot 'y_'"
    assert "gravity" in note.text
    assert "integrator" in note.text


def test_nothing_is_printed_and_no_log_is_left(two_models, tmp_path, monkeypatch, capfd):
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    description.compose([Robot(source=path, prefix=path.parent.name) for path in two_models])
    description.load(URDF, prefix="a_", world="ground").spec.compile()
    assert capfd.readouterr() == ("", "")
    assert list(folder.iterdir()) == []


def test_a_prefix_keeps_the_options_and_the_name():
    spec = description.load(URDF, prefix="a_").spec
    assert spec.modelname == "r"
    assert spec.compile().opt.timestep == 0.001


def test_one_description_can_be_in_a_world_twice_and_is_not_used_up():
    found = description.load(URDF)
    for _ in range(2):
        robots = [Robot(source=found, prefix=f"{i}_", pos=(i, 0, 0)) for i in range(2)]
        model = description.compose(robots).spec.compile()
        assert {model.joint(i).name for i in range(model.njnt)} == {"0_j", "1_j"}
        assert model.body("1_base").pos.tolist() == [1, 0, 0]
    assert found.spec.compile().nbody == 3


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"pos": (0, 0)}, "pos of 'a' must be 3 numbers"),
        ({"pos": (0, 0, float("nan"))}, "pos of 'a' must be 3 numbers"),
        ({"quat": (0, 0, 0, 0)}, "quat of 'a' must not be zero"),
        ({"quat": "w"}, "quat of 'a' must be 4 numbers"),
        ({"prefix": ""}, "needs a prefix"),
        ({"prefix": "b"}, "two robots have the prefix 'b'"),
    ],
)
def test_a_place_that_is_none_is_refused_by_robot(changes, match):
    place = {"source": description.load(URDF), "prefix": "a", **changes}
    with pytest.raises(InvalidArgumentError, match=match):
        description.compose([Robot(**place), Robot(source=description.load(URDF), prefix="b")])


SOLID = """<robot name="s"><link name="a"><inertial><mass value="1"/>
  <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
  <collision><geometry><box size="1 1 1"/></geometry></collision></link></robot>"""


def test_robots_that_begin_inside_of_each_other_are_told_with_their_names():
    free = [description.load(SOLID, base="free") for _ in range(2)]
    robots = [
        Robot(source=each, prefix=f"{i}_", pos=(0.9 * i, 0, 2)) for i, each in enumerate(free)
    ]
    (told,) = description.compose(robots).report.of("suspicious")
    assert (told.subject, told.text) == ("link 0_a", "begins 100 mm inside of 1_a")


def test_notes_of_several_robots_say_whose_they_are():
    found = description.compose([Robot(source=description.load(URDF), prefix=p) for p in "xy"])
    assert {note.subject for note in found.report.of("defaulted")} >= {
        "x: actuators",
        "y: actuators",
    }


def test_a_model_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ModelLoadError, match=r"gone\.xml"):
        description.compose([Robot(source=tmp_path / "gone.xml", prefix="a")])
    with pytest.raises(InvalidArgumentError, match="no robots"):
        description.compose([])

"""Public reports about engine plugins and decoders.

What these need of checkpoints, of reloads that keep the state and of access by name is not part of
this module: the docstrings say which half is tested.
"""

from __future__ import annotations

import copy

import mujoco
import numpy as np
import pytest

from mjhost import ModelLoadError, MujocoEnv, engine
from mjhost.errors import EngineNameTakenError, ReentrancyError
from tests.cases import acme
from tests.cases.inputs import case_file, tetrahedron_stl
from tests.env.plugs import plugin

VERSION = mujoco.mj_versionString()
IS_4 = int(VERSION.split(".")[0]) >= 4


def forward_force(env, control=1.0):
    """The force of the first actuator with a control, at the present state."""
    with env.access() as (_model, data):
        data.ctrl[0] = control
    env.forward()
    return float(env.data.actuator_force[0])


def counter_state(env):
    return env.data.plugin_state.tolist()


def refused(env, source):
    """The error of a reload that must change nothing."""
    before = (env.model, env.data, env.generations, env.info.sim_time, env.info.source)
    with pytest.raises(ModelLoadError) as caught:
        env.reload(source)
    after = (env.model, env.data, env.generations, env.info.sim_time, env.info.source)
    assert after == before
    env.step(1)
    return str(caught.value)


# -- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["missing.xml", "missing_use.xml"])
def test_a_plugin_that_is_not_registered_is_named_next_to_those_that_are(host_case, name):
    """PL-01."""
    env = host_case("PL-01", "good.xml")
    env.step(10)
    message = refused(env, case_file("PL-01", name))
    assert "acme.nothing" in message
    assert "mujoco.pid" in message
    assert env.info.step_count == 11
    assert env.data.time == pytest.approx(11 * env.model.opt.timestep)


def test_a_second_implementation_of_a_name_is_refused_every_time(host_case):
    """PL-03, in Python; the first implementation stays."""

    def declare():
        @engine.plugin("acme.counter", capabilities=("sensor",))
        class Doubled(acme.Counter):
            GAIN = 2.0

    for _ in range(3):
        with pytest.raises(EngineNameTakenError, match=r"acme\.counter") as caught:
            declare()
        for origin in ("acme.py", "test_extension_cases.py"):
            assert origin in str(caught.value)
    env = host_case("PL-03")
    env.step(5)
    assert env.data.sensor("cs").data.tolist() == [4.0]


def test_a_plugin_without_attributes_loads_with_one_and_with_two_instances(host_case):
    """PL-20."""
    for case, name, instances in (("PL-03", "model.xml", 1), ("PL-20", "two.xml", 2)):
        env = host_case(case, name)
        env.step(3)
        assert env.model.nplugin == instances
        assert env.data.sensordata.tolist() == [2.0] * instances


def test_the_cable_loads_where_it_exists_and_is_explained_where_it_does_not(host_case):
    """PL-14."""
    env = host_case("PL-01", "good.xml")
    cable = case_file("PL-14", "cable.xml")
    if IS_4:
        message = refused(env, cable)
        assert "composite" in message
        assert VERSION in message
        assert "flexcomp" in message
        return
    env.reload(cable)
    assert (env.model.nbody, env.model.nq, env.model.nplugin) == (11, 36, 1)
    assert "Invalid parameter" in refused(env, cable.read_text().replace("1e7", "10 MPa"))


# -- configuration -------------------------------------------------------------------------------


def test_a_reload_puts_the_configuration_of_the_new_model_in_force(host_case):
    """PL-06, all but that the reload keeps the state by itself."""
    env = host_case("PL-06", "kp40.xml")
    assert forward_force(env) == 40.0
    env.reload(case_file("PL-06", "kp4.xml"))
    assert forward_force(env) == 4.0


def test_a_reload_puts_the_configuration_of_a_python_plugin_in_force(host_case):
    """PL-06, for a plugin declared here."""

    @engine.plugin("case.pl06", capabilities=("actuator",))
    class Proportional:
        kp: float = 1.0

        def compute(self, model, data, instance, capability):
            own = self.actuators[0]
            error = data.ctrl[self.ctrladr[0]] - data.actuator_length[own]
            data.actuator_force[self.outadr[0]] = self.kp * error

    texts = {
        name: case_file("PL-06", name).read_text().replace("mujoco.pid", "case.pl06")
        for name in ("kp40.xml", "kp4.xml")
    }
    with MujocoEnv(texts["kp40.xml"]) as env:
        assert forward_force(env) == 40.0
        env.reload(texts["kp4.xml"])
        assert forward_force(env) == 4.0


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("ki_no_actdim.xml", "expected 1"),
        ("ki_slew_actdim1.xml", "expected 2"),
        ("unknown_key.xml", "kq"),
        ("neg_imax.xml", "negative imax"),
    ],
)
def test_mistakes_in_the_configuration_of_the_controller_are_told_with_their_reason(
    host_case, name, reason
):
    """PL-09."""
    env = host_case("PL-09", "good.xml")
    assert env.model.na == 2
    message = refused(env, case_file("PL-09", name))
    assert reason in message
    assert name in message
    assert reason in env.info.load_error


def test_a_sensor_is_asked_for_its_size_twice_and_answers_alike(host_case):
    """PL-11."""
    acme.SIZE_QUERIES.clear()
    env = host_case("PL-11")
    assert len(acme.SIZE_QUERIES) >= 2
    assert env.model.sensor("cs").dim == 1


@pytest.mark.parametrize("failing", [1, 2])
def test_a_size_that_raises_is_an_error_of_the_load(host_case, failing):
    """PL-11, with a size that raises on the first query or on the second."""
    queries = []

    @engine.plugin(f"case.pl11.{failing}", capabilities=("sensor",))
    class Unsized:
        def sensor_size(self, model, instance, sensor):
            queries.append(sensor)
            if len(queries) == failing:
                raise LookupError("the object is not known yet")
            return 1

        def compute(self, model, data, instance, capability):
            return None

    text = case_file("PL-11").read_text().replace("acme.counter", f"case.pl11.{failing}")
    env = host_case("PL-01", "good.xml")
    assert "the object is not known yet" in refused(env, text)
    env.reload(text)
    env.step(1)


# -- state ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("integrator", ["RK4", "Euler", "implicitfast"])
def test_looking_ahead_from_inside_a_hook_is_refused_for_every_integrator_alike(
    host_case, integrator
):
    """PL-07, with rollouts; a checkpoint is refused or deferred where checkpoints are tested."""
    told = []

    def control(_model, _data):
        try:
            env.rollout(np.zeros((1, 0)))
        except Exception as error:
            told.append(error)

    env = host_case("PL-07", plugins=[plugin(control=control)])
    env.apply_runtime_options({"integrator": integrator})
    for _ in range(2):
        env.step(1)
    assert len(told) == (8 if integrator == "RK4" else 2)
    assert {type(error) for error in told} == {ReentrancyError}
    assert {str(error) for error in told} == {str(told[0])}
    assert env.info.step_count == 2


@pytest.mark.parametrize("integrator", ["RK4", "Euler"])
def test_an_engine_plugin_cannot_copy_the_data_it_is_computing(integrator):
    """PL-07, for an engine plugin."""
    told = []

    @engine.plugin(f"case.pl07.{integrator.lower()}", capabilities=("passive",))
    class Copying:
        def compute(self, model, data, instance, capability):
            try:
                copy.copy(data)
            except Exception as error:
                told.append(str(error))

    name = f"case.pl07.{integrator.lower()}"
    text = (
        case_file("PL-07")
        .read_text()
        .replace("RK4", integrator)
        .replace("<worldbody>", f'<extension><plugin plugin="{name}"/></extension><worldbody>')
        .replace("<body>", f'<body><plugin plugin="{name}"/>')
    )
    with MujocoEnv(text) as env:
        told.clear()
        env.step(1)
        assert len(told) == (4 if integrator == "RK4" else 1)
        assert len({*told}) == 1
        assert env.info.step_count == 1


def test_the_state_of_a_plugin_is_part_of_the_state_and_reset_by_the_plugin(host_case):
    """PL-08, with the state vector of the engine in place of a checkpoint."""
    env = host_case("PL-08")
    spec = int(mujoco.mjtState.mjSTATE_INTEGRATION)
    saved = np.empty(mujoco.mj_stateSize(env.model, spec))
    env.step(5)
    with env.access() as (model, data):
        mujoco.mj_getState(model, data, saved, spec)
    env.step(7)
    assert counter_state(env) == [12, 1]
    with env.access() as (model, data):
        mujoco.mj_setState(model, data, saved, spec)
    assert counter_state(env) == [5, 1]
    env.reset()
    assert counter_state(env) == [0, 1]
    env.apply_runtime_options({"integrator": "RK4"})
    env.step(5)
    assert counter_state(env) == [5, 1]


def test_a_reset_tells_every_engine_plugin_once(host_case):
    """PL-17, for engine plugins; time that is kept over a reset is not tested here."""
    env = host_case("PL-20", "two.xml")
    env.step(3)
    acme.RESETS.clear()
    env.reset()
    assert acme.RESETS == [0, 1]
    assert counter_state(env) == [0, 1, 0, 1]


def test_a_reset_restores_equalities_and_activations_and_tells_host_plugins_once(host_case):
    """PL-17, for the rest; time that is kept over a reset is not tested here."""
    resets = []
    grip = host_case("PL-17", "grip.xml", plugins=[plugin(reset=lambda *_: resets.append(1))])
    with grip.access() as (_model, data):
        data.eq_active[0] = 1
    grip.step(10)
    resets.clear()
    grip.reset()
    assert (bool(grip.data.eq_active[0]), resets) == (False, [1])
    robot = host_case("PL-17", "pid.xml")
    with robot.access() as (_model, data):
        data.ctrl[0] = 1.0
    robot.step(200)
    assert robot.data.act[1] == 1.0
    robot.reset()
    assert robot.data.act.tolist() == [0.0, 0.0]


def test_a_model_with_plugins_can_be_saved_and_loaded_again(host_case, tmp_path):
    """PL-15, saved by the engine; the env's own export is not tested here."""
    env = host_case("PL-15")
    file = tmp_path / "out.xml"
    mujoco.mj_saveLastXML(str(file), mujoco.MjModel.from_xml_path(str(case_file("PL-15"))))
    edited = mujoco.MjSpec.from_file(str(case_file("PL-15")))
    edited.worldbody.add_body(name="x").add_geom(size=[0.1, 0, 0])
    env.reload(edited)
    assert (env.model.nbody, env.model.nplugin, forward_force(env)) == (3, 1, 40.0)
    for source, bodies in ((file, 2), (edited.to_xml(), 3)):
        env.reload(source)
        assert (env.model.nbody, env.model.nplugin, forward_force(env)) == (bodies, 1, 40.0)


@pytest.mark.parametrize("python_plugin", [False, True])
def test_a_spec_with_plugins_survives_a_round_trip(python_plugin):
    """PL-15, for a plugin of the wheel and for one declared here."""
    case = "PL-20" if python_plugin else "PL-15"
    name = "two.xml" if python_plugin else "model.xml"
    spec = mujoco.MjSpec.from_file(str(case_file(case, name)))
    spec.compile()
    with MujocoEnv(spec.to_xml()) as env:
        env.step(3)
        assert env.model.nplugin == (2 if python_plugin else 1)
        if python_plugin:
            assert env.data.sensordata.tolist() == [2.0, 2.0]


# -- meshes --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind"),
    [("sdf.xml", mujoco.mjtGeom.mjGEOM_SDF), ("mesh.xml", mujoco.mjtGeom.mjGEOM_MESH)],
)
def test_a_torus_comes_to_rest_as_a_field_and_as_a_mesh(host_case, name, kind):
    """PL-13."""
    env = host_case("PL-13", name)
    assert env.model.geom_type[1] == kind
    env.step(1500)
    assert env.data.body("tor").xpos[2] == pytest.approx(0.15, abs=0.006)


def test_a_mesh_of_an_unknown_format_names_file_extension_and_decoders(host_case, tmp_path):
    """PL-19, before a decoder; under another name, since a decoder stays for the process."""
    env = host_case("PL-01", "good.xml")
    (tmp_path / "a.nobodys").write_bytes(case_file("PL-19", "a.acme").read_bytes())
    model = tmp_path / "model.xml"
    model.write_text(case_file("PL-19", "acme.xml").read_text().replace("a.acme", "a.nobodys"))
    message = refused(env, model)
    assert "a.nobodys" in message
    for extension in ("'.nobodys'", ".obj", ".stl"):
        assert extension in message


def test_a_decoder_makes_the_same_file_load_and_tells_why_it_cannot(host_case):
    """PL-19, with a decoder."""
    file = case_file("PL-19", "acme.xml")
    contents = []

    @engine.decoder(".acme", "model/acme")
    def decode(content, name):
        contents.append(content)
        if len(contents) > 1:
            raise ValueError("bad magic")
        corners = [(0.0, 0.0, 0.0), (0.1, 0.0, 0.0), (0.0, 0.1, 0.0), (0.0, 0.0, 0.1)]
        return corners, [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]

    env = host_case("PL-19", "acme.xml")
    assert env.model.nmeshvert == 4
    assert contents == [case_file("PL-19", "a.acme").read_bytes()]
    other = file.with_name("a.acme").read_bytes() + b"!"
    spec = mujoco.MjSpec.from_string(file.read_text(), assets={"a.acme": other})
    message = refused(env, spec)
    assert "bad magic" in message
    assert "a.acme" in message


def test_meshes_of_the_known_formats_load_out_of_the_box(host_case, tmp_path):
    """PL-19, STL."""
    (tmp_path / "a.stl").write_bytes(tetrahedron_stl())
    model = tmp_path / "model.xml"
    model.write_text(case_file("PL-19", "acme.xml").read_text().replace("a.acme", "a.stl"))
    with MujocoEnv(model) as env:
        assert env.model.nmeshvert == 4

"""Engine extensions under an env: what one raises undoes the step, and names the extension."""

from __future__ import annotations

import itertools
import signal
import sys

import mujoco
import numpy as np
import pytest

from mjhost import engine
from mjhost.env import MujocoEnv
from mjhost.env.records import FaultKind, StepReason
from mjhost.errors import EnginePluginError, FaultError, ModelLoadError
from mjhost.plugins import Plugin

MODEL = """
<mujoco>
  <option timestep="0.01" integrator="{integrator}"/>
  <extension><plugin plugin="{name}">
    <instance name="drive"><config key="until" value="{until}"/></instance>
  </plugin></extension>
  <worldbody><body><joint name="j" axis="0 1 0" damping="0.1"/><geom size="0.1" pos="0.3 0 0"/>
  </body></worldbody>
  <actuator><plugin name="a" joint="j" plugin="{name}" instance="drive"/></actuator>
</mujoco>
"""
_numbers = itertools.count()


@pytest.fixture(scope="module")
def fragile():
    """Name of an actuator that counts its steps and raises from the time ``until`` on."""
    name = f"test.fragile-{next(_numbers)}"

    @engine.plugin(name, capabilities=("actuator",))
    class Fragile:
        until: float = engine.attribute(1e9)
        state_size = 1

        def compute(self, model, data, instance, capability):
            if data.time > self.until:
                raise ValueError("worn out")
            data.actuator_force[self.actuators[0]] = 1.0 + 0.01 * self.state[0]

        def advance(self, model, data, instance):
            self.state[0] += 1.0

    return name


def model_of(fragile, until=1e9, integrator="Euler"):
    return MODEL.format(name=fragile, until=until, integrator=integrator)


def plain(fragile, steps, integrator="Euler"):
    model = mujoco.MjModel.from_xml_string(model_of(fragile, integrator=integrator))
    data = mujoco.MjData(model)
    mujoco.mj_resetData(model, data)
    for _ in range(steps):
        mujoco.mj_step(model, data)
    return data


class Watcher(Plugin):
    def control(self, model, data):
        pass

    def post_step(self, model, data):
        pass


@pytest.mark.parametrize("integrator", ["Euler", "RK4", "implicitfast"])
@pytest.mark.parametrize("plugins", [[], [Watcher]], ids=["alone", "hooked"])
@pytest.mark.parametrize("together", [True, False], ids=["at once", "singly"])
def test_a_step_in_which_an_extension_raises_did_not_happen(fragile, together, plugins, integrator):
    with MujocoEnv(model_of(fragile, 0.073, integrator), plugins=plugins) as env:
        with pytest.raises(EnginePluginError, match="worn out") as caught:
            if together:
                env.step(100)
            for _ in range(100):
                env.step()
        error = caught.value
        assert (error.plugin, error.instance, error.method) == (fragile, 0, "compute")
        assert isinstance(error.__cause__, ValueError)
        good = env.info.step_count
        # RK4 looks ahead to the middle of the step and to its end.
        assert good == (7 if integrator == "RK4" else 8)
        same = plain(fragile, good, integrator)
        assert env.data.qpos.tobytes() == same.qpos.tobytes()
        assert env.data.plugin_state.tolist() == [good]
        assert env.fault is None
        env.reset()
        assert env.step(5).completed == 5


def test_the_physics_thread_stops_with_a_fault_that_names_the_extension(fragile):
    with MujocoEnv(model_of(fragile, 0.5), realtime=None) as env:
        with env.events.subscribe() as events:
            env.resume()
            next(event for event in events if type(event).__name__ == "FaultRaised")
        fault = env.fault
        assert fault.kind is FaultKind.ENGINE_PLUGIN
        assert (fault.plugin, fault.hook) == (fragile, "compute")
        assert "worn out" in fault.message
        assert fault.step == env.info.step_count + 1
        same = plain(fragile, env.info.step_count)
        assert env.data.qpos.tobytes() == same.qpos.tobytes()
        with pytest.raises(FaultError):
            env.step()
        env.reset()
        assert env.step(3).reason is StepReason.COMPLETED


@pytest.mark.parametrize("call", ["forward", "linearize"])
def test_any_engine_call_raises_what_its_extension_raised_and_changes_nothing(fragile, call):
    with MujocoEnv(model_of(fragile, 0.045)) as env:
        env.step(5)
        before = env.data.qpos.copy(), env.data.time, env.data.plugin_state.copy()
        with pytest.raises(EnginePluginError, match="worn out"):
            getattr(env, call)()
        after = env.data.qpos.copy(), env.data.time, env.data.plugin_state.copy()
        assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))


def test_a_rollout_raises_what_its_extension_raised_and_leaves_the_env(fragile):
    with MujocoEnv(model_of(fragile, 0.105)) as env:
        env.step(5)
        before = env.data.qpos.tobytes()
        with pytest.raises(EnginePluginError, match="worn out"):
            env.rollout(np.zeros((20, env.model.nu)))
        assert env.data.qpos.tobytes() == before
        assert env.step(3).completed == 3


def test_a_model_whose_extension_raises_at_once_is_refused_and_the_old_one_stays(fragile):
    with MujocoEnv(model_of(fragile)) as env:
        env.step(4)
        with pytest.raises(ModelLoadError, match="worn out"):
            env.reload(model_of(fragile, -1.0))
        assert env.info.step_count == 4
        assert env.step().completed == 1


def test_a_wrong_attribute_is_refused_with_instance_text_and_expectation(fragile):
    with pytest.raises(ModelLoadError, match=r"drive.*until.*soon"):
        MujocoEnv(model_of(fragile, "soon"))


def test_a_missing_decoder_is_named_with_those_that_exist(tmp_path):
    (tmp_path / "part.nosuch").write_text("?")
    model = tmp_path / "model.xml"
    model.write_text(
        '<mujoco><asset><mesh name="p" file="part.nosuch"/></asset><worldbody>'
        '<geom type="mesh" mesh="p"/></worldbody></mujoco>'
    )
    with pytest.raises(ModelLoadError, match=r"part\.nosuch.*\.obj.*\.stl"):
        MujocoEnv(model)


@pytest.mark.parametrize("suffix", [".off", ".ply"])
def test_bundled_mesh_formats_are_read_without_an_import(tmp_path, suffix):
    points = ["0 0 0", "0.1 0 0", "0 0.1 0", "0 0 0.1"]
    faces = ["3 0 2 1", "3 0 1 3", "3 0 3 2", "3 1 2 3"]
    off = "\n".join(["OFF", "4 4 0", *points, *faces])
    header = "ply\nformat ascii 1.0\nelement vertex 4\n"
    header += "".join(f"property float {axis}\n" for axis in "xyz")
    header += "element face 4\nproperty list uchar int vertex_indices\nend_header\n"
    text = off if suffix == ".off" else header + "\n".join([*points, *faces])
    (tmp_path / f"part{suffix}").write_text(text + "\n")
    model = tmp_path / "model.xml"
    model.write_text(
        f'<mujoco><asset><mesh name="p" file="part{suffix}"/></asset><worldbody><body>'
        '<freejoint/><geom type="mesh" mesh="p"/></body></worldbody></mujoco>'
    )
    with MujocoEnv(model) as env:
        assert env.model.nmeshvert == 4


def test_bundled_engine_plugins_are_there_without_an_import():
    model = MODEL.format(name="mjhost.pid", until=1, integrator="Euler").replace("until", "kp")
    with MujocoEnv(model) as env:
        env.data.ctrl[0] = 0.5
        env.step(3)
        assert env.data.actuator_force[0] > 0


def test_an_unknown_engine_plugin_is_named_with_those_that_exist():
    with pytest.raises(ModelLoadError, match=r"acme\.nothing.*mujoco\.pid"):
        MujocoEnv(MODEL.format(name="acme.nothing", until=1, integrator="Euler"))


def _alarm(_number, _frame):
    raise KeyboardInterrupt


@pytest.mark.slow
@pytest.mark.parametrize("plugins", [[], [Watcher]], ids=["alone", "hooked"])
@pytest.mark.parametrize("together", [True, False], ids=["at once", "singly"])
def test_an_interrupt_surfaces_wherever_it_hits_and_counts_only_whole_steps(
    fragile, together, plugins, collector_off
):
    before, trap = signal.signal(signal.SIGALRM, _alarm), sys.unraisablehook
    try:
        with MujocoEnv(model_of(fragile), plugins=plugins) as env:
            for _ in range(40):
                with pytest.raises(KeyboardInterrupt):
                    signal.setitimer(signal.ITIMER_REAL, 0.002)
                    if together:
                        env.step(1_000_000)
                    for _ in range(1_000_000):
                        env.step()
                assert env.data.plugin_state[0] == env.info.step_count
                assert sys.unraisablehook is trap
                env.reset()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)

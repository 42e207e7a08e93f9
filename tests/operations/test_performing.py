"""Operations done for clients: in which order they are checked, and what they answer."""

from __future__ import annotations

import inspect
import math

import msgspec
import numpy as np
import pytest

import mjhost
from mjhost import (
    DivergenceError,
    LoadingWindowError,
    ModelLoadError,
    MujocoEnv,
    NotAuthorizedError,
    NotLoadedError,
    NotPausedError,
    OptionsRejected,
    Plugin,
    ReentrancyError,
    RequestError,
    UnknownNameError,
)
from mjhost.env.access_control import TOKEN_VARIABLE
from mjhost.operations import OPERATIONS, error_record, operation, perform
from mjhost.operations.responses import plain
from mjhost.options import descriptors
from tests.env.models import BALL, EXPLOSIVE, PENDULUM
from tests.operations.fingerprints import fingerprint
from tests.operations.samples import MODEL, REQUESTS, WITHOUT_ENV, WITHOUT_MODEL

TOKEN = "let me in"


@pytest.fixture(autouse=True)
def no_variable(monkeypatch):
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)


@pytest.fixture
def env():
    with MujocoEnv(MODEL) as env:
        yield env


@pytest.fixture
def guarded():
    with MujocoEnv(MODEL, eval_token=TOKEN) as env:
        yield env


def test_there_is_a_sample_for_every_operation():
    assert set(REQUESTS) == set(OPERATIONS)


@pytest.mark.parametrize("name", OPERATIONS)
def test_answer_is_the_record_of_the_table_and_survives_json(name, store):
    with MujocoEnv(None if name in WITHOUT_MODEL else MODEL) as env:
        answer = perform(env, name, REQUESTS[name], checkpoints=store)
    wanted = OPERATIONS[name].response
    assert type(answer) is wanted
    assert msgspec.json.decode(msgspec.json.encode(answer), type=wanted) == answer


@pytest.mark.parametrize("name", OPERATIONS)
def test_what_changes_something_needs_the_token_before_the_request_is_looked_at(guarded, name):
    if OPERATIONS[name].mutating:
        before = fingerprint(guarded)
        for token in (None, "", "wrong"):
            with pytest.raises(NotAuthorizedError, match=f"^{name} changes the simulation"):
                perform(guarded, name, {"no such field": math.nan}, token=token)
        assert fingerprint(guarded) == before
    with pytest.raises(RequestError):
        perform(guarded, name, {"no such field": 1}, token=TOKEN)


@pytest.mark.parametrize("name", [name for name in OPERATIONS if not OPERATIONS[name].mutating])
def test_what_only_reads_needs_no_token_and_changes_nothing(guarded, name, store):
    guarded.step(3)
    before = fingerprint(guarded)
    perform(guarded, name, REQUESTS[name], checkpoints=store)
    assert fingerprint(guarded) == before


@pytest.mark.parametrize("name", ["stepp", "", "close", "__init__", "set_state", 5, None, "\ud800"])
def test_what_is_not_in_the_table_cannot_be_asked_for(env, name):
    for ask in (lambda: perform(env, name), lambda: operation(name)):
        with pytest.raises(UnknownNameError, match="no operation is named") as caught:
            ask()
        assert error_record(caught.value).code == "unknown_name"


def test_what_asks_the_env_is_not_possible_once_it_is_closed(env, store):
    env.close()
    for name in set(OPERATIONS) - WITHOUT_ENV - {"measured_realtime"}:
        with pytest.raises(mjhost.EnvClosedError):
            perform(env, name, REQUESTS[name], checkpoints=store)


def test_info_is_the_info_of_the_env(env):
    env.step(7)
    answer, info = perform(env, "info"), env.info
    assert plain(answer) == {**plain(info), "fault": None}
    assert answer.generations.model == info.generations.model.value
    assert answer.realtime_measured is None


@pytest.mark.parametrize(
    ("name", "record"),
    [
        ("info", mjhost.EnvInfo),
        ("load", mjhost.LoadReport),
        ("reload", mjhost.ReloadReport),
        ("reload_plugins", mjhost.PluginLoadReport),
        ("plugin_diagnostics", mjhost.PluginDiagnostics),
        ("step", mjhost.StepResult),
    ],
)
def test_answer_has_every_field_of_the_envs_own_record(name, record):
    assert OPERATIONS[name].response.__struct_fields__ == record.__struct_fields__


def test_step_takes_steps_and_says_why_it_ended(env):
    assert perform(env, "step", {"n": 12}).completed == 12
    assert env.info.step_count == 12
    assert perform(env, "step", {"n": 10**9, "timeout": 0.0}).reason == "timeout"
    env.reset()
    perform(env, "stop_at", {"steps": 5})
    assert perform(env, "step", {"n": 10**18}).reason == "limit"


def test_advance_takes_the_steps_that_time_needs(env):
    assert perform(env, "advance", {"seconds": 0.0201}).completed == 11


def test_running_is_what_resume_and_pause_make_of_it(env):
    perform(env, "resume")
    with pytest.raises(NotPausedError) as caught:
        perform(env, "step")
    assert error_record(caught.value).hint == "pause first"
    perform(env, "pause")
    assert env.info.paused
    perform(env, "set_realtime", {"factor": None})
    assert env.realtime is None


def test_options_are_applied_whole_or_not_at_all(env):
    answer = perform(env, "apply_runtime_options", {"patch": {"timestep": 0.001, "solver": "cg"}})
    assert answer.changed == ("timestep", "solver")
    assert answer.epoch == env.generations.options.value
    with pytest.raises(OptionsRejected) as caught:
        perform(env, "apply_runtime_options", {"patch": {"timestep": 0.003, "solvr": "cg"}})
    (problem,) = error_record(caught.value).problems
    assert problem.field == "solvr"
    options = perform(env, "runtime_options").options
    assert (options.timestep, options.solver) == (0.001, "CG")


def test_options_have_every_field_of_the_table(env):
    options = perform(env, "runtime_options").options
    assert plain(options) == plain(env.runtime_options.as_dict())
    table = perform(env, "runtime_option_table").table
    assert [row.name for row in table] == [field.name for field in descriptors()]


def test_a_model_that_cannot_be_loaded_leaves_the_one_that_is_there(env):
    before = fingerprint(env)
    for name in ("load", "reload"):
        with pytest.raises(ModelLoadError):
            perform(env, name, {"source": "<mujoco><worldbody><geom/></worldbody></mujoco>"})
    assert {**fingerprint(env), "load_error": None} == before


def test_a_model_can_be_replaced_and_reset(env):
    answer = perform(env, "reload", {"source": BALL})
    assert answer.generation == env.generations.model.value
    perform(env, "reload", {"source": PENDULUM, "options": "keep"})
    perform(env, "reset", {"keyframe": "up"})
    assert env.data.qpos[0] == 3.1
    perform(env, "reset", {"keyframe": 1, "model": True})
    assert env.data.qpos[0] == 1.5
    with pytest.raises(UnknownNameError, match="did you mean 'side'"):
        perform(env, "reset", {"keyframe": "sides"})


def test_without_a_model_what_needs_one_says_so():
    with MujocoEnv() as env:
        with pytest.raises(NotLoadedError):
            perform(env, "step")
        perform(env, "set_pending_runtime_options", {"patch": {"timestep": 0.004}})
        perform(env, "load", {"source": PENDULUM})
        assert env.runtime_options.timestep == 0.004


def test_state_is_set_and_read_by_name(env):
    perform(env, "set_joint_states", {"joints": {"hinge": {"qpos": 0.3, "qvel": [2]}}})
    joint = perform(env, "joint_states", {"names": ["hinge"]}).joints["hinge"]
    assert (joint.type, joint.qpos, joint.qvel) == ("hinge", (0.3,), (2.0,))
    perform(env, "set_body_state", {"name": "ball", "pos": [1, 2, 3], "angular": [0, 0, 2]})
    ball = perform(env, "body_states").bodies["ball"]
    assert (ball.pos, ball.quat) == ((1.0, 2.0, 3.0), (1.0, 0.0, 0.0, 0.0))
    assert (ball.linear, ball.angular) == ((0.0, 0.0, 0.0), (0.0, 0.0, 2.0))
    assert perform(env, "sensors").sensors["angle"].value == (0.3,)
    perform(env, "set_ctrl", {"controls": {"motor": [0.7]}})
    assert perform(env, "ctrl").controls == {"motor": (0.7,)}
    assert perform(env, "sync_mocap").moved == ("target",)
    assert perform(env, "mocap_states").mocap["target"].pos == (2.0, 2.0, 3.0)
    assert perform(env, "names", {"kind": "body"}).names == ("world", "arm", "ball", "target")


def test_setting_several_joints_is_all_or_nothing(env):
    before = fingerprint(env)
    with pytest.raises(UnknownNameError, match="did you mean 'hinge'"):
        perform(env, "set_joint_states", {"joints": {"hinge": {"qpos": 1}, "hing": {"qpos": 1}}})
    assert fingerprint(env) == before


def test_a_number_of_the_state_that_is_not_finite_is_null(env):
    env.data.sensordata[0] = math.nan
    assert perform(env, "sensors").sensors["angle"].value == (None,)


def test_inverse_and_linearize_are_those_of_the_env(env):
    env.step(5)
    answer = perform(env, "inverse")
    env.inverse()
    assert answer.qfrc_inverse == tuple(env.data.qfrc_inverse)
    found = perform(env, "linearize", {"eps": 1e-5})
    assert np.array_equal(found.A, env.linearize(eps=1e-5).A)


class Broken(Plugin):
    def control(self, model, data):
        raise ValueError("this one is broken")


def test_what_a_plugin_raised_reaches_the_client_with_the_place():
    with MujocoEnv(PENDULUM, plugins=[Broken]) as env:
        with pytest.raises(ValueError, match="broken") as caught:
            perform(env, "step", {"n": 3})
        record = error_record(caught.value)
        assert record.code == "exception"
        assert "ValueError: this one is broken" in record.message
        assert "control" in record.message
        phases = perform(env, "plugin_diagnostics").phases
        assert phases["control"].count == 1
        (state,) = perform(env, "plugin_statistics").plugins
        assert state.hooks["control"].raised == 1
        assert state.reset_time is None


def test_a_fault_is_in_info_and_can_be_cleared():
    with MujocoEnv(EXPLOSIVE) as env:
        env.data.qvel[0] = 1e11
        with pytest.raises(DivergenceError):
            perform(env, "step", {"n": 1000})
        fault = perform(env, "info").fault
        assert fault.kind == "divergence"
        assert fault.step == env.fault.step
        perform(env, "clear_fault")
        assert perform(env, "info").fault is None


def test_from_inside_a_step_reading_is_possible_and_the_rest_refused(env, store):
    seen = {}

    def look(model, data):
        for name in OPERATIONS:
            try:
                perform(env, name, REQUESTS[name], checkpoints=store)
            except ReentrancyError as error:
                seen[name] = error_record(error).code
            except LoadingWindowError:
                raise
            except mjhost.MjhostError:
                seen[name] = "other"

    env.every(500, look)
    env.step()
    refused = {name for name, code in seen.items() if code == "reentrancy"}
    mutating = {name for name, spec in OPERATIONS.items() if spec.mutating}
    assert refused == mutating - {"request_pause"} - WITHOUT_ENV


def test_operations_call_the_env_and_nothing_below():
    for spec in OPERATIONS.values():
        source = inspect.getsource(inspect.getmodule(spec.perform))
        assert "_core" not in source
        assert "mj_" not in source.replace("mj_getState", "")

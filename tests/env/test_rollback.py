from __future__ import annotations

import copy

import mujoco
import numpy as np
import pytest

from mjhost.env import engine_log
from mjhost.env.rollback import CopyBlock, MemoryBlock, StateBlock, VectorBlock, state_extent

INTEGRATION = mujoco.mjtState.mjSTATE_INTEGRATION
SCENE = """
<mujoco>
  <extension><plugin plugin="mujoco.pid"><instance name="pid">
    <config key="kp" value="4"/><config key="ki" value="3"/><config key="kd" value=".1"/>
  </instance></plugin></extension>
  <option timestep="0.004" {option}><flag {flags}/></option>
  <size nuserdata="5"/>
  <worldbody>
    <geom type="plane" size="3 3 .1"/>
    <body name="target" mocap="true" pos="0 1 1">
      <geom size=".05" contype="0" conaffinity="0"/></body>
    <body name="held" pos="0 1 1"><freejoint/><geom size=".1"/></body>
    <body name="box" pos=".4 0 .3" euler="10 20 30"><freejoint/>
      <geom type="box" size=".1 .1 .1"/></body>
    <body name="arm" pos="-.5 0 .6">
      <joint name="hinge" axis="0 1 0" damping=".1"/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/>
      <body pos=".3 0 0">
        <joint name="wrist" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .2 0 0" size=".03"/>
      </body>
    </body>
  </worldbody>
  <equality><weld body1="target" body2="held"/></equality>
  <actuator>
    <general name="slow" joint="hinge" dyntype="filter" dynprm=".2" gainprm="2"/>
    <position name="late" joint="wrist" kp="3" {delay}/>
    <plugin joint="hinge" plugin="mujoco.pid" instance="pid" actdim="1"/>
  </actuator>
  <sensor><jointpos joint="hinge" {delay}/><framelinacc objtype="body" objname="box"/></sensor>
</mujoco>
"""
DELAY = 'delay=".02" nsample="8"'
MODELS = {
    "euler": {},
    "rk4": {"option": 'integrator="RK4"'},
    "implicit": {"option": 'integrator="implicit"'},
    "implicitfast": {"option": 'integrator="implicitfast"'},
    "discrete": {"option": 'integrator="discrete"'},
    "elliptic cg": {"option": 'cone="elliptic" solver="CG"'},
    "delays": {"delay": DELAY},
    "sleep": {"flags": 'sleep="enable"'},
    "ipc": {"option": 'integrator="discrete" solver="CG"', "flags": 'ipc="enable"'},
}
COPIED = {"sleep", "ipc"}


def scene(name: str) -> mujoco.MjModel:
    parts = {"option": "", "flags": 'energy="disable"', "delay": ""} | MODELS[name]
    return mujoco.MjModel.from_xml_string(SCENE.format(**parts))


def drive(data: mujoco.MjData, step: int) -> None:
    data.ctrl[:] = 0.3 * np.sin(0.05 * step + np.arange(data.ctrl.size))
    data.mocap_pos[0, 2] = 1 + 0.1 * np.sin(0.02 * step)
    data.xfrc_applied[2, 0] = np.cos(0.1 * step)
    data.userdata[step % 5] = step
    if step % 40 == 0:
        data.eq_active[0] = not data.eq_active[0]


def run(model: mujoco.MjModel, data: mujoco.MjData, first: int, last: int) -> None:
    for step in range(first, last):
        drive(data, step)
        mujoco.mj_step(model, data)


def everything(model: mujoco.MjModel, data: mujoco.MjData) -> list[bytes]:
    state = np.empty(mujoco.mj_stateSize(model, INTEGRATION))
    mujoco.mj_getState(model, data, state, INTEGRATION)
    return [state.tobytes(), data.sensordata.tobytes(), data.qacc.tobytes(), data.xpos.tobytes()]


def poison(data: mujoco.MjData) -> None:
    """What a divergence and a bad hook may do to the state before anybody notices."""
    data.qvel[:] = 3
    data.act[:] = 9
    data.ctrl[:] = -1
    data.mocap_pos[:] = 4
    data.mocap_quat[:] = (0, 1, 0, 0)
    data.eq_active[:] = np.logical_not(data.eq_active)
    data.userdata[:] = -7
    data.qfrc_applied[:] = 1
    data.xfrc_applied[:] = 2
    data.qpos[0] = np.nan


def diverge(model: mujoco.MjModel, data: mujoco.MjData) -> None:
    poison(data)
    scope = {"__name__": "mjhost.probe", "mujoco": mujoco, "model": model, "data": data}
    with engine_log.captured():
        exec("mujoco.mj_step(model, data)", scope)
    assert data.warning[mujoco.mjtWarning.mjWARN_BADQPOS].number == 1
    assert data.time <= 2 * model.opt.timestep  # the engine has reset itself


@pytest.mark.parametrize("name", MODELS)
def test_after_a_divergence_the_run_goes_on_as_if_there_had_been_none(name):
    model = scene(name)
    data, undisturbed = mujoco.MjData(model), mujoco.MjData(model)
    run(model, data, 0, 90)
    run(model, undisturbed, 0, 90)
    block = StateBlock.for_options(model, data)
    assert block.strategy == ("copy" if name in COPIED else "block")
    for turn in range(3):
        block.save()
        diverge(model, data)
        block.restore()
        mujoco.mj_forward(model, data)
        first = 90 + 30 * turn
        run(model, data, first, first + 30)
        run(model, undisturbed, first, first + 30)
        assert everything(model, data) == everything(model, undisturbed)


@pytest.mark.parametrize("name", MODELS)
def test_a_restored_state_is_the_saved_one_bit_for_bit(name):
    model = scene(name)
    data = mujoco.MjData(model)
    run(model, data, 0, 50)
    block = StateBlock.for_options(model, data)
    block.save()
    before, time = everything(model, data)[0], data.time
    diverge(model, data)
    block.restore()
    assert everything(model, data)[0] == before
    assert (data.time, block.saved_time) == (time, time)
    mujoco.mj_forward(model, data)
    assert everything(model, data)[0] == before


def test_a_sleeping_body_sleeps_on_after_a_roll_back():
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><option><flag sleep="enable"/></option><worldbody>'
        '<geom type="plane" size="3 3 .1"/>'
        '<body pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>'
        '<body pos="1 0 2"><freejoint/><geom size=".1"/></body>'
        "</worldbody></mujoco>"
    )
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, 300)
    assert data.ntree_awake == 1
    undisturbed = copy.copy(data)
    block = StateBlock.for_options(model, data)
    block.save()
    data.qpos[7] = np.nan
    scope = {"__name__": "mjhost.probe", "mujoco": mujoco, "model": model, "data": data}
    with engine_log.captured():
        exec("mujoco.mj_step(model, data)", scope)
    block.restore()
    mujoco.mj_forward(model, data)
    assert data.ntree_awake == 1
    mujoco.mj_step(model, data, 200)
    mujoco.mj_step(model, undisturbed, 200)
    assert everything(model, data) == everything(model, undisturbed)


@pytest.mark.parametrize("integrator", ["Euler", "RK4", "implicitfast"])
def test_an_exception_out_of_the_middle_of_a_step_leaves_no_trace(integrator):
    class OwnError(Exception):
        pass

    def contactfilter(model, data, first, second):
        raise OwnError

    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><option integrator="{integrator}"/><worldbody>'
        '<geom type="plane" size="1 1 1"/>'
        '<body pos="0 0 .15"><freejoint/><geom size=".1"/></body></worldbody></mujoco>'
    )
    data, undisturbed = mujoco.MjData(model), mujoco.MjData(model)
    block = StateBlock.for_options(model, data)
    for _ in range(40):
        block.save()
        mujoco.set_mjcb_contactfilter(contactfilter)
        try:
            with pytest.raises(OwnError):
                mujoco.mj_step(model, data)
        finally:
            mujoco.set_mjcb_contactfilter(None)
        block.restore()
        mujoco.mj_forward(model, data)
        mujoco.mj_step(model, data)
        mujoco.mj_step(model, undisturbed)
    assert everything(model, data) == everything(model, undisturbed)
    copy.copy(data)  # refused by the engine while its stack is in use


@pytest.mark.parametrize("kind", [MemoryBlock, VectorBlock, CopyBlock])
def test_every_strategy_is_exact_where_all_apply(kind):
    model = scene("delays")
    data, undisturbed = mujoco.MjData(model), mujoco.MjData(model)
    run(model, data, 0, 60)
    run(model, undisturbed, 0, 60)
    block = kind(model, data)
    diverge(model, data)
    block.restore()
    mujoco.mj_forward(model, data)
    run(model, data, 60, 120)
    run(model, undisturbed, 60, 120)
    assert everything(model, data) == everything(model, undisturbed)


def test_a_new_block_holds_the_state_it_was_made_in():
    model = scene("euler")
    data = mujoco.MjData(model)
    run(model, data, 0, 10)
    before = everything(model, data)[0]
    block = StateBlock.for_options(model, data)
    run(model, data, 10, 20)
    block.restore()
    assert everything(model, data)[0] == before


def test_a_state_can_be_restored_more_than_once():
    model = scene("euler")
    data = mujoco.MjData(model)
    block = StateBlock.for_options(model, data)
    before = everything(model, data)[0]
    for last in (5, 9):
        run(model, data, 0, last)
        block.restore()
        assert everything(model, data)[0] == before


def test_the_choice_follows_the_options():
    model = scene("discrete")
    data = mujoco.MjData(model)
    block = StateBlock.for_options(model, data)
    assert (block.strategy, block.suits_options) == ("block", True)
    model.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_SLEEP)
    assert not block.suits_options
    assert StateBlock.for_options(model, data).strategy == "copy"
    model.opt.enableflags = 0
    assert StateBlock.for_options(model, data).strategy == "block"


def test_the_block_spans_every_state_array_and_little_else():
    model = scene("delays")
    data = mujoco.MjData(model)
    extent = state_extent(model, data)
    for array in (data.qpos, data.act, data.ctrl, data.eq_active, data.userdata, data.history):
        assert array.size
        assert array.ctypes.data in extent
        assert array.ctypes.data + array.nbytes - 1 in extent
    assert len(extent) < 4 * 8 * mujoco.mj_stateSize(model, INTEGRATION)


@pytest.mark.parametrize(
    "xml", ["<mujoco/>", "<mujoco><worldbody><geom size='.1'/></worldbody></mujoco>"]
)
def test_a_model_without_state_rolls_its_time_back(xml):
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    block = StateBlock.for_options(model, data)
    mujoco.mj_step(model, data, 3)
    block.save()
    time = data.time
    mujoco.mj_step(model, data, 3)
    block.restore()
    assert data.time == time > 0


def test_views_of_the_data_stay_valid_over_a_roll_back():
    for name in ("euler", "sleep"):
        model = scene(name)
        data = mujoco.MjData(model)
        qpos, address = data.qpos, data.qpos.ctypes.data
        block = StateBlock.for_options(model, data)
        run(model, data, 0, 5)
        block.restore()
        assert data.qpos.ctypes.data == address
        assert np.shares_memory(qpos, data.qpos)

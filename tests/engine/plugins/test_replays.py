"""What a failing method leaves behind: the same, whether it is compiled or not."""

from typing import NamedTuple

import mujoco
import numpy as np
import pytest

from mjhost import engine
from mjhost.engine import failures
from mjhost.errors import EnginePluginError

pytest.importorskip("numba")
pytestmark = pytest.mark.slow


class Memo(NamedTuple):
    calls: "float64[:]"  # noqa: F821


def late(name, where, compiled):
    """A plugin that writes wherever it can, and raises in ``where`` after a while."""

    class Late:
        state_size = 2
        raises_in_compute = where == "compute"
        raises_in_advance = where == "advance"
        raises_in_act_dot = where == "actuator_act_dot"

        def init(self, model, data, instance) -> Memo:
            return Memo(np.zeros(2))

        def actuator_act_dot(self, model, data, instance):
            data.act_dot[0] += 1.0
            if self.raises_in_act_dot and data.time > 0.003:
                raise ValueError("late")

        def compute(self, model, data, instance, capability):
            self.memo.calls[0] += 1.0
            data.qfrc_passive[0] += 1.0 + data.time
            data.userdata[0] += 1.0
            for k in range(data.ncon):
                data.contact[k].dist -= 1.0
            if self.raises_in_compute and data.time > 0.003:
                data.time += 100.0
                raise ValueError("late")

        def advance(self, model, data, instance):
            self.state[0] += 1.0
            data.qvel[0] += 0.25
            if self.raises_in_advance and data.time > 0.003:
                raise ValueError("late")

    engine.plugin(name, ("passive", "actuator"), compiled=compiled)(Late)


def model_of(name):
    return mujoco.MjModel.from_xml_string(f"""
    <mujoco>
      <size nuserdata="1"/>
      <extension><plugin plugin="{name}"><instance name="one"/></plugin></extension>
      <worldbody>
        <geom type="plane" size="1 1 .1"/>
        <body pos="0 0 .05"><plugin instance="one"/>
          <joint name="j" type="slide" axis="0 0 1"/><geom size=".1"/></body>
      </worldbody>
      <actuator><plugin joint="j" instance="one" actdim="1"/></actuator>
    </mujoco>""")


def numbers_of(data):
    """Every array and number of the data.

    But what is an address, a time of the wall, the number of the plugin, or left uninitialised in
    the arena by this solver.
    """
    passed = {"timer", "plugin", "plugin_data", "maxuse_stack", "maxuse_arena"}
    passed |= {name for name in dir(data) if name.startswith(("efc_AR", "efc_J_", "efc_Y", "efm_"))}
    found = {}
    for name in dir(data):
        value = None if name.startswith("_") or name in passed else getattr(data, name)
        if isinstance(value, np.ndarray | int | float):
            found[name] = np.asarray(value).tobytes()
    found["contact.dist"] = data.contact.dist.tobytes()
    found["warning"] = str(data.warning.number.tolist() + data.warning.lastinfo.tolist())
    return found


@pytest.mark.parametrize("where", ["compute", "advance", "actuator_act_dot"])
def test_a_compiled_method_that_fails_leaves_what_the_same_python_method_leaves(name, where):
    left = []
    for compiled in (False, True):
        own = f"{name}.{compiled}"
        late(own, where, compiled)
        model = model_of(own)
        data = mujoco.MjData(model)
        with pytest.raises(EnginePluginError, match="late") as info:
            mujoco.mj_step(model, data, 5)
        assert isinstance(info.value.__cause__, ValueError)
        memo = engine.registry.plugin(own).lives.known(data._address, 0).obj.memo
        left.append(numbers_of(data) | {"memo": memo.calls.tobytes()})
    differing = [key for key in left[0] if left[0][key] != left[1][key]]
    assert not differing


def test_a_kept_failure_marks_its_data_after_the_replay(name):
    """Where the failure cannot be raised, its mark must survive what is put back."""
    from mujoco import rollout

    late(name, "advance", compiled=True)
    model = model_of(name)
    datas = [mujoco.MjData(model) for _ in range(2)]
    size = mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    with rollout.Rollout(nthread=2) as pool:
        pool.rollout([model] * 4, datas, np.zeros((4, size)), nstep=5)
    failed = [d for d in datas if d.warning[failures.WARNING].lastinfo == failures.MARK]
    assert failed
    for data in failed:
        with pytest.raises(EnginePluginError, match="late"):
            engine.check(data)
    engine.check()


def test_a_compiled_method_whose_failure_cannot_be_repeated_says_what_to_do(name):
    def once(compiled):
        class Once:
            state_size = 1

            def compute(self, model, data, instance, capability):
                pass

            def advance(self, model, data, instance):
                self.state[0] += 1.0
                if self.state[0] == 3.0:
                    raise ValueError("the third")

        engine.plugin(name, ("passive",), compiled=compiled)(Once)

    once(compiled=True)
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><extension><plugin plugin="{name}"><instance name="one"/></plugin></extension>'
        '<worldbody><body><plugin instance="one"/><freejoint/><geom size=".1"/></body></worldbody>'
        "</mujoco>"
    )
    data = mujoco.MjData(model)
    with pytest.raises(EnginePluginError, match=r"compiled=False to see what it raises"):
        mujoco.mj_step(model, data, 5)
    assert data.plugin_state.tolist() == [3.0]


def test_a_compiled_callback_that_fails_writes_once():
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><size nuserdata="1"/><worldbody><body><freejoint/><geom size=".1"/></body>'
        "</worldbody></mujoco>"
    )

    @engine.callback("passive", compiled=True)
    def push(model, data):
        data.userdata[0] += 1.0
        if data.userdata[0] > 2.5:
            raise ValueError("enough")

    for way in ("attached", "scope"):
        data = mujoco.MjData(model)
        with (
            pytest.raises((EnginePluginError, ValueError), match="enough"),
            push.attach(model, data) if way == "attached" else engine.callback_scope(passive=push),
        ):
            mujoco.mj_step(model, data, 5)
        assert data.userdata.tolist() == [3.0], way

"""Models with engine plugins written in Python: their state goes on, wherever it is restored."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from mjhost import MujocoEnv, engine
from mjhost.checkpoint import Checkpoint
from tests.checkpoint.models import drive


@engine.plugin("tests.checkpoint.drift", capabilities=("passive",))
class Drift:
    """A push that grows with every step: its state is in ``plugin_state``."""

    state_size = 1

    def reset(self, model, data, instance):
        self.state[0] = 0.1

    def compute(self, model, data, instance, capability):
        data.qfrc_passive[0] += self.state[0]

    def advance(self, model, data, instance):
        self.state[0] = 1.01 * self.state[0] + 0.001 * data.qvel[0]


@engine.plugin("tests.checkpoint.integral", capabilities=("actuator",))
class Integral:
    """A controller whose state is an activation, which the engine integrates."""

    def actuator_act_dot(self, model, data, instance):
        data.act_dot[self.actadr[0]] = data.ctrl[self.ctrladr[0]] - data.qpos[0]

    def compute(self, model, data, instance, capability):
        data.actuator_force[self.outadr[0]] = 3 * data.act[self.actadr[0]]


@engine.plugin("tests.checkpoint.impure", capabilities=("passive",))
class Impure:
    """Breaks the rules: a forward, which must change nothing, moves its state."""

    state_size = 1

    def compute(self, model, data, instance, capability):
        self.state[0] += 1
        data.qfrc_passive[0] += 1e-3 * self.state[0]


def plugged(name, *, actuator=False):
    where = (
        f'<actuator><plugin joint="slide" plugin="{name}" instance="i" actdim="1"/></actuator>'
        if actuator
        else "<actuator><motor joint='slide'/></actuator>"
    )
    carried = "" if actuator else '<plugin instance="i"/>'
    return f"""
    <mujoco>
      <extension><plugin plugin="{name}"><instance name="i"/></plugin></extension>
      <worldbody>
        <body name="cart">
          <joint name="slide" type="slide" axis="1 0 0" stiffness="4"/>
          <geom size=".1"/>{carried}
        </body>
      </worldbody>
      {where}
    </mujoco>"""


MODELS = {
    "state": plugged("tests.checkpoint.drift"),
    "act": plugged("tests.checkpoint.integral", actuator=True),
    "state in compute": plugged("tests.checkpoint.impure"),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_state_of_an_engine_plugin_goes_on(name, tmp_path):
    with MujocoEnv(MODELS[name]) as env:
        drive(env, 0, 40)
        checkpoint = env.checkpoint()
        checkpoint.save(tmp_path / "it.ckpt")
        expected = drive(env, 40, 100)
        env.restore(checkpoint)
        assert drive(env, 40, 100) == expected
    with MujocoEnv(MODELS[name]) as fresh:
        fresh.restore(Checkpoint.load(tmp_path / "it.ckpt"))
        assert drive(fresh, 40, 100) == expected


REGISTERED_IN_AN_ORDER = """
import sys
from mjhost import MujocoEnv, engine
from mjhost.checkpoint import Checkpoint

def declare(name, gain):
    def compute(self, model, data, instance, capability):
        data.qfrc_passive[0] -= gain * data.qpos[0]
    engine.plugin(name, capabilities=("passive",))(type("It", (), {"compute": compute}))

for name, gain in sorted({"a.one": 1.0, "a.two": 2.0}.items(), reverse=sys.argv[2] == "back"):
    declare(name, gain)
model = '''%s'''
with MujocoEnv(model) as env:
    if sys.argv[3] == "take":
        env.step(10)
        env.checkpoint().save(sys.argv[1])
    else:
        env.restore(Checkpoint.load(sys.argv[1]))
    print(env.info.step_count, env.data.qpos[0].hex())
"""


@pytest.mark.slow
def test_the_order_in_which_a_process_registers_plugins_does_not_matter(tmp_path):
    program = textwrap.dedent(REGISTERED_IN_AN_ORDER % plugged("a.two"))

    def run(*words):
        done = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path / "it.ckpt"), *words],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert run("forth", "take") == run("back", "restore")

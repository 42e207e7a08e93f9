"""Plugins made of functions, sites to fail at, and runs to compare with."""

from __future__ import annotations

import time

import mujoco
import numpy as np

from mjhost import MujocoEnv
from mjhost.env.events import FaultRaised, PluginFailed, StepLimitReached
from mjhost.plugins import Plugin

DT = 0.002
WAIT_S = 20.0

# Something for every kind of callback: bodies that touch, user actuators, sensors at all stages.
RICH = f"""
<mujoco>
  <option integrator="{{integrator}}" timestep="{DT}"/>
  <worldbody>
    <body>
      <joint name="a" axis="0 1 0" damping="2"/>
      <geom size=".2" pos=".1 .1 0" mass="1" margin="1"/>
    </body>
    <body pos=".1 0 0">
      <joint name="b" axis="1 0 0" damping="2"/>
      <geom size=".2" pos=".1 .1 0" mass="1" margin="1"/>
    </body>
  </worldbody>
  <actuator>
    <general name="u" joint="a" dyntype="user" gaintype="user" biastype="user" actdim="1"/>
    <motor name="motor" joint="b"/>
  </actuator>
  <sensor>
    <user dim="1" needstage="pos"/><user dim="1" needstage="vel"/><user dim="1" needstage="acc"/>
    <jointpos joint="a"/>
  </sensor>
</mujoco>
"""
EULER = RICH.format(integrator="Euler")
RK4 = RICH.format(integrator="RK4")

PLUGIN_HOOKS = ("pre_step", "control", "passive", "last_stage", "post_step")
RATED_HOOKS = ("rated pre_step", "rated post_step")
KINDS = (
    "control",
    "passive",
    "sensor",
    "contactfilter",
    "act_dyn",
    "act_gain",
    "act_bias",
    "time",
)
CALLBACKS = tuple(f"callback {kind}" for kind in KINDS)
SITES = (*PLUGIN_HOOKS, *RATED_HOOKS, "task", *CALLBACKS)


class Boom(Exception):
    """What tests raise in hooks."""


def plugin(name="Probe", *, rate_hz=None, **methods):
    """A plugin class; its methods are the given functions, which take no ``self``."""
    body = {hook: _method(function) for hook, function in methods.items()}
    return type(name, (Plugin,), {"rate_hz": rate_hz, "__module__": __name__, **body})


def _method(function):
    return lambda _self, *arguments: function(*arguments)


def neutral(kind, function):
    """``function`` as a callback of ``kind`` that changes nothing."""
    result = {"act_gain": 1.0, "act_dyn": 0.0, "act_bias": 0.0, "contactfilter": 0, "time": 0.0}

    def callback(*arguments):
        function(*arguments)
        return result.get(kind)

    shapes = {
        "sensor": lambda m, d, stage: callback(m, d, stage),
        "contactfilter": lambda m, d, one, two: callback(m, d, one, two),
        "time": lambda: callback(),
        "control": lambda m, d: callback(m, d),
        "passive": lambda m, d: callback(m, d),
    }
    return shapes.get(kind, lambda m, d, index: callback(m, d, index))


class Fuse:
    """Raises while it is armed, and counts how often it did."""

    def __init__(self, error=Boom):
        self.armed = False
        self.blown = 0
        self._error = error

    def __call__(self, *_):
        if self.armed:
            self.blown += 1
            raise self._error("blown")


def drive(_model, data):
    """A control that makes the run depend on every step before."""
    data.ctrl[1] = np.sin(40 * data.time) + 0.1 * data.qvel[1]


def at_site(site, function, xml=EULER, **arguments):
    """An env with a driving plugin, in which ``function`` is called at ``site`` in every step."""
    plugins, kind = [plugin("Drive", control=drive)], None
    if site in PLUGIN_HOOKS:
        plugins.append(plugin("Probe", **{site: function}))
    elif site in RATED_HOOKS:
        plugins.append(plugin("Probe", rate_hz=1 / DT, **{site.split()[1]: function}))
    elif site != "task":
        kind = site.split()[1]
    env = MujocoEnv(xml, plugins=plugins, realtime=None, **arguments)
    if site == "task":
        env.every(1 / DT, function, name="probe task")
    elif kind is not None:
        env.callbacks.add(kind, neutral(kind, function))
    return env


def state(env):
    """The integration state, bit for bit."""
    spec = int(mujoco.mjtState.mjSTATE_INTEGRATION)
    vector = np.empty(mujoco.mj_stateSize(env.model, spec))
    mujoco.mj_getState(env.model, env.data, vector, spec)
    return vector.tobytes()


def undisturbed(steps, xml=EULER):
    """The state after ``steps`` of a run in which nothing fails."""
    with MujocoEnv(xml, plugins=[plugin("Drive", control=drive)]) as env:
        env.step(steps)
        return state(env)


def wait_for(subscription, kind):
    """The next event of ``kind``."""
    deadline = time.monotonic() + WAIT_S
    while True:
        event = subscription.get(deadline - time.monotonic())
        assert event is not None, f"no {kind.__name__} within {WAIT_S} s"
        if isinstance(event, kind):
            return event


def run_into_fault(env):
    """Lets the physics thread run until something stops it; the fault."""
    with env.events.subscribe() as events:
        env.resume()
        return wait_for(events, FaultRaised).fault


def run_until(env, step):
    """Lets the physics thread run to exactly that step."""
    with env.events.subscribe() as events:
        env.stop_at(steps=step)
        env.resume()
        wait_for(events, StepLimitReached)


def failures(events):
    """``(plugin, hook)`` of each failure that was told."""
    return [(e.plugin, e.hook) for e in events.drain() if isinstance(e, PluginFailed)]


def rated(log, rate_hz):
    """A plugin that writes down at which step boundary each of its hooks ran."""
    return plugin(
        "Rated",
        rate_hz=rate_hz,
        pre_step=lambda _m, d: log.append(("pre", round(d.time / DT))),
        post_step=lambda _m, d: log.append(("post", round(d.time / DT))),
    )


def own_forward(env):
    """A forward that a user makes himself, in an access scope."""
    with env.access() as (model, data):
        mujoco.mj_forward(model, data)


WAYS = {
    "step(n)": lambda env, n: env.step(n),
    "step()": lambda env, n: [env.step() for _ in range(n)],
    "step_async": lambda env, n: env.step_async(n).result(20),
    "advance": lambda env, n: env.advance(n * DT),
    "running": lambda env, n: run_until(env, env.info.step_count + n),
}
"""Every way to take ``n`` steps."""

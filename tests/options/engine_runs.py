"""A walk through accepted options on a real engine: ``python engine_runs.py SEED COUNT``.

Runs in a process of its own, since what it looks for are crashes and hangs. Prints one JSON record
with what was accepted, refused and refused by the engine; the last request goes to stderr before it
is run, so that a crash can be explained.
"""

from __future__ import annotations

import json
import math
import random
import sys

import mujoco

from mjhost.options import Kind, OptionBlock, descriptors, prepare_runtime_options

SCENE = """
<mujoco>
  <asset><mesh name="m" vertex="0 0 0 .2 0 0 0 .2 0 0 0 .2"/></asset>
  <worldbody>
    <geom type="plane" size="5 5 .1"/>
    <body pos="0 0 .09"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
    <body pos=".02 0 .28"><freejoint/><geom type="box" size=".1 .1 .1" fluidshape="ellipsoid"/>
      <site name="s"/></body>
    <body pos=".4 0 .1"><freejoint/><geom type="mesh" mesh="m"/></body>
    <body pos=".5 0 .2"><freejoint/><geom type="mesh" mesh="m"/></body>
    <body pos="1 0 .3" gravcomp=".5">
      <joint name="h" axis="0 1 0" range="-10 10" frictionloss=".1" damping=".1" stiffness="1"/>
      <geom type="ellipsoid" size=".1 .05 .2"/>
      <body name="tip" pos="0 0 .3">
        <joint name="k" axis="0 1 0"/><geom type="capsule" size=".05 .1"/></body>
    </body>
  </worldbody>
  <equality><connect body1="tip" anchor="0 0 .1"/></equality>
  <tendon><fixed name="t" limited="true" range="-1 1"><joint joint="h" coef="1"/></fixed></tendon>
  <actuator>
    <motor joint="h" ctrlrange="-1 1" group="1"/>
    <general joint="k" dyntype="filter" dynprm=".1" biastype="affine" biasprm="0 -1 0" group="2"/>
  </actuator>
  <sensor><magnetometer site="s"/><accelerometer site="s"/></sensor>
</mujoco>
"""


def inside(field, chance):
    """A value of the field's domain, often at its ends."""
    match field.kind:
        case Kind.BOOL:
            return chance.random() < 0.5
        case Kind.ENUM:
            return chance.choice(field.choices)
        case Kind.GROUPS:
            return chance.sample(range(31), chance.randrange(4))
        case Kind.ARRAY:
            each = field.domain * field.size if len(field.domain) == 1 else field.domain
            return [number(part, chance) for part in each]
    value = number(field.domain[0], chance)
    return int(value) if field.kind is Kind.INT else value


def number(part, chance):
    """A finite number of a range: an end, one in between, or a huge one if there is no end."""
    low = part.low if math.isfinite(part.low) else -1e308
    high = part.high if math.isfinite(part.high) else 1e308
    end = chance.random()
    if end < 0.15:
        return math.nextafter(low, high) if part.low_open else low
    if end < 0.3:
        return math.nextafter(high, low) if part.high_open else high
    if end < 0.5 and low <= 0 <= high:
        return chance.choice((1e-3, 0.3, 1.0)) if high >= 1 else high / 2
    return chance.uniform(max(low, -100), min(high, 100))


def anywhere(field, chance):
    """A value that is mostly outside of what is sensible."""
    wild = (0, -1, 1e-300, 1e300, math.nan, math.inf, 2**31 - 1, -(2**31), 7, None, True, "x")
    value = chance.choice(wild)
    return [value] * field.size if field.kind is Kind.ARRAY else value


def request(chance):
    """A few fields; one in twenty values is wild."""
    fields = chance.sample(descriptors(), chance.randint(1, 6))
    return {
        field.name: (anywhere if chance.random() < 0.05 else inside)(field, chance)
        for field in fields
    }


def walk(seed, count):
    """Apply requests one after the other, three steps after each that was accepted."""
    chance = random.Random(seed)
    model = mujoco.MjModel.from_xml_string(SCENE)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    block = OptionBlock(model.opt)
    start = block.raw()
    tally = {"accepted": 0, "refused": 0, "fatal": []}
    for index in range(count):
        if index % 5 == 0:
            block.restore(start)
            mujoco.mj_resetData(model, data)
            mujoco.mj_forward(model, data)
        changes = request(chance)
        result = prepare_runtime_options(block.read(), changes, raise_on_error=False)
        if not result.ok:
            tally["refused"] += 1
            continue
        tally["accepted"] += 1
        print(changes, file=sys.stderr, flush=True)
        block.write(result.snapshot)
        try:
            mujoco.mj_step(model, data, nstep=3)
        except mujoco.FatalError as error:
            tally["fatal"].append(f"{error}: {block.read()}")
            block.restore(start)
            data = mujoco.MjData(model)
            mujoco.mj_forward(model, data)
    return tally


if __name__ == "__main__":
    print(json.dumps(walk(int(sys.argv[1]), int(sys.argv[2]))))

# ruff: noqa: F821 - array annotations are texts, not names
"""The compiled path and the Python path compute the same bits from the same source."""

import enum
import math
from typing import NamedTuple

import mujoco
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mjhost import engine
from mjhost.engine import mj
from tests.engine.compiled.kit import Twins

pytestmark = pytest.mark.slow

ANY = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.floats(-10, 10),
    st.integers(-5, 5).map(float),
)
FINITE = st.floats(-1e3, 1e3)
MANY = settings(deadline=None, max_examples=150)


def made(cls, **config):
    """A fixture that compiles ``cls`` once for the module."""

    @pytest.fixture(scope="module", name=cls.__name__.lower())
    def twins(_own_cache):
        return Twins(cls, **config)

    return twins


# -- scalars -------------------------------------------------------------------------------------


class Arithmetic:
    def compute(self, model, data, instance, capability):
        x = float(data.userdata[0])
        y = float(data.userdata[1])
        out = data.userdata[2:]
        out[0] = x + y
        out[1] = x - y * x
        out[2] = -x
        out[3] = abs(y)
        out[4] = min(x, y)
        out[5] = max(x, y, 0.5)
        out[6] = x if x < y else -y
        out[7] = (x <= y) + 2 * (x == y) + 4 * (x != y)
        out[8] = x * x + y * y
        out[9] = math.fabs(x) + math.copysign(1.0, y)
        out[10] = math.atan2(x, y)
        out[11] = math.atan(x) + math.tanh(y)
        out[12] = float(bool(x) and not bool(y))
        out[15] = int(x < y) + round(y > x)
        out[13] = float(math.isnan(x)) + float(math.isinf(y)) + float(math.isfinite(x))
        out[14] = math.erf(y) + math.radians(x)


arithmetic = made(Arithmetic)


@MANY
@given(x=ANY, y=ANY)
def test_arithmetic_gives_the_same_bits(arithmetic, x, y):
    arithmetic.agree([x, y])


class Divides:
    """Each of these may raise; the first number says which is done."""

    def compute(self, model, data, instance, capability):
        which = data.userdata[0]
        x = float(data.userdata[1])
        y = float(data.userdata[2])
        if which == 1:
            data.userdata[3] = x / y
        elif which == 2:
            data.userdata[3] = x // y
        elif which == 3:
            data.userdata[3] = x % y
        elif which == 4:
            data.userdata[3] = math.fmod(x, y)
        elif which == 5:
            data.userdata[3] = int(x)
        elif which == 6:
            data.userdata[3] = round(x)
        elif which == 7:
            data.userdata[3] = math.floor(x)
        elif which == 8:
            data.userdata[3] = math.ceil(x)
        elif which == 9:
            data.userdata[3] = math.trunc(x)


divides = made(Divides)


@MANY
@given(which=st.integers(1, 4), x=ANY, y=ANY)
def test_division_gives_the_same_bits_or_both_raise(divides, which, x, y):
    divides.agree([which, x, y])


@MANY
@given(which=st.integers(5, 9), x=st.one_of(FINITE, st.just(math.nan), st.just(math.inf)))
def test_whole_numbers_are_the_same_or_both_raise(divides, which, x):
    divides.agree([which, x])


def test_a_float_that_64_bits_do_not_hold_raises(divides):
    divides.set([5, 1e19])
    assert divides.run_compiled() == 1


class Powers:
    def compute(self, model, data, instance, capability):
        which = data.userdata[0]
        x = float(data.userdata[1])
        y = float(data.userdata[2])
        if which == 1:
            data.userdata[3] = x**2
            data.userdata[4] = x**3
            x **= 2
            data.userdata[5] = x
        elif which == 2:
            data.userdata[3] = abs(x) ** y
        elif which == 3:
            data.userdata[3] = math.pow(x, y)
        elif which == 4:
            data.userdata[3] = pow(abs(x), 0.5)
        elif which == 5:
            data.userdata[3] = x**-1
        elif which == 6:
            data.userdata[3] = int(y) ** 2 + 2 ** int(abs(y))


powers = made(Powers)


@MANY
@given(which=st.integers(1, 4), x=FINITE, y=st.floats(-20, 20))
@example(which=1, x=-0.7319392164068752, y=0.0)
@example(which=3, x=-2.0, y=0.5)
@example(which=2, x=0.0, y=-1.0)
def test_powers_give_the_same_bits_or_both_raise(powers, which, x, y):
    powers.agree([which, x, y])


@MANY
@given(which=st.integers(5, 6), x=FINITE, y=st.integers(-20, 20))
def test_whole_powers_give_the_same_bits_or_both_raise(powers, which, x, y):
    powers.agree([which, x, y])


def test_the_square_is_the_c_librarys_pow_where_that_is_not_x_times_x(powers):
    values = [x for x in np.random.default_rng(1).normal(size=20_000).tolist() if x**2 != x * x]
    if not values:
        pytest.skip("this C library rounds every square correctly")
    for x in values[:20]:
        powers.agree([1, x])


class Functions:
    def compute(self, model, data, instance, capability):  # noqa: PLR0912 - one per function
        which = data.userdata[0]
        x = float(data.userdata[1])
        y = 0.0
        if which == 0:
            y = math.acos(x)
        elif which == 1:
            y = math.acosh(x)
        elif which == 2:
            y = math.asin(x)
        elif which == 3:
            y = math.atanh(x)
        elif which == 4:
            y = math.cos(x)
        elif which == 5:
            y = math.cosh(x)
        elif which == 6:
            y = math.exp(x)
        elif which == 7:
            y = math.expm1(x)
        elif which == 8:
            y = math.log(x)
        elif which == 9:
            y = math.log10(x)
        elif which == 10:
            y = math.log1p(x)
        elif which == 11:
            y = math.log2(x)
        elif which == 12:
            y = math.sin(x)
        elif which == 13:
            y = math.sinh(x)
        elif which == 14:
            y = math.sqrt(x)
        elif which == 15:
            y = math.tan(x)
        data.userdata[2] = y


@pytest.fixture(scope="module")
def functions(_own_cache):
    # The compiler of models calls it with zeros, for which acos is fine.
    return Twins(Functions)


@MANY
@given(which=st.integers(0, 15), x=ANY)
def test_functions_of_math_give_the_same_bits_or_both_raise(functions, which, x):
    functions.agree([which, x])


# -- arrays --------------------------------------------------------------------------------------


class Arrays:
    def compute(self, model, data, instance, capability):
        x = data.userdata[0:6]
        y = data.userdata[6:12]
        k = 2.5
        data.userdata[12:18] = k * x - y * x + 1.0
        data.userdata[18:24] = np.maximum(x, y) - np.minimum(x, 0.0) + 0.0
        data.userdata[24:30] = np.where(x > y, x, -y)
        data.userdata[30:36] = np.sqrt(np.abs(x)) + np.sign(y) + x**2
        data.userdata[36] = np.sum(x) + x.sum() + x.max() - y.min()
        data.userdata[37] = len(x) + x.size + x.shape[0]
        held = x[x > 0.0]
        data.userdata[38] = len(held)
        order = np.array([3, 1, 5])
        data.userdata[39:42] = x[order]
        data.userdata[42:45] = np.clip(x[:3], -1.0, 1.0)
        data.userdata[45] = x[-1] + y[-2]
        z = np.zeros(3)
        for i in range(3):
            z[i] += x[i] / (1.0 + abs(y[i]))
        data.userdata[46] = z[0] + z[1] * z[2]


arrays = made(Arrays)


@MANY
@given(values=st.lists(FINITE, min_size=12, max_size=12))
def test_whole_arrays_give_the_same_bits(arrays, values):
    arrays.agree(values)


class Bounds:
    def compute(self, model, data, instance, capability):
        k = int(data.userdata[0])
        if data.userdata[1] == 0:
            data.userdata[2] = data.qvel[k]
        elif data.userdata[1] == 1:
            data.qvel[k] = 1.0
        elif data.userdata[1] == 2:
            data.userdata[2] = data.contact[k].dist
        elif data.userdata[1] == 3:
            data.userdata[2] = model.body_pos[k, 2]
        else:
            data.userdata[2] = data.efc_force[k]


bounds = made(Bounds)


@MANY
@given(k=st.integers(-12, 12), which=st.integers(0, 4))
def test_every_index_out_of_bounds_raises_in_both(bounds, k, which):
    bounds.agree([k, which])


# -- model, data, self ---------------------------------------------------------------------------


class Drag(enum.Enum):
    LINEAR = "linear"
    SQUARE = "square"


class Level(enum.IntEnum):
    LOW = 2
    HIGH = 9


class Memo(NamedTuple):
    gain: float
    steps: int
    loud: bool
    table: "float64[:]"
    jacobian: "float64[:, :]"
    ids: "int32[:]"


OFFSET = 0.125
SCALES = (1.0, 0.5)


def module_level(x):
    """A plain function beside the class."""
    return OFFSET + 3.0 * x


class Everything:
    kp: float = engine.attribute(2.0, minimum=0)
    count: int = 3
    enabled: bool = True
    label: str = "not seen"
    weights: "float64[3]" = (1.0, 2.0, 3.0)
    drag: Drag = Drag.SQUARE
    level: Level = Level.HIGH
    state_size = 2
    LIMIT = 5.0
    TABLE = (0.25, 4.0)

    def init(self, model, data, instance) -> Memo:
        jacobian = np.zeros((3, model.nv))
        return Memo(1.5, 4, True, np.arange(4.0), jacobian, np.array([1, 2], np.int32))

    def clip(self, x, limit=LIMIT):
        return min(max(x, -limit), limit)

    @staticmethod
    def twice(x):
        return x + x

    @property
    def gain(self):
        return self.kp * self.LIMIT

    def compute(self, model, data, instance, capability):
        out = data.userdata
        x = out[0]
        out[1] = self.clip(self.kp * x) + self.clip(x, limit=100.0)
        out[2] = self.twice(x) + self.gain + module_level(x) + SCALES[1]
        out[3] = self.count + self.memo.steps + len(self.weights) + self.state_size
        if self.enabled and self.memo.loud:
            out[4] = self.weights[2] * self.memo.gain + self.TABLE[1]
        if self.drag == Drag.SQUARE and self.drag is not Drag.LINEAR:
            out[5] = x * abs(x)
        out[6] = self.level + (1 if self.level == Level.HIGH else 0)
        self.memo.table[1] = x
        self.state[1] += 1.0
        out[7] = self.memo.table.sum() + self.memo.ids[1] + self.state[1]
        out[8] = len(self.bodies) + self.bodies[0] + len(self.actuators) + self.sensordata.size
        out[9] = model.opt.timestep * model.nv + model.opt.gravity[2] + data.time
        out[10] = model.body_mass[1] + model.geom_size[1, 0] + model.vis.map.stiffness
        out[11] = model.opt.iterations / 7 + model.nq // 2
        out[12] = instance + 10 * capability
        for j in range(model.nv):
            data.qfrc_passive[j] = -self.kp * data.qvel[j] * abs(data.qvel[j])


everything = made(Everything, kp=3.5, drag="square", weights="1 2 4")


@settings(deadline=None, max_examples=40)
@given(x=FINITE, velocity=st.lists(FINITE, min_size=7, max_size=7))
def test_self_model_and_data_read_the_same_in_both(everything, x, velocity):
    for data in (everything.compiled, everything.python):
        data.qvel[:] = velocity
        everything.record(data).obj.state[:] = 0.0
    everything.agree([x])
    both = [everything.record(d).obj.memo for d in (everything.compiled, everything.python)]
    assert both[0].table[1] == both[1].table[1] == x


class Contacts:
    def compute(self, model, data, instance, capability):
        out = data.userdata
        out[0] = len(data.contact) + 100 * data.ncon
        for k in range(data.ncon):
            contact = data.contact[k]
            out[1] += contact.dist + contact.pos[2] + contact.frame[0] + contact.dim
            out[2] += data.contact.dist[k] + data.contact.pos[k, 2]
            out[3] += contact.geom[0] + 10 * contact.geom[1]
        out[4] = data.efc_force.size + 100 * data.nefc
        out[5] = data.efc_force.sum() if data.nefc else -1.0
        out[6] = data.warning[0].number
        data.energy[0] = 3.0
        out[7] = data.energy[0]


contacts = made(Contacts)


def test_contacts_read_the_same_in_both_while_there_are_some(contacts):
    for data in (contacts.compiled, contacts.python):
        mujoco.mj_resetData(contacts.model, data)
        mujoco.mj_forward(contacts.model, data)
    assert contacts.compiled.ncon
    mine = contacts.agree([])
    assert mine[0] == 101 * contacts.compiled.ncon
    assert mine[1] != 0


def test_contacts_are_empty_in_both_while_there_are_none(contacts):
    for data in (contacts.compiled, contacts.python):
        mujoco.mj_resetData(contacts.model, data)
        data.qpos[2] = 10.0
        mujoco.mj_forward(contacts.model, data)
    mine = contacts.agree([])
    assert mine[0] == 0
    assert mine[5] == -1.0


# -- the engine's functions ----------------------------------------------------------------------


class Scratch(NamedTuple):
    jacp: "float64[:, :]"
    jacr: "float64[:, :]"
    velocity: "float64[:]"
    geom: "int32[:]"
    short: "float64[:]"


class Calls:
    def init(self, model, data, instance) -> Scratch:
        return Scratch(
            np.zeros((3, model.nv)),
            np.zeros((3, model.nv)),
            np.zeros(6),
            np.zeros(1, np.int32),
            np.zeros(2),
        )

    def compute(self, model, data, instance, capability):
        out, memo = data.userdata, self.memo
        which, body = int(out[0]), int(out[1])
        if which == 1:
            mj.mj_jacBody(model, data, memo.jacp, None, body)
            out[2] = memo.jacp[2].sum()
        elif which == 2:
            kind = mujoco.mjtObj.mjOBJ_BODY
            mj.mj_objectVelocity(model, data, kind, body, memo.velocity, True)
            out[2:8] = memo.velocity
        elif which == 3:
            down = np.array([0.0, 0.0, -1.0])
            up = np.array([0.5, 0.5, 2.0])
            out[2] = mj.mj_ray(model, data, up, down, None, True, body - 1, memo.geom, None)
            out[3] = memo.geom[0]
        elif which == 4:
            out[2] = mj.mju_norm(memo.velocity, body) + mujoco.mjMINVAL + mujoco.mjNEQDATA
        elif which == 5:
            quaternion = np.array([1.0, 0.0, 0.0, 0.0])
            axis = np.array([0.0, 1.0, 0.0])
            mj.mju_axisAngle2Quat(quaternion, axis, out[2])
            out[3:7] = quaternion
        elif which == 6:
            mj.mju_copy(memo.short, memo.velocity, body)
        elif which == 7:
            nowhere = np.zeros(3)
            out[2] = mj.mj_ray(model, data, nowhere, nowhere, None, True, -1, None, None)
        elif which == 8:
            mj.mj_objectVelocity(model, data, body, 0, memo.velocity, True)


calls = made(Calls)


@settings(deadline=None, max_examples=120)
@given(which=st.integers(1, 8), body=st.integers(-3, 9), x=st.floats(-3, 3))
@example(which=4, body=2**31, x=0.0)
@example(which=6, body=2, x=0.0)
@example(which=6, body=3, x=0.0)
def test_functions_of_the_engine_give_the_same_bits_or_both_raise(calls, which, body, x):
    calls.agree([which, body, x])

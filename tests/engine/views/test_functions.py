from __future__ import annotations

import copy
import inspect
import subprocess
import sys
import threading
from pathlib import Path

import mujoco
import numpy as np
import pytest
from mujoco.introspect import functions as engine

from mjhost.engine import views
from mjhost.engine.views import checks, functions
from mjhost.engine.views.functions import mj
from mjhost.errors import InvalidArgumentError
from tests.engine.views.arguments import TABLE, struct_arguments, valid
from tests.engine.views.scenes import stepped


@pytest.fixture(scope="module")
def shared():
    """Views for what writes into no struct, and what they are of."""
    return struct_arguments()


def arrays_in(spec, *, const=None):
    """Indices of the array parameters of a function, all or by whether it only reads them."""
    return [
        index
        for index, parameter in enumerate(spec.parameters)
        if parameter.length is not None and const in {None, parameter.const}
    ]


WITH_ARRAYS = [name for name, spec in TABLE.items() if arrays_in(spec)]
BOUNDED = [
    name
    for name, spec in TABLE.items()
    if any(p.limit is not None or p.lowest is not None for p in spec.parameters)
]


def arrays_of(arguments):
    return [a for a in arguments if isinstance(a, np.ndarray)]


@pytest.mark.parametrize("name", TABLE)
def test_a_function_does_the_same_on_views_and_on_mujoco_objects(name):
    bound, viewed = struct_arguments()
    ours = valid(TABLE[name], *viewed)
    theirs = valid(TABLE[name], *bound)
    before = [a.copy() for a in arrays_of(ours)]
    first, second = getattr(mj, name)(*ours), getattr(mj, name)(*theirs)
    if name == "mju_standardNormal":
        return  # draws a number at each call
    assert same(first, second)
    for left, right in zip(arrays_of(ours), arrays_of(theirs), strict=True):
        np.testing.assert_array_equal(left, right)
    for index, was, now in zip(arrays_in(TABLE[name]), before, arrays_of(ours), strict=True):
        if TABLE[name].parameters[index].const:
            np.testing.assert_array_equal(was, now)


def same(first, second):
    return first == second or (first != first and second != second)  # noqa: PLR0124 - NaN


def reference(name, call):
    return pytest.param(name, call, id=name)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        reference("mj_jacBody", lambda f, m, d, a, b: f(m, d, a[: 3 * m.nv], b[: 3 * m.nv], 3)),
        reference("mj_jacSite", lambda f, m, d, a, b: f(m, d, a[: 3 * m.nv], b[: 3 * m.nv], 1)),
        reference("mj_objectVelocity", lambda f, m, d, a, b: f(m, d, 1, 3, a[:6], 1)),
        reference("mj_objectAcceleration", lambda f, m, d, a, b: f(m, d, 6, 1, a[:6], 0)),
        reference("mj_rne", lambda f, m, d, a, b: f(m, d, 1, a[: m.nv])),
        reference("mj_mulM", lambda f, m, d, a, b: f(m, d, a[: m.nv], d.qvel)),
        reference("mj_contactForce", lambda f, m, d, a, b: f(m, d, 1, a[:6])),
        reference("mj_geomDistance", lambda f, m, d, a, b: f(m, d, 2, 3, 5.0, a[:6])),
        reference("mj_integratePos", lambda f, m, d, a, b: f(m, d.qpos, d.qvel, 0.1)),
        reference(
            "mj_applyFT",
            lambda f, m, d, a, b: f(m, d, np.ones(3), np.ones(3), np.zeros(3), 3, a[: m.nv]),
        ),
        reference(
            "mj_local2Global",
            lambda f, m, d, a, b: f(d, a[:3], b[:9], np.ones(3), np.array([1.0, 0, 0, 0]), 3, 0),
        ),
        reference(
            "mj_ray",
            lambda f, m, d, a, b: f(
                m,
                d,
                np.array([0, 0, 5.0]),
                np.array([0, 0, -1.0]),
                None,
                1,
                -1,
                np.zeros(1, np.int32),
                a[:3],
            ),
        ),
        reference("mju_mulQuat", lambda f, m, d, a, b: f(a[:4], np.ones(4), d.xquat[2])),
        reference("mj_name2id", lambda f, m, d, a, b: f(m, mujoco.mjtObj.mjOBJ_SITE, "tip")),
        reference("mj_id2name", lambda f, m, d, a, b: f(m, mujoco.mjtObj.mjOBJ_SITE, 1)),
        reference("mju_muscleDynamics", lambda f, m, d, a, b: f(0.5, 0.25, np.ones(3))),
    ],
)
def test_a_function_gives_what_mujoco_gives(name, call):
    bound, viewed = struct_arguments()
    results = []
    for function, structs in ((getattr(mj, name), viewed), (getattr(mujoco, name), bound)):
        first, second = np.zeros(200), np.zeros(200)
        arguments = [first, second]
        if name.startswith("mj_jac") and structs is bound:
            nv = structs[0].nv
            arguments = [first[: 3 * nv].reshape(3, nv), second[: 3 * nv].reshape(3, nv)]
        results.append((call(function, *structs, *arguments), first, second))
    assert results[0][0] == results[1][0]
    np.testing.assert_array_equal(results[0][1], results[1][1])
    np.testing.assert_array_equal(results[0][2], results[1][2])


# -- what must never reach the engine ----------------------------------------------------------


def refused(name, arguments, error=InvalidArgumentError, match=None):
    kept = [a.copy() for a in arrays_of(arguments)]
    with pytest.raises(error, match=match):
        getattr(mj, name)(*arguments)
    for before, after in zip(kept, arrays_of(arguments), strict=True):
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("name", WITH_ARRAYS)
def test_an_array_that_is_too_short_is_refused(shared, name):
    for index in arrays_in(TABLE[name]):
        arguments = valid(TABLE[name], *shared[1])
        parameter = TABLE[name].parameters[index]
        wanted = checks.evaluator(parameter.length)(arguments)
        if wanted:  # else it is in the contents of others
            arguments[index] = arguments[index][: wanted - 1]
            refused(name, arguments, match=f"{name}: {parameter.name} ")


@pytest.mark.parametrize("name", WITH_ARRAYS)
def test_an_array_of_another_type_or_layout_is_refused(shared, name):
    for index in arrays_in(TABLE[name]):
        arguments = valid(TABLE[name], *shared[1])
        for wrong, error in wrong_arrays(arguments[index]):
            arguments[index] = wrong
            refused(name, arguments, error, f"{name}: {TABLE[name].parameters[index].name} ")


def wrong_arrays(good):
    yield good.astype(np.int16), TypeError
    yield good.astype(good.dtype.newbyteorder() if good.itemsize > 1 else "S1"), TypeError
    yield good.tolist(), TypeError
    yield "text", TypeError
    yield np.zeros(2 * good.size + 2, good.dtype)[:-1:2], InvalidArgumentError
    unaligned = np.zeros(good.nbytes + 1, np.uint8)[1:].view(good.dtype)
    if good.itemsize > 1:
        yield unaligned, InvalidArgumentError


@pytest.mark.parametrize("name", WITH_ARRAYS)
def test_none_is_taken_only_where_the_engine_takes_it(name):
    _, viewed = struct_arguments()
    for index in arrays_in(TABLE[name]):
        arguments = valid(TABLE[name], *viewed)
        arguments[index] = None
        if TABLE[name].parameters[index].nullable:
            getattr(mj, name)(*arguments)
        else:
            refused(name, arguments, TypeError, "NoneType")


@pytest.mark.parametrize("name", WITH_ARRAYS)
def test_an_array_that_is_written_must_be_writable(shared, name):
    for index in arrays_in(TABLE[name], const=False):
        arguments = valid(TABLE[name], *shared[1])
        arguments[index].flags.writeable = False
        refused(name, arguments, match="writable")


@pytest.mark.parametrize("name", WITH_ARRAYS)
def test_an_array_that_is_read_need_not_be_writable(name):
    _, viewed = struct_arguments()
    arguments, again = valid(TABLE[name], *viewed), valid(TABLE[name], *viewed)
    for index in arrays_in(TABLE[name], const=True):
        arguments[index].flags.writeable = False
    first, second = getattr(mj, name)(*arguments), getattr(mj, name)(*again)
    assert same(first, second) or name == "mju_standardNormal"


@pytest.mark.parametrize("name", BOUNDED)
def test_a_number_out_of_its_range_is_refused(shared, name):
    for index, parameter in enumerate(TABLE[name].parameters):
        arguments = valid(TABLE[name], *shared[1])
        for value in beyond(parameter, arguments):
            arguments[index] = value
            refused(name, arguments, match=parameter.name)


def beyond(parameter, arguments):
    if parameter.lowest is not None:
        yield parameter.lowest - 1
    if parameter.limit is not None:
        yield checks.evaluator(parameter.limit)(arguments)


@pytest.mark.slow
def test_no_function_reaches_beyond_the_described_lengths():
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.engine.views.guarded", "3"],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=Path(__file__).parents[3],
        check=False,
    )
    assert ran.returncode == 0, (ran.stdout.split()[-1:], ran.stderr)
    assert ran.stdout.split() == [*TABLE]


@pytest.mark.parametrize("wrong", [2**31, -(2**31) - 1, 1.5, "1", None])
def test_what_is_no_c_int_is_refused(wrong):
    with pytest.raises((TypeError, InvalidArgumentError), match="mju_round|mju_type2Str: type"):
        mj.mju_type2Str(wrong)


@pytest.mark.parametrize("wrong", ["1", None, [1.0], 1j])
def test_what_is_no_c_double_is_refused(wrong):
    with pytest.raises(TypeError, match="mju_sign: x must be a number"):
        mj.mju_sign(wrong)


@pytest.mark.parametrize("objtype", [-1, 0, 3, 9, 99])
def test_an_object_that_is_nowhere_is_refused(objtype):
    _, (m, d) = struct_arguments()
    refused("mj_objectVelocity", [m, d, objtype, 0, np.zeros(6), 0], match="object type")


def test_an_id_is_of_the_objects_of_its_type():
    _, (m, d) = struct_arguments()
    assert m.nsite < m.ngeom
    mj.mj_objectVelocity(m, d, mujoco.mjtObj.mjOBJ_GEOM, m.nsite, np.zeros(6), 0)
    refused("mj_objectVelocity", [m, d, int(mujoco.mjtObj.mjOBJ_SITE), m.nsite, np.zeros(6), 0])


def test_structs_are_told_apart():
    (model, data), (m, d) = struct_arguments()
    for wrong in (d, data, None, 7, m.opt, model.opt, m._address):
        with pytest.raises(TypeError, match="mj_getTotalmass: m must be a view of mjModel"):
            mj.mj_getTotalmass(wrong)


def test_data_of_another_model_is_refused(shared):
    _, (m, _) = shared
    _, data = stepped("falling")
    refused("mj_energyPos", [m, data], match="not of such a model")


def test_data_goes_with_a_copy_of_its_model():
    (model, data), _ = struct_arguments()
    twin = copy.copy(model)
    mj.mj_energyPos(views.model_view(twin._address), data)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("mj_ray", {"vec": np.zeros(3)}),
        ("mj_ray", {"vec": np.full(3, np.nan)}),
        ("mj_rayHfield", {"geomid": 0}),
        ("mj_rayMesh", {"geomid": 0}),
        ("mju_rayGeom", {"geomtype": int(mujoco.mjtGeom.mjGEOM_MESH)}),
        ("mju_rayGeom", {"geomtype": -1}),
        ("mju_raySkin", {"face": np.full(3, 3, np.int32)}),
        ("mju_raySkin", {"face": np.full(3, -1, np.int32)}),
        ("mju_euler2Quat", {"seq": "xy"}),
        ("mju_euler2Quat", {"seq": "xyq"}),
        ("mju_euler2Quat", {"seq": "x\0z"}),
        ("mj_stateSize", {"sig": 1 << 30}),
        ("mj_getState", {"sig": -1}),
        ("mj_getState", {"state": np.zeros(3)}),
        ("mj_actuatorInputName", {"input": 99}),
        ("mju_sparse2dense", {"rowadr": np.full(1, 99, np.int32)}),
        ("mju_sparse2dense", {"rowadr": np.full(1, -1, np.int32)}),
        ("mju_sparse2dense", {"rownnz": np.full(1, 2, np.int32)}),
        ("mju_sym2dense", {"rownnz": np.ones(1, np.int32), "colind": np.full(12, 5, np.int32)}),
        ("mju_Halton", {"base": 1}),
        ("mju_boxQP", {"lower": np.ones(1), "upper": np.ones(1)}),
    ],
)
def test_what_ends_the_engine_is_refused(name, change):
    _, viewed = struct_arguments()
    arguments = valid(TABLE[name], *viewed)
    for index, parameter in enumerate(TABLE[name].parameters):
        arguments[index] = change.get(parameter.name, arguments[index])
    refused(name, arguments)


def test_sparse_matrices_of_the_engine_are_expanded():
    (model, data), (m, d) = struct_arguments()
    dense, expected = np.zeros((m.nv, m.nv)), np.zeros((m.nv, m.nv))
    mj.mju_sym2dense(dense, d.M, m.nv, m.M_rownnz, m.M_rowadr, m.M_colind)
    mj.mj_fullM(m, d, expected)
    np.testing.assert_array_equal(dense, expected)
    again = np.zeros((m.nv, m.nv))
    mujoco.mj_fullM(model, data, again)
    np.testing.assert_array_equal(again, expected)


@pytest.mark.parametrize("count", [0, 4, 6])
def test_the_number_of_arguments_is_that_of_c(count):
    with pytest.raises(TypeError, match=r"mj_jacBody.*takes 5 arguments, got"):
        mj.mj_jacBody(*[None] * count)


# -- names ---------------------------------------------------------------------------------------


HARMFUL = """
    mj_step mj_step1 mj_step2 mj_forward mj_inverse mj_forwardSkip mj_makeData mj_resetData
    mj_resetDataKeyframe mj_copyData mj_deleteData mj_deleteModel mj_copyModel mj_loadXML
    mj_saveModel mj_loadModel mj_markStack mj_stackAllocNum mj_resetCallbacks mj_collision
    mj_makeConstraint mj_fwdPosition mj_setState mju_error mju_warning mju_malloc mj_recompile
    mj_setConst mju_threadpool mj_loadPluginLibrary mju_openResource
"""


@pytest.mark.parametrize("name", HARMFUL.split())
def test_what_would_harm_the_step_is_missing_and_the_error_says_why(name):
    with pytest.raises(AttributeError, match=f"{name} is not available inside.*because"):
        getattr(mj, name)
    assert name not in dir(mj)
    assert not hasattr(mj, name)


def test_every_function_of_the_engine_is_there_or_has_a_reason():
    names = [name for name in engine.FUNCTIONS if name.startswith(("mj_", "mju_"))]
    unknown = [
        name
        for name in names
        if name not in TABLE and "does not know" in functions._missing(name, TABLE)
    ]
    assert unknown == []
    assert len(TABLE) > 150


@pytest.mark.parametrize(("name", "near"), [("mj_jacBodi", "mj_jacBody"), ("mju_norm33", "norm3")])
def test_an_unknown_function_is_an_error_that_tells_the_near_one(name, near):
    with pytest.raises(AttributeError, match=f"no function '{name}'.*{near}"):
        getattr(mj, name)


def test_a_function_is_one_object_however_many_threads_ask_for_it_first():
    name, found = "mju_L1", []
    vars(mj).pop(name, None)
    functions._specs.pop(functions._made.pop(name, None), None)
    barrier = threading.Barrier(4)

    def ask():
        barrier.wait()
        found.append(getattr(mj, name))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(function) for function in found}) == 1
    assert getattr(mj, name) is found[0]


def test_a_function_can_be_asked_for_its_record_and_its_signature():
    spec = functions.spec_of(mj.mj_jacBody)
    assert spec is TABLE["mj_jacBody"]
    assert functions.spec_of(print) is None
    assert [*inspect.signature(mj.mj_jacBody).parameters] == ["m", "d", "jacp", "jacr", "body"]
    assert "mjtNum * jacp" in mj.mj_jacBody.__doc__


@pytest.mark.slow
def test_asking_for_mj_loads_neither_views_nor_numba():
    script = """if True:
        import sys
        from mjhost.engine import mj
        wrong = {"mjhost.engine.views.roots", "numba", "llvmlite"} & {*sys.modules}
        assert not wrong, wrong
        import mujoco, numpy
        assert mj.mju_norm3(numpy.ones(3)) > 1.7
    """
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)

"""What an argument must be before it is handed to the engine, whose errors end the process.

Owns: the converters of single arguments, and the checks between them.
Invariants: what passes is of the C type, inside its range, of sufficient length and, if the engine
writes into it, writable. Contents are looked at only where the engine would follow them.
Threads: pure; arrays must not change size or owner meanwhile, as everywhere.
Failure: ``TypeError`` or ``InvalidArgumentError``, before the engine is called.
Not a goal: the room on the engine's stack, which a function of it may use up.
"""

from __future__ import annotations

import ctypes
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import mujoco
import numpy as np

from mjhost import layout
from mjhost.engine.views.signatures import (
    PLACED,
    Expression,
    FunctionSpec,
    Parameter,
    Reference,
    Term,
)
from mjhost.engine.views.view import View, dtype_of
from mjhost.errors import InvalidArgumentError

Converter = Callable[[Any], Any]  # of an argument to what ctypes passes on
Check = Callable[[Sequence[Any]], None]  # of all arguments


def converter(function: str, parameter: Parameter) -> Converter:
    """What turns an argument for ``parameter`` into its C value, or raises."""
    where = f"{function}: {parameter.name}"
    if parameter.absent:
        return _absent(where)
    make = {
        "model": _struct,
        "data": _struct,
        "scalar": _scalar,
        "array": _array,
        "text": _text,
    }[parameter.kind]
    return make(where, parameter)


def checks(spec: FunctionSpec) -> list[Check]:
    """What must hold between the arguments of a function, each of which has been converted."""
    found = [*_same_model(spec)]
    for index, parameter in enumerate(spec.parameters):
        where = f"{spec.name}: {parameter.name}"
        if parameter.lowest is not None or parameter.limit is not None:
            found.append(_within(where, index, parameter))
        if parameter.placed_by is not None:
            found.append(_placed(where, index, parameter.placed_by))
    # Ranges first: a negative length makes no sense of the next.
    for index, parameter in enumerate(spec.parameters):
        if parameter.length is not None:
            found.append(_long_enough(f"{spec.name}: {parameter.name}", index, parameter.length))
    return found + ([SPECIAL[spec.name]] if spec.name in SPECIAL else [])


# -- single arguments ----------------------------------------------------------------------------


def _absent(where: str) -> Converter:
    def convert(value: Any) -> None:
        if value is not None:
            raise InvalidArgumentError(f"{where} must be None here, got {type(value).__name__}")

    return convert


def _struct(where: str, parameter: Parameter) -> Converter:
    bound = mujoco.MjModel if parameter.kind == "model" else mujoco.MjData
    struct = "mjModel" if parameter.kind == "model" else "mjData"

    def convert(value: Any) -> int:
        if isinstance(value, View) and value.struct == struct:
            return _address_of(value)
        if isinstance(value, bound):
            return _address_of(value)
        raise TypeError(
            f"{where} must be a view of {struct} or a mujoco.{bound.__name__}, "
            f"got {type(value).__name__}"
        )

    return convert


_address_of: Final[Callable[[Any], int]] = operator.attrgetter("_address")


def _scalar(where: str, parameter: Parameter) -> Converter:
    ctype = parameter.ctype
    if ctype in {ctypes.c_double, ctypes.c_float}:
        return _real(where)
    limits = np.iinfo(dtype_of(ctype)) if ctype is not ctypes.c_bool else None
    lowest, highest = (int(limits.min), int(limits.max)) if limits else (0, 1)

    def convert(value: Any) -> int:
        try:
            number = value if type(value) is int else operator.index(value)
        except TypeError:
            if isinstance(value, np.bool_):
                return int(value)
            raise TypeError(f"{where} must be an integer, got {value!r}") from None
        if not lowest <= number <= highest:
            raise InvalidArgumentError(f"{where} must be from {lowest} to {highest}, got {number}")
        return int(number)

    return convert


def _real(where: str) -> Converter:
    def convert(value: Any) -> float:
        if type(value) is float:
            return value
        if isinstance(value, str | bytes):
            raise TypeError(f"{where} must be a number, got {value!r}")
        try:
            return float(value)
        except TypeError:
            raise TypeError(f"{where} must be a number, got {value!r}") from None

    return convert


def _text(where: str, parameter: Parameter) -> Converter:
    nullable = parameter.nullable

    def convert(value: Any) -> bytes | None:
        if value is None and nullable:
            return None
        if not isinstance(value, str | bytes):
            raise TypeError(f"{where} must be a str, got {type(value).__name__}")
        text = value.encode() if isinstance(value, str) else value
        if b"\0" in text:
            raise InvalidArgumentError(f"{where} must not contain a null character, got {value!r}")
        return text

    return convert


def _array(where: str, parameter: Parameter) -> Converter:
    dtype, const, nullable = dtype_of(parameter.ctype), parameter.const, parameter.nullable

    def convert(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            if value.dtype == dtype:
                if value.flags.carray:
                    return _at(value)
                if const and _readable(value.flags):
                    return value.ctypes.data
            raise _unfit(where, value, dtype)
        if value is None and nullable:
            return None
        either = " or None" if nullable else ""
        raise TypeError(f"{where} must be a {dtype} array{either}, got {type(value).__name__}")

    return convert


# What ctypes passes as the address of a writable array, in a fifth of the time of ndarray.ctypes.
_at: Final[Any] = (ctypes.c_char * 0).from_buffer


def _readable(flags: Any) -> bool:
    return bool(flags.c_contiguous and flags.aligned)


def _unfit(where: str, value: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> Exception:
    if value.dtype != dtype:
        return TypeError(f"{where} must be a {dtype} array, got {value.dtype}")
    if not _readable(value.flags):
        return InvalidArgumentError(
            f"{where} must be contiguous in C's order and aligned, got strides {value.strides} of "
            f"shape {value.shape}; pass numpy.ascontiguousarray(...)"
        )
    return InvalidArgumentError(f"{where} must be writable, it is written into")


# -- between arguments ---------------------------------------------------------------------------


def evaluator(expression: Expression) -> Callable[[Sequence[Any]], int]:
    """A function of all arguments that gives the value of an expression."""
    sums = [_summed([*map(_product, terms)]) for terms in expression.sums]
    if len(sums) == 1:
        return sums[0]
    return lambda arguments: max(total(arguments) for total in sums)


def _summed(products: list[Callable[[Sequence[Any]], int]]) -> Callable[[Sequence[Any]], int]:
    if len(products) == 1:
        return products[0]
    return lambda arguments: sum(product(arguments) for product in products)


def _product(term: Term) -> Callable[[Sequence[Any]], int]:
    factor, lookups = term.factor, [*map(_lookup, term.references)]
    if not lookups:
        return lambda _: factor
    if len(lookups) == 1:
        only = lookups[0]
        return only if factor == 1 else lambda arguments: factor * only(arguments)
    return lambda arguments: factor * math.prod(lookup(arguments) for lookup in lookups)


def _lookup(reference: Reference) -> Callable[[Sequence[Any]], int]:
    index, path = reference.parameter, reference.path
    if not path:
        return operator.itemgetter(index)
    get = operator.attrgetter(".".join(path))
    return lambda arguments: get(arguments[index])


def _within(where: str, index: int, parameter: Parameter) -> Check:
    lowest, limit = parameter.lowest, parameter.limit
    upper = evaluator(limit) if limit is not None else None

    def check(arguments: Sequence[Any]) -> None:
        value = arguments[index]
        if lowest is not None and value < lowest:
            raise InvalidArgumentError(f"{where} must not be below {lowest}, got {value}")
        if upper is not None and limit is not None and value >= (top := upper(arguments)):
            raise InvalidArgumentError(f"{where} must be below {limit.text} = {top}, got {value}")

    return check


def _long_enough(where: str, index: int, length: Expression) -> Check:
    needed = evaluator(length)

    def check(arguments: Sequence[Any]) -> None:
        array = arguments[index]
        if array is not None and array.size < (wanted := needed(arguments)):
            expected = f"{length.text} = {wanted}" if length.text != str(wanted) else wanted
            raise InvalidArgumentError(
                f"{where} must have {expected} elements, got {array.size} of shape {array.shape}"
            )

    return check


def _placed(where: str, index: int, type_index: int) -> Check:
    def check(arguments: Sequence[Any]) -> None:
        objtype, objid = int(arguments[type_index]), arguments[index]
        size = PLACED.get(objtype)
        if size is None:
            raise InvalidArgumentError(
                f"{where} must be of a body, xbody, geom, site or camera, got object type {objtype}"
            )
        _below(where, objid, size, getattr(arguments[0], size))

    return check


def _below(where: str, value: int, name: str, top: int) -> None:
    if not 0 <= value < top:
        raise InvalidArgumentError(f"{where} must be from 0 to below {name} = {top}, got {value}")


def _same_model(spec: FunctionSpec) -> list[Check]:
    kinds = [parameter.kind for parameter in spec.parameters]
    if not {"model", "data"} <= {*kinds}:
        return []
    model, data = kinds.index("model"), kinds.index("data")

    def check(arguments: Sequence[Any]) -> None:
        m, d = arguments[model], arguments[data]
        # Copies of a model have the same one. Data that is being made does not have it yet.
        if m.signature != d.signature and m._address != d.model._address:
            raise InvalidArgumentError(f"{spec.name}: the data is not of such a model")

    return [check]


# -- what the description has no words for -------------------------------------------------------


def _state_signature(arguments: Sequence[Any]) -> None:
    signature = int(arguments[-1])
    if not 0 <= signature < 1 << layout.constants()["mjNSTATE"]:
        raise InvalidArgumentError(f"sig must be a sum of mjtState, got {signature}")


def _state(arguments: Sequence[Any]) -> None:
    _state_signature(arguments)
    model, _, state, signature = arguments
    # Indexing makes a function object of its own, whose prototype is nobody else's.
    size = layout.library()["mj_stateSize"]
    size.argtypes, size.restype = (ctypes.c_void_p, ctypes.c_int), ctypes.c_int
    wanted = size(model._address, int(signature))
    if state.size < wanted:
        raise InvalidArgumentError(
            f"mj_getState: state must have mj_stateSize = {wanted} elements, got {state.size}"
        )


def _ray(arguments: Sequence[Any]) -> None:
    # The engine takes a shorter one for an error of the program.
    if not np.linalg.norm(arguments[3].reshape(-1)[:3]) >= mujoco.mjMINVAL:
        raise InvalidArgumentError("mj_ray: vec must be longer than mjMINVAL")


def _geom_of(name: str) -> Check:
    wanted = layout.constants()[f"mjGEOM_{name.upper()}"]

    def check(arguments: Sequence[Any]) -> None:
        model, _, geom = arguments[:3]
        if model.geom_type[geom] != wanted:
            raise InvalidArgumentError(f"geomid must be of a geom of type {name}, got {geom}")

    return check


_PURE_GEOMS: Final = ("PLANE", "SPHERE", "CAPSULE", "ELLIPSOID", "CYLINDER", "BOX")


def _pure_geom(arguments: Sequence[Any]) -> None:
    admitted = [layout.constants()[f"mjGEOM_{name}"] for name in _PURE_GEOMS]
    if int(arguments[5]) not in admitted:
        raise InvalidArgumentError(
            f"mju_rayGeom: geomtype must be that of a {', '.join(_PURE_GEOMS).lower()}, "
            f"got {int(arguments[5])}"
        )


def _faces(arguments: Sequence[Any]) -> None:
    nface, nvert, face = arguments[:3]
    _indices("mju_raySkin: face", face.reshape(-1)[: 3 * nface], nvert)


def _indices(where: str, found: np.ndarray[Any, Any], top: int) -> None:
    if found.size and (found.min() < 0 or found.max() >= top):
        raise InvalidArgumentError(
            f"{where} must have indices from 0 to below {top}, got {found.min()} to {found.max()}"
        )


def _sparse_to_dense(arguments: Sequence[Any]) -> None:
    _, mat, rows, columns, *structure = arguments
    _sparse("mju_sparse2dense", (rows, columns), mat, *structure)


def _symmetric_to_dense(arguments: Sequence[Any]) -> None:
    _, mat, n, *structure = arguments
    _sparse("mju_sym2dense", (n, n), mat, *structure)


def _sparse(name: str, shape: tuple[int, int], mat: Any, *structure: Any) -> None:
    """The engine follows the addresses of the rows into ``mat`` and ``colind``."""
    counts, starts, columns = (array.reshape(-1) for array in structure)
    counts, starts = counts[: shape[0]], starts[: shape[0]]
    room = min(mat.size, columns.size)
    _indices(f"{name}: rownnz", counts, shape[1] + 1)
    _indices(f"{name}: rowadr", starts, room + 1)
    ends = starts.astype(np.int64) + counts
    _indices(f"{name}: rowadr + rownnz", ends, room + 1)
    for start, end in zip(starts, ends, strict=True):
        _indices(f"{name}: colind", columns[start:end], shape[1])


def _euler(arguments: Sequence[Any]) -> None:
    text = arguments[2] if isinstance(arguments[2], str) else arguments[2].decode(errors="replace")
    if len(text) != 3 or not {*text} <= {*"xyzXYZ"}:
        raise InvalidArgumentError(
            f"mju_euler2Quat: seq must be three of x, y, z, X, Y and Z, got {text!r}"
        )


def _actuator_input(arguments: Sequence[Any]) -> None:
    model, actuator, index = arguments
    _below("mj_actuatorInputName: input", index, "ctrlnum", int(model.actuator_ctrlnum[actuator]))


def _bounds(arguments: Sequence[Any]) -> None:
    n, lower, upper = (arguments[index] for index in (5, 6, 7))
    if lower is not None and upper is not None and (lower.flat[:n] >= upper.flat[:n]).any():
        raise InvalidArgumentError("mju_boxQP: every element of lower must be below that of upper")


# What compiled code has to check in its own way, or to leave out: compiled/special.py is the twin.
SPECIAL: Final[Mapping[str, Check]] = MappingProxyType(
    {
        "mj_actuatorInputName": _actuator_input,
        "mj_getState": _state,
        "mj_ray": _ray,
        "mj_rayHfield": _geom_of("hfield"),
        "mj_rayMesh": _geom_of("mesh"),
        "mj_stateSize": _state_signature,
        "mju_boxQP": _bounds,
        "mju_euler2Quat": _euler,
        "mju_rayGeom": _pure_geom,
        "mju_raySkin": _faces,
        "mju_sparse2dense": _sparse_to_dense,
        "mju_sym2dense": _symmetric_to_dense,
    }
)

"""Values for every field of the table: what must be accepted, and anything at all."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from mjhost.options import Kind, OptionDescriptor, Range, descriptors


def numbers(part: Range):
    """Floats of a range, small enough to be multiplied without overflow."""
    low = max(part.low, -1e6)
    high = min(part.high, 1e6)
    return st.floats(
        low, high, exclude_min=part.low_open, exclude_max=part.high_open, allow_subnormal=False
    )


def good_value(field: OptionDescriptor):
    """Values inside the domain, in the form in which a snapshot stores them."""
    match field.kind:
        case Kind.BOOL:
            return st.booleans()
        case Kind.ENUM:
            return st.sampled_from(field.choices)
        case Kind.GROUPS:
            return st.frozensets(st.integers(0, 30))
        case Kind.INT:
            return st.integers(int(field.domain[0].low), int(field.domain[0].high))
        case Kind.FLOAT:
            return numbers(field.domain[0])
    if field.name == "solref":
        positive = st.floats(1e-4, 10)
        return st.tuples(positive, positive, st.sampled_from((1.0, -1.0))).map(
            lambda three: (three[0] * three[2], three[1] * three[2])
        )
    each = field.domain * field.size if len(field.domain) == 1 else field.domain
    values = st.tuples(*map(numbers, each))
    if field.name == "solimp":
        return values.map(lambda five: (*sorted(five[:2]), *five[2:]))
    return values


def good_changes():
    """Mappings of a few fields to values of their domain."""
    return st.fixed_dictionaries(
        {}, optional={field.name: good_value(field) for field in descriptors()}
    )


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["RK4", "true", "1 2 3", "nan", "1e400", "0x10", "1_0", "none", "[1]", "٣"]),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)
ODD = st.sampled_from(
    [
        np.float32(0.5),
        np.float64("nan"),
        np.longdouble(1) / 3,
        np.int64(7),
        np.bool_(True),
        np.array(3.0),
        np.array([[1.0, 2.0, 3.0]]),
        np.array([True, False, True]),
        np.zeros(3, dtype=object),
        np.array(["a", "b", "c"]),
        np.zeros(0),
        np.datetime64("2020-01-01"),
        b"1 2 3",
        bytearray(3),
        memoryview(b"abc"),
        object(),
        int,
        1j,
        range(3),
        {1, 2},
        iter((1, 2)),
        10**5000,
    ]
)
ANYTHING = JSON | ODD
NAMES = st.sampled_from(
    [name for field in descriptors("4.0") for name in field.names] + ["passive_disabled", "nothing"]
)

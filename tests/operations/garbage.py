"""Requests that no client should send, and some that one might."""

from __future__ import annotations

import math

from hypothesis import strategies as st

NUMBERS = (
    st.integers(-3, 12)
    | st.sampled_from([2**31, 2**63 - 1, 2**63, -(2**70), 10**400])
    | st.floats()
    | st.sampled_from([0.0, -0.0, 1e-320, 1e308, math.nan, math.inf])
)
WORDS = st.sampled_from(
    ["", "hinge", "motor", "ball", "target", "up", "world", "#0", "\x00", "\ud800"]
)
SCALARS = st.none() | st.booleans() | NUMBERS | WORDS | st.text(max_size=6)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(WORDS | st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)

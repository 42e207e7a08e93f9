"""Merging of patches onto snapshots.

Invariants: fields that the patch leaves unset keep the value of the base; merging an empty patch
gives an equal snapshot.
Threads: pure functions.
"""

from __future__ import annotations

from mjhost.errors import InvalidArgumentError
from mjhost.options.convert import shown
from mjhost.options.parse import converted_fields
from mjhost.options.records import RuntimeOptionsPatch, RuntimeOptionsSnapshot, merge_fields


def merge_runtime_options(
    base: RuntimeOptionsSnapshot, patch: RuntimeOptionsPatch
) -> RuntimeOptionsSnapshot:
    """``base`` with the fields that ``patch`` names; ranges are not checked.

    Raises:
        OptionsRejected: a value of a patch made by hand does not fit its field.
        InvalidArgumentError: not a snapshot and a patch.
    """
    if not isinstance(base, RuntimeOptionsSnapshot) or not isinstance(patch, RuntimeOptionsPatch):
        raise InvalidArgumentError(
            "merging needs a RuntimeOptionsSnapshot and a RuntimeOptionsPatch, got "
            f"{shown(base)} and {shown(patch)}; parse_runtime_options_patch makes patches"
        )
    return merge_fields(base, converted_fields(patch))

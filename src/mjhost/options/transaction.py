"""The pure half of an options transaction: from request to candidate.

Invariants: parse, merge and validate in this order, with the problems of all three reported
together; a field that could not be read is not blamed a second time by rules between fields.
Threads: pure function.
Failure: ``OptionsRejected``; the base is untouched.
Not a goal: admission, locks, epochs and the write. The owner of the model does those.
"""

from __future__ import annotations

from mjhost.options.merge import merge_runtime_options
from mjhost.options.parse import PatchInputs, parse_runtime_options_patch
from mjhost.options.records import (
    OptionsResult,
    RuntimeOptionsPatch,
    RuntimeOptionsSnapshot,
    changed_fields,
)
from mjhost.options.table import engine_version
from mjhost.options.validate import check


def prepare_runtime_options(
    base: RuntimeOptionsSnapshot,
    inputs: PatchInputs,
    *,
    engine: str | None = None,
    raise_on_error: bool = True,
) -> OptionsResult:
    """The candidate that ``inputs`` make out of ``base``.

    Args:
        base: the options now, as read from the live model.
        inputs: what ``parse_runtime_options_patch`` takes.
        engine: MuJoCo version; by default the installed one.
        raise_on_error: whether to raise instead of returning the problems.

    Returns:
        A result with ``snapshot`` the candidate, ``patch`` the changes as parsed, ``changed`` the
        fields that would differ, ``errors`` and ``warnings``; ``epoch`` is ``None``.

    Raises:
        OptionsRejected: with the problems of parsing and of validation in ``errors``.
        InvalidArgumentError: ``base`` is no snapshot or ``engine`` no version.
    """
    parsed = parse_runtime_options_patch(inputs, raise_on_error=False, engine=engine)
    patch = parsed.patch or RuntimeOptionsPatch()
    candidate = merge_runtime_options(base, patch)
    unread = frozenset(error.field for error in parsed.errors)
    touched = frozenset(patch.names())
    checked = check(candidate, touched, engine_version(engine), unread=unread)
    result = OptionsResult(
        errors=parsed.errors + checked.errors,
        warnings=checked.warnings,
        snapshot=candidate,
        patch=patch,
        changed=tuple(changed_fields(base, candidate)),
    )
    if raise_on_error:
        result.raise_if_rejected()
    return result

"""Run-time options: the one seam that reads, checks and writes a model's ``mjOption``.

Pure functions over frozen records, generated from one table. Every transport translates its own
request into a mapping or ``RuntimeOptionInput`` records and hands it here; none parses or changes
``mjOption`` itself. The env owns the live transaction. ``docs/options.md`` lists the fields.
"""

from __future__ import annotations

from msgspec import UNSET

from mjhost.options.mapping import (
    OptionBlock,
    check_runnable,
    default_snapshot,
    read_runtime_options,
    write_runtime_options,
)
from mjhost.options.merge import merge_runtime_options
from mjhost.options.parse import PatchInputs, parse_runtime_options_patch
from mjhost.options.records import (
    OptionsResult,
    RuntimeOptionInput,
    RuntimeOptionsError,
    RuntimeOptionsPatch,
    RuntimeOptionsSnapshot,
    changed_fields,
)
from mjhost.options.table import Kind, OptionDescriptor, OptionValue, Range, descriptors
from mjhost.options.transaction import prepare_runtime_options
from mjhost.options.validate import validate_runtime_options

__all__ = [
    "UNSET",
    "Kind",
    "OptionBlock",
    "OptionDescriptor",
    "OptionValue",
    "OptionsResult",
    "PatchInputs",
    "Range",
    "RuntimeOptionInput",
    "RuntimeOptionsError",
    "RuntimeOptionsPatch",
    "RuntimeOptionsSnapshot",
    "changed_fields",
    "check_runnable",
    "default_snapshot",
    "descriptors",
    "merge_runtime_options",
    "parse_runtime_options_patch",
    "prepare_runtime_options",
    "read_runtime_options",
    "validate_runtime_options",
    "write_runtime_options",
]

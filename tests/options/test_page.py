from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from mjhost.options import descriptors

TOOL = Path(__file__).resolve().parents[2] / "tools" / "generate_options_doc.py"


@pytest.fixture(scope="module")
def generator():
    spec = importlib.util.spec_from_file_location("generate_options_doc", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_page_is_current(generator):
    assert generator.PAGE.read_text("utf-8") == generator.page(), "run `make docs-write`"


def test_page_lists_every_field_and_alias_once(generator):
    rows = [line for line in generator.page().splitlines() if line.startswith("| [`")]
    names = [line.split("`")[1] for line in rows]
    assert sorted(names) == sorted(field.name for field in descriptors("4.0"))
    for field in descriptors("4.0"):
        (row,) = (line for line in rows if f"[`{field.name}`]" in line)
        assert all(f"`{alias}`" in row for alias in field.aliases)

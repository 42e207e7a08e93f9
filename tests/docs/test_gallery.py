"""The gallery of engine extensions: each program runs, is short, and stands on the page."""

from __future__ import annotations

import pytest

from tests.architecture.source import ROOT
from tests.docs.test_snippets import _run

GALLERY = sorted((ROOT / "examples" / "engine").glob("*.py"))
LONGEST = 60


@pytest.mark.slow
@pytest.mark.parametrize("example", GALLERY, ids=lambda example: example.name)
def test_program_runs_and_says_something(example, tmp_path):
    result = _run([example], tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.strip()
    assert list(tmp_path.iterdir()) == []


def test_gallery_has_at_least_eight_programs():
    assert len(GALLERY) >= 8


@pytest.mark.parametrize("example", GALLERY, ids=lambda example: example.name)
def test_program_is_short_proves_something_and_is_on_the_page(example):
    text = example.read_text("utf-8")
    assert text.count("\n") <= LONGEST
    assert "    assert " in text
    page = (ROOT / "docs" / "engine-extensions.md").read_text("utf-8")
    assert f"](../examples/engine/{example.name})" in page

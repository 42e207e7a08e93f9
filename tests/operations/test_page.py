"""The page of the operations is the one that the table makes."""

from __future__ import annotations

import importlib.util

from tests.architecture.source import ROOT


def _generator():
    path = ROOT / "tools" / "generate_operations.py"
    spec = importlib.util.spec_from_file_location("generate_operations", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_page_is_current():
    generator = _generator()
    assert generator.PAGE.read_text("utf-8") == generator.page(), "run `make docs-write`"

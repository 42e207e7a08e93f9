"""The import contracts of pyproject.toml: kept by the package, and able to fail."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.source import PACKAGE, ROOT

LINT = (
    "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
)

# Importing module, what it may not import.
FORBIDDEN = [
    ("errors", "generation"),
    ("generation", "options"),
    ("options", "locking"),
    ("options", "env"),
    ("plugins", "env"),
    ("plugins", "callbacks"),
    ("callbacks", "env"),
    ("callbacks", "plugins"),
    ("callbacks", "engine"),
    ("plugins", "engine"),
    ("engine", "env"),
    ("env", "cli"),
    ("env", "adapters"),
    ("adapters", "cli"),
    ("env", "testing"),
    ("cli", "plugins.host"),
]


def _lint(directory: Path, package_parent: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", LINT],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(package_parent), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.slow
def test_package_keeps_the_import_contracts():
    pytest.importorskip("importlinter", reason="not run: import-linter is not installed")
    result = _lint(ROOT, PACKAGE.parent)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.slow
def test_import_contracts_find_every_forbidden_import(tmp_path):
    pytest.importorskip("importlinter", reason="not run: import-linter is not installed")
    package = tmp_path / "mjhost"
    for name in {module for pair in FORBIDDEN for module in pair}:
        directory = package.joinpath(*name.split("."))
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "__init__.py").touch()
    (package / "__init__.py").touch()
    for number, (importer, imported) in enumerate(FORBIDDEN):
        bad = package / importer / f"bad{number}.py"
        bad.write_text(f"import mjhost.{imported}\n", encoding="utf-8")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)

    result = _lint(tmp_path, tmp_path)

    assert result.returncode == 1, result.stdout + result.stderr
    missed = [
        (importer, imported)
        for number, (importer, imported) in enumerate(FORBIDDEN)
        if f"mjhost.{importer}.bad{number} -> mjhost.{imported}" not in result.stdout
    ]
    assert missed == []


def test_facade_import_loads_no_optional_package():
    code = (
        "import sys; from mjhost import *; "
        "print(*{'numba', 'llvmlite', 'typer', 'pytest', 'hypothesis'} & set(sys.modules))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert result.stdout.split() == []

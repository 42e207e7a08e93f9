"""The code of every page runs, and so does every example."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.architecture.source import PACKAGE, ROOT
from tests.docs.snippets import blocks

PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
WITH_CODE = [page for page in PAGES if any(block.runs for block in blocks(page.read_text("utf-8")))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def _run(arguments, directory) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(PACKAGE.parent), str(ROOT)])
    return subprocess.run(
        [sys.executable, "-W", "error", *map(str, arguments)],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )


def _run_page(page, directory) -> subprocess.CompletedProcess[str]:
    return _run(["-m", "tests.docs.snippets", page], directory)


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_code_of_page_runs(page, tmp_path):
    result = _run_page(page, tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert not (tmp_path / "MUJOCO_LOG.TXT").exists()


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_example_runs(example, tmp_path):
    result = _run([example], tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert list(tmp_path.iterdir()) == []


def test_readme_shows_code_that_runs():
    assert ROOT / "README.md" in WITH_CODE


def test_blocks_know_language_line_file_and_commands():
    page = (
        "# T\n```python\nx = 1\n```\n- item:\n\n  ```console\n  $ mjhost options \\\n"
        "      --json\n  $ pip install mjhost\n  out\n  ```\n```yaml\n# file: a/b.yaml\nx: 1\n```\n"
    )
    python, console, yaml = blocks(page)
    assert (python.language, python.text, python.line) == ("python", "x = 1\n", 3)
    assert [command.split() for command in console.commands] == [["mjhost", "options", "--json"]]
    assert yaml.file == "a/b.yaml"
    assert [block.runs for block in (python, console, yaml)] == [True, True, True]


@pytest.mark.slow
def test_blocks_of_a_page_share_a_namespace_and_files(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "```python\nx = 41\n```\n```python\n# file: other.py\ny = 1\n```\n"
        "```python\nimport other\nprint(x + other.y)\n```\n"
    )
    assert _run_page(page, tmp_path).stdout == "42\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("# T\n\n```python\nx = 1\nassert x == 2\n```\n", 'page.md", line 5'),
        ("```python\nx = 1\n```\n```python\nprint(z)\n```\n", "NameError"),
        ("```console\n$ mjhost no-such-command\n```\n", "status"),
        ("```console\n$ mjhost options | head\n```\n", "not shell scripts"),
    ],
)
def test_code_that_fails_fails_the_page(text, complaint, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(text)
    result = _run_page(page, tmp_path)
    assert result.returncode != 0
    assert complaint in result.stderr

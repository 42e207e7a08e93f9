"""The documentation against the repository: generated pages, links, verbs, decisions."""

from __future__ import annotations

import importlib.util
import inspect
import re

import pytest

from mjhost import errors
from tests.architecture.source import ROOT

PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
LINK = re.compile(r"!?\[[^\]]*\]\((?P<target>[^)\s]+)\)")


def _tool(name: str):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _anchors(text: str) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def _broken_links(page) -> list[str]:
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    broken = []
    for match in LINK.finditer(text):
        path, _, anchor = match["target"].partition("#")
        if path.startswith(("http://", "https://", "mailto:")):
            continue
        target = page.parent / path if path else page
        missing = not target.exists()
        if missing or (anchor and anchor not in _anchors(target.read_text("utf-8"))):
            broken.append(match["target"])
    return broken


def _by_path(page) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("name", ["generate_errors_doc", "generate_admission_table"])
def test_generated_page_is_current(name):
    generator = _tool(name)
    assert generator.PAGE.read_text("utf-8") == generator.page(), "run `make docs-write`"


def test_drawn_error_tree_shows_every_class_under_its_parent():
    generator = _tool("generate_errors_doc")
    stack: list[str] = []
    drawn = {}
    for line in generator.tree().splitlines():
        bare = line.lstrip("│├└─ ")
        depth = (len(line) - len(bare)) // 4
        name = bare.split()[0]
        stack[depth:] = [name]
        drawn[name] = stack[depth - 1] if depth else None
    defined = {error.__name__: error.__bases__ for error in generator.classes()}
    assert set(drawn) == set(defined)
    for name, parent in drawn.items():
        if parent is not None:
            assert getattr(errors, parent) in defined[name]


def test_every_error_has_its_own_docstring():
    generator = _tool("generate_errors_doc")
    assert all("__doc__" in vars(error) and inspect.getdoc(error) for error in generator.classes())


@pytest.mark.parametrize("page", PAGES, ids=_by_path)
def test_links_lead_somewhere(page):
    assert _broken_links(page) == []


def test_broken_link_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# One\n[a](no.md) [b](#one) [c](#two) [d](https://example.org/)\n")
    assert _broken_links(page) == ["no.md", "#two"]


@pytest.mark.parametrize("page", PAGES, ids=_by_path)
def test_make_verbs_exist(page):
    verbs = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z-]+)", page.read_text("utf-8"))) <= verbs


@pytest.mark.parametrize("page", DECISIONS, ids=_by_path)
def test_decision_has_context_decision_and_consequences(page):
    titles = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    assert re.match(rf"{int(page.name[:4])} · ", titles[0])
    assert titles[1:] == ["Context", "Decision", "Consequences"]


def test_decisions_are_numbered_without_gaps():
    assert [int(page.name[:4]) for page in DECISIONS] == [*range(1, len(DECISIONS) + 1)]


def test_changelog_fragments_name_their_kind():
    kinds = {"added", "changed", "deprecated", "removed", "fixed", "security"}
    fragments = [p for p in (ROOT / "changelog.d").iterdir() if p.name != "README.md"]
    wrong = [p.name for p in fragments if p.suffix != ".md" or p.stem.split(".")[-1] not in kinds]
    assert wrong == []

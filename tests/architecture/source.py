"""Parsed source files, and the walks that the architecture rules share."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "mjhost"
TESTS = ROOT / "tests"


@dataclass(frozen=True)
class Violation:
    """A broken rule at one place; the allow-list names the place, not the line."""

    place: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.place} (line {self.line}): {self.text}"


@dataclass(frozen=True)
class Source:
    """One file: its path relative to the tree it belongs to, and its text."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.path)

    @cached_property
    def nodes(self) -> list[tuple[ast.AST, str]]:
        """Every node with the dotted name of the innermost class or function around it."""
        found: list[tuple[ast.AST, str]] = []
        _collect(self.tree, "", found)
        return found

    def within(self, *prefixes: str) -> bool:
        return self.path.startswith(prefixes)

    def violation(self, node: ast.AST, scope: str, text: str) -> Violation:
        place = f"{self.path}:{scope}" if scope else self.path
        return Violation(place, getattr(node, "lineno", 1), text)


Rule = Callable[[Source], list[Violation]]

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _collect(node: ast.AST, scope: str, found: list[tuple[ast.AST, str]]) -> None:
    for child in ast.iter_child_nodes(node):
        inner = scope
        if isinstance(child, SCOPES):
            inner = f"{scope}.{child.name}" if scope else child.name
        found.append((child, inner))
        _collect(child, inner, found)


def sources(tree: Path) -> list[Source]:
    return [
        Source(path.relative_to(tree).as_posix(), path.read_text(encoding="utf-8"))
        for path in sorted(tree.rglob("*.py"))
    ]


def _mentioned(node: ast.AST) -> list[str]:
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return [name]
        case ast.Constant(value=str(text)):
            return [text]
        case ast.ImportFrom(names=names):
            return [alias.name for alias in names]
    return []


def mentions(source: Source, pattern: str) -> Iterator[tuple[ast.AST, str, str]]:
    """Names, attributes, imports and whole strings that match: (node, scope, name)."""
    regex = re.compile(pattern)
    for node, scope in source.nodes:
        for name in _mentioned(node):
            if regex.fullmatch(name):
                yield node, scope, name


def calls(source: Source) -> Iterator[tuple[ast.Call, str, str]]:
    """Every call with its scope and the last part of the called name."""
    for node, scope in source.nodes:
        if isinstance(node, ast.Call):
            match node.func:
                case ast.Attribute(attr=name) | ast.Name(id=name):
                    yield node, scope, name


def imported_modules(node: ast.AST) -> list[str]:
    match node:
        case ast.Import(names=names):
            return [alias.name for alias in names]
        case ast.ImportFrom(module=str(module), level=0):
            return [module]
    return []


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((word.value for word in call.keywords if word.arg == name), None)


def is_none(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is None

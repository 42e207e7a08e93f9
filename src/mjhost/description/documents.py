"""XML of descriptions, read with care.

Invariants: a document has no DTD, whatever its encoding, so that nothing in it expands or is
fetched; it has at most ``MOST_BYTES`` and at most ``DEEPEST`` elements within each other.
Failure: ``ModelLoadError`` naming the document, the line and what is wrong there.
"""

from __future__ import annotations

import math
from typing import Final
from xml.etree import ElementTree as ET
from xml.etree.ElementTree import Element
from xml.parsers import expat

from mjhost.errors import ModelLoadError

MOST_BYTES: Final = 64 << 20
"""Longest document that is read, bytes."""

DEEPEST: Final = 100
"""Most elements within each other; what copies and writes a document goes down as deep as it is."""


def parsed(text: str | bytes, label: str, root: str) -> Element:
    """The root element of a document, which has to be ``root``."""
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if len(raw) > MOST_BYTES:
        raise ModelLoadError(f"{label} is longer than {MOST_BYTES} bytes")
    try:
        _check_harmless(raw, label)
        element = ET.fromstring(raw)  # noqa: S314 - without a DTD there is nothing to expand
    except (ET.ParseError, expat.ExpatError, LookupError, ValueError) as error:
        raise ModelLoadError(f"{label} is no XML: {error}") from error
    if element.tag != root:
        raise ModelLoadError(f"{label} is a <{element.tag}>, not a <{root}>")
    return element


def _check_harmless(raw: bytes, label: str) -> None:
    """Reads it all and builds nothing; only a parser finds a DTD in any encoding."""
    depth = 0

    def refuse(*_declared: object) -> None:
        raise ModelLoadError(f"{label} has a document type declaration, which is not read")

    def down(_tag: str, _attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > DEEPEST:
            line = parser.CurrentLineNumber
            raise ModelLoadError(
                f"{label} has over {DEEPEST} elements within each other, line {line}"
            )

    def up(_tag: str) -> None:
        nonlocal depth
        depth -= 1

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler, parser.EndElementHandler = down, up
    parser.Parse(raw, True)


def numbers(
    element: Element,
    attribute: str,
    default: str,
    count: int,
    what: str,
    *,
    finite: bool = True,
) -> list[float]:
    """Numbers of an attribute, which may be infinite unless ``finite``.

    Raises:
        ModelLoadError: they are none, or not ``count``.
    """
    text = element.get(attribute, default)
    try:
        values = [float(word) for word in text.split()]
    except ValueError:
        values = []
    wrong = any(map(math.isnan, values)) or (finite and any(map(math.isinf, values)))
    if len(values) != count or wrong:
        needed = "a number" if count == 1 else f"{count} numbers"
        raise ModelLoadError(f"{attribute} of {what} must be {needed}, got {text!r}")
    return values


def number(element: Element, attribute: str, default: float, what: str) -> float:
    """One number of an attribute."""
    return numbers(element, attribute, repr(default), 1, what)[0]

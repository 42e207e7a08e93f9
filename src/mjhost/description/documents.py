"""XML of descriptions, read with care.

Invariants: a document has no DTD, so that nothing in it expands or is fetched, and at most
``MOST_BYTES``.
Failure: ``ModelLoadError`` naming the document, the line and what is wrong there.
"""

from __future__ import annotations

import math
from typing import Final
from xml.etree import ElementTree as ET
from xml.etree.ElementTree import Element

from mjhost.errors import ModelLoadError

MOST_BYTES: Final = 64 << 20
"""Longest document that is read, bytes."""


def parsed(text: str | bytes, label: str, root: str) -> Element:
    """The root element of a document, which has to be ``root``."""
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if len(raw) > MOST_BYTES:
        raise ModelLoadError(f"{label} is longer than {MOST_BYTES} bytes")
    if b"<!DOCTYPE" in raw or b"<!ENTITY" in raw:
        raise ModelLoadError(f"{label} has a document type declaration, which is not read")
    try:
        element = ET.fromstring(raw)  # noqa: S314 - without a DTD there is nothing to expand
    except (ET.ParseError, ValueError) as error:
        raise ModelLoadError(f"{label} is no XML: {error}") from error
    if element.tag != root:
        raise ModelLoadError(f"{label} is a <{element.tag}>, not a <{root}>")
    return element


def numbers(element: Element, attribute: str, default: str, count: int, what: str) -> list[float]:
    """Numbers of an attribute.

    Raises:
        ModelLoadError: they are none, or not ``count``.
    """
    text = element.get(attribute, default)
    try:
        values = [float(word) for word in text.split()]
    except ValueError:
        values = []
    if len(values) != count or not all(map(math.isfinite, values)):
        raise ModelLoadError(f"{attribute} of {what} must be {count} numbers, got {text!r}")
    return values


def number(element: Element, attribute: str, default: float, what: str) -> float:
    """One number of an attribute."""
    return numbers(element, attribute, repr(default), 1, what)[0]

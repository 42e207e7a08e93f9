"""The report of an import as lines: what looks wrong first, each with what to do about it.

Invariants: every note is in it; things of which the same is said share a line.
Threads: pure functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from mjhost.description import ImportNote, ImportReport, NoteKind

HEADINGS: Final = {
    NoteKind.SUSPICIOUS: "looks wrong",
    NoteKind.DROPPED: "left out",
    NoteKind.DEFAULTED: "guessed",
    NoteKind.CONVERTED: "converted",
}
_SHOWN: Final = 4  # subjects that a line names


def summary(report: ImportReport) -> str:
    """What there is in the model."""
    counts = (
        (report.links, "link"),
        (report.joints, "joint"),
        (report.meshes, "mesh"),
        (report.actuators, "actuator"),
    )
    things = ", ".join(_counted(count, word) for count, word in counts)
    return f"{report.robot}: {things}, {report.mass:.6g} kg"


def lines(report: ImportReport) -> Iterator[str]:
    """The notes, by kind."""
    for kind, heading in HEADINGS.items():
        found = report.of(kind)
        if found:
            yield f"{heading}:"
        for (text, hint), subjects in _alike(found).items():
            yield f"  {_listed(subjects)}: {text}"
            if hint:
                yield f"    -> {hint}"


def _counted(count: int, word: str) -> str:
    plural = f"{word}es" if word.endswith("sh") else f"{word}s"
    return f"{count} {word if count == 1 else plural}"


def _alike(notes: Iterable[ImportNote]) -> dict[tuple[str, str], list[str]]:
    groups: dict[tuple[str, str], list[str]] = {}
    for note in notes:
        groups.setdefault((note.text, note.hint), []).append(note.subject)
    return groups


def _listed(subjects: list[str]) -> str:
    shown, more = subjects[:_SHOWN], len(subjects) - _SHOWN
    kinds = {subject.partition(" ")[0] for subject in shown}
    if len(shown) > 1 and len(kinds) == 1 and all(" " in subject for subject in shown):
        shown = [shown[0], *(subject.partition(" ")[2] for subject in shown[1:])]
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")

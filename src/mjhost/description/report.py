"""What an import did, for a person to act on.

Owns: ``Notes``, which an import writes into, and ``ImportReport``, which it ends in.
Invariants: whatever was converted, guessed, left out or looks wrong is in the report, with the name
of what it is about. "It loaded" never stands for "it is right".
Threads: a ``Notes`` belongs to one import.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec


class NoteKind(StrEnum):
    """What a note is about."""

    CONVERTED = "converted"
    DEFAULTED = "defaulted"
    DROPPED = "dropped"
    SUSPICIOUS = "suspicious"


class ImportNote(msgspec.Struct, frozen=True):
    """One thing that an import did or saw.

    Attributes:
        kind: ``converted`` (done, losing nothing), ``defaulted`` (guessed), ``dropped`` (left out)
            or ``suspicious`` (looks wrong).
        subject: what it is about: a link, joint, file.
        text: what was done or seen, with its numbers.
        hint: what to do about it; may be empty.
    """

    kind: NoteKind
    subject: str
    text: str
    hint: str = ""

    def __str__(self) -> str:
        hint = f"; {self.hint}" if self.hint else ""
        return f"{self.kind}: {self.subject}: {self.text}{hint}"


class ImportReport(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a description.

    Attributes:
        source: the file, or what kind of thing it was.
        robot: its name.
        links, joints, meshes, actuators: how many there are in the model; joints that move.
        mass: of all of it, kg.
        notes: in the order in which they came up.
    """

    source: str
    robot: str
    links: int = 0
    joints: int = 0
    meshes: int = 0
    actuators: int = 0
    mass: float = 0.0
    notes: tuple[ImportNote, ...] = ()

    def of(self, kind: NoteKind | str) -> tuple[ImportNote, ...]:
        """The notes of one kind."""
        return tuple(note for note in self.notes if note.kind == kind)


class Notes:
    """The notes of an import that is going on."""

    def __init__(self) -> None:
        self.found: list[ImportNote] = []

    def add(self, kind: NoteKind | str, subject: str, text: str, hint: str = "") -> None:
        """Takes a note; one that says the same is taken once."""
        note = ImportNote(NoteKind(kind), subject, text, hint)
        if note not in self.found:
            self.found.append(note)

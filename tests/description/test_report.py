"""What an import says."""

from __future__ import annotations

import msgspec
import pytest

from mjhost.description.report import ImportNote, ImportReport, NoteKind, Notes


def test_what_is_said_twice_is_noted_once():
    notes = Notes()
    for _ in range(2):
        notes.add("dropped", "link a", "is gone")
        notes.add(NoteKind.DROPPED, "link b", "is gone", "bring it back")
    assert [note.subject for note in notes.found] == ["link a", "link b"]
    with pytest.raises(ValueError, match="lost"):
        notes.add("lost", "link a", "is gone")


def test_a_note_is_a_line_that_ends_in_what_to_do():
    note = ImportNote(NoteKind.SUSPICIOUS, "link a", "is 300 m across", "lengths are in m")
    assert str(note) == "suspicious: link a: is 300 m across; lengths are in m"
    assert str(ImportNote(NoteKind.CONVERTED, "a.dae", "to stl")) == "converted: a.dae: to stl"


def test_a_report_goes_through_json_and_is_asked_by_kind():
    notes = (
        ImportNote(NoteKind.SUSPICIOUS, "link a", "looks wrong"),
        ImportNote(NoteKind.DEFAULTED, "base", "is fixed"),
    )
    report = ImportReport(source="r.urdf", robot="r", links=2, mass=3.5, notes=notes)
    again = msgspec.json.decode(msgspec.json.encode(report), type=ImportReport)
    assert again == report
    assert report.of("suspicious") == notes[:1]
    assert report.of(NoteKind.DROPPED) == ()

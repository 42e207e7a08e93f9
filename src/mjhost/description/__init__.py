"""Robots from files: URDF and xacro without ROS, meshes of all usual formats, several in one world.

Owns: the way from a description to a spec that the engine compiles, and the report of what was
converted, guessed and left out on it.
Not a goal: hosting; ``MujocoEnv`` takes a description's path like any other model.
"""

from mjhost.description.convert import Description, Robot, compose, is_description, load
from mjhost.description.report import ImportNote, ImportReport, NoteKind

__all__ = [
    "Description",
    "ImportNote",
    "ImportReport",
    "NoteKind",
    "Robot",
    "compose",
    "is_description",
    "load",
]

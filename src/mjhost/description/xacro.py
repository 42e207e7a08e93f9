"""xacro without ROS.

Owns: running the expander, through ``xacrodoc``.
Invariants: ``$(find package)`` means what ``package://`` means.
Failure: ``ModelLoadError`` naming the file and what the expander said.
Not a goal: sandboxing. xacro evaluates Python expressions of its own kind; a xacro file is as
trusted as a program, and is only run when it was named by its path.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import quoteattr

from mjhost.description.documents import parsed
from mjhost.description.packages import Packages
from mjhost.errors import ModelLoadError

_one_at_a_time = threading.Lock()  # the expander keeps its finder of packages in a module


def _forget_expansions() -> None:
    """In a forked child nobody expands, whatever a vanished thread did."""
    global _one_at_a_time
    _one_at_a_time = threading.Lock()


os.register_at_fork(after_in_child=_forget_expansions)


def expanded(path: Path, packages: Packages, arguments: Mapping[str, str] | None) -> str:
    """The URDF that a xacro file describes.

    Raises:
        ModelLoadError: ``xacrodoc`` is not installed, the file does not expand, or there is nothing
            but macros in it.
    """
    try:
        from xacrodoc import XacroDoc
        from xacrodoc import packages as finders
    except ImportError as error:
        raise ModelLoadError(
            f"{path}: reading xacro needs the extra description: pip install 'mjhost[description]'"
        ) from error
    # As an include of the file, so that its own includes are looked for beside it.
    whole = _WHOLE.format(name=quoteattr(_robot_of(path)), file=quoteattr(str(path.resolve())))
    with _one_at_a_time:
        before, finders._finder = finders._finder, _Finder(packages)
        try:
            document = XacroDoc.from_string(
                whole, subargs=dict(arguments or {}), resolve_packages=False
            )
            text = str(document.dom.toxml())  # to_urdf_string() makes other paths of relative ones
        except ModelLoadError:
            raise
        except Exception as error:
            raise ModelLoadError(f"{path} does not expand: {_told(error)}") from error
        finally:
            finders._finder = before
    if parsed(text, f"{path} expanded", "robot").find("link") is None:
        raise ModelLoadError(
            f"{path} has only macros and no robot{_macros(path)}: name the file that uses them"
        )
    return text


_WHOLE = """<?xml version="1.0" encoding="utf-8"?>
<robot name={name} xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:include filename={file}/>
</robot>"""


class _Finder:
    """Finds packages for ``$(find …)`` where ``package://`` finds them."""

    def __init__(self, packages: Packages) -> None:
        self._packages = packages

    def get_path(self, package: str) -> str:
        return str(self._packages.directory(package, f"$(find {package})"))


def _robot_of(path: Path) -> str:
    """The name of the robot; the file is read with care before the expander reads it."""
    return parsed(_content(path), str(path), "robot").get("name") or path.name.partition(".")[0]


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ModelLoadError(f"{path} cannot be read: {error.strerror or error}") from error


def _told(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _macros(path: Path) -> str:
    root = parsed(_content(path), str(path), "robot")
    names = [e.get("name", "") for e in root.iter() if e.tag.endswith("}macro")]
    return f" ({', '.join(names)})" if names else ""

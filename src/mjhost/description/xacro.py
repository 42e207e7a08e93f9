"""xacro without ROS.

Owns: running the expander, through ``xacrodoc``.
Invariants: ``$(find package)`` means what ``package://`` means.
Failure: ``ModelLoadError`` naming the file and what the expander said.
Not a goal: sandboxing. xacro evaluates Python expressions of its own kind; a xacro file is as
trusted as a program, and is only run when it was named by its path.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree as ET
from xml.sax.saxutils import quoteattr

from mjhost.description.documents import parsed
from mjhost.description.packages import Packages
from mjhost.errors import ModelLoadError

_one_at_a_time = threading.Lock()  # the expander keeps its finder of packages in a module


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
            text = str(document.to_urdf_string())
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
    try:
        name = ET.parse(path).getroot().get("name")  # noqa: S314 - no DTD: the next line has looked
    except (ET.ParseError, OSError) as error:
        raise ModelLoadError(f"{path} is no XML: {error}") from error
    return name or path.name.partition(".")[0]


def _told(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _macros(path: Path) -> str:
    try:
        root = ET.parse(path).getroot()  # noqa: S314 - was expanded before
    except (ET.ParseError, OSError):
        return ""
    names = [e.get("name", "") for e in root.iter() if e.tag.endswith("}macro")]
    return f" ({', '.join(names)})" if names else ""

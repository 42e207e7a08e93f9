"""The runner of the documentation's code blocks: one process and one empty directory per page.

The blocks of a page run in order:

* ``python`` blocks share one namespace, as if the page were one script; tracebacks name the page
  and its line.
* ``console`` blocks: lines that begin with ``$ mjhost`` run and must end with status 0. Other
  lines are output, or commands about the installation, and do not run.
* Any block whose first line is a comment ``file: NAME`` is written to that file instead.

There is no mark that keeps a ``python`` block from running.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>[\w-]*)[^\n]*\n(?P<body>.*?)^ *```$", re.MULTILINE | re.DOTALL
)
FILE_NAME = re.compile(r"(#|//|<!--) file: (?P<name>[\w./-]+)( -->)?$")
CLI = "import sys; from mjhost.cli.main import main; sys.exit(main())"
COMMAND_LIMIT_S = 60.0


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, text and the line its text begins on (1 is the first)."""

    language: str
    text: str
    line: int

    @property
    def file(self) -> str | None:
        match = FILE_NAME.match(self.text.partition("\n")[0].strip())
        return match["name"] if match else None

    @property
    def commands(self) -> list[str]:
        """The command lines that run."""
        lines = self.text.replace("\\\n", " ").splitlines()
        return [line[2:].strip() for line in lines if re.match(r"\$ mjhost\b", line)]

    @property
    def runs(self) -> bool:
        console = self.language == "console" and bool(self.commands)
        return self.language == "python" or console or self.file is not None


def blocks(page: str) -> Iterator[Block]:
    for match in FENCE.finditer(page):
        indent = len(match["indent"])
        text = "".join(line[indent:] for line in match["body"].splitlines(keepends=True))
        yield Block(match["language"], text, page.count("\n", 0, match.start("body")) + 1)


def run_command(command: str) -> None:
    words = shlex.split(command, comments=True)
    if {"|", "&", ">", "<", ";", "&&"} & set(words):
        raise ValueError(f"the documentation runs commands, not shell scripts: {command}")
    done = subprocess.run(
        [sys.executable, "-c", CLI, *words[1:]],
        stdin=subprocess.DEVNULL,
        timeout=COMMAND_LIMIT_S,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"status {done.returncode} of: {command}")


def run_block(block: Block, page: Path, namespace: dict[str, object]) -> None:
    if block.file is not None:
        target = Path(block.file)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(block.text, encoding="utf-8")
    elif block.language == "python":
        padded = "\n" * (block.line - 1) + block.text
        exec(compile(padded, str(page), "exec", dont_inherit=True), namespace)
    elif block.language == "console":
        for command in block.commands:
            run_command(command)


def run_page(page: Path) -> None:
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module  # so that records can look up their annotations
    for block in blocks(page.read_text(encoding="utf-8")):
        run_block(block, page, vars(module))


if __name__ == "__main__":
    # Under the name `__main__` this module is about to be replaced: go on in an importable copy.
    from tests.docs.snippets import run_page as run

    sys.path.insert(0, "")
    run(Path(sys.argv[1]))

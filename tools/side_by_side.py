"""Runs several commands at the same time; their outputs one after the other.

    python tools/side_by_side.py COMMAND… -- COMMAND… [-- COMMAND…]

The first command writes to the terminal as it goes, the others' output follows when they are done.
Exits with 1 if one of them failed. (Not a shell's ``&``: that lets its children ignore Ctrl-C, and
tests want to see it.)
"""

from __future__ import annotations

import itertools
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor


def main(arguments: list[str]) -> int:
    """Runs the commands that ``--`` separates."""
    groups = itertools.groupby(arguments, lambda word: word == "--")
    first, *others = [list(words) for is_separator, words in groups if not is_separator]
    with ThreadPoolExecutor(max_workers=len(others) or 1) as pool:
        results = [pool.submit(_captured, command) for command in others]
        failed = subprocess.run(first, check=False).returncode != 0
        for command, result in zip(others, results, strict=True):
            done = result.result()
            print(f"\n=== {' '.join(command)}", flush=True)
            sys.stdout.buffer.write(done.stdout)
            sys.stdout.flush()
            failed |= done.returncode != 0
    return int(failed)


def _captured(command: list[str]) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

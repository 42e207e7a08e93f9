#!/bin/sh
# Prints a Python that mjhost supports and that can make virtual environments: the newest of
# python3.13 … python3.11, else python3; with arguments, the first suitable of those instead.
# Otherwise says on one line what is missing, and ends with status 1.
set -u

[ "$#" -gt 0 ] || set -- python3.13 python3.12 python3.11 python3

missing="no Python 3.11 to 3.13 found (looked for: $*); install python3 or set PYTHON=/path/to/python"
for name in "$@"; do
    command -v "$name" >/dev/null 2>&1 || continue
    "$name" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null ||
        continue
    if "$name" -c 'import ensurepip, venv' >/dev/null 2>&1; then
        command -v "$name"
        exit 0
    fi
    version=$("$name" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    missing="$name cannot make virtual environments; install the package python$version-venv (or python3-venv)"
done
echo "mjhost: $missing" >&2
exit 1

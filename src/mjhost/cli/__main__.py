"""The command line as ``python -m mjhost.cli``."""

from __future__ import annotations

import sys

from mjhost.cli.main import main

if __name__ == "__main__":
    sys.exit(main())

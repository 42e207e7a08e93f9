"""The table in docs/concurrency.md, written from the admission table of mjhost.env.phases.

It shows what ``MujocoEnv`` offers today; operations that exist only as words are left out.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from mjhost import MujocoEnv
from mjhost.env.phases import ADMISSION, Admission, Operation, Verdict

PAGE = Path(__file__).resolve().parents[1] / "docs" / "concurrency.md"
SECTION = re.compile(
    r"(?P<begin><!-- admission: begin [^\n]*-->\n).*?(?=<!-- admission: end -->)", re.DOTALL
)
COLUMNS = ("no model", "first load", "reloading", "swapping", "operational", "inside a step")
WORDS = {
    Verdict.ADMIT: "yes",
    Verdict.LOADING: "`LoadingWindowError`",
    Verdict.UNLOADED: "`NotLoadedError`",
    Verdict.PHASE: "`PhaseError`",
}
# Members of the env that ask for an operation under another name.
MEMBERS = {
    Operation.INFO: ("info", "generations", "fault"),
    Operation.SET_REALTIME: ("realtime = …",),
    Operation.READ_STATE: (
        *("model", "data", "names", "body_state", "joint_state", "ctrl", "mocap_states", "sensors"),
        *("body", "joint", "geom", "actuator", "sensor", "equality", "mocap"),
    ),
    Operation.SET_STATE: ("set_body_state", "set_joint_state", "set_mocap", "sync_mocap"),
    Operation.SCOPED_ACCESS: ("access",),
    Operation.OPTIONS_READ: ("runtime_options",),
    Operation.OPTIONS_WRITE: ("apply_runtime_options",),
    Operation.SET_PENDING_OPTIONS: ("set_pending_runtime_options",),
}


def members(operation: Operation) -> list[str]:
    """What the env calls it; nothing when it does not offer it."""
    names = MEMBERS.get(operation, (operation.value,))
    return [f"`{name}`" for name in names if hasattr(MujocoEnv, name.split()[0])]


def groups() -> dict[tuple[Admission, bool], list[str]]:
    """Members with the same answers in every column, together."""
    found: dict[tuple[Admission, bool], list[str]] = {}
    for operation, admission in ADMISSION.items():
        key = (admission, operation.allowed_inside_step)
        found.setdefault(key, []).extend(members(operation))
    return {key: names for key, names in found.items() if names}


def row(admission: Admission, names: list[str], *, inside: bool) -> str:
    """One line of the table."""
    cells = [", ".join(names), *(WORDS[verdict] for verdict in admission)]
    return f"| {' | '.join(cells)} | {'yes' if inside else '`ReentrancyError`'} |"


def table() -> str:
    """The whole table."""
    head = f"| of the env | {' | '.join(COLUMNS)} |\n|{'---|' * (len(COLUMNS) + 1)}"
    rows = [row(key[0], names, inside=key[1]) for key, names in groups().items()]
    return "\n".join([head, *rows])


def page() -> str:
    """The page with the table of today."""
    text = PAGE.read_text(encoding="utf-8")
    return SECTION.sub(lambda match: f"{match['begin']}\n{table()}\n\n", text)


def main() -> int:
    """Writes the page."""
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Every benchmark in a process of its own, one table; with ``--write-docs`` the page in docs/.

The records of an engine are kept in ``.cache/benchmarks``; the page shows every engine that has
some. ``make bench ARGS=--write-docs`` makes it anew for both.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import mujoco
from _harness import Figure, machine, parser, table

HERE = Path(__file__).parent
ROOT = HERE.parent
RECORDS = ROOT / ".cache" / "benchmarks"
PAGE = ROOT / "docs" / "benchmarks.md"
BEGIN = "<!-- begin: written by benchmarks/run.py --write-docs -->"
END = "<!-- end -->"


def main() -> int:
    flags = parser(__doc__)
    flags.add_argument("--only", metavar="NAME", help="a single benchmark, such as bench_step")
    flags.add_argument("--write-docs", action="store_true", help="renew the tables of the page")
    arguments = flags.parse_args()
    if arguments.write_docs and arguments.quick:
        flags.error("--write-docs needs the full rounds, take --quick away")
    if arguments.write_docs and arguments.only and not_recorded():
        flags.error(
            "--write-docs with --only would drop all other lines of the page: the records of "
            f"{', '.join(not_recorded())} are not in {RECORDS.relative_to(ROOT)}; run it without "
            "--only on each engine first"
        )
    about, figures = machine(), []
    for script in sorted(HERE.glob(f"{arguments.only or 'bench_*'}.py")):
        figures += records_of(script, arguments)
    if arguments.json:
        print(json.dumps({"machine": about, "figures": [asdict(f) for f in figures]}))
    else:
        print(about)
        print(table(figures))
    if arguments.write_docs:
        keep(about, figures)
        write_page()
    return 0 if figures else 1


def not_recorded() -> list[str]:
    """Engines of the page whose records are not at hand."""
    engines = re.findall(r"^## MuJoCo (\S+)$", PAGE.read_text(), re.MULTILINE)
    return [engine for engine in engines if not (RECORDS / f"{engine}.json").is_file()]


def records_of(script: Path, arguments) -> list[Figure]:
    print(f"{script.stem} …", file=sys.stderr, flush=True)
    command = [sys.executable, str(script), "--json", "--humanoid", str(arguments.humanoid)]
    if arguments.quick:
        command.append("--quick")
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return [Figure(**record) for record in json.loads(done.stdout)]


def keep(about: str, figures: list[Figure]) -> None:
    """Stores this engine's figures; those of benchmarks that were not run now stay."""
    path = RECORDS / f"{mujoco.mj_versionString()}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    renewed = {figure.benchmark for figure in figures}
    old = json.loads(path.read_text())["figures"] if path.is_file() else []
    both = [record for record in old if record["benchmark"] not in renewed]
    both += [asdict(figure) for figure in figures]
    both.sort(key=lambda record: record["benchmark"])
    path.write_text(json.dumps({"machine": about, "figures": both}, indent=1))


def write_page() -> None:
    """Puts the table of every engine between the page's markers."""
    sections = []
    for path in sorted(RECORDS.glob("*.json"), key=lambda p: version(p.stem), reverse=True):
        record = json.loads(path.read_text())
        figures = [Figure(**fields) for fields in record["figures"]]
        sections.append(f"## MuJoCo {path.stem}\n\n{record['machine']}\n\n{table(figures)}\n")
    head, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, tail = rest.partition(END)
    PAGE.write_text(f"{head}{BEGIN}\n\n" + "\n".join(sections) + f"\n{END}{tail}")


def version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


if __name__ == "__main__":
    sys.exit(main())

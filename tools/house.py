"""Measure the package against the bounds of ``house.toml``: ``python -m tools.house``.

``--check`` prints each violation of a bound that is exceeded, and exits 1 if there is one. ``--under kg_memory/llm``
measures one folder against the goals of the whole package, and ``-v`` lists all offenders, also those within a bound.
"""

from __future__ import annotations

import argparse
import ast
import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from tools.source import BOUNDS, FUNCTION, WORDS, Source, lines

ROOT = Path(__file__).parents[1]
PACKAGE = "kg_memory"
APART = tuple(BOUNDS["apart"])
FOLLOWED = ".follow.json"  # which `tools.follow` saves


class Measure(NamedTuple):
    """A number, the places that make it up, and a note beside it."""

    value: float
    offenders: Sequence[str] = ()
    note: str = ""


def measure(root: Path, under: str = PACKAGE) -> dict[str, Measure]:
    """Return the rows of the table for what lies *under* a folder; some are there for the whole package only."""
    folder = root / under
    paths = [folder] if folder.is_file() else sorted(folder.rglob("*.py"))
    sources = [Source(path, root) for path in paths]
    counted = [source for source in sources if not source.name.startswith(APART)]
    apart = len(sources) - len(counted)
    offenders: dict[str, list[str]] = {row: [] for row, bound in BOUNDS["rows"].items() if bound.get("rule")}
    for source in sources:
        for row, line, message in source.offences():
            offenders[row].append(f"{source.name}:{line} {message}")
    rows = {row: Measure(len(places) / _per(row, sources), places) for row, places in offenders.items()}
    twins = sum(len(source.code.intersection(lines(twin))) for source in sources for _, twin in source.pairs)
    rows["pair"] = rows["pair"]._replace(note=f", {twins} lines")
    rows["files"] = Measure(len(counted), note=f" + {apart} apart" if apart else "")
    rows["code"] = Measure(sum(len(source.code) for source in counted) / 1000)
    return rows | _whole(root, sources) if under == PACKAGE else rows


def _per(row: str, sources: Sequence[Source]) -> float:
    """Return what the offenders of a row are divided by."""
    bound = BOUNDS["rows"][row]
    if "per" not in bound:
        return 1
    total: int = sum(len(getattr(source, bound["per"])) for source in sources)
    return max(total, 1) / float(bound["many"])


def _whole(root: Path, sources: Sequence[Source]) -> dict[str, Measure]:
    """Return what is measured of the package as a whole."""
    entries = {path.name for path in (root / PACKAGE).iterdir() if not f"{PACKAGE}/{path.name}/".startswith(APART)}
    entries -= {"__pycache__", "py.typed"}
    contracts = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    layers = list(chain(*(contract.get("layers", ()) for contract in contracts)))
    rows = {"entries": Measure(len(entries)), "layers": Measure(len(layers)), "facade": _facade(sources)}
    followed = json.loads((root / FOLLOWED).read_text("utf-8")) if (root / FOLLOWED).exists() else {}
    rows |= {row: Measure(followed[row]) for row in ("add", "search") if row in followed}
    by_hand = {row: bound["by_hand"] for row, bound in BOUNDS["rows"].items() if "by_hand" in bound}
    rows |= {row: Measure(count, note=", by hand") for row, count in by_hand.items()}
    command = ["git", "-C", str(root), "log", "--format=%h %s", f"{BOUNDS['first_commit']}..HEAD"]
    if (log := subprocess.run(command, capture_output=True, text=True, check=False)).returncode == 0:
        bad = [f"commit {line}" for line in log.stdout.splitlines() if _is_bad_subject(line.partition(" ")[2])]
        rows["subject"] = Measure(len(bad), bad)
    return rows


def _facade(sources: Sequence[Source]) -> Measure:
    """Count the public attributes of `GraphMemory` and its bases, without its groups; `add` and `aadd` are one."""
    stems = {Path(source.name).stem for source in sources if source.name.startswith(f"{PACKAGE}/memory/")}
    classes = [(source, node) for source in sources for node in source.nodes if isinstance(node, ast.ClassDef)]
    kinds, places = [pair for pair in classes if pair[1].name == "GraphMemory"], dict[str, str]()
    for source, kind in kinds:  # grows on the way
        homes = _homes(source)
        bases = {(homes.get(base.id, source.name), base.id) for base in kind.bases if isinstance(base, ast.Name)}
        kinds += [pair for pair in classes if (pair[0].name, pair[1].name) in bases]
        places |= {name: f"{source.name}:{line} GraphMemory.{name} is public" for line, name in _attributes(kind)}
    names = {name for name in places.keys() - (stems - {"open"}) if not name.startswith("_")}
    public = sorted(name for name in names if not (name[0] == "a" and name[1:] in names))
    mixins = sum(len(kind.bases) for _, kind in kinds[:1])
    return Measure(len(public), [places[name] for name in public], f", by {mixins} mixins")


def _attributes(kind: ast.ClassDef) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each method, field and attribute of a class."""
    yield from ((node.lineno, node.name) for node in kind.body if isinstance(node, FUNCTION))
    for node in chain(*(ast.walk(node) for node in kind.body if isinstance(node, ast.Assign | ast.AnnAssign))):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
    for node in ast.walk(kind):
        match node:
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                yield node.lineno, name


def _homes(source: Source) -> dict[str, str]:
    """Return the file of each name that *source* imports."""
    imports = [node for node in source.nodes if isinstance(node, ast.ImportFrom)]
    return {alias.name: f"{str(node.module).replace('.', '/')}.py" for node in imports for alias in node.names}


def _is_bad_subject(subject: str) -> bool:
    return len(subject) > 72 or subject.partition(" ")[0].lower() in WORDS["subjects"]


def _line(row: str, measured: Measure | None) -> str:
    bound = BOUNDS["rows"][row]
    value = f"{round(measured.value, 2):g}{measured.note}" if measured else "-"
    missed = f"NOT MET: {bound['reason']}" if "reason" in bound else "NOT MET"
    verdict = ("met" if measured.value <= bound["goal"] else missed) if measured else "-"
    return f"{bound['name']:44}{value:>22}   <= {bound['goal']:<4g} {verdict}"


def main() -> None:
    """Print the table, or the violations."""
    parser = argparse.ArgumentParser(prog="python -m tools.house", description=__doc__)
    parser.add_argument("--check", action="store_true", help="print the violations only, and exit 1 if there are any")
    parser.add_argument("--under", default=PACKAGE, metavar="FOLDER", help="a folder or a file to measure")
    parser.add_argument("--root", type=Path, default=ROOT, help="the folder of the project, if not this one")
    parser.add_argument("-v", "--verbose", action="store_true", help="list all offenders")
    chosen = parser.parse_args()
    rows = measure(chosen.root, chosen.under.strip("/"))
    limits = {row: bound.get("accepted", bound["goal"]) for row, bound in BOUNDS["rows"].items()}
    exceeded = [row for row, limit in limits.items() if row in rows and rows[row].value > limit]
    if not chosen.check:
        print("\n".join(_line(row, rows.get(row)) for row in BOUNDS["rows"]))
    listed = BOUNDS["rows"] if chosen.verbose else exceeded if chosen.check else ()
    for offender in chain(*(rows[row].offenders for row in listed if row in rows)):
        print(offender)
    if chosen.check:
        print("\n".join(_line(row, rows[row]) for row in exceeded), file=sys.stderr)
        sys.exit(bool(exceeded))


if __name__ == "__main__":
    main()

"""Measure the code base against the limits in ``house.toml``: ``python -m tools.house``.

``--check`` prints the exceeded limits with the places in the code, and exits with 1 if there are any. ``-v`` lists all
places.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
HOUSE = tomllib.loads(Path(__file__).with_name("house.toml").read_text("utf-8"))
BOUNDS: dict[str, dict[str, Any]] = HOUSE["bounds"]
LONGEST_FUNCTION, LONGEST_FILE, LONGEST_SUBJECT = 60, 400, 72
AREA = re.compile(r"[\w./ -]+: \S")
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


class Measure(NamedTuple):
    """The figure of one row of the table, and the places in the code that are counted."""

    value: int
    places: list[str]


class Source:
    """A Python file of the project and its syntax tree."""

    def __init__(self, path: Path) -> None:
        self.name, self.text = path.relative_to(ROOT).as_posix(), path.read_text("utf-8")
        self.nodes: list[Any] = list(ast.walk(ast.parse(self.text)))

    @cached_property
    def code_lines(self) -> int:
        """The number of lines of code, without blank lines, comments and docstrings."""
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        spans = [range(token.start[0], token.end[0] + 1) for token in tokens if token.type not in LAYOUT]
        owners = (node for node in self.nodes if isinstance(node, (ast.Module, ast.ClassDef, *FUNCTION)))
        docs = [_lines(owner.body[0]) for owner in owners if owner.body and _is_text(owner.body[0])]
        return len(set(chain(*spans)).difference(*docs))

    def long_functions(self) -> Iterator[str]:
        """Yield a text with the place and length of each function that is longer than `LONGEST_FUNCTION` lines."""
        for node in self.nodes:
            if isinstance(node, FUNCTION) and len(_lines(node)) > LONGEST_FUNCTION:
                yield f"{self.name}:{node.lineno} {node.name} has {len(_lines(node))} lines"

    def pairs(self) -> Iterator[str]:
        """Yield a text with the place of each function that has a hand-written async twin: "get" and "aget"."""
        for scope in self.nodes:
            if isinstance(scope, ast.Module | ast.ClassDef):
                functions = {node.name: node for node in scope.body if isinstance(node, FUNCTION)}
                bodies = {name: node for name, node in functions.items() if not _is_constant(node.body[-1])}
                for name in sorted(bodies.keys() - set(HOUSE["imposed"])):
                    twin = re.sub(r"^_*", r"\g<0>a", name)
                    if twin in bodies:
                        yield f"{self.name}:{bodies[name].lineno} {name} and {twin} are both written by hand"


def measure() -> dict[str, Measure]:
    """Return the measured figures of all rows, by row name."""
    package = [Source(path) for path in sorted((ROOT / "kg_memory").rglob("*.py"))]
    core = [source for source in package if not source.name.startswith("kg_memory/contrib/")]
    tests = [Source(path) for path in (ROOT / "tests").rglob("*.py")]
    long = [source.name for source in package if len(source.text.splitlines()) > LONGEST_FILE]
    places = {
        "functions": list(chain(*(source.long_functions() for source in package))),
        "files": long,
        "pairs": list(chain(*(source.pairs() for source in package))),
        "subjects": _bad_subjects(),
    }
    entries = {path.name for path in (ROOT / "kg_memory").iterdir()} - {"__pycache__", "py.typed"}
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    counts = {
        "core_files": len(core),
        "core_lines": sum(source.code_lines for source in core),
        "all_files": len(package),
        "all_lines": sum(source.code_lines for source in package),
        "test_lines": sum(source.code_lines for source in tests),
        "entries": len(entries),
        "layers": sum(len(contract.get("layers", ())) for contract in contracts),
        **_costs(),
    }
    rows = {row: Measure(len(found), found) for row, found in places.items()}
    return rows | {row: Measure(count, []) for row, count in counts.items()}


def _costs() -> dict[str, int]:
    """Return the files, round trips and queries of one `add` and one `search`, measured in a separate process."""
    command = [sys.executable, "-m", "tools.follow", "--json"]
    costs = json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)
    rows = {f"{verb}_files": costs[verb][0] for verb in ("add", "search")}
    rows |= {f"{verb}_trips": costs[verb][1] for verb in ("add", "search")}
    return rows | {"search_queries": costs["search"][2]}


def _bad_subjects() -> list[str]:
    """Return the commits whose subject is longer than 72 characters or does not start with an area ("store: ...")."""
    command = ["git", "-C", str(ROOT), "log", "--no-merges", "--format=%h %s", f"{HOUSE['first_commit']}..HEAD"]
    log = subprocess.run(command, capture_output=True, text=True, check=False).stdout  # none in an archive
    subjects = ((line, line.partition(" ")[2]) for line in log.splitlines())
    return [f"commit {line}" for line, subject in subjects if len(subject) > LONGEST_SUBJECT or not AREA.match(subject)]


def _lines(node: Any) -> range:
    return range(node.lineno, node.end_lineno + 1)


def _is_constant(node: ast.AST) -> bool:
    """Return whether *node* is an expression statement of a constant, such as a docstring or an ellipsis."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_text(node: Any) -> bool:
    return _is_constant(node) and isinstance(node.value.value, str)


def main() -> None:
    """Print the table, or with --check only the exceeded rows."""
    parser = argparse.ArgumentParser(prog="python -m tools.house", description=__doc__)
    parser.add_argument("--check", action="store_true", help="print exceeded rows only, and exit 1 if there are any")
    parser.add_argument("-v", "--verbose", action="store_true", help="list the places of all rows")
    chosen = parser.parse_args()
    rows = measure()
    exceeded = [row for row, bound in BOUNDS.items() if rows[row].value > bound["bound"]]
    for row in exceeded if chosen.check else BOUNDS:
        bound = BOUNDS[row]
        goal = f", goal {bound['goal']}" if "goal" in bound else ""
        print(f"{bound['name']:52}{rows[row].value:>7}   bound {bound['bound']}{goal}")
        for place in rows[row].places if chosen.check or chosen.verbose else ():
            print(f"  {place}")
    if chosen.check and exceeded:
        sys.exit("a bound of tools/house.toml is exceeded: make room, the bounds are only lowered")


if __name__ == "__main__":
    main()

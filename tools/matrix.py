"""Run the tests on each supported Python with the oldest and newest dependencies: ``make test-matrix``.

Each combination has an environment under ``.venv-matrix``. A table at the end shows the results.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
VERSIONS = ("oldest", "newest")
SHOWN = ("langgraph", "langchain-core", "langchain-openai", "langchain", "falkordb", "pydantic")
TESTS = (
    "tests/adapters", "tests/items", "tests/store_conformance", "tests/llm", "tests/communities", "tests/forgetting",
    "tests/ingestion", "tests/retrieval", "tests/review", "tests/test_memory.py", "tests/test_graphs.py",
    "tests/test_examples.py", "tests/falkor/test_connect.py",
)  # fmt: skip


def floors() -> list[str]:
    """Return the lower bound of each dependency as a pip constraint: ``langgraph>=1.0,<2`` -> ``langgraph==1.0``.

    A dependency for some versions of Python keeps its marker.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    stated = [*project["dependencies"], *project["optional-dependencies"]["agents"]]
    bounds = (re.match(r"([\w-]+)>=([\d.]+)[^;]*(.*)", each) for each in stated)
    return [f"{bound[1]}=={bound[2]}{bound[3]}" for bound in bounds if bound]


def interpreter(version: str) -> str | None:
    """Return the path of Python *version* ("3.12"), from PATH or pyenv; None if it is not installed."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    known = [*sorted(pyenv.glob(f"{version}.*/bin/python3")), shutil.which(f"python{version}")]
    return next((str(each) for each in known if each is not None), None)


def installed(home: Path, python: str, versions: str) -> str:
    """Create the virtual environment *home* with *python*, and return a text with the installed package versions.

    *versions* is "oldest" or "newest" for the dependencies.
    """
    subprocess.run([python, "-m", "venv", "--clear", home], check=True)
    pip = [str(home / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
    constraints = home / "constraints.txt"
    constraints.write_text("\n".join(floors() if versions == "oldest" else []))
    editable = ["--editable", f"{ROOT}[test]", "--editable", str(ROOT / "packages" / "store-conformance-langgraph")]
    subprocess.run([*pip, "install", "--quiet", "--constraint", constraints, *editable], check=True)
    subprocess.run([home / "bin" / "kg-memory", "setup"], check=True, stdout=subprocess.DEVNULL)
    listed = subprocess.run([*pip, "list", "--format=freeze"], check=True, capture_output=True, text=True).stdout
    found = dict(line.lower().split("==") for line in listed.splitlines() if "==" in line)
    return ", ".join(f"{name} {found[name]}" for name in SHOWN if name in found)


def tested(home: Path, tests: list[str]) -> tuple[bool, str]:
    """Run *tests* in the environment *home*; return whether they passed, and pytest's last line of output."""
    command = [
        str(home / "bin" / "python"),
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-n",
        "auto",
        "--dist",
        "loadfile",
        "--no-loadscope-reorder",
        *tests,
    ]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:
        lines = []
        for line in running.stdout or ():
            print(line, end="", flush=True)
            lines.append(line.strip())
    return running.returncode == 0, next((line for line in reversed(lines) if line), "")


def main() -> int:
    """Run the matrix and print the table; return 1 if a run failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", nargs="+", choices=PYTHONS, default=PYTHONS)
    parser.add_argument("--versions", nargs="+", choices=VERSIONS, default=VERSIONS)
    parser.add_argument("tests", nargs="*", default=list(TESTS), help="what to run, as for pytest")
    given = parser.parse_args()
    table = ["| Python | versions | result | time | which |", "| --- | --- | --- | --- | --- |"]
    failed = False
    for python in given.python:
        found = interpreter(python)
        if found is None:
            table.append(f"| {python} | | not found on this machine | | |")
            continue
        for versions in given.versions:
            home = ROOT / ".venv-matrix" / f"{python}-{versions}"
            print(f"== Python {python}, {versions} versions: installing into {home} ...", flush=True)
            which, began = installed(home, found, versions), time.monotonic()
            passed, last = tested(home, given.tests)
            failed = failed or not passed
            table.append(f"| {python} | {versions} | {last} | {time.monotonic() - began:.0f} s | {which} |")
    print("\n".join(table))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

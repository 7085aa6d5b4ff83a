"""Test any LangGraph store: ``python -m kg_memory.testing.store_conformance --store package.module:name``."""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
from pathlib import Path

import pytest

from kg_memory.testing.plugin import Reporter
from kg_memory.testing.store_conformance.capability import Capability
from kg_memory.testing.store_conformance.naming import CHOSEN, Chosen

TESTS = Path(__file__).parent / "chosen.py"
SETTINGS = """
[pytest]
addopts = --import-mode=importlib
python_classes = *
filterwarnings =
    ignore::pytest.PytestAssertRewriteWarning
    ignore::pytest.PytestDeprecationWarning
"""


def main(words: list[str] | None = None) -> int:
    """Run the suite on the stores that *words* name; return pytest's exit code: 0 when nothing failed."""
    asked = _parser().parse_args(words)
    sys.path.insert(0, "")
    CHOSEN[:] = [Chosen(name, Capability.all_but(Capability.PERSISTENCE, *asked.without)) for name in asked.store]
    reporter = Reporter()
    with contextlib.redirect_stdout(sys.stderr) if asked.markdown else contextlib.nullcontext():
        code = _run(reporter, asked.pytest)
    if asked.markdown and reporter.report.stores:
        sys.stdout.write(reporter.report.markdown())
    return code


def _parser() -> argparse.ArgumentParser:
    names = ", ".join(each.value for each in Capability)
    parser = argparse.ArgumentParser(
        prog="python -m kg_memory.testing.store_conformance",
        description="Test a LangGraph store by its contract, and report by capability.",
        epilog="What follows -- goes to pytest: -- -x -k filters",
    )
    parser.add_argument(
        "--store",
        action="append",
        required=True,
        metavar="MODULE:NAME",
        help="a subclass of StoreConformance, or a function that returns an empty store (or a context manager of one) "
        "and takes index= and ttl=; may be given several times",
    )
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="CAPABILITY",
        type=Capability,
        help=f"what the store of a function does not do, besides persistence: {names}",
    )
    parser.add_argument(
        "--markdown", action="store_true", help="write the report to stdout as Markdown, all else to stderr"
    )
    parser.add_argument("pytest", nargs="*", help=argparse.SUPPRESS)
    return parser


def _run(reporter: Reporter, words: list[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder) / "pytest.ini"
        settings.write_text(SETTINGS)
        options = ["-c", str(settings), "--rootdir", folder, "-q", "--tb=short", "-p", "no:cacheprovider"]
        return pytest.main([*options, *words, str(TESTS)], plugins=[reporter])


if __name__ == "__main__":
    sys.exit(main())

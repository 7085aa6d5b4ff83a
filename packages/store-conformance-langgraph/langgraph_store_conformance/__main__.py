"""Test any LangGraph store: ``python -m langgraph_store_conformance --store package.module:name``."""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
from pathlib import Path

import pytest

from langgraph_store_conformance.harness import Capability
from langgraph_store_conformance.report import Report

PYTEST_INI = """
[pytest]
addopts = --import-mode=importlib
python_classes = *
filterwarnings =
    ignore::pytest.PytestAssertRewriteWarning
    ignore::pytest.PytestDeprecationWarning
"""
TEST_FILE = """
import pytest

pytest.register_assert_rewrite("langgraph_store_conformance.checks")

from langgraph_store_conformance.suite import load_suites

globals().update(load_suites({stores!r}, without={without!r}))
"""


def main(arguments: list[str] | None = None) -> int:
    """Run the suite on the stores in *arguments*; return pytest's exit code: 0 if nothing failed."""
    options = _make_parser().parse_args(arguments)
    report = Report()
    with contextlib.redirect_stdout(sys.stderr) if options.markdown else contextlib.nullcontext():
        code = _run_pytest(report, options)
    if options.markdown and report.stores:
        sys.stdout.write(report.format_markdown())
    return code


def _make_parser() -> argparse.ArgumentParser:
    names = ", ".join(capability.value for capability in Capability)
    parser = argparse.ArgumentParser(
        prog="python -m langgraph_store_conformance",
        description="Test a LangGraph store against the contract, and report by capability.",
        epilog="Arguments after -- go to pytest: -- -x -k filters",
    )
    parser.add_argument(
        "--store",
        action="append",
        required=True,
        metavar="MODULE:NAME",
        help="a subclass of StoreConformance, or a function that returns an empty store (or a context manager of one) "
        "and takes index= and ttl=; may be repeated",
    )
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="CAPABILITY",
        type=Capability,
        help=f"a capability that the stores of functions lack, besides persistence: {names}; may be repeated",
    )
    parser.add_argument(
        "--markdown", action="store_true", help="write the report to stdout as Markdown, and everything else to stderr"
    )
    parser.add_argument("pytest", nargs="*", help=argparse.SUPPRESS)
    return parser


def _run_pytest(report: Report, options: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory() as folder:
        settings, tests = Path(folder) / "pytest.ini", Path(folder) / "test_stores.py"
        settings.write_text(PYTEST_INI, encoding="utf-8")
        without = [capability.value for capability in options.without]
        tests.write_text(TEST_FILE.format(stores=options.store, without=without), encoding="utf-8")
        arguments = ["-c", str(settings), "--rootdir", folder, "-q", "--tb=short", "-p", "no:cacheprovider"]
        return pytest.main([*arguments, *options.pytest, str(tests)], plugins=[report])


if __name__ == "__main__":
    sys.exit(main())

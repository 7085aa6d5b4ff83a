"""Report outcomes by store and capability: a pytest plugin.

Enable it with ``pytest -p langgraph_store_conformance.report``, or with
``pytest_plugins = ["langgraph_store_conformance.report"]`` in a conftest.py.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Literal

import pytest

from langgraph_store_conformance.harness import NOT_DECLARED, REPORT_PROPERTY, Capability

Outcome = Literal["passed", "failed", "not declared"]
Outcomes = dict[str, dict[str, Outcome]]
"""By mode, then by test."""


class Report:
    """The outcomes of all checks in a run, collected by pytest hooks."""

    def __init__(self) -> None:
        self.stores: dict[str, dict[Capability, Outcomes]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record one phase (setup, call, teardown) of a test, if it is a check of the suite."""
        labels = dict(report.user_properties).get(REPORT_PROPERTY)
        outcome = _read_outcome(report)
        if not isinstance(labels, (list, tuple)) or outcome is None:
            return
        store, capability, mode = str(labels[0]), Capability(labels[1]), str(labels[2])
        capabilities = self.stores.setdefault(store, {key: defaultdict(dict) for key in Capability})
        tests = capabilities[capability][mode]
        test = report.nodeid.rpartition("::")[2].partition("[")[0]
        if tests.get(test) != "failed":
            tests[test] = outcome

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write a table for each store."""
        for store, capabilities in self.stores.items():
            terminalreporter.write_sep("=", f"store conformance: {store}")
            for line in _format_table(capabilities):
                terminalreporter.write_line(line)

    def list_failures(self, store: str) -> dict[str, list[str]]:
        """Return the modes in which each failed test failed."""
        failures: dict[str, list[str]] = defaultdict(list)
        for outcomes in self.stores.get(store, {}).values():
            for mode, tests in outcomes.items():
                for test, outcome in tests.items():
                    if outcome == "failed":
                        failures[test].append(mode)
        return dict(failures)

    def format_markdown(self) -> str:
        """Return one table of all stores, and a list of the failures of each."""
        lines = ["| | " + " | ".join(self.stores) + " |", "| --- |" + " --- |" * len(self.stores)]
        for capability in Capability:
            cells = [_format_cell(capabilities[capability]) for capabilities in self.stores.values()]
            lines.append(f"| {capability.value} | " + " | ".join(cells) + " |")
        for store in self.stores:
            if failures := self.list_failures(store):
                bullets = [_format_failure(test, modes) for test, modes in failures.items()]
                lines += ["", f"What fails in {store}:", "", *bullets]
        return "\n".join(lines) + "\n"


def pytest_configure(config: pytest.Config) -> None:
    """Start a report."""
    config.pluginmanager.register(Report())


def _read_outcome(report: pytest.TestReport) -> Outcome | None:
    """Return what a phase decides: a passed setup or teardown decides nothing, an xfail is a failure."""
    if report.failed or hasattr(report, "wasxfail"):
        return "failed"
    if report.skipped:
        return "not declared" if NOT_DECLARED in str(report.longrepr) else None
    return "passed" if report.when == "call" else None


def _format_count(tests: dict[str, Outcome]) -> str:
    """Return how many tests passed, such as ``12/12``."""
    declared = [outcome for outcome in tests.values() if outcome != "not declared"]
    return f"{declared.count('passed')}/{len(declared)}" if declared else "not declared"


def _format_cell(outcomes: Outcomes) -> str:
    counts = {mode: _format_count(tests) for mode, tests in outcomes.items()}
    if len(set(counts.values())) <= 1:
        return next(iter(counts.values()), "not run")
    return ", ".join(f"{count} {mode}" for mode, count in counts.items())


def _format_failure(test: str, modes: list[str]) -> str:
    sentence = test.removeprefix("test_").replace("_", " ")
    return f"- {sentence}" + ("" if len(modes) > 1 else f" ({modes[0]})")


def _format_table(capabilities: dict[Capability, Outcomes]) -> list[str]:
    rows = [("", "sync", "async")]
    for capability, outcomes in capabilities.items():
        counts = {mode: _format_count(tests) for mode, tests in outcomes.items()}
        rows.append((capability.value, counts.get("sync", "-"), counts.get("async", "-")))
    width = max(len(row[0]) for row in rows)
    return [f"{name:<{width}}  {sync:<12}  {async_}".rstrip() for name, sync, async_ in rows]

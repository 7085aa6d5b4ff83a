"""A pytest plugin: the report of the conformance suite at the end of the run.

``pytest -p kg_memory.testing.plugin``, or ``pytest_plugins = ["kg_memory.testing.plugin"]`` in a conftest.py.
"""

from __future__ import annotations

import pytest

from kg_memory.testing.store_conformance.report import Report


class Reporter:
    """Collects what the tests of the suite say, and writes it as tables."""

    def __init__(self) -> None:
        self.report = Report()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take down one phase of one test."""
        self.report.take(report)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write a table of each store."""
        for title, lines in self.report.tables().items():
            terminalreporter.write_sep("=", f"store conformance: {title}")
            for line in lines:
                terminalreporter.write_line(line)


def pytest_configure(config: pytest.Config) -> None:
    """Begin the report."""
    config.pluginmanager.register(Reporter())

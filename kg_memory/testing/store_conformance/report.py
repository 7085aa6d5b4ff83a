"""What the tests of the suite said, by store, capability and side; as a table of text and as Markdown."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Literal

import pytest

from kg_memory.testing.store_conformance.capability import Capability
from kg_memory.testing.store_conformance.stories import NOT_DECLARED, PROPERTY

Outcome = Literal["passed", "failed", "not declared"]
Sides = dict[str, dict[str, Outcome]]
"""By side, the outcome of each test."""


@dataclass
class Report:
    """Outcomes of tests: by store, capability, side and name."""

    stores: dict[str, dict[Capability, Sides]] = field(default_factory=dict)

    def take(self, report: pytest.TestReport) -> None:
        """Take down what one phase (setup, call, teardown) of a test said, if it is one of the suite."""
        said = dict(report.user_properties).get(PROPERTY)
        outcome = _outcome(report)
        if not isinstance(said, (list, tuple)) or outcome is None:
            return
        store, capability, side = str(said[0]), Capability(said[1]), str(said[2])
        sides = self.stores.setdefault(store, {each: defaultdict(dict) for each in Capability})[capability]
        test = report.nodeid.rpartition("::")[2].partition("[")[0]
        if sides[side].get(test) != "failed":
            sides[side][test] = outcome

    def tables(self) -> dict[str, list[str]]:
        """Return the lines of a table of each store."""
        return {store: _table(capabilities) for store, capabilities in self.stores.items()}

    def failures(self, store: str) -> dict[str, list[str]]:
        """Return the tests that failed, and on which sides."""
        found: dict[str, list[str]] = defaultdict(list)
        for sides in self.stores.get(store, {}).values():
            for side, tests in sides.items():
                for test, outcome in tests.items():
                    if outcome == "failed":
                        found[test].append(side)
        return dict(found)

    def markdown(self) -> str:
        """Return one table of all stores, and what failed in each."""
        lines = ["| | " + " | ".join(self.stores) + " |", "| --- |" + " --- |" * len(self.stores)]
        for capability in Capability:
            cells = (_cell(capabilities[capability]) for capabilities in self.stores.values())
            lines.append(f"| {capability.value} | " + " | ".join(cells) + " |")
        for store in self.stores:
            if failed := self.failures(store):
                lines += ["", f"What fails in {store}:", "", *(_bullet(*each) for each in failed.items())]
        return "\n".join(lines) + "\n"


def _outcome(report: pytest.TestReport) -> Outcome | None:
    """Return what a phase says of its test: a passed setup or teardown says nothing, a known failure is a failure."""
    if report.failed or hasattr(report, "wasxfail"):
        return "failed"
    if report.skipped:
        return "not declared" if NOT_DECLARED in str(report.longrepr) else None
    return "passed" if report.when == "call" else None


def _count(tests: dict[str, Outcome]) -> str:
    """Return how many passed, such as ``12/12``."""
    declared = [outcome for outcome in tests.values() if outcome != "not declared"]
    return f"{declared.count('passed')}/{len(declared)}" if declared else "not declared"


def _cell(sides: Sides) -> str:
    counts = {side: _count(tests) for side, tests in sides.items()}
    if len(set(counts.values())) <= 1:
        return next(iter(counts.values()), "not run")
    return ", ".join(f"{count} {side}" for side, count in counts.items())


def _bullet(test: str, sides: list[str]) -> str:
    sentence = test.removeprefix("test_").replace("_", " ")
    return f"- {sentence}" + ("" if len(sides) > 1 else f" ({sides[0]})")


def _table(capabilities: dict[Capability, Sides]) -> list[str]:
    rows = [("", "sync", "async")]
    for capability, sides in capabilities.items():
        sync, other = (_count(sides[side]) if side in sides else "-" for side in ("sync", "async"))
        rows.append((capability.value, sync, other))
    width = max(len(row[0]) for row in rows)
    return [f"{name:<{width}}  {sync:<12}  {other}".rstrip() for name, sync, other in rows]

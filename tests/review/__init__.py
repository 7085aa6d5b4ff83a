"""Review by a person: what the model was not sure of."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from kg_memory import GraphMemory
from kg_memory.models.graph import Fact
from kg_memory.temporal.interval import instant
from tests.bound import Verbs
from tests.scripted import Rule, Scripted

_JUDGE = Scripted().rules["judge"]
Told = tuple[str, str | None, str | None]
"""A sentence, its first day and its end day."""

OSLO, PARIS = "Ann lives in Oslo", "Ann lives in Paris"
BEFORE = [(OSLO, "2024-01-01", None)]
AFTER = [(OSLO, "2024-01-01", "2024-06-01"), (PARIS, "2024-06-01", None)]


def judging(kind: str, confidence: float = 1.0, holds: str = "new", **more: str) -> Rule:
    """Return a rule of the model that gives the verdict *kind* on two homes of a person."""

    def rule(fields: Mapping[str, Any]) -> Any:
        found = _JUDGE(fields)
        for each in found["verdicts"]:
            if each["verdict"] == "supersedes":
                each |= {"verdict": kind, "confidence": confidence, "holds": holds, **more}
        return found

    return rule


class World:
    """One namespace of a memory, in which Ann moves."""

    def __init__(self, memory: GraphMemory, namespace: str) -> None:
        self.memory = memory
        self.namespace = namespace

    def __getattr__(self, name: str) -> Any:
        return getattr(Verbs(self.memory, self.namespace), name)

    def moves(self, place: str, at: str, words: str = "", **given: Any) -> Any:
        """Add a message of Ann that she moved to *place*."""
        return self.add(f"I moved to {place}{words}.", speaker="Ann", at=at, **given)

    def doubts(self, kind: str = "supersedes", confidence: float = 0.7) -> None:
        """Make the model unsure from now on."""
        self.memory.driver.model.rules["judge"] = judging(kind, confidence)  # type: ignore[attr-defined]

    def now(self) -> datetime:
        """Return an instant of the driver's clock that is later than all writes so far."""
        return instant(self.memory.driver.clock())  # type: ignore[return-value]

    def lived(self, **asked: Any) -> list[Told]:
        """Return where Ann lived and when, earliest first."""
        return told(reversed(self.facts.about("Ann", **asked)))


def told(facts: Any) -> list[Told]:
    """Return the sentence and the dates of each fact."""
    return [(each.sentence, _day(each, "valid_at"), _day(each, "invalid_at")) for each in facts]


def _day(fact: Fact, name: str) -> str | None:
    moment = getattr(fact, name)
    return f"{moment:%Y-%m-%d}" if moment else None

"""Beliefs: the stored periods in which the memory considers facts true, and how they change with new statements.

A belief is never overwritten. When the truth changes, it is closed, and a new one is stored.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from kg_memory.models.graph import Precision
from kg_memory.temporal.interval import OPEN_END
from kg_memory.temporal.policy import Verdict
from kg_memory.temporal.statements import Statement
from kg_memory.temporal.truth import Period, Truth


@dataclass(frozen=True, slots=True)
class Belief:
    """A stored period in which the memory considers a fact true.

    If *proposed*, it does not count until a person accepts it. The `id` is needed to close the belief later.
    """

    id: str
    period: Period
    proposed: bool = False

    @property
    def is_current(self) -> bool:
        """Whether the fact counts as true now: the period has no end, and no person has to accept it first."""
        return not self.proposed and self.period.invalid_at == OPEN_END


@dataclass(frozen=True, slots=True)
class Edit:
    """Dates that a person entered for the fact with the id *fact*; they replace the dates of its latest statement.

    Times are microseconds since the epoch; None leaves a date unchanged, and `OPEN_END` removes the end.
    """

    fact: str
    valid_at: int | None
    invalid_at: int | None
    precision: Precision = "instant"
    end_precision: Precision = "instant"


@dataclass(slots=True)
class History:
    """All stored data about some facts: statements, beliefs, sentences, and verdicts.

    `statements` (claims of messages), `beliefs` (periods in which a fact counts as true) and `sentences` are by fact
    id. `verdicts` (how two facts relate) and `edits` (dates that a person entered) are by verdict id.
    """

    statements: defaultdict[str, dict[tuple[str, int, int], Statement]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    beliefs: defaultdict[str, list[Belief]] = field(default_factory=lambda: defaultdict(list))
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    edits: dict[str, Edit] = field(default_factory=dict)
    sentences: dict[str, str] = field(default_factory=dict)
    decided: set[str] = field(default_factory=set)
    """The ids of verdicts that a person decided."""

    def add_statement(self, statement: Statement) -> None:
        """Add *statement*, unless there is one by the same message with the same fact and dates."""
        self.statements[statement.fact].setdefault((statement.id, statement.valid_at, statement.invalid_at), statement)

    def remove_statements(self, fact: str, episode: str) -> None:
        """Remove the statements that the message with the id *episode* makes about the fact with the id *fact*."""
        own = self.statements[fact]
        self.statements[fact] = {key: statement for key, statement in own.items() if statement.id != episode}

    def set_verdict(self, id_: str, verdict: Verdict, edit: Edit | None = None) -> None:
        """Add or replace the verdict (how two facts relate) with the id *id_*; *edit*: dates that a person entered."""
        self.verdicts[id_] = verdict
        self.edits.pop(id_, None)
        if edit is not None:
            self.edits[id_] = edit

    def statements_by_fact(self) -> dict[str, list[Statement]]:
        """Return the statements about each fact: ``{fact id: [statement, ...]}``."""
        return {fact: list(own.values()) for fact, own in self.statements.items()}

    def last_statement(self, fact: str) -> Statement:
        """Return the latest statement about the fact with the id *fact*."""
        return max(self.statements[fact].values(), key=lambda statement: statement.order)

    def apply_edits(self) -> list[Statement]:
        """Return the statements about all facts, with dates that a person entered in place of the stated dates."""
        edits = {edit.fact: edit for edit in self.edits.values()}
        result: list[Statement] = []
        for fact, own in self.statements.items():
            result += _edited(own.values(), self.last_statement(fact), edits[fact]) if fact in edits else own.values()
        return result


def has_ended(truth: Truth, stored: Iterable[Belief]) -> bool:
    """Return whether a fact that counted as true until now has ended.

    *truth*: the newly computed periods of the fact. *stored*: its stored periods (beliefs).
    """
    is_current = not truth.waits and any(period.invalid_at == OPEN_END for period in truth.periods)
    return not is_current and any(belief.is_current for belief in stored)


def enters_review(truth: Truth, stored: Iterable[Belief], added: Iterable[Period]) -> bool:
    """Return whether a fact that needed no review before must now be reviewed by a person.

    *truth*: the new periods of the fact, and whether it needs a review. *stored*: its periods in the database. *added*:
    the periods in *truth* that are not in the database yet.
    """
    return not any(belief.proposed for belief in stored) if truth.waits else truth.disputed and bool(added)


def revise(stored: Iterable[Belief], truth: Truth) -> tuple[list[str], list[Period]]:
    """Return how to make a fact's *stored* beliefs equal to *truth*: (ids of beliefs to close, periods to add).

    A belief is a stored period in which the fact counts as true.
    """
    missing = {_unstated(period): period for period in truth.periods}
    # `pop` closes the second copy of a belief that concurrent writers stored twice.
    closed = [
        belief.id
        for belief in stored
        if belief.proposed != truth.waits or missing.pop(_unstated(belief.period), None) is None
    ]
    return closed, list(missing.values())


def _unstated(period: Period) -> Period:
    return replace(period, stated_at=0)


def _edited(statements: Iterable[Statement], last: Statement, edit: Edit) -> list[Statement]:
    """Return *statements*, all of one fact, with the dates in *edit*, which a person entered.

    *last*, the latest statement, gets both dates. Statements whose period overlaps with that of *last* get the new end.
    """
    edited = last
    if edit.valid_at is not None:
        edited = replace(edited, valid_at=edit.valid_at, precision=edit.precision)
    if edit.invalid_at is None:
        return [edited if statement is last else statement for statement in statements]
    edited = replace(edited, invalid_at=edit.invalid_at, end_precision=edit.end_precision)
    result: list[Statement] = []
    for statement in statements:
        if statement is last:
            result.append(edited)
        elif statement.begin < edited.invalid_at and edited.begin < statement.invalid_at:
            result.append(replace(statement, invalid_at=edit.invalid_at, end_precision=edit.end_precision))
        else:
            result.append(statement)
    return result

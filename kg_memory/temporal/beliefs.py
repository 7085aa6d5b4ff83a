"""Beliefs: which periods we believed, and when. A belief is closed when the truth changes, never overwritten."""

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
    """A period that is believed now, or proposed for review, under the id by which it can be closed."""

    id: str
    period: Period
    proposed: bool = False

    @property
    def is_current(self) -> bool:
        """Whether the fact is believed, and has not ended."""
        return not self.proposed and self.period.invalid_at == OPEN_END


@dataclass(frozen=True, slots=True)
class Edit:
    """The dates that a person gave to a fact: they replace those of its last statement.

    ``None`` leaves a date as it was. An end that is given, also an open one, is that of the whole period.
    """

    fact: str
    valid_at: int | None
    invalid_at: int | None
    precision: Precision = "instant"
    end_precision: Precision = "instant"


@dataclass(slots=True)
class History:
    """The statements about some facts, the beliefs in them, and the verdicts that link them."""

    statements: defaultdict[str, dict[tuple[str, int, int], Statement]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    beliefs: defaultdict[str, list[Belief]] = field(default_factory=lambda: defaultdict(list))
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    edits: dict[str, Edit] = field(default_factory=dict)
    sentences: dict[str, str] = field(default_factory=dict)
    decided: set[str] = field(default_factory=set)
    """The verdicts about which a person decided."""

    def add_statement(self, statement: Statement) -> None:
        """Add a statement; one that is there already changes nothing."""
        key = (statement.id, statement.valid_at, statement.invalid_at)
        self.statements[statement.fact].setdefault(key, statement)

    def remove_statements(self, fact: str, episode: str) -> None:
        """Remove what *episode* states of *fact*."""
        own = self.statements[fact]
        self.statements[fact] = {key: statement for key, statement in own.items() if statement.id != episode}

    def set_verdict(self, id_: str, verdict: Verdict, edit: Edit | None = None) -> None:
        """Add a verdict, or change it, with the dates that were given with it."""
        self.verdicts[id_] = verdict
        self.edits.pop(id_, None)
        if edit is not None:
            self.edits[id_] = edit

    def statements_by_fact(self) -> dict[str, list[Statement]]:
        """Return the statements of each fact."""
        return {fact: list(own.values()) for fact, own in self.statements.items()}

    def last_statement(self, fact: str) -> Statement:
        """Return the statement of *fact* that was made last."""
        return max(self.statements[fact].values(), key=lambda statement: statement.order)

    def apply_edits(self) -> list[Statement]:
        """Return all statements, with the dates that a person gave."""
        edits = {edit.fact: edit for edit in self.edits.values()}
        result: list[Statement] = []
        for fact, own in self.statements.items():
            result += _edit(own.values(), self.last_statement(fact), edits[fact]) if fact in edits else own.values()
        return result


def has_ended(truth: Truth, held: Iterable[Belief]) -> bool:
    """Return whether a fact of which *held* are the beliefs was believed to hold still, and by *truth* is no more."""
    is_current = not truth.waits and any(period.invalid_at == OPEN_END for period in truth.periods)
    return not is_current and any(belief.is_current for belief in held)


def enters_review(truth: Truth, held: Iterable[Belief], recorded: Iterable[Period]) -> bool:
    """Return whether the fact is in review by *truth*, and was not before; *recorded* are its new periods."""
    if truth.waits:
        return not any(belief.proposed for belief in held)
    return truth.disputed and bool(recorded)


def revise(held: Iterable[Belief], truth: Truth) -> tuple[list[str], list[Period]]:
    """Return the ids of the *held* beliefs to close, and the periods to record, so that *truth* is believed."""
    missing = {_without_statement(period): period for period in truth.periods}
    # Concurrent writers may have stored a belief twice: close one copy.
    closed = [
        belief.id
        for belief in held
        if belief.proposed != truth.waits or missing.pop(_without_statement(belief.period), None) is None
    ]
    return closed, list(missing.values())


def _without_statement(period: Period) -> Period:
    """Return *period* as beliefs are compared: to state it again changes nothing."""
    return replace(period, stated_at=0)


def _edit(statements: Iterable[Statement], last: Statement, edit: Edit) -> list[Statement]:
    """Return the *statements* of one fact with the dates of *edit*: all in *last*, the end in all that overlap it."""
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

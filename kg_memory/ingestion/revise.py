"""Derive beliefs from statements: read the history of facts, apply the rules of `temporal`, return what to write.

The step `invalidate`, reviews, forgetting and eviction use it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass, field
from operator import itemgetter

from kg_memory.falkor.queries.facts import HISTORY
from kg_memory.falkor.rows import Row
from kg_memory.ingestion.records import JSON
from kg_memory.models.graph import Precision
from kg_memory.runtime.effects import read
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.beliefs import Belief, Edit, History, compare_beliefs
from kg_memory.temporal.interval import OPEN_END
from kg_memory.temporal.policy import ConflictPolicy, Contradiction, Verdict
from kg_memory.temporal.statements import Statement, Teller
from kg_memory.temporal.truth import Period
from kg_memory.text.identity import belief_id, is_assistant

MOST_LINKED = 2000
"""The most facts that are read as verdicts link them to one another."""
PERIOD = ("valid_at", "invalid_at", "said_at", "known_from", "precision", "end_precision")
"""The columns of a belief that make up its period."""
_PERIOD = itemgetter(*PERIOD)
_STATEMENT = itemgetter(
    *("id", "said_at", "valid_at", "invalid_at", "precision"),
    *("confidence", "trust", "corrects", "end_precision", "arrived_at"),
)


@dataclass(frozen=True, slots=True)
class NewBelief:
    """A period in which a fact is believed to hold from now on, or is *proposed* to hold until a person decides.

    *cause* is the episode or decision because of which it is recorded.
    """

    fact: str
    id: str
    period: Period
    cause: str
    proposed: bool = False

    def to_row(self) -> JSON:
        """Return the parameters by which the belief is written."""
        period = dict(zip(PERIOD, astuple(self.period), strict=True))
        stored = {"id": self.id, "expired_at": OPEN_END, "cause": self.cause, **period}
        return {"fact": self.fact, "proposed": self.proposed, "belief": stored}


@dataclass(frozen=True, slots=True)
class Revision:
    """The changes to write: `touched` are the facts whose beliefs change, `closed` the ids of the beliefs that end.

    `ended` are the sentences of the facts that hold no longer, `waiting` of those that are in review from now on.
    """

    touched: list[str] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)
    beliefs: list[NewBelief] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)

    def to_parameters(self) -> JSON:
        """Return the parameters by which queries write the revision."""
        beliefs = [belief.to_row() for belief in self.beliefs]
        return {"touched": self.touched, "closed": self.closed, "beliefs": beliefs}


def read_history(facts: Iterable[str], rows: Iterable[Row] = ()) -> Flow[History]:
    """Read the history of *facts*, and of all that verdicts link to them; *rows* are those that are read already."""
    history = History()
    missing, seen = sorted(set(facts)), set[str]()
    row_of = {row["fact"]: row for row in rows}
    while missing and len(seen) < MOST_LINKED:
        seen.update(missing)
        unread = [fact for fact in missing if fact not in row_of]
        if unread:
            read_rows = yield from read(HISTORY, facts=unread)
            row_of |= {row["history"]["fact"]: row["history"] for row in read_rows}
        for fact in missing:
            if fact in row_of:
                _add(history, row_of[fact])
        linked = {fact for verdict in history.verdicts.values() for fact in (verdict.new, verdict.existing)}
        missing = sorted(linked - seen)[: MOST_LINKED - len(seen)]
    return history


def revise_beliefs(history: History, policy: ConflictPolicy, namespace: str, cause: str) -> Revision:
    """Return what changes when beliefs are made to follow from *history*; *cause* is the episode or decision."""
    revision = Revision()
    for change in compare_beliefs(history, policy):
        if change.closed or change.recorded:
            revision.touched.append(change.fact)
        revision.closed.extend(change.closed)
        for period in change.recorded:
            times = (period.valid_at, period.invalid_at, period.known_from, int(change.proposed))
            id_ = belief_id(namespace, change.fact, cause, *times)
            revision.beliefs.append(NewBelief(change.fact, id_, period, cause, change.proposed))
        if change.ended:
            revision.ended.append(history.sentences[change.fact])
        if change.waits:
            revision.waiting.append(history.sentences[change.fact])
    return revision


def to_statement(fact: str, row: Row) -> Statement:
    """Return a statement of *fact* from its row."""
    return Statement(fact, *(*_STATEMENT(row), find_teller(row.get("speaker"), own=bool(row.get("own")))))


def find_teller(speaker: str | None, *, own: bool) -> Teller:
    """Return who makes a statement: an assistant, the subject of the fact (*own*), or somebody else."""
    return "assistant" if is_assistant(speaker) else "subject" if own else "other"


def to_belief(row: Row) -> Belief:
    """Return a belief from its row."""
    return Belief(row["id"], Period(*_PERIOD(row)), row["proposed"])


def to_verdict(row: Row) -> Verdict:
    """Return a verdict from its row, or as it was just found: then nobody has refused anything."""
    kind: Contradiction = "conflicts" if row["kind"] == "conflicts" else "supersedes"
    preferred = row[row["holds"]] if row["holds"] in ("new", "known") else None
    refused = row.get("refused"), kind, row.get("refused_at")
    return Verdict(row["new"], row["known"], row["ruling"], preferred, *refused)


def to_edit(row: Row) -> Edit | None:
    """Return the dates that a person gave with a verdict, from its row."""
    if not row["edited"]:
        return None
    precision: Precision = row["edited_precision"] or "instant"
    end_precision: Precision = row["edited_end_precision"] or "instant"
    return Edit(row["edited"], row["edited_from"], row["edited_until"], precision, end_precision)


def _add(history: History, row: Row) -> None:
    fact = row["fact"]
    history.sentences[fact] = row["sentence"]
    for statement in row["statements"]:
        if not statement["refuted"]:
            history.add_statement(to_statement(fact, statement))
    history.beliefs[fact] = [to_belief(belief) for belief in row["beliefs"]]
    for verdict in row["verdicts"]:
        if verdict["decided"]:
            history.decided.add(verdict["id"])
        history.set_verdict(verdict["id"], to_verdict(verdict), to_edit(verdict))

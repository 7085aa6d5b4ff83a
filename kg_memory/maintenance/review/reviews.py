"""List verdicts for people to review: those that wait for a person, decided ones, and conflicts.

A verdict is a stored relation of two facts, such as "the new fact supersedes the existing one".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Self, get_args

from kg_memory.errors import InputError, NotFound
from kg_memory.falkor import rows
from kg_memory.falkor.queries import facts as queries
from kg_memory.falkor.rows import Row
from kg_memory.ingestion.invalidate import read_history, to_verdict
from kg_memory.ingestion.records import pick
from kg_memory.models.graph import SOURCES, Fact, Precision, Review, Ruling
from kg_memory.runtime.effects import fetch
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.beliefs import History
from kg_memory.temporal.interval import OPEN_END
from kg_memory.temporal.policy import CONTRADICTIONS, Verdict, fact_in_question, facts_in_review, facts_to_admit
from kg_memory.text.identity import replace_unstorable
from kg_memory.validation import validate_count

_LEAST_PAGE, _MOST_PAGE = 100, 500
"""The smallest and the largest number of waiting verdicts that one query reads."""
# The kinds of verdicts that can wait for a person.
_KINDS = [*CONTRADICTIONS, "admission"]
# The columns of a verdict that are set when it is created.
_STORED = ("id", "kind", "confidence", "reason", "new", "known", "holds", "ruling")


@dataclass(frozen=True, slots=True)
class VerdictState:
    """The current effect of a verdict (how two facts relate), and the decisions of people about it."""

    ruling: Ruling
    refused: str | None = None
    refused_at: int | None = None
    edited: str | None = None
    edited_from: int | None = None
    edited_until: int | None = None
    edited_precision: Precision | None = None
    edited_end_precision: Precision | None = None

    @classmethod
    def from_row(cls, row: Row) -> Self:
        """Build the state from a database row of a verdict (how two facts relate); missing properties get defaults."""
        return cls(**{field.name: row[field.name] for field in fields(cls) if field.name in row})


@dataclass(frozen=True, slots=True)
class StoredVerdict:
    """A verdict as stored: how a new fact relates to an existing one, with all decisions about it, earliest first."""

    row: Row
    decisions: tuple[Row, ...] = ()

    @classmethod
    def from_row(cls, row: Row) -> Self:
        """Build a verdict (how two facts relate) from a result row ``{"verdict": properties, "decisions": [...]}``."""
        return cls(row["verdict"], tuple(row["decisions"]))

    def to_row(self) -> Row:
        """Return the query parameters that create this verdict (how two facts relate) in the database."""
        return {name: self.row[name] for name in _STORED}

    @property
    def id(self) -> str:
        """The id of the verdict (how two facts relate)."""
        return str(self.row["id"])

    @property
    def verdict(self) -> Verdict:
        """How the new fact relates to the existing one, such as "supersedes"; for the rules in `temporal.policy`."""
        return to_verdict(self.row)

    @property
    def state(self) -> VerdictState:
        """The mutable part of the verdict (how two facts relate): effect, rejected fact, and edited dates."""
        return VerdictState.from_row(self.row)

    @property
    def facts(self) -> tuple[str, str]:
        """The ids of the two facts that the verdict relates: the new fact and the existing fact."""
        return self.row["new"], self.row["known"]


def list_reviews(limit: int, skip: int = 0, *, decided: bool = False) -> Flow[list[Review]]:
    """Return the verdicts (how two facts relate) that wait for a person, earliest first.

    *decided*: return decided verdicts instead, latest first.
    """
    page = {"limit": validate_count("limit", limit), "skip": validate_count("skip", skip, 0)}
    if not decided:
        return (yield from to_reviews((yield from _read_pending(**page))))
    return (yield from _read_reviews(queries.DECIDED_REVIEWS, rulings=list(get_args(Ruling)), **page))


def list_conflicts(limit: int, skip: int = 0) -> Flow[list[Review]]:
    """Return the pairs of facts that cannot both be true, as reviews, earliest first.

    *skip*: how many to leave out before.
    """
    page = {"limit": validate_count("limit", limit), "skip": validate_count("skip", skip, 0)}
    return (yield from _read_reviews(queries.REVIEWS, rulings=["conflicts", "waiting"], kinds=["conflicts"], **page))


def list_verdicts(fact: str | None, limit: int, skip: int = 0) -> Flow[list[Review]]:
    """Return the verdicts about the fact with the id *fact*, or all if None, latest first.

    Errors: `NotFound`.
    """
    page = {"limit": validate_count("limit", limit), "skip": validate_count("skip", skip, 0)}
    if fact is None:
        return (yield from _read_reviews(queries.VERDICTS, rulings=list(get_args(Ruling)), **page))
    found = yield from _read_reviews(queries.VERDICTS_OF_FACT, fact=validate_fact_id(fact), **page)
    if not found:
        yield from require_fact(fact)
    return found


def _read_reviews(query: str, **params: object) -> Flow[list[Review]]:
    return (yield from to_reviews([StoredVerdict.from_row(row) for row in (yield from fetch(query, **params))]))


def validate_fact_id(fact: object) -> str:
    """Return *fact*, the id of a fact, unchanged; raise `InputError` unless it is a non-empty string."""
    if not isinstance(fact, str) or not fact:
        raise InputError(f"fact must be the id of a fact, got {fact!r}; memory.facts.about(...) shows the ids")
    return replace_unstorable(fact)


def missing_fact(fact: str) -> NotFound:
    """Create a `NotFound` error (without raising it) for the fact id *fact*, with a hint where to list the ids."""
    return NotFound(f"fact {fact!r} not found here; memory.facts.list() and `kg-memory facts --ids` show the ids")


def require_fact(fact: str) -> Flow[History]:
    """Read all data about *fact* (an id): statements, beliefs and verdicts.

    Errors: `NotFound`, `InputError`.
    """
    history = yield from read_history([validate_fact_id(fact)])
    if fact not in history.sentences:
        raise missing_fact(fact)
    return history


def _read_pending(limit: int, skip: int) -> Flow[list[StoredVerdict]]:
    """Return the verdicts that a person can decide now, earliest first."""
    size = min(max(skip + limit, _LEAST_PAGE), _MOST_PAGE)
    pending: list[StoredVerdict] = []
    start = 0
    while len(pending) < skip + limit:
        page = yield from fetch(queries.REVIEWS, rulings=["waiting"], kinds=_KINDS, limit=size, skip=start)
        if page:
            verdicts = [StoredVerdict.from_row(row) for row in page]
            history = yield from read_history({fact for stored in verdicts for fact in stored.facts})
            pending += _select_pending(verdicts, history)
        if len(page) < size:
            break
        start += size
    return pending[skip : skip + limit]


def _select_pending(verdicts: Iterable[StoredVerdict], history: History) -> list[StoredVerdict]:
    """Return those of *verdicts* (how a new fact relates to an existing one) that a person can decide now."""
    by_fact, all_verdicts = history.statements_by_fact(), history.verdicts.values()
    waiting = facts_in_review(all_verdicts, by_fact, facts_to_admit(all_verdicts))
    aside = waiting.union(verdict.refused for verdict in all_verdicts if verdict.refused)
    selected: list[StoredVerdict] = []
    for stored in verdicts:
        pending = fact_in_question(stored.verdict, by_fact)
        if pending in waiting and aside.intersection(stored.facts) == {pending}:
            selected.append(stored)
    return selected


def to_reviews(verdicts: Sequence[StoredVerdict]) -> Flow[list[Review]]:
    """Convert stored *verdicts* (how two facts relate) to `Review` objects with both facts, their dates and sources."""
    if not verdicts:
        return []
    ids = sorted({fact for stored in verdicts for fact in stored.facts})
    history = yield from read_history(ids)
    facts: dict[str, Fact] = {}
    for row in (yield from fetch(queries.TELL_FACTS, ids=ids, past=True, sources=SOURCES, believed_at=OPEN_END)):
        fact = rows.to_fact(row | {"belief": row["belief"] or _make_empty_belief(row["fact"]["id"], history, verdicts)})
        # Rows come in the order in which beliefs were recorded. Use the last belief, or one that has not expired.
        earlier = facts.get(fact.id)
        if earlier is None or earlier.expired_at is not None or fact.expired_at is None:
            facts[fact.id] = fact
    by_fact = history.statements_by_fact()
    return [_to_review(stored, facts, fact_in_question(stored.verdict, by_fact)) for stored in verdicts]


def _make_empty_belief(fact: str, history: History, verdicts: Iterable[StoredVerdict]) -> Row:
    """Return a row of an empty belief (period) for a fact that was rejected before it was ever believed."""
    last = history.last_statement(fact)
    judged = min(stored.row["created_at"] for stored in verdicts if fact in stored.facts)
    dates = pick(last, "valid_at", "invalid_at", "precision", "end_precision", "trust")
    return {**dates, "known_from": last.begin, "created_at": judged, "expired_at": judged, "reviewed": False}


def _to_review(stored: StoredVerdict, facts: Mapping[str, Fact], pending: str) -> Review:
    existing = next((fact for fact in stored.facts if fact != pending), pending)
    decisions = tuple(rows.to_decision(row) for row in stored.decisions)
    return Review(
        **{name: stored.row[name] for name in ("id", "kind", "ruling", "confidence", "reason")},
        pending=facts[pending],
        existing=facts[existing],
        preferred=stored.verdict.preferred,
        created_at=rows.to_datetime(stored.row["created_at"]),
        decisions=decisions,
        decided_by=decisions[-1].by if decisions else "auto",
        decided_at=decisions[-1].at if decisions else None,
    )


def read_verdict(review: object) -> Flow[StoredVerdict]:
    """Return the stored verdict (how two facts relate) with the id *review*; raise `NotFound` if it does not exist."""
    stored = (yield from find_verdict(replace_unstorable(review))) if isinstance(review, str) and review else None
    if stored is None:
        raise NotFound(f"review {review!r} not found in this namespace; memory.reviews.list() shows waiting reviews")
    return stored


def find_verdict(review: str) -> Flow[StoredVerdict | None]:
    """Return the stored verdict (how two facts relate) with the id *review*, or ``None`` if it does not exist."""
    stored = yield from fetch(queries.VERDICT, id=review)
    return StoredVerdict.from_row(stored[0]) if stored else None

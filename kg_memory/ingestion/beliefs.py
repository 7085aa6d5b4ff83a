"""What is believed of facts, and how it changes: read what bears on them, compute it anew, say what to write."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from typing_extensions import TypedDict

from kg_memory.falkor import belief_cypher as cypher
from kg_memory.models.graph import Precision
from kg_memory.runtime.effects import read
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.beliefs import Belief, revise
from kg_memory.temporal.interval import OPEN_END
from kg_memory.temporal.policy import ConflictPolicy, Verdict
from kg_memory.temporal.statements import Statement
from kg_memory.temporal.truth import Period, Truth, truths
from kg_memory.text.identity import belief_id

MOST_LINKED = 2000
"""How many facts that verdicts link to each other are looked at, at most."""


class NewBelief(TypedDict):
    """A period in which a fact is believed to hold from now on, or would be if a person accepts it."""

    fact: str
    proposed: bool
    belief: dict[str, Any]


class Revision(TypedDict):
    """What to write: `touched` are the facts whose beliefs change, `closed` the ids of the beliefs that end.

    `ended` are the sentences of the facts that hold no longer, `waiting` of those that wait for review from now on.
    `revived` are the ids of the facts that were evicted and are believed again.
    """

    touched: list[str]
    closed: list[str]
    beliefs: list[NewBelief]
    ended: list[str]
    waiting: list[str]
    revived: list[str]


@dataclass(frozen=True, slots=True)
class Eviction:
    """That what a fact said of the world before `until` is not to be told any more, as of what was said before `at`."""

    until: int
    at: int

    def covers(self, truth: Truth) -> bool:
        """Tell whether *truth* has nothing that is later, or was said since."""
        return all(each.invalid_at <= self.until and each.stated_at <= self.at for each in truth.periods)


@dataclass(frozen=True, slots=True)
class Edit:
    """The dates that a person gave to a fact: they take the place of those that its last statement tells.

    ``None`` leaves a date as it was told. An end that is given, also an open one, is that of the whole stay.
    """

    fact: str
    valid_at: int | None
    invalid_at: int | None
    precision: Precision = "instant"
    end_precision: Precision = "instant"


def edit_of(told: Mapping[str, Any]) -> Edit | None:
    """Return the dates that were given with a verdict, by what is stored of it."""
    if not told["edited"]:
        return None
    return Edit(
        told["edited"], told["edited_from"], told["edited_until"],
        told["edited_precision"] or "instant", told["edited_end_precision"] or "instant",
    )  # fmt: skip


@dataclass(slots=True)
class History:
    """What was said about some facts, what is believed of them, and the verdicts that link them."""

    statements: defaultdict[str, dict[tuple[str, int, int], Statement]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    beliefs: defaultdict[str, list[Belief]] = field(default_factory=lambda: defaultdict(list))
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    edits: dict[str, Edit] = field(default_factory=dict)
    sentences: dict[str, str] = field(default_factory=dict)
    decided: set[str] = field(default_factory=set)
    """The verdicts about which a person decided."""
    evicted: dict[str, Eviction] = field(default_factory=dict)
    """The facts of which only the statements are kept: they bear on others, and are not believed themselves."""

    def say(self, statement: Statement) -> None:
        """Add a statement; one that is there already changes nothing."""
        key = (statement.id, statement.valid_at, statement.invalid_at)
        self.statements[statement.fact].setdefault(key, statement)

    def unsay(self, fact: str, episode: str) -> None:
        """Leave out what *episode* was found to say of *fact* when it was read before."""
        own = self.statements[fact]
        self.statements[fact] = {key: each for key, each in own.items() if each.id != episode}

    def rule(self, id_: str, verdict: Verdict, edit: Edit | None = None) -> None:
        """Add a verdict, or change it, with the dates that were given with it."""
        self.verdicts[id_] = verdict
        self.edits.pop(id_, None)
        if edit is not None:
            self.edits[id_] = edit

    def statements_by_fact(self) -> dict[str, list[Statement]]:
        """Return the statements of each fact."""
        return {fact: list(own.values()) for fact, own in self.statements.items()}

    def said(self) -> list[Statement]:
        """Return all statements, with the dates that a person gave."""
        edits = {each.fact: each for each in self.edits.values()}
        return [each for fact, own in self.statements.items() for each in _edited(list(own.values()), edits.get(fact))]


def read_history(facts: Iterable[str], told: Iterable[Mapping[str, Any]] = ()) -> Flow[History]:
    """Read what is known of *facts*, and of all that verdicts link to them; of some, that may be *told* already."""
    history = History()
    missing, seen = sorted(set(facts)), set[str]()
    known = {row["fact"]: row for row in told}
    while missing and len(seen) < MOST_LINKED:
        seen.update(missing)
        unread = [fact for fact in missing if fact not in known]
        if unread:
            known |= {row["history"]["fact"]: row["history"] for row in (yield from read(cypher.HISTORY, facts=unread))}
        for fact in missing:
            if fact in known:
                _add(history, known[fact])
        linked = {fact for each in history.verdicts.values() for fact in (each.new, each.existing)}
        missing = sorted(linked - seen)[: MOST_LINKED - len(seen)]
    return history


def revised(history: History, policy: ConflictPolicy, namespace: str, cause: str) -> Revision:
    """Return what changes when beliefs are made to follow from *history*; *cause* is the episode or decision."""
    revision = Revision(touched=[], closed=[], beliefs=[], ended=[], waiting=[], revived=[])
    for fact, found in sorted(truths(history.said(), list(history.verdicts.values()), policy).items()):
        held, eviction = history.beliefs[fact], history.evicted.get(fact)
        truth = Truth() if eviction and eviction.covers(found) else found
        if eviction and truth.periods:
            revision["revived"].append(fact)
        closed, recorded = revise(held, truth)
        if closed or recorded:
            revision["touched"].append(fact)
        revision["closed"] += closed
        revision["beliefs"] += [_new(namespace, fact, cause, each, proposed=truth.waits) for each in recorded]
        held_now = any(each.period.invalid_at == OPEN_END for each in held if not each.proposed)
        if held_now and (truth.waits or all(each.invalid_at != OPEN_END for each in truth.periods)):
            revision["ended"].append(history.sentences[fact])
        if truth.waits and not any(each.proposed for each in held):
            revision["waiting"].append(history.sentences[fact])
    return revision


def _add(history: History, row: Mapping[str, Any]) -> None:
    fact = row["fact"]
    history.sentences[fact] = row["sentence"]
    if row.get("evicted") is not None:
        history.evicted[fact] = Eviction(row["evicted"], row["evicted_at"])
    for told in row["statements"]:
        if not told["refuted"]:
            history.say(statement_of(fact, told))
    history.beliefs[fact] = [belief_of(each) for each in row["beliefs"]]
    for told in row["verdicts"]:
        if told["decided"]:
            history.decided.add(told["id"])
        history.rule(told["id"], verdict_of(told), edit_of(told))


def verdict_of(told: Mapping[str, Any]) -> Verdict:
    """Return a verdict as it is stored, or as it is just found: then nobody has refused anything."""
    sides = {"new": told["new"], "known": told["known"]}
    kind: Literal["supersedes", "conflicts"] = "conflicts" if told["kind"] == "conflicts" else "supersedes"
    holds = sides.get(told["holds"] or "")
    return Verdict(told["new"], told["known"], told["ruling"], holds, told.get("refused"), kind)


def statement_of(fact: str, row: Mapping[str, Any]) -> Statement:
    """Return a statement of *fact* as it is stored."""
    return Statement(
        fact,
        row["id"],
        row["said_at"],
        row["valid_at"],
        row["invalid_at"],
        row["precision"],
        row["confidence"],
        row["trust"],
        row["corrects"],
        row["end_precision"],
    )


def belief_of(row: Mapping[str, Any]) -> Belief:
    """Return a belief as it is stored."""
    times = row["valid_at"], row["invalid_at"], row["said_at"], row["known_from"]
    return Belief(row["id"], Period(*times, row["precision"], row["end_precision"]), proposed=row["proposed"])


def _new(namespace: str, fact: str, cause: str, period: Period, *, proposed: bool) -> NewBelief:
    times = (period.valid_at, period.invalid_at, period.known_from, int(proposed))
    stored = asdict(period)
    stored["said_at"] = stored.pop("stated_at")
    told = {"id": belief_id(namespace, fact, cause, *times), "expired_at": OPEN_END, "cause": cause, **stored}
    return {"fact": fact, "proposed": proposed, "belief": told}


def _edited(own: list[Statement], edit: Edit | None) -> list[Statement]:
    if edit is None:
        return own
    last = told = max(own, key=lambda each: each.order)
    if edit.valid_at is not None:
        told = replace(told, valid_at=edit.valid_at, precision=edit.precision)
    if edit.invalid_at is None:
        return [told if each is last else each for each in own]
    told = _until(told, edit.invalid_at, edit.end_precision)
    return [
        told if each is last else _until(each, edit.invalid_at, edit.end_precision) if _overlap(each, told) else each
        for each in own
    ]


def _until(each: Statement, invalid_at: int, precision: Precision) -> Statement:
    return replace(each, invalid_at=invalid_at, end_precision=precision)


def _overlap(each: Statement, told: Statement) -> bool:
    return each.begin < told.invalid_at and told.begin < each.invalid_at

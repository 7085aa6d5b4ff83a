"""What is believed once some statements were never made: what they ended goes on, what they began never was."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kg_memory.ingestion.revise import Revision, revise_beliefs, to_belief
from kg_memory.temporal.beliefs import Belief, History
from kg_memory.temporal.interval import OPEN_END
from kg_memory.temporal.policy import ConflictPolicy
from kg_memory.temporal.statements import Statement

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Believed:
    """What to write of beliefs: the ids of those that are `removed`, those that are `reopened`, and the rest.

    `restored` are the facts that hold now and did not before, `changed` the others that hold at other times, and
    `sentences` those of both.
    """

    removed: list[str]
    reopened: list[dict[str, Any]]
    revision: Revision
    restored: list[str]
    changed: list[str]
    sentences: dict[str, str]


def refuted_no_more(fact: Row, gone: Collection[str]) -> list[Row]:
    """Return the statements of *fact* that only what is forgotten had refuted."""
    left = [each for each in fact["statements"] if each["id"] not in gone]
    refuted = [each for each in left if each["refuted"]]
    corrected = any(each["corrects"] for each in fact["statements"] if each["id"] in gone)
    if len(refuted) == len(left) or (corrected and not any(each["corrects"] for each in left)):
        return refuted
    return []


def without(history: History, gone: Collection[str], going: Collection[str], unrefuted: Iterable[Statement]) -> None:
    """Take the statements of the episodes *gone*, and all about the facts *going*, out of *history*."""
    for id_, each in list(history.verdicts.items()):
        if {each.new, each.existing} & set(going):
            del history.verdicts[id_]
            history.edits.pop(id_, None)
    for fact, own in list(history.statements.items()):
        left = {key: each for key, each in own.items() if each.id not in gone}
        history.statements[fact] = left
        if fact in going or not left:
            del history.statements[fact]
    for statement in unrefuted:
        history.add_statement(statement)


def believe(
    history: History, rows: Iterable[Row], gone: Collection[str], policy: ConflictPolicy, cause: tuple[str, str]
) -> Believed:
    """Return what to write so that what is believed follows from *history*, which has nothing of *gone* any more.

    *rows* have all beliefs of its facts, with what caused them; *cause* is the namespace and what causes the new ones.
    """
    by_fact: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_fact[row["fact"]].append(row["belief"])
    removed = [each["id"] for own in by_fact.values() for each in own if each["cause"] in gone]
    saved = {each["created_at"] for own in by_fact.values() for each in own if each["cause"] in gone}
    left = {fact: [each for each in own if each["id"] not in set(removed)] for fact, own in by_fact.items()}
    reopened = [
        {**each, "until": until}
        for fact, own in left.items()
        if fact in history.statements
        for each in own
        if each["expired_at"] in saved and (until := _until(each, own)) > each["expired_at"]
    ]
    before = {fact: list(held) for fact, held in history.beliefs.items()}
    again = {each["id"]: each for each in reopened if each["until"] == OPEN_END}
    for fact, own in left.items():
        held = [each for each in history.beliefs[fact] if each.id not in set(removed)]
        history.beliefs[fact] = held + [to_belief(again[each["id"]]) for each in own if each["id"] in again]
    revision = revise_beliefs(history, policy, cause[1], cause[0])
    restored, changed = _compared(before, history, revision)
    return Believed(
        removed, [{"id": each["id"], "until": each["until"]} for each in reopened], revision, restored, changed,
        {fact: history.sentences[fact] for fact in (*restored, *changed)},
    )  # fmt: skip


def _until(belief: Row, own: Iterable[Row]) -> int:
    """Return until when a belief would have been held: until the next was recorded that did not follow from it."""
    return min((each["created_at"] for each in own if each["created_at"] > belief["expired_at"]), default=OPEN_END)


def _compared(
    before: Mapping[str, Iterable[Belief]], history: History, revision: Revision
) -> tuple[list[str], list[str]]:
    """Return the facts that hold again, and the others of which other times are believed than *before*."""
    closed = set(revision.closed)
    after: defaultdict[str, set[tuple[int, int, bool]]] = defaultdict(set)
    for fact in history.statements:
        after[fact] |= {_times(each) for each in history.beliefs[fact] if each.id not in closed}
    for belief in revision.beliefs:
        after[belief.fact].add((belief.period.valid_at, belief.period.invalid_at, belief.proposed))
    earlier = {fact: {_times(each) for each in before.get(fact, ())} for fact in after}
    restored = [fact for fact, times in after.items() if _holds(times) and not _holds(earlier[fact])]
    changed = [fact for fact, times in after.items() if times != earlier[fact] and fact not in restored]
    return sorted(restored), sorted(changed)


def _times(belief: Belief) -> tuple[int, int, bool]:
    return belief.period.valid_at, belief.period.invalid_at, belief.proposed


def _holds(times: Iterable[tuple[int, int, bool]]) -> bool:
    return any(until == OPEN_END and not proposed for _, until, proposed in times)

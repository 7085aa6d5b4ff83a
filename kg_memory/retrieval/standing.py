"""The standing of facts at a point of both clocks: some are doubtful, or ended with nothing in their place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from operator import itemgetter
from typing import Any

from kg_memory.falkor.queries import premises as queries
from kg_memory.falkor.rows import Row, to_fact
from kg_memory.models.graph import SOURCES, Fact
from kg_memory.retrieval.time_window import Window
from kg_memory.runtime.effects import read
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.doubt import Doubt, Doubts, Grounded, Held, Point, Telling, find_doubts
from kg_memory.temporal.interval import OPEN_END
from kg_memory.text.predicates import canonical_predicate, canonical_predicates, is_present
from kg_memory.text.tokenise import terms

MOST_GROUNDS = 20_000
"""The most facts that are read to find what is doubtful; those beyond them count as holding."""
PAGE = 2000
BEST = 5
"""The number of best episodes whose facts are looked at for what is absent."""
MOST_ENDED, MOST_ABSENT = 20, 2
Grounds = dict[str, Grounded]
Sentences = dict[str, str]


def point_of(window: Window | None, believed_at: int) -> Point:
    """Return the point at which facts of *window* stand: its last instant, or where it is open when they are believed.

    That is the present of what was believed then.
    """
    until = OPEN_END if window is None else window[1]
    return Point(believed_at if until >= OPEN_END else until - 1, believed_at)


def add_standing(rows: Sequence[Row], point: Point) -> Flow[list[Row]]:
    """Return the *rows* of facts with their doubt, and whether they are absent; without premises no query is made."""
    premised = [row["fact"]["id"] for row in rows if row["fact"].get("premises")]
    sentences: Sentences = {}
    doubts: Doubts = {}
    if premised:
        grounds, sentences = yield from read_grounds(premised)
        doubts = find_doubts(grounds, point)
    absent = yield from _find_absent(rows, point)
    if not doubts and not absent:
        return list(rows)
    return [_with_standing(row, doubts, sentences, absent, point) for row in rows]


def describe_doubt(doubt: Doubt, sentences: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of `Fact` that tell of *doubt*."""
    *way, last = doubt.path
    path: list[Row] = [{"id": id_, "sentence": sentences[id_]} for id_ in way]
    path.append({"id": last, "sentence": sentences[last], "refuted": doubt.refuted})
    return {"since": doubt.since, "precision": doubt.precision, "because": path}


def read_grounds(ids: Iterable[str]) -> Flow[tuple[Grounds, Sentences]]:
    """Return the facts of *ids* with all that they rest on, over any number of steps, and the sentences of all."""
    grounds: Grounds = {}
    sentences: Sentences = {}
    edge = list(dict.fromkeys(ids))
    while edge and len(grounds) < MOST_GROUNDS:
        edge, later = edge[:PAGE], edge[PAGE:]
        rows = yield from read(queries.GROUNDS, ids=edge)
        grounds |= {row["fact"]["id"]: _to_grounded(row) for row in rows}
        sentences |= {row["fact"]["id"]: row["fact"]["sentence"] for row in rows}
        reached = dict.fromkeys((*later, *(id_ for row in rows for id_, _ in grounds[row["fact"]["id"]].premises)))
        edge = [id_ for id_ in reached if id_ not in grounds]
    return grounds, sentences


def read_resting(ids: Collection[str], most: int) -> Flow[dict[str, str]]:
    """Return the facts that rest on *ids*, over any number of steps, each with the fact before it on the way.

    The nearest come first, and at most so many.
    """
    before: dict[str, str] = {}
    edge = sorted(ids)
    while edge and len(before) < most:
        rows = yield from read(queries.RESTING, ids=edge, limit=most + len(before) + len(ids))
        reached = {row["id"]: row["premise"] for row in reversed(rows)}
        edge = sorted(id_ for id_ in reached if id_ not in before and id_ not in ids)[: most - len(before)]
        before |= {id_: reached[id_] for id_ in edge}
    return before


def _to_grounded(row: Row) -> Grounded:
    fact = row["fact"]
    ending = (rival for rival in row["rivals"] if rival["ruling"] == "supersedes")
    refuting = (rival for rival in row["rivals"] if rival["ruling"] == "conflicts")
    premises = tuple((premise["id"], premise["saved_at"] or 0) for premise in row["premises"] if premise["id"])
    stated = {(premise["episode"], premise["id"]) for premise in row["premises"] if premise["stated"]}
    return Grounded(
        fact["id"],
        fact["kind"] or "state",
        tuple(Held(**belief) for belief in row["beliefs"]),
        _to_tellings(row["tellings"], stated),
        _to_tellings(ending),
        _to_tellings(refuting),
        premises,
    )


def _to_tellings(rows: Iterable[Row], stated: Collection[tuple[str, str]] = ()) -> tuple[Telling, ...]:
    """Return the tellings of *rows*, with their reasons of *stated*, which are pairs of an episode and a premise."""
    values = itemgetter("stated_at", "saved_at", "valid_at", "invalid_at", "reasons")
    reasons: defaultdict[str, set[str]] = defaultdict(set)
    for episode, premise in stated:
        reasons[episode].add(premise)
    saved = (row for row in rows if row["saved_at"] is not None)
    return tuple(Telling(*values({**row, "reasons": frozenset(reasons[row.get("id", "")])})) for row in saved)


def _with_standing(row: Row, doubts: Doubts, sentences: Sentences, absent: set[tuple[str, int]], point: Point) -> Row:
    id_, until = row["fact"]["id"], row["belief"]["invalid_at"]
    if (id_, until) in absent:
        return {**row, "absent": True}
    if id_ in doubts and until > point.as_of:
        return {**row, "doubt": describe_doubt(doubts[id_], sentences)}
    return row


# Absence


def read_absent(episodes: Sequence[str], question: str, point: Point) -> Flow[list[Fact]]:
    """Return what the *episodes* that answer *question* best state that has ended with nothing in its place.

    It has a word of the question besides the subject, or its quote has.
    """
    if not episodes:
        return []
    params = {"as_of": point.as_of, "believed_at": point.believed_at}
    ended = yield from read(queries.ENDED_FACTS, ids=list(episodes[:BEST]), limit=MOST_ENDED, sources=SOURCES, **params)
    standing = yield from add_standing(ended, point)
    asked = set(terms(question))
    absent = (to_fact(row) for row in standing if row.get("absent"))
    return [fact for fact in absent if asked & _find_words(fact)][:MOST_ABSENT]


def _find_words(fact: Fact) -> set[str]:
    texts = (fact.sentence, fact.predicate.replace("_", " "), *(source.quote for source in fact.sources))
    return set(terms(" ".join(texts))) - set(terms(fact.subject))


def _find_absent(rows: Iterable[Row], point: Point) -> Flow[set[tuple[str, int]]]:
    """Return the states that have ended with nothing in their place, as ids with the ends.

    Of a predicate with one value at a time its next value is in its place, of another one what superseded it.
    """
    ended = {(row["fact"]["id"], row["belief"]["invalid_at"]): row["fact"] for row in rows if _has_ended(row, point)}
    params = {"as_of": point.as_of, "believed_at": point.believed_at}
    if not ended:
        return set()
    listed = [{"id": id_, "until": until} for id_, until in ended]
    superseded = yield from read(queries.SUPERSEDED, ended=listed, **params)
    absent = ended.keys() - {(row["id"], row["until"]) for row in superseded}
    single = [{"id": id_, "until": until} for id_, until in absent if _is_single(ended[id_, until]["predicate"])]
    if single:
        rest = yield from read(queries.SUCCESSORS, ended=single, single=_single_valued(), **params)
        absent -= {(row["id"], row["until"]) for row in rest}
    return absent


def _has_ended(row: Row, point: Point) -> bool:
    fact, belief = row["fact"], row["belief"]
    if not belief["reviewed"] or belief["invalid_at"] > point.as_of or (fact.get("kind") or "state") != "state":
        return False
    return is_present(fact["predicate"]) or _is_single(fact["predicate"])


def _is_single(name: str) -> bool:
    predicate = canonical_predicate(name)
    return predicate is not None and predicate.single_valued is True


@cache
def _single_valued() -> list[str]:
    """Return the predicates of the vocabulary that have one value at a time and tell of the present."""
    return [name for name in canonical_predicates() if is_present(name) and _is_single(name)]

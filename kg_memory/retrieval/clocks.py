"""The time that a question is about, and which facts are doubtful or ended at that time.

A question has two times, both in microseconds since the epoch: valid time (when facts are true) and transaction time
(when the memory believed them). Both come from parameters of the search, which filter facts. Without `as_of` and
`during`, time words of the question give the valid time; they only change the ranking: see `recipe.ByTime`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, date, datetime
from functools import cache
from operator import itemgetter
from typing import Any

from kg_memory.errors import InputError
from kg_memory.falkor.queries import premises as queries
from kg_memory.falkor.queries.search import EVENTS
from kg_memory.falkor.rows import Row, to_fact
from kg_memory.models.graph import SOURCES, Fact
from kg_memory.models.results import QueryTime
from kg_memory.retrieval.question import QuestionTime, SearchQuery, asker_keys, name_keys
from kg_memory.retrieval.ranking import Instants
from kg_memory.runtime.effects import fetch, now
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.doubt import BelievedPeriod, Doubt, Doubts, Grounded, Point, TimedStatement, find_doubts
from kg_memory.temporal.interval import EPOCH, OPEN_END, OPEN_START, WIDTH, Interval, instant, micros
from kg_memory.text.dated import day_in_figures
from kg_memory.text.dates import EventTime, find_times, parse_when
from kg_memory.text.identity import alias_key, replace_unstorable
from kg_memory.text.message_fields import USER
from kg_memory.text.predicates import canonical_predicate, canonical_predicates, is_present
from kg_memory.text.tokenise import terms

UserTime = date | str | None
"""A time as users give it: a date or datetime, ISO 8601 text or plain words such as "last March"; None means now."""
Window = tuple[int, int]
"""A period of valid time, ``[since, until)``, in microseconds since the epoch."""
WORDS = 2000
"""The number of characters of a question in which time words are looked for."""


def find_time(question: SearchQuery) -> Flow[QuestionTime]:
    """Return the time that *question* asks about, by its parameters or words ("in May"); by default, now.

    Errors: `InputError` for an invalid parameter.
    """
    time = yield from now()
    believed_at = parse_moment("believed_at", question.believed_at, time)
    window = parse_window(question.as_of, question.during, time)
    words = vagueness = None
    if window is None:
        words, window, vagueness = yield from _find_in_words(question.text[:WORDS], question.asker, time, believed_at)
    since, until = window or (time, time + 1)
    instants = Instants(since, until, believed_at, question.unreviewed, vagueness)
    latest = until - 1 if vagueness is None else time
    return QuestionTime(instants, _to_query_time(instants, words, time), past=min(latest, believed_at) < time)


def parse_moment(name: str, value: UserTime, time: int) -> int:
    """Parse *value*, such as "2024-05"; return its start in microseconds (epoch); None gives *time*.

    Errors: `InputError`, also for a period without a start.
    """
    if value is None:
        return time
    start = _parse_interval(name, value, time).start
    if start is None:
        raise InputError(f"{name} must have a start, got {value!r}; give a time such as '2024-05-14'")
    return micros(start, default=time)


def parse_window(as_of: UserTime, during: object, time: int) -> Window | None:
    """Return the period ``(since, until)`` of *as_of* or *during*, in microseconds; None if both are None.

    Errors: `InputError` if both are given, one is not a time, or the period is empty.
    """
    if during is None:
        if as_of is None:
            return None
        at = min(parse_moment("as_of", as_of, time), micros(datetime.max.replace(tzinfo=UTC), default=0) - 1)
        return at, at + 1
    if as_of is not None:
        raise InputError("as_of and during must not both be set; leave one out")
    if isinstance(during, str):
        interval = _parse_interval("during", during, time)
        since, until = interval.start, interval.end
    elif isinstance(during, Sequence) and len(during) == 2:
        since, until = (_parse_interval("during", end, time).start if end is not None else None for end in during)
    else:
        raise InputError(f"during must be two times, or one period such as '2019' or 'last March', got {during!r}")
    window = micros(since, default=OPEN_START), micros(until, default=OPEN_END + 1)
    if window[0] >= window[1]:
        raise InputError(f"during must end after it begins, got {during!r}")
    return window


def _parse_interval(name: str, value: object, time: int) -> Interval:
    if isinstance(value, date | str):
        try:
            return parse_when(value, instant(time) or EPOCH)
        except ValueError as error:
            raise InputError(f"{name} must be a time, got {value!r}: {error}") from None
    raise InputError(f"{name} must be a datetime, ISO 8601 text or words such as 'last March', got {value!r}")


def _find_in_words(
    question: str, asker: str | None, time: int, believed_at: int
) -> Flow[tuple[str | None, Window | None, int | None]]:
    """Find the time words in *question*: "in May" gives ``("in May", (since, until), length of a month)``."""
    words: list[str] = []
    vagueness: list[int] = []
    since, until = OPEN_START, OPEN_END + 1
    for mention in find_times(replace_unstorable(question), instant(time) or EPOCH):
        window: Window | None = None
        if mention.interval is not None:
            start, end = mention.interval.start, mention.interval.end
            window = micros(start, default=OPEN_START), micros(end, default=OPEN_END + 1)
        elif mention.event is not None:
            subjects = _subjects(mention.event, question, asker)
            window = yield from _find_around(mention.event, subjects, time, believed_at)
        if window is not None and max(since, window[0]) < min(until, window[1]):
            since, until = max(since, window[0]), min(until, window[1])
            words.append(mention.words)
            vagueness.append(min(WIDTH[mention.interval.precision], window[1] - window[0]) if mention.interval else 0)
    return (", ".join(words), (since, until), min(vagueness)) if words else (None, None, None)


def _subjects(event: EventTime, question: str, asker: str | None) -> list[str]:
    """Return hashes of the names that may be the subject of *event*: for "she moved", all names in *question*."""
    about = replace_unstorable(f"{event.subject or ''} {question}")
    who = asker_keys(about, asker) if event.subject else [alias_key(replace_unstorable(asker or USER))]
    return [*name_keys(about), *who]


def _find_around(event: EventTime, subjects: list[str], time: int, believed_at: int) -> Flow[Window | None]:
    """Return the period before, after or during *event* ("before she moved"), by the dates of stored facts, or None."""
    rows = yield from fetch(
        EVENTS,
        subjects=subjects,
        predicate=event.predicate,
        believed_at=believed_at,
        object=alias_key(event.object) if event.object else "",
    )
    if event.object:
        rows = [row for row in rows if row["meant"]]
        if not rows and event.predicate == "WORKS_AT":  # "before she left Paris" is about LIVES_IN
            return (yield from _find_around(replace(event, predicate="LIVES_IN"), subjects, time, believed_at))
    if event.relation == "while":
        return (rows[-1]["known_from"], rows[-1]["invalid_at"]) if rows else None
    at = _latest_edge(rows, event.edge)
    if at is None and event.edge == "start" and event.relation == "before":
        at = _latest_edge(rows, "end") if event.object is None else None  # the end of the former state
    elif at is None and event.edge == "start" and rows:
        at = max(row["known_from"] for row in rows)  # an unknown start is no later than this
    if at is None:
        return None
    return (at - 1, at) if event.relation == "before" else (at, max(time, at) + 1)


def _latest_edge(rows: Sequence[Row], edge: str) -> int | None:
    if edge == "end":
        return max((row["invalid_at"] for row in rows if row["invalid_at"] != OPEN_END), default=None)
    return max((row["valid_at"] for row in rows if row["valid_at"] != OPEN_START), default=None)


def _to_query_time(instants: Instants, words: str | None, time: int) -> QueryTime:
    """Convert the time of a question to the form shown to users.

    *words*: the time words in the question ("in May"), or None. *time*: now.
    """
    since, until = instant(max(instants.since, OPEN_START)), instant(min(instants.until, OPEN_END))
    if instants.until - instants.since == 1:
        reading = "what is true now" if instants.since == time else f"what was true at {_in_words(since)}"
    elif since is None and until is None:
        reading = "what was true at any time"
    else:
        begin = f"from {_in_words(since)} " if since else ""
        reading = f"what was true {begin}{f'until {_in_words(until)}' if until else 'on'}"
    if instants.believed_at != time:
        reading += f", as known at {_in_words(instant(instants.believed_at))}"
    if words:
        reading += f', by the words "{words}"'
    believed_at = instant(instants.believed_at) or EPOCH
    return QueryTime(since=since, until=until, believed_at=believed_at, words=words, reading=reading)


def _in_words(moment: datetime | None) -> str:
    return day_in_figures(moment) if moment else "ever"


# Doubtful and ended facts at a point of valid time and transaction time

MOST_GROUNDS = 20_000
"""The most facts that are read to find doubtful ones; facts beyond this number count as not doubtful."""
PAGE = 2000
BEST = 5
"""The number of best episodes whose facts are checked for ended facts without a replacement."""
MOST_ENDED, MOST_ABSENT = 20, 2
Grounds = dict[str, Grounded]
Sentences = dict[str, str]


def point_of(window: Window | None, believed_at: int) -> Point:
    """Return the point in time at which to check facts: the last instant of *window*, or *believed_at*."""
    until = OPEN_END if window is None else window[1]
    return Point(believed_at if until >= OPEN_END else until - 1, believed_at)


def add_warnings(rows: Sequence[Row], point: Point) -> Flow[list[Row]]:
    """Add warnings to *rows* of facts: `doubt` for a doubtful fact, `absent` for a fact that ended unreplaced."""
    premised = [row["fact"]["id"] for row in rows if row["fact"].get("premises")]
    sentences: Sentences = {}
    doubts: Doubts = {}
    if premised:
        grounds, sentences = yield from read_grounds(premised)
        doubts = find_doubts(grounds, point)
    absent = yield from _find_absent(rows, point)
    if not doubts and not absent:
        return list(rows)
    return [_with_warning(row, doubts, sentences, absent, point) for row in rows]


def describe_doubt(doubt: Doubt, sentences: Mapping[str, str]) -> dict[str, Any]:
    """Return why a fact is doubtful: ``{"since": ..., "precision": "day", "because": [{"id": ...}]}``."""
    *way, last = doubt.path
    path: list[Row] = [{"id": id_, "sentence": sentences[id_]} for id_ in way]
    path.append({"id": last, "sentence": sentences[last], "refuted": doubt.refuted})
    return {"since": doubt.since, "precision": doubt.precision, "because": path}


def read_grounds(ids: Iterable[str]) -> Flow[tuple[Grounds, Sentences]]:
    """Return the facts *ids* and all facts from which they were derived: (facts by id, sentences by id).

    Reading stops after about `MOST_GROUNDS` facts.
    """
    grounds: Grounds = {}
    sentences: Sentences = {}
    edge = list(dict.fromkeys(ids))
    while edge and len(grounds) < MOST_GROUNDS:
        edge, later = edge[:PAGE], edge[PAGE:]
        rows = yield from fetch(queries.GROUNDS, ids=edge)
        grounds |= {row["fact"]["id"]: _to_grounded(row) for row in rows}
        sentences |= {row["fact"]["id"]: row["fact"]["sentence"] for row in rows}
        reached = dict.fromkeys((*later, *(id_ for row in rows for id_, _ in grounds[row["fact"]["id"]].premises)))
        edge = [id_ for id_ in reached if id_ not in grounds]
    return grounds, sentences


def read_resting(ids: Collection[str], most: int) -> Flow[dict[str, str]]:
    """Return up to *most* facts derived from the facts *ids*: ``{derived fact id: id it is derived from}``."""
    before: dict[str, str] = {}
    edge = sorted(ids)
    while edge and len(before) < most:
        rows = yield from fetch(queries.RESTING, ids=edge, limit=most + len(before) + len(ids))
        reached = {row["id"]: row["premise"] for row in reversed(rows)}
        edge = sorted(id_ for id_ in reached if id_ not in before and id_ not in ids)[: most - len(before)]
        before |= {id_: reached[id_] for id_ in edge}
    return before


def _to_grounded(row: Row) -> Grounded:
    """Convert *row* of the query `GROUNDS` to a `Grounded`: a fact, with the facts it was derived from."""
    fact = row["fact"]
    ending = (rival for rival in row["rivals"] if rival["ruling"] == "supersedes")
    refuting = (rival for rival in row["rivals"] if rival["ruling"] == "conflicts")
    premises = tuple((premise["id"], premise["saved_at"] or 0) for premise in row["premises"] if premise["id"])
    stated = {(premise["episode"], premise["id"]) for premise in row["premises"] if premise["stated"]}
    return Grounded(
        fact["id"],
        fact["kind"] or "state",
        tuple(BelievedPeriod(**belief) for belief in row["beliefs"]),
        _to_statements(row["tellings"], stated),
        _to_statements(ending),
        _to_statements(refuting),
        premises,
    )


def _to_statements(rows: Iterable[Row], stated: Collection[tuple[str, str]] = ()) -> tuple[TimedStatement, ...]:
    """Convert database rows of messages that state a fact to `TimedStatement` values; skip rows without a message."""
    values = itemgetter("stated_at", "saved_at", "valid_at", "invalid_at", "reasons")
    reasons: defaultdict[str, set[str]] = defaultdict(set)
    for episode, premise in stated:
        reasons[episode].add(premise)
    saved = (row for row in rows if row["saved_at"] is not None)
    return tuple(TimedStatement(*values({**row, "reasons": frozenset(reasons[row.get("id", "")])})) for row in saved)


def _with_warning(row: Row, doubts: Doubts, sentences: Sentences, absent: set[tuple[str, int]], point: Point) -> Row:
    """Return *row*, a fact in one of its periods, with the key ``doubt`` or ``absent`` if it needs a warning."""
    id_, until = row["fact"]["id"], row["belief"]["invalid_at"]
    if (id_, until) in absent:
        return {**row, "absent": True}
    if id_ in doubts and until > point.as_of:
        return {**row, "doubt": describe_doubt(doubts[id_], sentences)}
    return row


# Ended facts without a replacement
def read_absent(episodes: Sequence[str], question: str, point: Point) -> Flow[list[Fact]]:
    """Return facts stated by *episodes* that ended and were not replaced: "Ann has a car", which she sold."""
    if not episodes:
        return []
    most = {"limit": MOST_ENDED, "sources": SOURCES}
    rows = yield from fetch(queries.ENDED_FACTS, ids=list(episodes[:BEST]), **most, **asdict(point))
    marked = yield from add_warnings(rows, point)
    asked = set(terms(question))
    absent = (to_fact(row) for row in marked if row.get("absent"))
    return [fact for fact in absent if asked & _terms_besides_subject(fact)][:MOST_ABSENT]


def _terms_besides_subject(fact: Fact) -> set[str]:
    texts = (fact.sentence, fact.predicate.replace("_", " "), *(source.quote for source in fact.sources))
    return set(terms(" ".join(texts))) - set(terms(fact.subject))


def _find_absent(rows: Iterable[Row], point: Point) -> Flow[set[tuple[str, int]]]:
    """Return ``{(fact id, end)}`` for the states in *rows* that ended by *point* and were not replaced."""
    ended = {(row["fact"]["id"], row["belief"]["invalid_at"]): row["fact"] for row in rows if _has_ended(row, point)}
    if not ended:
        return set()
    listed = [{"id": id_, "until": until} for id_, until in ended]
    superseded = yield from fetch(queries.SUPERSEDED, ended=listed, **asdict(point))
    absent = ended.keys() - {(row["id"], row["until"]) for row in superseded}
    single = [{"id": id_, "until": until} for id_, until in absent if _is_single_valued(ended[id_, until]["predicate"])]
    if single:
        rest = yield from fetch(queries.SUCCESSORS, ended=single, single=_single_valued_in_present(), **asdict(point))
        absent -= {(row["id"], row["until"]) for row in rest}
    return absent


def _has_ended(row: Row, point: Point) -> bool:
    """Return whether *row*, a fact in one of its periods, is a reviewed state that has ended by *point*.

    A state lasts: "Ann lives in Oslo", but not "Ann moved".
    """
    fact, belief = row["fact"], row["belief"]
    if not belief["reviewed"] or belief["invalid_at"] > point.as_of or (fact.get("kind") or "state") != "state":
        return False
    return is_present(fact["predicate"]) or _is_single_valued(fact["predicate"])


def _is_single_valued(name: str) -> bool:
    predicate = canonical_predicate(name)
    return predicate is not None and predicate.single_valued is True


@cache
def _single_valued_in_present() -> list[str]:
    return [name for name in canonical_predicates() if is_present(name) and _is_single_valued(name)]

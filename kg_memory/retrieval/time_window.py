"""The time that a question is about: its parameters, else the words of the question (C30); in microseconds.

Parameters filter. Words only give a preference: see `recipe.ByTime`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime

from kg_memory.errors import InputError
from kg_memory.falkor.queries import search as cypher
from kg_memory.falkor.rows import Row
from kg_memory.models.results import QueryTime
from kg_memory.retrieval.question import Question, QuestionTime, asker_keys, name_keys
from kg_memory.retrieval.ranking import Instants
from kg_memory.runtime.effects import now, read
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.interval import EPOCH, OPEN_END, OPEN_START, WIDTH, Interval, instant, micros
from kg_memory.text.dated import day_in_figures
from kg_memory.text.dates import EventTime, find_times, parse_when
from kg_memory.text.identity import alias_key, replace_unstorable
from kg_memory.text.message_fields import USER

UserTime = date | str | None
"""A time as users give it: a datetime, ISO 8601 text or plain words."""
Window = tuple[int, int]
"""``[since, until)`` in microseconds."""
WORDS = 2000
"""The characters of a question in which time words are looked for."""


def find_time(question: Question) -> Flow[QuestionTime]:
    """Return the window of valid time and the instant of the system's clock that the question is about.

    Errors: `InputError` when `as_of`, `believed_at` or `during` is no time, or two of them contradict.
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
    return QuestionTime(instants, _describe(instants, words, time), past=min(latest, believed_at) < time)


def parse_moment(name: str, value: UserTime, time: int) -> int:
    """Return the first instant of *value* in microseconds; *time*, which is now, for ``None``.

    Errors: `InputError` that calls the value *name*.
    """
    if value is None:
        return time
    start = _parse_interval(name, value, time).start
    if start is None:
        raise InputError(f"{name} must have a beginning, got {value!r}; use an instant, or during")
    return micros(start, default=time)


def parse_window(as_of: UserTime, during: object, time: int) -> Window | None:
    """Return the window of the parameters; ``None`` without any.

    Errors: `InputError` when there are both, or one is no time.
    """
    if during is None:
        if as_of is None:
            return None
        at = parse_moment("as_of", as_of, time)
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
    """Return the time words of the question, the window that they mean, and its vagueness; what several share."""
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
    """Return the alias keys of those whom *event* may be about; without a subject, that may be who asks."""
    about = replace_unstorable(f"{event.subject or ''} {question}")
    who = asker_keys(about, asker) if event.subject else [alias_key(replace_unstorable(asker or USER))]
    return [*name_keys(about), *who]


def _find_around(event: EventTime, subjects: list[str], time: int, believed_at: int) -> Flow[Window | None]:
    """Return the window that an event of the graph opens or closes: "before she moved", "while he worked at Acme"."""
    rows = yield from read(
        cypher.EVENTS,
        subjects=subjects,
        predicate=event.predicate,
        believed_at=believed_at,
        object=alias_key(event.object) if event.object else "",
    )
    if event.object:
        rows = [row for row in rows if row["meant"]]
        if not rows and event.predicate == "WORKS_AT":  # "before she left Paris"
            window = yield from _find_around(replace(event, predicate="LIVES_IN"), subjects, time, believed_at)
            return window
    if event.relation == "while":
        return (rows[-1]["known_from"], rows[-1]["invalid_at"]) if rows else None
    at = _edge(rows, event.edge)
    if at is None and event.edge == "start" and event.relation == "before":
        at = _edge(rows, "end") if event.object is None else None  # what was before has ended
    elif at is None and event.edge == "start" and rows:
        at = max(row["known_from"] for row in rows)  # since then at the latest
    if at is None:
        return None
    return (at - 1, at) if event.relation == "before" else (at, max(time, at) + 1)


def _edge(rows: Sequence[Row], edge: str) -> int | None:
    """Return the start of the latest period, or the end of the latest closed one."""
    if edge == "end":
        return max((row["invalid_at"] for row in rows if row["invalid_at"] != OPEN_END), default=None)
    starts = [row["valid_at"] for row in rows if row["valid_at"] != OPEN_START]
    return max(starts, default=None)


def _describe(instants: Instants, words: str | None, time: int) -> QueryTime:
    since, until = instant(max(instants.since, OPEN_START)), instant(min(instants.until, OPEN_END))
    if instants.until - instants.since == 1:
        reading = "what is so now" if instants.since == time else f"what was so at {_in_words(since)}"
    elif since is None and until is None:
        reading = "what was so at any time"
    else:
        begin = f"from {_in_words(since)} " if since else ""
        reading = f"what was so {begin}{f'until {_in_words(until)}' if until else 'on'}"
    if instants.believed_at != time:
        reading += f", as it was believed at {_in_words(instant(instants.believed_at))}"
    if words:
        reading += f', by the words "{words}"'
    believed_at = instant(instants.believed_at) or EPOCH
    return QueryTime(since=since, until=until, believed_at=believed_at, words=words, reading=reading)


def _in_words(moment: datetime | None) -> str:
    return day_in_figures(moment) if moment else "ever"

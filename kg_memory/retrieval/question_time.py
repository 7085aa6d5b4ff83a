"""Which time a question asks about: by its parameters, else by its own words (C30)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from kg_memory.errors import InputError
from kg_memory.falkor.queries import search as cypher
from kg_memory.models.graph import QueryTime
from kg_memory.retrieval.names import name_keys
from kg_memory.retrieval.records import Instants, RetrievalState
from kg_memory.retrieval.time_window import Window, asked_window, moment
from kg_memory.runtime.effects import now, read
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.interval import EPOCH, OPEN_END, OPEN_START, instant, micros
from kg_memory.text.dates import EventTime, find_times
from kg_memory.text.identity import alias_key, replace_unstorable

GIVEN = (
    ("question", str, "string"), ("thread", str, "string"), ("center", str, "string"),
    ("limit", int, "whole number"), ("max_tokens", int, "whole number"),
)  # fmt: skip
WORDS = 2000
"""Characters of a question in which time words are looked for."""


def when(state: RetrievalState) -> Flow[dict[str, Any]]:
    """Return the window of valid time and the instant of the system's clock that the question is about.

    Errors: `InputError` when `as_of`, `believed_at` or `during` is no time, or two of them contradict; or when
    anything else that was handed in is of no use.
    """
    _check(state)
    time = yield from now()
    believed_at = moment("believed_at", state.get("believed_at"), time)
    window = asked_window(state.get("as_of"), state.get("during"), time)
    words, lenient = None, False
    if window is None:
        words, window = yield from _by_words(str(state.get("question") or "")[:WORDS], time, believed_at)
        lenient = words is not None
    since, until = window or (time, time + 1)
    instants: Instants = {
        "since": since, "until": until, "believed_at": believed_at,
        "lenient": lenient, "unreviewed": bool(state.get("unreviewed")),
    }  # fmt: skip
    asked = _told(instants, words, time).model_dump(mode="json")
    return {"instants": instants, "asked": asked, "past": min(until - 1, believed_at) < time}


def _check(state: RetrievalState) -> None:
    if state.get("question") is None:
        raise InputError("the input has no question: give it as 'question'")
    for name, kind, wanted in GIVEN:
        value = state.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, kind)):
            raise InputError(f"{name} is {value!r}: give a {wanted}")


def _by_words(question: str, time: int, believed_at: int) -> Flow[tuple[str | None, Window | None]]:
    """Return the words of the question that name its time, and the window that they mean; of several, what all mean."""
    words: list[str] = []
    since, until = OPEN_START, OPEN_END + 1
    for asked in find_times(replace_unstorable(question), instant(time) or EPOCH):
        window: Window | None = None
        if asked.interval is not None:
            start, end = asked.interval.start, asked.interval.end
            window = micros(start, default=OPEN_START), micros(end, default=OPEN_END + 1)
        elif asked.event is not None:
            window = yield from _around(asked.event, question, time, believed_at)
        if window is not None and max(since, window[0]) < min(until, window[1]):
            since, until = max(since, window[0]), min(until, window[1])
            words.append(asked.words)
    return (", ".join(words), (since, until)) if words else (None, None)


def _around(event: EventTime, question: str, time: int, believed_at: int) -> Flow[Window | None]:
    """Return the window that an event of the graph opens or closes: "before she moved", "while he worked at Acme"."""
    about = replace_unstorable(f"{event.subject or ''} {question}")
    rows = yield from read(
        cypher.EVENTS, subjects=name_keys(about), predicate=event.predicate, believed_at=believed_at,
        object=alias_key(event.object) if event.object else "",
    )  # fmt: skip
    if event.object:
        rows = [row for row in rows if row["meant"]]
        if not rows and event.predicate == "WORKS_AT":  # "before she left Paris"
            found = yield from _around(replace(event, predicate="LIVES_IN"), question, time, believed_at)
            return found
    if event.relation == "while":
        return (rows[-1]["known_from"], rows[-1]["invalid_at"]) if rows else None
    at = _edge(rows, event.edge)
    if at is None:
        return None
    return (at - 1, at) if event.relation == "before" else (at, max(time, at) + 1)


def _edge(rows: Sequence[Mapping[str, Any]], edge: str) -> int | None:
    """Return when the last such period began, a change before a first time; or when the last that is over ended."""
    if edge == "end":
        return max((row["invalid_at"] for row in rows if row["invalid_at"] != OPEN_END), default=None)
    begun = [row["valid_at"] for row in rows if row["valid_at"] != OPEN_START]
    return max(begun, default=None)


def _told(instants: Instants, words: str | None, time: int) -> QueryTime:
    since, until = instant(max(instants["since"], OPEN_START)), instant(min(instants["until"], OPEN_END))
    if instants["until"] - instants["since"] == 1:
        reading = "what is so now" if instants["since"] == time else f"what was so at {_iso(since)}"
    elif since is None and until is None:
        reading = "what was so at any time"
    else:
        reading = f"what was so {f'from {_iso(since)} ' if since else ''}{f'until {_iso(until)}' if until else 'on'}"
    if instants["believed_at"] != time:
        reading += f", as it was believed at {_iso(instant(instants['believed_at']))}"
    if words:
        reading += f', by the words "{words}"'
    believed_at = instant(instants["believed_at"]) or EPOCH
    return QueryTime(since=since, until=until, believed_at=believed_at, words=words, reading=reading)


def _iso(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M}".removesuffix(" 00:00") if moment else "ever"

"""Step 10, summarise: write a short summary of each entity whose facts changed: what holds now, and what held before.

Facts keep their dates in it, because a summary may be read long after it was written.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Iterable, Sequence

from kg_memory.errors import ModelError
from kg_memory.falkor.queries import ingestion as queries
from kg_memory.falkor.queries.usage import NO_USAGE
from kg_memory.falkor.rows import Row
from kg_memory.ingestion.records import JSON
from kg_memory.ingestion.save import LEFT, STALE
from kg_memory.ingestion.state import Draft, Update
from kg_memory.llm.prompts import SUMMARISE
from kg_memory.runtime.effects import ask_model, fetch, now, write
from kg_memory.runtime.flow import Flow
from kg_memory.runtime.telemetry import describe_error
from kg_memory.settings import Settings
from kg_memory.text import tokenise
from kg_memory.text.dated import dated, dated_past

log = logging.getLogger("kg_memory.ingestion")

LONGEST = 500
"""Characters up to which the facts themselves are the summary, without a model."""
AFRESH = 5
"""The number of new facts after which the model is asked for a new summary."""
MOST_SHOWN = STALE["limit"] - AFRESH + 1
"""The most facts that the model is shown."""
Entity = Row
"""The row of an entity: its latest current facts (`facts`, newest first), ended facts (`past`) and old summary."""
Summary = tuple[str, str | None]
"""A summary; and, if it begins with text of the model, the length of that text and a digest of its basis."""
_STOPS = (".", "!", "?", "…", "。", "！", "？", "．", "｡", "।", "॥", "؟", "۔", "։", "።")
_CLOSING = "\"'”’»)]』」）】》 "
_WORD = re.compile(r"[^\W\d_]+")
_CHINESE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")


def summarise(draft: Draft, settings: Settings) -> Flow[Update]:  # noqa: ARG001 - steps have one shape
    """Step 10 of ingestion: write new summaries of the entities whose facts the message changed.

    Also write summaries that a crashed process left out.
    """
    if draft.part:  # each part made summaries stale at a time of its own
        yield from refresh(0, draft.saved_at + 1)
        return {}
    yield from _refresh_rows(draft.stale)
    if len(draft.stale) == STALE["most"]:
        yield from refresh(draft.saved_at, draft.saved_at - LEFT)
    return {}


def refresh(since: int, before: int) -> Flow[None]:
    """Write new summaries of entities whose summary was marked as outdated at *since*, or before *before*."""
    while True:
        records = yield from fetch(queries.STALE_ENTITIES, since=since, before=before, now=(yield from now()), **STALE)
        yield from _refresh_rows([record["entity"] for record in records])
        if len(records) < STALE["most"]:
            return


def _refresh_rows(rows: Sequence[Entity]) -> Flow[None]:
    if rows:
        summaries = yield from _summaries(rows)
        stored = [_summary_row(row, *summaries[row["key"]]) for row in rows]
        yield from write(queries.SAVE_SUMMARIES, summaries=stored, **NO_USAGE)


def _summaries(rows: Iterable[Entity]) -> Flow[dict[str, Summary]]:
    """Return ``{entity key: (summary, reuse key)}`` for *rows*; the key of a list of few facts is None."""
    summaries: dict[str, Summary] = {}
    open_ones: list[_LongSummary] = []
    for row in rows:
        long = _LongSummary(row)
        if len(long.all) <= LONGEST:
            summaries[row["key"]] = long.all, None
        elif cached := long.cached:
            summaries[row["key"]] = long.begin_with(cached)
        elif len(long.plain) <= LONGEST:
            summaries[row["key"]] = _join(long.plain, long.latest), None
        else:
            open_ones.append(long)
    if open_ones:
        texts = yield from _ask_summaries([long.show(index) for index, long in enumerate(open_ones)])
        for index, long in enumerate(open_ones):
            text = texts.get(index)
            summaries[long.row["key"]] = long.begin_with(text) if text else (_shorten(long.current), None)
    return summaries


class _LongSummary:
    """A summary of an entity with many facts: the model's text about older facts, then the latest facts."""

    def __init__(self, row: Entity) -> None:
        """Split the facts of *row*, an entity's database row, into older ones (for the model) and the latest ones."""
        self.row = row
        self.past = [dated_past(fact) for fact in row["past"]]
        self.current = [dated(fact) for fact in row["facts"]]
        self.all = _join_sentences((*reversed(self.current), *self.past))
        latest = self.current[: row["total"] % AFRESH]
        self.latest = _join_sentences(reversed(latest))
        if len(self.latest) > LONGEST:
            latest, self.latest = [], ""
        self.facts = self.current[len(latest) :][:MOST_SHOWN]
        self.plain = _join_sentences((*reversed(self.facts), *self.past))
        length, _, self.digest = str(row["worded"] or "").partition(" ")
        self.before = str(row["summary"])[: int(length)] if length else None

    @property
    def cached(self) -> str | None:
        """The model's text in the stored summary; None if there is none, or if the facts have changed since then."""
        return self.before if self.before and self.digest == self._digest(self.before) else None

    def show(self, index: int) -> JSON:
        """Return the entity and its facts as JSON for the prompt: ``{"id": 0, "summary": "Ann skis.", ...}``."""
        before = self.row["summary"] if self.row["total"] > MOST_SHOWN else ""
        shown = {"name": self.row["name"], "type": self.row["type"], "facts": self.facts, "past": self.past}
        return {"id": index, "summary": before if self.before is None else self.before, **shown}

    def begin_with(self, text: str) -> Summary:
        """Return (*text* followed by the latest facts, reuse key): ``("Ann skis. She won.", "9 3f2a")``."""
        return _join(text, self.latest), f"{len(text)} {self._digest(text)}"

    def _digest(self, text: str) -> str:
        return hashlib.sha256(json.dumps([text, self.row["name"], self.facts, self.past]).encode()).hexdigest()[:16]


def _ask_summaries(entities: list[JSON]) -> Flow[dict[int, str]]:
    try:
        answer = yield from ask_model(SUMMARISE, entities=entities)
    except ModelError as error:
        log.warning("the model wrote no summaries, so the latest facts are used instead: %s", describe_error(error))
        return {}
    return {summary.entity: " ".join(summary.summary.split()) for summary in answer.summaries}


def _shorten(facts: Sequence[str]) -> str:
    """Join the *facts* (sentences, newest first) that fit into `LONGEST` characters, oldest first; at least one."""
    fitting: list[str] = []
    for sentence in facts:
        if fitting and sum(map(len, fitting)) + len(sentence) > LONGEST:
            break
        fitting.insert(0, sentence)
    return _join_sentences(fitting)


def _join_sentences(sentences: Iterable[str]) -> str:
    return " ".join(_end_sentence(sentence) for sentence in sentences if sentence.strip())


def _join(*texts: str) -> str:
    return " ".join(filter(None, texts))


def _end_sentence(sentence: str) -> str:
    words = sentence.rstrip()
    if words.rstrip(_CLOSING).endswith(_STOPS):
        return words
    if words.isascii():
        return f"{words}."
    foreign = _WORD.findall(_CHINESE.sub(" ", words))
    return f"{words}。" if len(_CHINESE.findall(words)) > len(foreign) else f"{words}."


def _summary_row(row: Entity, summary: str, worded: str | None) -> JSON:
    """Return the query row that stores *summary* for the entity *row*, with the changes to the word index."""
    changed = tokenise.count_terms(summary)
    changed.subtract(tokenise.count_terms(row["summary"]))
    return {
        "key": row["key"],
        "stale": row["stale"],
        "summary": summary,
        "worded": worded,
        "n": changed.total(),
        "terms": [{"term": term, "f": f} for term, f in sorted(changed.items()) if f],
    }

"""Step 10, summarise: what is true now of each entity that the episode touched, and what was, kept short (A17)."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Iterable
from typing import Any

from kg_memory.errors import ModelError
from kg_memory.falkor.queries import ingestion
from kg_memory.falkor.queries.usage import NO_USAGE
from kg_memory.ingestion.records import IngestionState
from kg_memory.ingestion.save import LEFT, STALE
from kg_memory.llm.prompts import SUMMARISE
from kg_memory.runtime.effects import ask, now, read, write
from kg_memory.runtime.flow import Flow
from kg_memory.runtime.telemetry.failures import reason
from kg_memory.settings import Settings
from kg_memory.temporal.interval import instant
from kg_memory.text import tokenise

log = logging.getLogger("kg_memory.ingestion")

LONGEST = 400
"""Characters up to which the facts themselves are the summary, and no model is asked."""
AFRESH = 5
"""Every so many facts the model is asked for a summary anew."""
MOST_TOLD = STALE["limit"] - AFRESH + 1
"""How many facts it is told."""
Summary = tuple[str, str | None]
"""A text; and how much of it the model made, and of what, where it did."""
_STOPS = (".", "!", "?", "…", "。", "！", "？", "．", "｡", "।", "॥", "؟", "۔", "։", "።")
_CLOSING = "\"'”’»)]』」）】》 "
_WORD = re.compile(r"[^\W\d_]+")
_CHINESE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")


def summarise(state: IngestionState, settings: Settings) -> Flow[dict[str, Any]]:  # noqa: ARG001 - steps have one shape
    """Refresh the summaries of the entities whose facts the episode changed, and those that a crash left old."""
    rows = state["stale"]
    yield from _told_anew(rows)
    if len(rows) == STALE["most"]:
        yield from refresh(state["saved_at"], state["saved_at"] - LEFT)
    return {}


def refresh(since: int, before: int) -> Flow[None]:
    """Refresh the summaries that are stale *since* that instant, or from *before* the other one.

    The model is asked only about entities with many facts. What another writer changes meanwhile
    stays stale, and is that writer's to refresh.
    """
    while True:
        found = yield from read(ingestion.STALE_ENTITIES, since=since, before=before, now=(yield from now()), **STALE)
        rows = [row["entity"] for row in found]
        yield from _told_anew(rows)
        if len(rows) < STALE["most"]:
            return


def _told_anew(rows: list[dict[str, Any]]) -> Flow[None]:
    """Summarise the entities of *rows*."""
    if rows:
        summaries = yield from _summaries(rows)
        stored = [_stored(row, *summaries[row["key"]]) for row in rows]
        yield from write(ingestion.SAVE_SUMMARIES, summaries=stored, **NO_USAGE)


def _summaries(rows: list[dict[str, Any]]) -> Flow[dict[str, Summary]]:
    """Return the summaries by entity key: the facts themselves while few, else what the model makes of most of them."""
    found: dict[str, Summary] = {}
    asked: list[_Worded] = []
    for row in rows:
        each = _Worded(row)
        if len(each.all) <= LONGEST:
            found[row["key"]] = each.all, None
        elif kept := each.kept:
            found[row["key"]] = each.summary(kept)
        elif len(each.plain) <= LONGEST:
            found[row["key"]] = _joined(each.plain, each.latest), None
        else:
            asked.append(each)
    if asked:
        given = yield from _given([each.told(place) for place, each in enumerate(asked)])
        for place, each in enumerate(asked):
            text = given.get(place)
            found[each.row["key"]] = each.summary(text) if text else (_shortened(each.row["facts"]), None)
    return found


class _Worded:
    """A summary of many facts: what the model makes of them, and the latest, fewer than `AFRESH`, in their own words.

    So the model is asked about an entity once in so many new facts, and when anything ended. Which facts it is asked
    about depends on those that there are alone, not on how often it was asked before.
    """

    def __init__(self, row: dict[str, Any]) -> None:
        self.row = row
        self.past = [_ended(each) for each in row["past"]]
        self.all = _text((*reversed(row["facts"]), *self.past))
        latest = row["facts"][: row["total"] % AFRESH]
        self.latest = _text(reversed(latest))
        if len(self.latest) > LONGEST:
            latest, self.latest = [], ""
        self.facts = row["facts"][len(latest) :][:MOST_TOLD]
        self.plain = _text((*reversed(self.facts), *self.past))
        length, _, self.of = str(row["worded"] or "").partition(" ")
        self.before = str(row["summary"])[: int(length)] if length else None

    @property
    def kept(self) -> str | None:
        """What the model made of the same facts before, if it was asked about them."""
        return self.before if self.before and self.of == self._of(self.before) else None

    def told(self, place: int) -> dict[str, Any]:
        """Return what the model is told, under the number *place*.

        A summary of facts that it is told all is no news.
        """
        before = self.row["summary"] if self.row["total"] > MOST_TOLD else ""
        told = {"name": self.row["name"], "type": self.row["type"], "facts": self.facts, "past": self.past}
        return {"id": place, "summary": before if self.before is None else self.before, **told}

    def summary(self, text: str) -> Summary:
        """Return the summary that begins with *text*, which the model made, and by what that is known again."""
        return _joined(text, self.latest), f"{len(text)} {self._of(text)}"

    def _of(self, text: str) -> str:
        told = json.dumps([text, self.row["name"], self.facts, self.past])
        return hashlib.sha256(told.encode()).hexdigest()[:16]


def _given(entities: list[dict[str, Any]]) -> Flow[dict[int, str]]:
    """Return the summaries that the model gives; none when it fails, for the episode is done without them."""
    try:
        answer = yield from ask(SUMMARISE, entities=entities)
    except ModelError as error:
        log.warning("no summaries, the latest facts stand in for them: %s", reason(error))
        return {}
    return {each.entity: " ".join(each.summary.split()) for each in answer.summaries}


def _ended(told: dict[str, Any]) -> str:
    """Return a fact that holds no longer as past, its end first."""
    end = instant(told["until"])
    return f"Until {end:%Y-%m-%d}: {told['sentence']}"


def _shortened(facts: list[str]) -> str:
    """Return the latest facts that fit, oldest of them first: what stands in for a summary that was not given."""
    kept: list[str] = []
    for sentence in facts:
        if kept and sum(map(len, kept)) + len(sentence) > LONGEST:
            break
        kept.insert(0, sentence)
    return _text(kept)


def _text(sentences: Iterable[str]) -> str:
    """Return *sentences* as one text, with a full stop after each that has no end of its own."""
    return " ".join(_stopped(each) for each in sentences if each.strip())


def _joined(*texts: str) -> str:
    return " ".join(filter(None, texts))


def _stopped(sentence: str) -> str:
    words = sentence.rstrip()
    if words.rstrip(_CLOSING).endswith(_STOPS):
        return words
    if words.isascii():
        return f"{words}."
    others = _WORD.findall(_CHINESE.sub(" ", words))
    return f"{words}。" if len(_CHINESE.findall(words)) > len(others) else f"{words}."


def _stored(row: dict[str, Any], summary: str, worded: str | None) -> dict[str, Any]:
    more = tokenise.count_terms(summary)
    more.subtract(tokenise.count_terms(row["summary"]))
    return {
        "key": row["key"], "stale": row["stale"], "summary": summary, "worded": worded,
        "n": more.total(), "terms": [{"term": term, "f": f} for term, f in sorted(more.items()) if f],
    }  # fmt: skip

"""Measure the support of what stays again: words of a forgotten message may have supported statements after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kg_memory.falkor.rows import Row
from kg_memory.ingestion.receive import receive_again
from kg_memory.ingestion.records import JSON, EpisodeRecord
from kg_memory.ingestion.state import Draft
from kg_memory.ingestion.support import make_passage
from kg_memory.maintenance.forgetting import cypher
from kg_memory.runtime.effects import read, work
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.temporal.interval import time_text
from kg_memory.text.passage import Claim
from kg_memory.text.payloads import hide_payloads
from kg_memory.text.support import measure_support

PLACE = ("start", "end", "valid_at", "invalid_at")
"""The columns by which the statements of one episode about one fact are told apart."""


def reweigh(ids: Sequence[str], texts: Mapping[str, str | None], settings: Settings) -> Flow[list[JSON]]:
    """Return the statements of the episodes *ids* whose support changes where those before them have other *texts*.

    Each has its support and its confidence as they are then. One that was too weak gains no confidence: how sure its
    reader was is not stored.
    """
    changed: list[JSON] = []
    for row in (yield from read(cypher.SUPPORTED, ids=list(ids))):
        changed += yield from _reweigh_episode(row, texts, settings)
    return changed


def _reweigh_episode(row: Row, texts: Mapping[str, str | None], settings: Settings) -> Flow[list[JSON]]:
    episode = EpisodeRecord(**row["episode"])
    before, after = yield from receive_again(episode, settings, texts)
    if before.previous == after.previous or not before.pieces:
        return []
    weighed = yield from work(
        lambda: [_reweigh_statement(statement, before, after, settings) for statement in row["statements"]]
    )
    return [statement for statement in weighed if statement is not None]


def _reweigh_statement(statement: Row, before: Draft, after: Draft, settings: Settings) -> JSON | None:
    """Return the changed statement; ``None`` where it is supported as before.

    The claim is made of what is stored, which its reader may have put in other words. So only the share that is lost or
    gained is taken from it.
    """
    content, start = before.episode.content, statement["start"]
    entities = statement["entities"]
    claim = Claim(
        statement["sentence"],
        statement["predicate"],
        [(entity["name"], *entity["aliases"]) for entity in entities],
        hide_payloads(content[start : statement["end"]]),
        statement["kind"],
        time_text(statement["valid_at"], statement["precision"], before.episode.offset),
        time_text(statement["invalid_at"], statement["end_precision"], before.episode.offset),
        [entity["type"] for entity in entities],
    )
    earlier = (piece for piece in reversed(before.pieces) if before.episode.place(piece.start) <= start)
    piece = next(earlier, before.pieces[0])
    old, new = (measure_support(claim, make_passage(draft, piece, settings)).score for draft in (before, after))
    if old == new or not old:
        return None
    support = min(1.0, round(statement["support"] * new / old, 3))
    is_weak, confidence = support < settings.min_support, statement["confidence"]
    return {
        "episode": before.episode.id,
        "fact": statement["fact"],
        **{name: statement[name] for name in PLACE},
        "support": support,
        "weak": is_weak,
        "confidence": min(confidence, support) if is_weak else confidence,
    }

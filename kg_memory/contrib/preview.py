"""Preview for `memory.episodes.preview`: the facts and entities that reading a message would store."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kg_memory.ingestion.date import date
from kg_memory.ingestion.dedupe import compare_facts
from kg_memory.ingestion.extract import extract, reflect
from kg_memory.ingestion.facts import facts
from kg_memory.ingestion.invalidate import invalidate
from kg_memory.ingestion.receive import sketch
from kg_memory.ingestion.resolve import resolve
from kg_memory.ingestion.state import Draft, spare_loop
from kg_memory.memory.adding import State
from kg_memory.models.operations import Preview, PreviewedVerdict
from kg_memory.runtime.caches import CachedAnswers
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings

PREVIEWED = (extract, reflect, resolve, facts, date, compare_facts, invalidate)
"""The ingestion steps that do not write."""


def preview_input(state: State, settings: Settings) -> Flow[Preview]:
    """Return the facts and entities that reading a message would store, without storing them.

    *state*: the message, with its time and namespace.
    """
    asking = CachedAnswers(state["namespace"])
    draft = yield from asking.through(_run_previewed_steps(state, settings))
    return Preview(
        facts=tuple(fact.sentence for fact in draft.facts if fact.same_as is None),
        known=tuple(fact.sentence for fact in draft.facts if fact.same_as is not None),
        ended=tuple(draft.revision.ended),
        pending=tuple(draft.revision.waiting),
        entities=tuple(entity.name for entity in draft.entities if entity.is_new),
        merged=tuple(entity.name for entity in draft.entities if not entity.is_new),
        verdicts=tuple(_verdicts(draft)),
        skipped=draft.skipped,
        usage=asking.usage("preview"),
    )


def _run_previewed_steps(state: State, settings: Settings) -> Flow[Draft]:
    draft = yield from spare_loop(Draft.of(state), sketch(state, settings))
    for step in PREVIEWED:
        draft = replace(draft, **(yield from spare_loop(draft, step(draft, settings))))
    return draft


def _verdicts(draft: Draft) -> Iterator[PreviewedVerdict]:
    """Yield the relation of each fact of a message to a similar stored fact, such as "duplicate"."""
    rulings = {(verdict.new, verdict.existing): verdict for verdict in draft.verdicts}
    for pair in draft.comparisons:
        fact, existing = draft.facts[pair.new], pair.candidate
        ruled = rulings.get((fact.stored_id, existing.id))
        verdict = pair.verdict or ruled
        if verdict is not None:
            yield PreviewedVerdict(
                fact=fact.sentence,
                existing=existing.id,
                existing_sentence=existing.sentence,
                verdict=ruled.kind if ruled else pair.verdict.verdict if pair.verdict else "unrelated",
                confidence=verdict.confidence,
                reason=verdict.reason,
                ruling=ruled.ruling if ruled else None,
            )

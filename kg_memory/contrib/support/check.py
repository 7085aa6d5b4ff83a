"""The check of support (plug-in ``support`` of the kind ``checks``): do the words of a message state what was read?

Facts below `Settings.min_support` are refused where no words of the message state them, else they are marked as weak.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from kg_memory.contrib.support.measure import measure_support
from kg_memory.contrib.support.passage import Claim, Passage
from kg_memory.ingestion.facts import Reading
from kg_memory.ingestion.records import Piece, ResolvedEntity, StatedFact
from kg_memory.ingestion.state import Draft
from kg_memory.settings import Settings
from kg_memory.temporal.interval import local_time, parse_instant


class SupportCheck:
    """Measures how well the pieces of an episode support what was read in them."""

    def __init__(self, draft: Draft, settings: Settings) -> None:
        self._draft, self._settings = draft, settings
        self._passages: dict[int, Passage] = {}

    def __call__(self, stated: StatedFact, reading: Reading) -> StatedFact | None:
        """Return the *stated* fact with its support and the span of it; a weak one is not surer than that.

        Return ``None`` where nothing in the message supports it.
        """
        piece, fact = reading.piece, reading.fact
        if piece.start not in self._passages:
            self._passages[piece.start] = _make_passage(self._draft, piece, self._settings)
        count = len(self._draft.entities)
        entities = [self._draft.entities[place] for place in (fact.subject, *fact.objects) if 0 <= place < count]
        claim = Claim(
            fact.sentence,
            fact.predicate,
            list(map(_names_of, entities)),
            fact.quote or piece.content,
            fact.kind,
            fact.valid_at,
            fact.invalid_at,
            [entity.type for entity in entities],
        )
        support = measure_support(claim, self._passages[piece.start])
        is_weak = support.score < self._settings.min_support
        if is_weak and support.span is None:
            return None
        start, end = support.span or (0, len(piece.content))
        return replace(
            stated,
            start=piece.start + start,
            end=piece.start + end,
            quoted=support.is_exact,
            support=support.score,
            weak=is_weak,
            confidence=min(stated.confidence, support.score) if is_weak else stated.confidence,
        )


def _make_passage(draft: Draft, piece: Piece, settings: Settings) -> Passage:
    """Return *piece* of the episode, with what its reader saw before it."""
    episode = draft.episode
    at = local_time(episode.at, episode.offset)
    before = [(message.line, parse_instant(message.at) or at) for message in draft.previous]
    others = [other.content for other, after in pairwise(draft.pieces) if after == piece]
    previous = [*((text, at) for text in (settings.instructions, *others) if text), *before]
    return Passage(piece.content, at, episode.speaker_name, previous, is_record=episode.kind == "json")


def _names_of(entity: ResolvedEntity) -> tuple[str, ...]:
    """Return the names by which a reader may call *entity*; those of this episode come first."""
    return tuple(dict.fromkeys((*entity.called, entity.name, *entity.aliases)))

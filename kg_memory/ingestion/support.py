"""Whether the words that facts are quoted from support them: one that none support is refused, a weak one is marked."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from kg_memory.ingestion.records import Piece, ResolvedEntity, StatedFact
from kg_memory.ingestion.state import Draft
from kg_memory.llm.prompts.answers import ExtractedFact
from kg_memory.settings import Settings
from kg_memory.temporal.interval import local_time
from kg_memory.text.dates import parse_instant
from kg_memory.text.passage import Claim, Passage
from kg_memory.text.support import Support, measure_support

UNSUPPORTED = "its quote is not in the message, and no other words there support it"


class SupportCheck:
    """Measures how well the pieces of an episode support what was read in them."""

    def __init__(self, draft: Draft, settings: Settings) -> None:
        self._draft, self._settings = draft, settings
        self._passages: dict[int, Passage] = {}

    def measure(self, piece: Piece, fact: ExtractedFact) -> Support:
        """Return how well *piece* supports *fact*, with the entities and messages that its reader saw."""
        entities = [self._draft.entities[place] for place in (fact.subject, *fact.objects) if self._has(place)]
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
        return measure_support(claim, self._passage(piece))

    def refuses(self, support: Support) -> bool:
        """Return whether nothing in the message supports a fact."""
        return support.span is None and support.score < self._settings.min_support

    def mark(self, fact: StatedFact, support: Support, piece: Piece) -> StatedFact:
        """Return *fact* with its *support* and the span of it; one that is weak is not surer than that."""
        is_weak = support.score < self._settings.min_support
        start, end = support.span or (0, len(piece.content))
        return replace(
            fact,
            start=piece.start + start,
            end=piece.start + end,
            quoted=support.is_exact,
            support=support.score,
            weak=is_weak,
            confidence=min(fact.confidence, support.score) if is_weak else fact.confidence,
        )

    def _has(self, place: int) -> bool:
        return 0 <= place < len(self._draft.entities)

    def _passage(self, piece: Piece) -> Passage:
        if piece.start not in self._passages:
            self._passages[piece.start] = make_passage(self._draft, piece, self._settings)
        return self._passages[piece.start]


def make_passage(draft: Draft, piece: Piece, settings: Settings) -> Passage:
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

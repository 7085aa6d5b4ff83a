"""Builds profiles: sorts what is true of an entity into topics, sub-topics and lines, and renders them for a prompt.

All functions are pure. The order is fixed, and new facts come last in their sub-topic. So the beginning of the text
stays the same, and the prompt cache of a model server can reuse it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from kg_memory.contrib.profile.topics import FALLBACK, TopicSchema
from kg_memory.models.graph import FactKind, PlanOutcome, Precision
from kg_memory.models.results import Profile, ProfileSlot, ProfileSubTopic, ProfileTopic
from kg_memory.retrieval.context.lines import escape_brackets
from kg_memory.retrieval.context.packing import token_cost
from kg_memory.text.context_markers import PROFILE
from kg_memory.text.dated import period_in_words
from kg_memory.text.sentences import excerpt, one_line
from kg_memory.text.tokenise import estimate_tokens


class HeldState(NamedTuple):
    """A state that is currently true of an entity, such as "Ann lives in Oslo".

    `own`: the entity is its subject. `begin`: when it began or became known, in microseconds since the epoch.
    """

    id: str
    own: bool
    predicate: str
    sentence: str
    confidence: float
    begin: int
    valid_at: datetime | None
    invalid_at: datetime | None
    known_from: datetime | None
    precision: Precision
    end_precision: Precision
    statements: int = 1
    mark: str = ""
    outcome: PlanOutcome | None = None

    @property
    def kind(self) -> FactKind:
        return "state"


@dataclass(frozen=True, slots=True)
class ProfileLimits:
    """The size limits of a profile, and its topics: `prefer_topics` come first; `only_topics` excludes all others."""

    max_tokens: int | None
    max_subtopics: int
    max_slot_tokens: int
    prefer_topics: tuple[str, ...] = ()
    only_topics: tuple[str, ...] = ()


@dataclass(slots=True)
class _LineDraft:
    """A line of a profile that is being built: a sentence (`content`) and its period in words, "since May 2023"."""

    content: str
    when: str
    states: list[HeldState] = field(default_factory=list)

    @property
    def weight(self) -> tuple[int, float]:
        """The sort key of this line, to cut the lowest lines first: (number of statements, confidence) of its facts."""
        return sum(state.statements for state in self.states), self.confidence

    @property
    def confidence(self) -> float:
        """The highest confidence, from 0 to 1, of the facts in this line of a profile."""
        return max(state.confidence for state in self.states)


@dataclass(slots=True)
class _SubTopicDraft:
    """A sub-topic of a profile that is being built, such as "allergies" in the topic "diet", with its lines."""

    name: str
    description: str = ""
    lines: dict[tuple[str, str], _LineDraft] = field(default_factory=dict)  # by (sentence in lower case, period)


def build_profile(
    name: str, states: Iterable[HeldState], schemas: Sequence[TopicSchema], limits: ProfileLimits, *, strict: bool
) -> Profile:
    """Sort *states*, which are true of the entity *name*, into topics and sub-topics; return them as a profile."""
    groups = _fold_rest(_sort_into_sub_topics(states, schemas, limits, strict=strict), limits.max_subtopics)
    left_out = _cut(groups, limits)
    descriptions = {name: topic.description for schema in reversed(schemas) for name, topic in schema.topics.items()}
    topics = []
    for topic, drafts in groups.items():
        sub_topics = tuple(_to_sub_topic(draft) for draft in drafts if draft.lines)
        if sub_topics:
            topics.append(ProfileTopic(name=topic, description=descriptions.get(topic, ""), sub_topics=sub_topics))
    text = _render(topics)
    return Profile(entity=name, topics=tuple(topics), left_out=left_out, text=text, tokens=estimate_tokens(text))


def topics_of(schemas: Iterable[TopicSchema], *, strict: bool) -> list[str]:
    """Return the topic names of all *schemas* in order; unless *strict*, ``other`` is the last."""
    names = dict.fromkeys(topic for schema in schemas for topic in schema.topics)
    return list(names if strict else {**names, FALLBACK: None})


def _sort_into_sub_topics(
    states: Iterable[HeldState], schemas: Sequence[TopicSchema], limits: ProfileLimits, *, strict: bool
) -> dict[str, list[_SubTopicDraft]]:
    """Sort *states* into sub-topics; return the sub-topics with states by topic: ``{"diet": [...]}``, in final order.

    States that match none of *schemas* go to the topic ``other``; with *strict*, they are left out.
    """
    topics = dict.fromkeys((*limits.prefer_topics, *topics_of(schemas, strict=False)))
    groups: dict[str, dict[str, _SubTopicDraft]] = {topic: {} for topic in topics}
    for schema in schemas:
        for topic, declared in schema.topics.items():
            for name, sub_topic in declared.sub_topics.items():
                groups[topic].setdefault(name, _SubTopicDraft(name, sub_topic.description))
    for state in states:
        places = (schema.place(state.predicate, state.sentence, as_object=not state.own) for schema in schemas)
        found = next(filter(None, places), None)
        topic, name = found or (FALLBACK, state.predicate.lower())
        if (found or not strict) and (not limits.only_topics or topic in limits.only_topics):
            draft = groups[topic].setdefault(name, _SubTopicDraft(name))
            _add_to_sub_topic(draft, state, limits.max_slot_tokens)
    groups[FALLBACK] = dict(sorted(groups[FALLBACK].items()))
    filled = {topic: [draft for draft in drafts.values() if draft.lines] for topic, drafts in groups.items()}
    return {topic: drafts for topic, drafts in filled.items() if drafts}


def _add_to_sub_topic(draft: _SubTopicDraft, state: HeldState, max_tokens: int) -> None:
    text, when = one_line(state.sentence, length=len(state.sentence)), period_in_words(state)
    key = text.casefold(), when
    line = draft.lines.get(key)
    if line is None:
        line = draft.lines[key] = _LineDraft(_shorten(text, max_tokens), when)
    line.states.append(state)


def _shorten(text: str, max_tokens: int) -> str:
    length = len(text)
    short = text
    if length * 2 < max_tokens:  # a character has at most two tokens
        return short
    while estimate_tokens(short) > max_tokens and length > 1:
        length = max(1, min(length - 1, length * max_tokens // estimate_tokens(short)))
        short = excerpt(text, frozenset(), length)
    return short


def _fold_rest(groups: dict[str, list[_SubTopicDraft]], most: int) -> dict[str, list[_SubTopicDraft]]:
    """Merge the smallest sub-topics of each topic into ``other`` until *most* remain; change and return *groups*."""
    for topic, drafts in groups.items():
        if len(drafts) <= most:
            continue
        kept = {draft.name for draft in sorted(drafts, key=lambda draft: -len(draft.lines))[: most - 1]} - {FALLBACK}
        rest = _SubTopicDraft(FALLBACK)
        for draft in drafts:
            if draft.name not in kept:
                rest.lines |= draft.lines
        groups[topic] = [*(draft for draft in drafts if draft.name in kept), rest]
    return groups


def _cut(groups: dict[str, list[_SubTopicDraft]], limits: ProfileLimits) -> tuple[str, ...]:
    """Remove lines from *groups* (sub-topics by topic) down to the token limit; return the ids of their facts."""
    if limits.max_tokens is None:
        return ()
    room = limits.max_tokens - 1 - token_cost(PROFILE.begin + PROFILE.end)
    queue: list[tuple[bool, int, str, _SubTopicDraft, tuple[str, str]]] = []
    for topic, drafts in groups.items():
        later = topic not in limits.prefer_topics
        for draft in drafts:
            ranked = sorted(draft.lines, key=lambda key: draft.lines[key].weight, reverse=True)
            queue += [(later, turn, topic, draft, key) for turn, key in enumerate(ranked)]
    headed, left_out, full = set[str](), list[str](), False
    for _, _, topic, draft, key in sorted(queue, key=lambda item: item[:2]):
        line = draft.lines[key]
        cost = token_cost(_line(draft.name, line.content, line.when) + "\n")
        cost += 0 if topic in headed else token_cost(f"{topic}\n")
        full = full or cost > room
        if full:
            left_out += [state.id for state in draft.lines.pop(key).states]
            continue
        headed.add(topic)
        room -= cost
    return tuple(left_out)


def _to_sub_topic(draft: _SubTopicDraft) -> ProfileSubTopic:
    lines = sorted(draft.lines.values(), key=lambda line: (line.states[0].begin, line.states[0].id))
    return ProfileSubTopic(name=draft.name, description=draft.description, slots=tuple(map(_to_slot, lines)))


def _to_slot(line: _LineDraft) -> ProfileSlot:
    first = line.states[0]
    return ProfileSlot(
        content=line.content,
        when=line.when,
        valid_at=first.valid_at,
        invalid_at=first.invalid_at,
        precision=first.precision,
        end_precision=first.end_precision,
        confidence=line.confidence,
        mark=first.mark,
        facts=tuple(dict.fromkeys(state.id for state in line.states)),
    )


def _render(topics: Sequence[ProfileTopic]) -> str:
    lines = []
    for topic in topics:
        lines.append(escape_brackets(topic.name))
        for sub_topic in topic.sub_topics:
            lines += [_line(sub_topic.name, slot.content, slot.when) for slot in sub_topic.slots]
    return PROFILE.begin + "\n".join(lines) + PROFILE.end if lines else ""


def _line(name: str, content: str, when: str) -> str:
    return f"- {escape_brackets(name)}: {escape_brackets(content)} ({when})"

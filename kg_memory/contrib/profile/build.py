"""Builds profiles: sorts an entity's states into topics, sub-topics and slots, and renders them for a prompt.

Pure functions. The order is fixed, and new facts come last in their sub-topic, so that the beginning of the text stays
the same and a model server's prompt cache can reuse it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from kg_memory.contrib.profile.topics import FALLBACK, TopicSchema
from kg_memory.models.graph import FactKind, Precision
from kg_memory.models.results import Profile, ProfileSlot, ProfileSubTopic, ProfileTopic
from kg_memory.retrieval.context.lines import escape_brackets
from kg_memory.retrieval.context.packing import token_cost
from kg_memory.text.context_markers import PROFILE
from kg_memory.text.dated import period_in_words
from kg_memory.text.sentences import excerpt, one_line
from kg_memory.text.tokenise import estimate_tokens


class HeldState(NamedTuple):
    """A state that holds for an entity, such as "Ann lives in Oslo", with its number of `statements`.

    `own` is true if the entity is the subject of the state, not an object. `begin` sorts states: the time in
    microseconds since the epoch when the state began, or became known.
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

    @property
    def kind(self) -> FactKind:
        return "state"


@dataclass(frozen=True, slots=True)
class ProfileLimits:
    """Size limits of a profile, the topics to show first, and the only topics to show (empty: all topics)."""

    max_tokens: int | None
    max_subtopics: int
    max_slot_tokens: int
    prefer_topics: tuple[str, ...] = ()
    only_topics: tuple[str, ...] = ()


@dataclass(slots=True)
class _Draft:
    """A slot (one line of a profile) before it is finished: all states with the same sentence and period.

    The slot shows the dates of the first state.
    """

    content: str
    when: str
    states: list[HeldState] = field(default_factory=list)

    @property
    def weight(self) -> tuple[int, float]:
        """The number of statements, then the confidence. If a profile is too long, low weights are removed first."""
        return sum(state.statements for state in self.states), self.confidence

    @property
    def confidence(self) -> float:
        """The highest confidence of the states."""
        return max(state.confidence for state in self.states)


@dataclass(slots=True)
class _Shelf:
    """A sub-topic of a profile before it is finished, with its slots (lines) by text and dates."""

    topic: str
    name: str
    description: str = ""
    drafts: dict[tuple[str, str], _Draft] = field(default_factory=dict)


def build_profile(
    name: str, states: Iterable[HeldState], schemas: Sequence[TopicSchema], limits: ProfileLimits, *, strict: bool
) -> Profile:
    """Return the profile of the entity called *name*: its *states* sorted into topics and sub-topics.

    A state goes to the sub-topic that the first matching schema of *schemas* gives it. States that match none go to the
    topic ``other``; with *strict*, they are left out.
    """
    filled = _fill(states, schemas, limits, strict=strict)
    groups = _fold_rest(_by_topic(filled, schemas, limits), limits.max_subtopics)
    left_out = _cut(groups, limits)
    descriptions = {name: topic.description for schema in reversed(schemas) for name, topic in schema.topics.items()}
    topics = []
    for topic, shelves in groups.items():
        sub_topics = tuple(_to_sub_topic(shelf) for shelf in shelves if shelf.drafts)
        if sub_topics:
            topics.append(ProfileTopic(name=topic, description=descriptions.get(topic, ""), sub_topics=sub_topics))
    text = _render(topics)
    return Profile(entity=name, topics=tuple(topics), left_out=left_out, text=text, tokens=estimate_tokens(text))


def topics_of(schemas: Iterable[TopicSchema], *, strict: bool) -> list[str]:
    """Return the topic names of *schemas* in order; unless *strict*, ``other`` comes last."""
    names = dict.fromkeys(topic for schema in schemas for topic in schema.topics)
    return list(names if strict else {**names, FALLBACK: None})


def _fill(
    states: Iterable[HeldState], schemas: Sequence[TopicSchema], limits: ProfileLimits, *, strict: bool
) -> dict[tuple[str, str], _Shelf]:
    """Sort *states* into sub-topics; return these by topic and sub-topic name: ``{("diet", "allergies"): ...}``.

    States that match none of *schemas* go to the topic ``other``; with *strict*, they are left out.
    """
    shelves: dict[tuple[str, str], _Shelf] = {}
    for schema in schemas:
        for topic, declared in schema.topics.items():
            for name, sub_topic in declared.sub_topics.items():
                shelves.setdefault((topic, name), _Shelf(topic, name, sub_topic.description))
    for state in states:
        places = (schema.place(state.predicate, state.sentence, as_object=not state.own) for schema in schemas)
        found = next(filter(None, places), None)
        if found is None and strict:
            continue
        place = found or (FALLBACK, state.predicate.lower())
        if limits.only_topics and place[0] not in limits.only_topics:
            continue
        shelf = shelves.get(place)
        if shelf is None:
            shelf = shelves[place] = _Shelf(*place)
        _add(shelf, state, limits.max_slot_tokens)
    return shelves


def _add(shelf: _Shelf, state: HeldState, max_tokens: int) -> None:
    """Add *state* to the sub-topic *shelf*, as a new slot (line), or in the slot that has the same text and dates.

    The text of a new slot is shortened to about *max_tokens* tokens.
    """
    text, when = one_line(state.sentence, length=len(state.sentence)), period_in_words(state)
    key = text.casefold(), when
    draft = shelf.drafts.get(key)
    if draft is None:
        draft = shelf.drafts[key] = _Draft(_shorten(text, max_tokens), when)
    draft.states.append(state)


def _shorten(text: str, max_tokens: int) -> str:
    """Return *text*, shortened to about *max_tokens* tokens if it is longer."""
    length = len(text)
    short = text
    if length * 2 < max_tokens:  # a character has at most two tokens
        return short
    while estimate_tokens(short) > max_tokens and length > 1:
        length = max(1, min(length - 1, length * max_tokens // estimate_tokens(short)))
        short = excerpt(text, frozenset(), length)
    return short


def _by_topic(
    shelves: dict[tuple[str, str], _Shelf], schemas: Sequence[TopicSchema], limits: ProfileLimits
) -> dict[str, list[_Shelf]]:
    """Group *shelves*, the sub-topics of a profile, by topic: ``{"diet": [...], ...}``. Empty sub-topics are dropped.

    Preferred topics come first, then the others in the order of *schemas*.
    """
    order = dict.fromkeys((*limits.prefer_topics, *topics_of(schemas, strict=False)))
    groups: dict[str, list[_Shelf]] = {topic: [] for topic in order}
    for shelf in shelves.values():
        if shelf.drafts:
            groups[shelf.topic].append(shelf)
    groups[FALLBACK].sort(key=lambda shelf: shelf.name)
    return {topic: filled for topic, filled in groups.items() if filled}


def _fold_rest(groups: dict[str, list[_Shelf]], most: int) -> dict[str, list[_Shelf]]:
    """Limit each topic to *most* sub-topics: the smallest ones are merged into a sub-topic called ``other``.

    *groups* has the sub-topics by topic.
    """
    for topic, shelves in groups.items():
        if len(shelves) <= most:
            continue
        ranked = sorted(shelves, key=lambda shelf: -len(shelf.drafts))
        kept = {shelf.name for shelf in ranked[: most - 1]} - {FALLBACK}
        rest = _Shelf(topic, FALLBACK)
        for shelf in shelves:
            if shelf.name not in kept:
                rest.drafts |= shelf.drafts
        groups[topic] = [*(shelf for shelf in shelves if shelf.name in kept), rest]
    return groups


def _cut(groups: dict[str, list[_Shelf]], limits: ProfileLimits) -> tuple[str, ...]:
    """Remove lines from the profile until it fits the token limit; return the ids of the facts in these lines.

    *groups* has the sub-topics by topic. Preferred topics get room first. Then each sub-topic gets one line after the
    other, in turns, starting with the line that was stated most often.
    """
    if limits.max_tokens is None:
        return ()
    room = limits.max_tokens - 1 - token_cost(PROFILE.begin + PROFILE.end)
    queue: list[tuple[bool, int, str, _Shelf, tuple[str, str]]] = []
    for topic, shelves in groups.items():
        later = topic not in limits.prefer_topics
        for shelf in shelves:
            ranked = sorted(shelf.drafts, key=lambda key: shelf.drafts[key].weight, reverse=True)
            queue += [(later, turn, topic, shelf, key) for turn, key in enumerate(ranked)]
    headed, left_out, full = set[str](), list[str](), False
    for _, _, topic, shelf, key in sorted(queue, key=lambda item: item[:2]):
        draft = shelf.drafts[key]
        cost = token_cost(_line(shelf.name, draft.content, draft.when) + "\n")
        cost += 0 if topic in headed else token_cost(f"{topic}\n")
        full = full or cost > room
        if full:
            left_out += [state.id for state in shelf.drafts.pop(key).states]
            continue
        headed.add(topic)
        room -= cost
    return tuple(left_out)


def _to_sub_topic(shelf: _Shelf) -> ProfileSubTopic:
    drafts = sorted(shelf.drafts.values(), key=lambda draft: (draft.states[0].begin, draft.states[0].id))
    return ProfileSubTopic(name=shelf.name, description=shelf.description, slots=tuple(map(_to_slot, drafts)))


def _to_slot(draft: _Draft) -> ProfileSlot:
    """Convert *draft* to a finished slot (line) of the profile."""
    first = draft.states[0]
    return ProfileSlot(
        content=draft.content,
        when=draft.when,
        valid_at=first.valid_at,
        invalid_at=first.invalid_at,
        precision=first.precision,
        end_precision=first.end_precision,
        confidence=draft.confidence,
        mark=first.mark,
        facts=tuple(dict.fromkeys(state.id for state in draft.states)),
    )


def _render(topics: Sequence[ProfileTopic]) -> str:
    """Return *topics* as text for a prompt; without topics, the text is empty."""
    lines = []
    for topic in topics:
        lines.append(escape_brackets(topic.name))
        for sub_topic in topic.sub_topics:
            lines += [_line(sub_topic.name, slot.content, slot.when) for slot in sub_topic.slots]
    text = "\n".join(lines)
    return f"{PROFILE.begin}{text}{PROFILE.end}" if lines else ""


def _line(name: str, content: str, when: str) -> str:
    return f"- {escape_brackets(name)}: {escape_brackets(content)} ({when})"

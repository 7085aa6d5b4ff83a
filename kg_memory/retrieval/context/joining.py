"""Joining and leaving out, before lines are packed: what goes on one line, and what has no place in a context; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kg_memory.models.graph import Entity, Episode, Fact, Kind, Value
from kg_memory.retrieval.context.lines import id_of, when_beside
from kg_memory.retrieval.context.packing import Group, Repeats, join_words
from kg_memory.text.excerpt import LONGEST_TEXT, is_quote
from kg_memory.text.sentences import content_words, split_sentences
from kg_memory.text.tokenise import has_words

ALWAYS = 5
"""The best of each kind that stay, however much less relevant they are than the very best."""
FLOOR = 0.2
"""The share of the best score below which others are left out."""
WEAK = "far less relevant than the best"
FILLER = "it says nothing beside the question"
EMPTY = "it has no summary"
SHORT_ANSWER = 4
"""The words of an answer that says little without its question, at most."""
Groups = Mapping[Kind, list[Group]]


def leave_out(groups: Groups, question: str) -> tuple[dict[Kind, list[Group]], dict[tuple[Kind, str], str]]:
    """Return *groups* without fillers, entities without a summary and what is far less relevant than the best.

    The reasons are by kind and id.
    """
    asked = content_words(question) if has_words(question) else None  # an emoji may be all of a message
    kept: dict[Kind, list[Group]] = {}
    reasons: dict[tuple[Kind, str], str] = {}
    for kind, by_kind in groups.items():
        best = max((_score(group) for group in by_kind), default=0.0)
        kept[kind] = []
        for place, group in enumerate(by_kind):
            first = group[0]
            reason = _why_empty(first, asked)
            if place >= ALWAYS and _score(group) < FLOOR * best:
                reason = WEAK
            if reason:
                reasons[kind, id_of(first)] = reason
            else:
                kept[kind].append(group)
    return kept, reasons


def _score(group: Group) -> float:
    return float(getattr(group[0], "score", None) or 0.0)


def _why_empty(value: Value, asked: frozenset[str] | None) -> str:
    match value:
        case Entity(summary=summary) if not (summary or "").strip():
            return EMPTY
        case Episode() if asked is not None and is_filler(value, asked):
            return FILLER
    return ""


def is_filler(episode: Episode, asked: frozenset[str]) -> bool:
    """Return whether a turn only asks what is *asked* itself, or is a courtesy; one that answers something is none."""
    if episode.asked or episode.remarks or episode.kind != "message":
        return False
    sentences = split_sentences(episode.content[: LONGEST_TEXT * 2])
    return all(
        content_words(sentence.text) <= asked if sentence.asks else not sentence.says_something
        for sentence in sentences
    )


def join_turns(groups: Sequence[Group], asked: frozenset[str]) -> list[Group]:
    """Return groups of episodes in which an answer has its question where that adds something, in place of its turn.

    That is a word of what is *asked*, or any word beside a short answer.
    """
    joined: list[Group] = []
    questions = {value.id: group for group in groups for value in group if isinstance(value, Episode)}
    inside: set[str] = set()
    for group in groups:
        answer = group[0]
        if not isinstance(answer, Episode) or not answer.asked:
            joined.append(group)
            continue
        own, more = content_words(answer.content), content_words(answer.asked.question)
        adds = len(own) <= SHORT_ANSWER or (more & asked) - own
        question = questions.get(answer.asked.episode, ())
        if adds and all(map(_only_asks, question)):
            inside |= {id_of(value) for value in question}
            joined.append((*group, *question))
        else:
            joined.append((answer.model_copy(update={"asked": None}), *group[1:]))
    return [group for group in joined if id_of(group[0]) not in inside]


def _only_asks(value: Value) -> bool:
    if not isinstance(value, Episode) or value.remarks or value.asked:
        return False
    return all(sentence.asks or not sentence.says_something for sentence in split_sentences(value.content))


def join_facts(groups: Groups, repeats: Repeats) -> dict[Kind, list[Group]]:
    """Return *groups* in which a fact that only quotes a turn is on one line with it, in the queues of both."""
    turns = {id_of(value): number for number, group in enumerate(groups["episodes"]) for value in group}
    episodes = list(groups["episodes"])
    facts: list[Group | int] = []
    for group in groups["facts"]:
        number = _find_turn(group, turns, episodes, repeats)
        if number is None:
            facts.append(group)
        else:
            episodes[number] = (*episodes[number], *group)
            if number not in facts:
                facts.append(number)
    queue = [episodes[group] if isinstance(group, int) else group for group in facts]
    return {**groups, "facts": queue, "episodes": episodes}


def _find_turn(group: Group, turns: Mapping[str, int], episodes: Sequence[Group], repeats: Repeats) -> int | None:
    """Return the place of the turn that has the words of the fact of *group*, and no other time beside it."""
    fact = group[0]
    if not isinstance(fact, Fact) or not is_quote(fact):
        return None
    for source in fact.sources:
        number = turns.get(source.episode)
        turn = episodes[number][0] if number is not None else None
        if not isinstance(turn, Episode) or fact.id in repeats.get(("episodes", turn.id), ()):
            continue
        if has_words_of(turn, fact) and _agrees(fact, turn, episodes[number or 0]):
            return number
    return None


def has_words_of(turn: Episode, fact: Fact) -> bool:
    """Return whether a turn that is short enough to be shown as a whole has what *fact* quotes."""
    said = fact.sentence.partition(": ")[2]
    return len(turn.content) <= LONGEST_TEXT and join_words(said) in join_words(turn.content)


def _agrees(fact: Fact, turn: Episode, group: Iterable[Value]) -> bool:
    """Return whether the other facts on the line of *turn* have the same time, or *fact* has none to add."""
    when = when_beside(fact, turn)
    others = {when_beside(value, turn) for value in group if isinstance(value, Fact)}
    return not when or not others - {"", when}

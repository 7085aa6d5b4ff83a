"""Choose the lines of a context: the best of each kind in turn, within a number of tokens. All functions are pure.

Before that, results that belong on one line are joined, and results without content are left out, as are lines that
repeat another line. If in doubt, a line stays: a literal quote is evidence.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from kg_memory.models.graph import KINDS, Community, Entity, Episode, Fact, Kind, Value
from kg_memory.models.results import Line, SearchResults
from kg_memory.retrieval.context.lines import id_of, when_beside
from kg_memory.text.dated import period_in_words, without_dates
from kg_memory.text.sentences import LONGEST_TEXT, content_stems, fold, is_quote, split_sentences
from kg_memory.text.tokenise import estimate_tokens, has_words, is_filler, terms

Group = tuple[Value, ...]
"""Results that share a line: they say the same, or are an episode and facts in its words. The first gives the kind."""
Groups = Mapping[Kind, list[Group]]
Repeats = Mapping[tuple[Kind, str], frozenset[str]]
"""Entities and episodes that add nothing to certain facts: their kind and id, with the ids of these facts."""
SHARES: Mapping[Kind, float] = {"facts": 2.0, "entities": 0.25, "communities": 0.5, "episodes": 9.0}
"""How often each kind gets a turn to add a line; measured by `benchmarks/context_budget.py`."""
LENGTHS = (LONGEST_TEXT, 400, 320, 256, 205, 160, 120, 96, 77, 60)
"""The numbers of characters to which an episode is cut, the first of which fits into the room that is left."""
LATER = LENGTHS[6:]
"""The same after the share `WHOLE` of the room is used."""
WHOLE = 0.6
"""The share of the room for long lines."""
QUOTES = 0.5
"""The same number as in `SHARES` for facts that only quote an episode."""
NO_ROOM = "no room within max_tokens"
ALWAYS = 5
"""The number of best results of each kind that stay, whatever their scores."""
FLOOR = 0.2
"""The share of the best score below which further results are left out."""
WEAK = "far less relevant than the best"
FILLER = "it only repeats the question, or is a courtesy"
EMPTY = "it has no summary"
SHORT_ANSWER = 4
"""The most words of an answer that is hard to understand without its question."""
KINDS_OF: Mapping[type[Value], Kind] = dict(zip((Fact, Entity, Community, Episode), KINDS, strict=True))


@dataclass(frozen=True, slots=True)
class Choice:
    """The lines chosen for a context, by kind, and the reasons for leaving out other results."""

    lines: Mapping[Kind, list[Line]]
    left_out: dict[tuple[Kind, str], str] = field(default_factory=dict)

    def find_duplicate(self, line: Line, repeats: Repeats) -> str | None:
        """Return the id of an already chosen line with the same content as *line*, or None.

        The content is the same if the texts are equal, or if one line says all that the other says.
        """
        same = repeats.get((line.kind, line.id), ())
        for chosen in chain.from_iterable(self.lines.values()):
            is_equal = (chosen.kind, chosen.text) == (line.kind, line.text)
            if is_equal or chosen.id in same or line.id in repeats.get(("episodes", chosen.id), ()):
                return chosen.id
        return None

    def cost(self, line: Line, sections: Mapping[Kind, int]) -> int:
        """Return how many tokens the context grows by if *line* is added, with its headings."""
        own = self.lines[line.kind]
        is_new = line.heading and all(line.heading != each.heading for each in own)
        heading = token_cost(f"{line.heading} 00:00 UTC\n") if is_new else 0
        return line.tokens + heading + (0 if own else sections[line.kind])


def _take_turns(groups: Groups) -> Iterator[tuple[Kind, Group]]:
    """Yield ``(kind, group)`` in the order in which groups are added to the context; the kinds take turns."""
    turns: list[tuple[float, int, Kind]] = []
    for kind, own in groups.items():
        for place, group in enumerate(own):
            fact = group[0] if kind == "facts" and isinstance(group[0], Fact) else None
            share = QUOTES if fact and is_quote(fact) else SHARES[kind]
            turns.append((0 if fact and not place and share != QUOTES else (place + 1) / share, place, kind))
    yield from ((kind, groups[kind][place]) for _, place, kind in sorted(turns))


def kind_of(value: Value) -> Kind:
    """Return the kind of *value*, a search result: "facts" for a `Fact`."""
    return KINDS_OF[type(value)]


def token_cost(text: str) -> int:
    """Estimate how many tokens *text* adds to a longer text; the estimate is rather too high than too low."""
    return max(estimate_tokens(text) - 1, 0)


def same_as(id_: str) -> str:
    """Return the reason for leaving out a result that duplicates the result *id_*: "same as 3f2a1b9c"."""
    return f"same as {id_}"


def choose(
    groups: Mapping[Kind, list[Group]],
    write: Callable[..., Line],
    sections: Mapping[Kind, int],
    room: int,
    repeats: Repeats,
) -> Choice:
    """Return the best lines of a context that fit into *room* tokens.

    *groups*: results by kind, best first; the results of a group share a line. *sections*: tokens around each section.
    """
    choice, long = Choice({kind: [] for kind in groups}), room * (1 - WHOLE)
    done: set[int] = set()  # groups by identity: an episode may be in two queues, and one fact has several periods
    full: set[Kind] = set()
    for kind, group in _take_turns(groups):
        if kind in full or id(group) in done:
            continue
        for length in LENGTHS if room > long else LATER:
            line = write(group, length)
            cost = choice.cost(line, sections)
            if cost <= room:
                break
        if (same := choice.find_duplicate(line, repeats)) is not None:
            choice.left_out[line.kind, line.id] = same_as(same)
        elif cost > room:
            full.add(kind)  # so that no worse line replaces a better one
            continue
        else:
            choice.lines[line.kind].append(line)
            room -= cost
        done.add(id(group))
    for group in chain.from_iterable(groups.values()):
        if id(group) not in done:
            choice.left_out.setdefault((kind_of(group[0]), id_of(group[0])), NO_ROOM)
    return choice


# Lines that repeat others
_DENIAL = re.compile(r"\b(?:not|no|never|nor|cannot|without)\b|n['’]t\b|[不没沒無无非别別]", re.IGNORECASE)


def count_denials(text: str) -> int:
    """Return the number of negations in *text*, such as "not" and "never", in English and Chinese."""
    return len(_DENIAL.findall(text))


def group_results(results: SearchResults) -> dict[Kind, list[Group]]:
    """Return *results* by kind, grouped by equal words, time, speaker and namespace: ``{"facts": [(fact, fact)]}``."""
    grouped: dict[Kind, list[Group]] = {}
    for kind in KINDS:
        groups: dict[Hashable, list[Value]] = {}
        for value in getattr(results, kind):
            groups.setdefault((_content_key(value), vars(value)["namespace"]), []).append(value)
        grouped[kind] = list(map(tuple, groups.values()))
    return grouped


def find_repeats(results: SearchResults) -> Repeats:
    """Find results that only repeat facts found: ``{("episodes", id): {ids of the facts that say the same}}``."""
    repeats: dict[tuple[Kind, str], frozenset[str]] = {}
    sentences = [(fact, join_words(fact.sentence)) for fact in results.facts]
    for entity in results.entities:
        summary = join_words(without_dates(entity.summary)) if entity.summary else " "
        facts = (
            fact.id
            for fact, sentence in sentences
            if summary in sentence and entity.name in (fact.subject, *fact.objects)
        )
        repeats["entities", entity.id] = frozenset(facts)
    stated = _facts_by_episode(results.facts)
    for episode in results.episodes:
        if not episode.remarks:
            facts = (fact.id for fact, quote in stated.get(episode.id, ()) if _only_repeats(episode, fact, quote))
            repeats["episodes", episode.id] = frozenset(facts)
    return repeats


def join_words(text: str) -> str:
    """Return the words of *text* in lower case between spaces, so that ``in`` finds whole words: ``" ann lives "``."""
    return f" {' '.join(fold(text))} "


def _content_key(value: Value) -> Hashable:
    match value:
        case Fact():
            return fold(value.sentence), period_in_words(value)
        case Episode():
            remarks = tuple((remark.kind, remark.at, remark.by) for remark in value.remarks)
            return fold(value.content), value.speaker, value.at.date(), remarks
        case Entity():
            return fold(value.name), value.type, value.summary
        case Community():
            return fold(value.name), value.summary
    return value


def _facts_by_episode(facts: Sequence[Fact]) -> Mapping[str, list[tuple[Fact, str]]]:
    stated: dict[str, list[tuple[Fact, str]]] = {}
    for fact in facts:
        for source in fact.sources:
            stated.setdefault(source.episode, []).append((fact, source.quote))
    return stated


def _only_repeats(episode: Episode, fact: Fact, quote: str) -> bool:
    begin = fact.valid_at or fact.known_from
    return (
        episode.speaker in (None, fact.subject)
        and begin is not None
        and begin.astimezone(episode.at.tzinfo).date() == episode.at.date()
        and fold(quote) == fold(episode.content)
        and Counter(terms(quote)) <= Counter(terms(fact.sentence))
        and count_denials(quote) == count_denials(fact.sentence)
    )


# Results that are joined or left out before lines are chosen


def leave_out(groups: Groups, question: str) -> tuple[dict[Kind, list[Group]], dict[tuple[Kind, str], str]]:
    """Return *groups* without empty and irrelevant results, and why these are left out."""
    asked = content_stems(question) if has_words(question) else None  # an emoji may be all of a message
    kept: dict[Kind, list[Group]] = {}
    reasons: dict[tuple[Kind, str], str] = {}
    for kind, by_kind in groups.items():
        best = max((_first_score(group) for group in by_kind), default=0.0)
        kept[kind] = []
        for place, group in enumerate(by_kind):
            first = group[0]
            reason = _why_empty(first, asked)
            if place >= ALWAYS and _first_score(group) < FLOOR * best:
                reason = WEAK
            if reason:
                reasons[kind, id_of(first)] = reason
            else:
                kept[kind].append(group)
    return kept, reasons


def _first_score(group: Group) -> float:
    return float(getattr(group[0], "score", None) or 0.0)


def _why_empty(value: Value, asked: frozenset[str] | None) -> str:
    match value:
        case Entity(summary=summary) if not (summary or "").strip():
            return EMPTY
        case Episode() if asked is not None and is_filler_episode(value, asked):
            return FILLER
    return ""


def is_filler_episode(episode: Episode, asked: frozenset[str]) -> bool:
    """Return whether *episode* only repeats the question or is a courtesy such as "Thanks!"."""
    if episode.asked or episode.remarks or episode.kind != "message":
        return False
    sentences = split_sentences(episode.content[: LONGEST_TEXT * 2])
    return all(
        content_stems(sentence.text) <= asked if sentence.asks else is_filler(sentence.text, "")
        for sentence in sentences
    )


def join_turns(groups: Sequence[Group], asked: frozenset[str]) -> list[Group]:
    """Return *groups* of messages, with questions moved to the group of their answer if the answer needs them."""
    joined: list[Group] = []
    questions = {value.id: group for group in groups for value in group if isinstance(value, Episode)}
    inside: set[str] = set()
    for group in groups:
        answer = group[0]
        if not isinstance(answer, Episode) or not answer.asked:
            joined.append(group)
            continue
        own, more = content_stems(answer.content), content_stems(answer.asked.question)
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
    return all(each.asks or is_filler(each.text, "") for each in split_sentences(value.content))


def join_facts(groups: Groups, repeats: Repeats) -> dict[Kind, list[Group]]:
    """Return *groups* of results, one for each context line, after joining messages and facts that quote them."""
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
    """Return the index of the message group on whose line the first fact of *group* can be shown, or None."""
    fact = group[0]
    if not isinstance(fact, Fact) or not is_quote(fact):
        return None
    for source in fact.sources:
        number = turns.get(source.episode)
        turn = episodes[number][0] if number is not None else None
        if not isinstance(turn, Episode) or fact.id in repeats.get(("episodes", turn.id), ()):
            continue
        if has_words_of(turn, fact) and _can_share_line(fact, turn, episodes[number or 0]):
            return number
    return None


def has_words_of(turn: Episode, fact: Fact) -> bool:
    """Return whether the message *turn* contains the words that *fact* quotes, and fits on one line."""
    said = fact.sentence.partition(": ")[2]
    return len(turn.content) <= LONGEST_TEXT and join_words(said) in join_words(turn.content)


def _can_share_line(fact: Fact, turn: Episode, group: Iterable[Value]) -> bool:
    # Two different times, such as "since 2019" and "since 2021", do not fit on one line.
    when = when_beside(fact, turn)
    others = {when_beside(value, turn) for value in group if isinstance(value, Fact)}
    return not when or not others - {"", when}

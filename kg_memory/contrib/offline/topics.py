"""Finds nouns and noun phrases in an English text that are topics, not names, such as "sailing course"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kg_memory.contrib.offline import lexicon
from kg_memory.contrib.offline.statements import BASED, EVENT, PLACE, TOPIC, WORDS, Mention, Token

EVENT_WORDS = lexicon.WORD_LISTS["event_words"]
_WITH_PREPOSITION = lexicon.WORD_LISTS["with_preposition"]
"""Verbs in the third person that a preposition follows, if the noun before them is singular."""
_PREPOSITIONS = frozenset("on in at from with like".split())
_LEADS_TO_PASTIME = lexicon.WORD_LISTS["leads_to_pastime"]
_AMOUNTS = lexicon.WORD_LISTS["amounts"]
_NEVER_NOUNS = lexicon.WORD_LISTS["never_nouns"]

_ENDS_NO_PHRASE = lexicon.VAGUE_NOUNS | {*BASED}
PERSON_ACTS = WORDS["person_acts"]
_ACT_WORDS = 5
"""The most words of an act: "now no longer works for me", "is a small logistics company"."""


def match_act(words: Sequence[Token], at: int) -> re.Match[str] | None:
    """Match a verb phrase for an action of people or organisations, such as "lives in", at index *at* of *words*.

    Returns the match, or None.
    """
    act = " ".join(word.low for word in words[at : at + _ACT_WORDS])
    return PERSON_ACTS.match(act) or WORDS["group_acts"].match(act)


def find_topics(words: list[Token]) -> Iterator[Mention]:
    """Yield mentions of topics: noun phrases in lower case such as "sailing course" and "harbour lights"."""
    position = 0
    while position < len(words):
        end = position
        while (
            end < len(words)
            and _has_content(words[end])
            and (end == position or words[end - 1].end + 1 == words[end].start)
        ):
            end += 1
        if end > position:
            yield from _split_run(words, position, end)
        position = max(end, position + 1)


def _has_content(word: Token) -> bool:
    small = word.low in lexicon.STOP or word.low in lexicon.DETERMINERS
    return word.wordy and len(word.text) > 2 and not small and "'" not in word.low


def _split_run(words: list[Token], start: int, end: int) -> Iterator[Mention]:
    start = _skip_verbs(words, start, end, words[start - 1].low if start else "")
    # A verb in the middle ends the phrase: "sailing club" in "sailing club met".
    for at in range(start + 1, end):
        if words[at].low in lexicon.VERB_FORMS and not _is_noun(words, at):
            yield from _topic_of_phrase(words, start, at)
            if at + 1 < end:
                yield from _split_run(words, at, end)
            return
    yield from _topic_of_phrase(words, start, end)


def _skip_verbs(words: list[Token], start: int, end: int, before: str) -> int:
    """Return the index of the first word in ``words[start:end]`` after leading verbs and adverbs."""
    determined = before in lexicon.DETERMINERS and before not in ("that", "this", "these", "those")
    while start < end:
        low = words[start].low
        pastime, verb = low in lexicon.PASTIMES, low in lexicon.VERB_FORMS
        if before in _LEADS_TO_PASTIME and low.endswith("ing") and len(low) > 5:
            break  # "went skiing"
        if low.endswith("ly") and len(low) > 4:
            start += 1
        elif not determined and (
            (verb and not pastime) or (before != "to" and before in lexicon.SUBJECTS | lexicon.MODALS)
        ):
            if pastime and before not in lexicon.MODALS:
                break
            start, before = start + 1, "verb"
        elif before in lexicon.BE and (low.endswith(("ed", "ing")) or end - start == 1) and not pastime:
            start, before = start + 1, "verb"
        elif determined and end - start > 1 and low.endswith(("ed", "ing")) and verb and not pastime:
            start += 1
        else:
            break
    return start


def _is_noun(words: list[Token], at: int) -> bool:
    low = words[at].low
    if low in lexicon.PASTIMES:
        return True
    if low in _WITH_PREPOSITION and at + 1 < len(words) and words[at + 1].low in _PREPOSITIONS:
        return words[at - 1].low.endswith("s")
    if low.endswith(("ed", "ing")) or low in lexicon.IRREGULAR or low in _NEVER_NOUNS or match_act(words, at):
        return False
    # "dance studio", "a fun match." but not "friends support me"
    following = words[at + 1] if at + 1 < len(words) else None
    if following is None or not following.wordy:
        return True
    return following.low in lexicon.FUNCTION and following.low not in lexicon.DETERMINERS


def _topic_of_phrase(words: list[Token], start: int, end: int) -> Iterator[Mention]:
    """Yield the topic named by the noun phrase ``words[start:end]``, or nothing if it names no topic."""
    while end > start and (words[end - 1].low.endswith("ly") or words[end - 1].low in _ENDS_NO_PHRASE):
        end -= 1
    while start < end - 1 and words[start].low in _AMOUNTS:
        start += 1
    start = max(start, end - 3)
    run = words[start:end]
    if not run or (len(run) == 1 and not _may_be_topic_alone(run[0], words[start - 1].low if start else "")):
        return
    low = run[-1].low
    name = " ".join(word.low if word.text.istitle() else word.text for word in run)
    kind = EVENT if low in EVENT_WORDS else PLACE if low in lexicon.PLACE_WORDS else TOPIC
    yield Mention(run[0].start, run[-1].end, name, kind)


def _may_be_topic_alone(word: Token, before: str) -> bool:
    low = word.low
    if low in lexicon.PASTIMES or (before in _LEADS_TO_PASTIME and low.endswith("ing") and len(low) > 5):
        return True
    if low in lexicon.KIN and before in ("my", "our"):
        return False
    quality = low.endswith(("ed", "ing", "ful", "ous", "ive", "able", "ible", "less", "ish"))
    if (quality and not low.endswith(("fish", "dish"))) or low in lexicon.STARTERS:
        return False
    after_determiner = before in lexicon.DETERMINERS and before != "that" and not low.endswith("s")
    return low not in lexicon.VERB_FORMS or after_determiner

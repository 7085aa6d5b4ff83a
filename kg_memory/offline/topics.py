"""Find the topics of a text, in English: "sailing course", "harbour lights"."""

from __future__ import annotations

from collections.abc import Iterable

from kg_memory.offline import lexicon
from kg_memory.offline.acting import does
from kg_memory.offline.spans import EVENT, EVENT_WORDS, PLACE, TOPIC, Mention, Token

_DOES = frozenset("went go going goes gone love loves enjoy enjoys like tried try started into quit".split())
_AMOUNTS = frozenset(
    "lot lots ton tons bunch bit couple kind kinds sort part parts time times way ways day days".split()
)
_NEVER_NOUNS = frozenset(
    "get make go give have come take keep feel know want need say see think find become seem let put bring tell "
    "ask buy do".split()
)


def topics(words: list[Token]) -> Iterable[Mention]:
    """Find runs of content words that name a thing or a topic: "sailing course", "harbour lights"."""
    position = 0
    while position < len(words):
        if not _content(words[position]):
            position += 1
            continue
        end = position
        while (
            end < len(words)
            and _content(words[end])
            and (end == position or words[end - 1].end + 1 == words[end].start)
        ):
            end += 1
        yield from _topic(words, position, end)
        position = max(end, position + 1)


def _content(word: Token) -> bool:
    return word.wordy and len(word.text) > 2 and word.low not in lexicon.STOP and "'" not in word.low


def _topic(words: list[Token], start: int, end: int) -> Iterable[Mention]:
    before = words[start - 1].low if start else ""
    if start and words[start - 1].text == "," and start > 1:
        before = ","
    start = _skip_verb(words, start, end, before)
    # A verb in the middle ends the phrase: "sailing club met".
    for at in range(start, end):
        if words[at].low in lexicon.VERB_FORMS and at > start and not _as_noun(words[at], words, at):
            yield from _phrase(words, start, at)
            yield from _topic(words, at, end) if at + 1 < end else ()
            return
    yield from _phrase(words, start, end)


def _skip_verb(words: list[Token], start: int, end: int, before: str) -> int:
    """Step over the verb, adverb or participle that opens the run."""
    determined = before in lexicon.DETERMINERS and before not in ("that", "this", "these", "those")
    while start < end:
        low = words[start].low
        if before in _DOES and low.endswith("ing") and len(low) > 5:
            break  # "went skiing"
        verb_here = low in lexicon.VERB_FORMS and low not in lexicon.PASTIMES
        if low.endswith("ly") and len(low) > 4:
            start += 1
        elif not determined and (verb_here or (before != "to" and before in lexicon.SUBJECTS | lexicon.MODALS)):
            if low in lexicon.PASTIMES and before not in lexicon.MODALS:
                break
            start, before = start + 1, "verb"
        elif before in lexicon.BE and (low.endswith(("ed", "ing")) or end - start == 1) and low not in lexicon.PASTIMES:
            start, before = start + 1, "verb"
        elif (
            determined
            and end - start > 1
            and low.endswith(("ed", "ing"))
            and low not in lexicon.PASTIMES
            and low in lexicon.VERB_FORMS
        ):
            start += 1
        else:
            break
    return start


def _as_noun(word: Token, words: list[Token], at: int) -> bool:
    """Return whether a word that may be a verb stands as a noun: after a noun, before the phrase's end."""
    if word.low in lexicon.PASTIMES:
        return True
    if word.low.endswith(("ed", "ing")) or word.low in lexicon.IRREGULAR or word.low in _NEVER_NOUNS or does(words, at):
        return False
    following = words[at + 1] if at + 1 < len(words) else None
    # "dance studio", "a fun match." but not "friends support me"
    return (
        following is None
        or not following.wordy
        or (following.low in lexicon.FUNCTION and following.low not in lexicon.DETERMINERS)
    )


def _phrase(words: list[Token], start: int, end: int) -> Iterable[Mention]:
    while end > start and (words[end - 1].low.endswith("ly") or words[end - 1].low in lexicon.VAGUE_NOUNS):
        end -= 1
    while start < end - 1 and words[start].low in _AMOUNTS:
        start += 1
    start = max(start, end - 3)
    run = words[start:end]
    if not run:
        return
    low = run[-1].low
    if len(run) == 1 and not _worth(run[0], words[start - 1].low if start else ""):
        return
    if low.endswith("ed") and low in lexicon.VERB_FORMS:
        return
    name = " ".join(one.low if one.text.istitle() else one.text for one in run)
    kind = EVENT if low in EVENT_WORDS else PLACE if low in lexicon.PLACE_WORDS else TOPIC
    yield Mention(run[0].start, run[-1].end, name, kind)


def _worth(word: Token, before: str) -> bool:
    low = word.low
    if low in lexicon.PASTIMES or (before in _DOES and low.endswith("ing") and len(low) > 5):
        return True
    if low in lexicon.KIN and before in ("my", "our"):
        return False
    if low.endswith(("ed", "ing", "ful", "ous", "ive", "able", "ible", "less", "ish")) or low in lexicon.STARTERS:
        return False
    return low not in lexicon.VERB_FORMS or (
        before in lexicon.DETERMINERS and before != "that" and not low.endswith("s")
    )

"""Tell a name from the common word that is spelled alike, by the words around it: Will, May, Hope; the US, WHO, IT."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from kg_memory.contrib.offline import lexicon
from kg_memory.contrib.offline.statements import PERSON, Mention, Token

ACRONYMS = frozenset("us who it".split())
"""Pronouns that are names where they are written in capitals."""
PEOPLE = frozenset("will may hope april june august".split())
"""Words with a capital that may name a person."""
_MONTHS = frozenset("may april june august".split())
_BEFORE_ACRONYM = frozenset(
    "the in at for from to with of by our an joined left and or near via leaving inside".split()
)
_BEFORE_MONTH = frozenset(
    "in since until till by from of late early mid last next this during every and or through between before after "
    "around to for on".split()
)
_SPEAKS = frozenset(
    "talked spoke talk speak talking married engaged listened wrote said sent gave introduced met with".split()
)
_CALENDAR = frozenset(
    "monday tuesday wednesday thursday friday saturday sunday january february march april may june july august "
    "september october november december mondays tuesdays wednesdays thursdays fridays saturdays sundays christmas "
    "easter mr mrs ms dr god ok okay omg lol btw fyi asap tbh imo lmk".split()
)
_IS = frozenset("is was isn't wasn't has had".split())
_OWNERS = frozenset("my our his her their the a".split())
_MOST_SHOUTED = 0.5
"""The share of capitals above which capitals mean nothing."""


def is_acronym(words: Sequence[Token], at: int) -> bool:
    """Return whether the word at *at* is a name in capitals that would be a pronoun without: "in the US", "at WHO"."""
    word = words[at]
    if word.low not in ACRONYMS or not word.text.isupper() or at == 0:
        return False
    before = words[at - 1]
    near = [one for one in words[max(0, at - 4) : at + 5] if one.wordy and len(one.text) > 1 and one is not word]
    shouted = sum(one.text.isupper() for one in near)
    return before.low in _BEFORE_ACRONYM and not before.text.isupper() and shouted <= len(near) * _MOST_SHOUTED


def is_word_of_calendar(word: Token) -> bool:
    """Return whether *word* is a day, a month, a title or an exclamation: no name even within a sentence."""
    return word.low in _CALENDAR


def is_person(words: Sequence[Token], at: int, *, opens: bool) -> bool:
    """Return whether the word at *at*, one of `PEOPLE`, names a person; *opens* says that it opens a sentence."""
    word = words[at]
    following = words[at + 1] if at + 1 < len(words) else None
    if not word.capital or word.low not in PEOPLE or word.text.isupper():
        return False
    if opens:
        return following is not None and _acts(words, at + 1, word.low)
    before = words[at - 1].low
    if word.low in _MONTHS:
        if _is_beside_person(words, at):
            return word.text.istitle()
        dated = following is not None and (following.text.isdigit() or following.low in ("the", "of"))
        dated = dated or _is_told_date(words, at)
        spoken = before in ("to", "with", "about", "from") and at > 1 and words[at - 2].low in _SPEAKS
        return not dated and not words[at - 1].text.isdigit() and (before not in _BEFORE_MONTH or spoken)
    return word.text.istitle()


def _is_told_date(words: Sequence[Token], at: int) -> bool:
    """Return whether the month at *at* is said to be when it was: "it was April", "I meant May", "in June, not May"."""
    lead = [word.low for word in words[max(0, at - 3) : at] if not word.low.endswith("ly")]
    if lead[-2:] in (["it", "was"], ["that", "was"], ["i", "meant"]):
        return True
    other = next((place for place in range(at - 2, max(-1, at - 4), -1) if words[place].wordy), None)
    if lead[-1:] != ["not"] or other is None or words[other].low not in _CALENDAR:
        return False
    return words[other].low not in _MONTHS or not is_person(words, other, opens=other == 0)


def _is_beside_person(words: Sequence[Token], at: int) -> bool:
    """Return whether a month is joined to a name: "Will and May", and neither "April and May" nor "spring and May"."""
    if at < 2 or words[at - 1].low not in ("and", "or") or (words[at + 1 : at + 2] and words[at + 1].text.isdigit()):
        return False
    other = words[at - 2]
    if other.low in _MONTHS:
        return is_person(words, at - 2, opens=False)
    return (other.capital and not is_word_of_calendar(other) and other.wordy) or other.low in lexicon.KIN


def find_user(words: Sequence[Token], speaker: str | None, opens: Callable[[int], bool]) -> Iterator[Mention]:
    """Find the user of a note about them ("User prefers dark mode"): the *speaker*, where the note has one.

    *opens* tells whether the word at a place opens a sentence.
    """
    for at, word in enumerate(words[:-1]):
        first = at - 1 if at and words[at - 1].low == "the" else at
        if word.low == "user" and opens(first) and _says_what_is_done(words[at + 1]):
            yield Mention(words[first].start, word.end, speaker or "User", PERSON, named=True)


def _says_what_is_done(word: Token) -> bool:
    listed = (
        word.low in _IS
        or word.low == "'s"
        or word.low in ("doesn't", "does", "no", "now", "also", "would", "still", "never")
    )
    return listed or (word.low.endswith("s") and word.low in lexicon.VERB_FORMS) or _is_past(word)


def _acts(words: Sequence[Token], at: int, name: str) -> bool:
    """Return whether the words from *at* on say what a person called *name* does."""
    word = words[at]
    after = words[at + 1].low if at + 1 < len(words) else ""
    if word.low == "and" and after in ("i", "me"):
        return True
    if word.low == "'s" and after in lexicon.KIN:
        return True
    if word.low in _IS:
        return name == "will" or after in _OWNERS
    third_person = word.low.endswith("s") and word.low in lexicon.VERB_FORMS and not word.capital
    return third_person or word.low == "doesn't" or _is_past(word)


def _is_past(word: Token) -> bool:
    if word.capital or word.low not in lexicon.VERB_FORMS:
        return False
    irregular = word.low in lexicon.IRREGULAR and not re.search("ing$|s$", word.low)
    return word.low.endswith("ed") or irregular

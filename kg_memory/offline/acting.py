"""Tell a name by what follows it, in English: what "lives in" or "prefers" comes after lives or prefers."""

from __future__ import annotations

import re
from collections.abc import Collection

from kg_memory.offline import lexicon
from kg_memory.offline.spans import EVENT_WORDS, Token

_ADVERB = r"(?:(?:now|still|also|just|really|currently|recently|finally|always) )?"
_PEOPLE = re.compile(
    rf"{_ADVERB}(?:(?:no longer )?(?:lives|resides) (?:in|at|with|near)"
    r"|(?P<past>lived (?:in|at|with)|worked (?:at|for|as)|grew up in)"
    r"|(?:no longer )?works (?:at|as|for(?! (?:me|us|you|him|her|them|it)\b))|studies at"
    r"|used to (?:live|work|study)|(?:doesn't|does not) (?:live|work|like|enjoy)|is married to|was born in"
    r"|likes|loves|prefers|hates|dislikes|adores|enjoys)\b"
)
_PEOPLE_AND_GROUPS = re.compile(
    rf"{_ADVERB}(?:(?:no longer )?uses(?! (?:of|for)\b)|is (?:from|based in)"
    r"|(?P<past>(?:moved|relocated) (?:\w+ )?(?:to|from)|joined))\b"
)
_ABSTRACT = ("ing", "tion", "sion", "ness", "ment", "ity", "ism", "ship", "ware", "ology", "ly")
_ORDINARY = (
    lexicon.BARE_NOUNS | lexicon.VAGUE_NOUNS | lexicon.VERB_FORMS | lexicon.PASTIMES | lexicon.KIN
    | lexicon.ORGANISATION_WORDS | lexicon.PLACE_WORDS | EVENT_WORDS
)  # fmt: skip
_READ = 5
"""How many words say what somebody does: "now no longer works for me"."""


def does(words: list[Token], at: int) -> re.Match[str] | None:
    """Match what the words from *at* on say that only people and organisations do."""
    said = " ".join(word.low for word in words[at : at + _READ])
    return _PEOPLE.match(said) or _PEOPLE_AND_GROUPS.match(said)


def is_person(words: list[Token], at: int) -> bool:
    """Return whether the words from *at* on say what only people do."""
    return (found := does(words, at)) is not None and found.re is _PEOPLE


def is_actor(words: list[Token], start: int, end: int, uncapitalised: Collection[str]) -> bool:
    """Return whether ``words[start:end]``, which opens a sentence, is the name of who does what follows it.

    *uncapitalised* are the words that the text also writes small: they are no names.
    """
    found, low = does(words, end), words[start].low
    if found is None or low in uncapitalised:
        return False
    if low in lexicon.GIVEN_NAMES or end - start > 1:
        return True
    # Plurals agree with the past of any verb, and with none in "-s": "Prices moved to", "Nils moves to".
    plural = found["past"] is not None and low.endswith("s")
    return not plural and not low.endswith(_ABSTRACT) and low not in _ORDINARY

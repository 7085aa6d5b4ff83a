"""Recognise messages without content: greetings, thanks, praise, and acknowledgements such as "Noted."."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kg_memory.text import read_table
from kg_memory.text.identity import canonical_sentence

LONGEST = 120
"""The most characters of a greeting."""
_TABLE: dict[str, str] = read_table(__package__, "small_talk.toml")
_WORDS = {name: words.replace("\n", "") for name, words in _TABLE.items()}
_PRAISE = _WORDS["reaction"].replace("<very>", "(?:(?:very|really|pretty|super|how) )?")
_WORDS["reaction"] = _PRAISE.replace("<good>", f"(?:{_WORDS['good']})")
_PROPOSES = re.compile(_WORDS["proposal"], re.IGNORECASE)
# Emoji that mean yes or no.
_ANSWERS = frozenset("👍👎👌🆗✅✔☑❌✖❎🙅🙆")


def _repeated(*kinds: str) -> re.Pattern[str]:
    """Return a pattern of one or more phrases of *kinds*, the names of lists in ``small_talk.toml``."""
    return re.compile(rf"(?:(?:{'|'.join(_WORDS[kind] for kind in kinds)})(?:\s+|$))+")


_COURTESY = _repeated("courtesy", "added")
_COURTESY_OR_REACTION = _repeated("courtesy", "reaction", "added")
_ONLY_ADDED = _repeated("added")
_ANY = _repeated("courtesy", "reaction", "receipt", "assent", "added")
_RECEIPT = re.compile(rf"(?:^|\s)(?:{_WORDS['receipt']})(?:\s|$)")


def says_nothing(content: str, people: Iterable[str] = (), before: Iterable[str] = ()) -> bool:
    """Return whether the message *content* is only a greeting, thanks, a farewell or laughter, such as "Hello Ann!".

    *people* are names that may be part of a greeting. Praise such as "Sounds great!" counts as well, unless one of the
    earlier messages *before* seems to ask or propose something, because it is then an answer.
    """
    if len(content) > LONGEST or not _ANSWERS.isdisjoint(content):
        return False
    text = canonical_sentence(content)
    if not text:
        return True
    names = {part for name in map(canonical_sentence, people) for part in (name, *name.split()[:1])}
    for name in sorted(names, key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", " ", text)
    text = " ".join(text.split())
    phrases = _COURTESY if any(map(_PROPOSES.search, before)) else _COURTESY_OR_REACTION
    return bool(phrases.fullmatch(text)) and not _ONLY_ADDED.fullmatch(text)


def is_filler(content: str, before: str | None) -> bool:
    """Return whether the message *content* has nothing worth finding: "Noted.", "Got it, thanks!", "Sure!".

    *before* is the previous message, by another speaker. If it asks or proposes something, or is None (unknown),
    "Sure!" counts as an answer, and the result is False.
    """
    if len(content) > LONGEST or not _ANSWERS.isdisjoint(content):
        return False
    nothing, text = says_nothing(content), " ".join(canonical_sentence(content).split())
    if not nothing and (not _ANY.fullmatch(text) or _ONLY_ADDED.fullmatch(text)):
        return False
    if before is not None and not _PROPOSES.search(before):
        return True
    return says_nothing(content, before=["?"]) if nothing else _RECEIPT.search(text) is not None

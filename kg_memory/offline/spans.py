"""The words of a text, and what they name: values with their characters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kg_memory.offline.sentences import Sentence

PERSON, ORGANISATION, PLACE, EVENT, PRODUCT, TOPIC = "Person", "Organization", "Place", "Event", "Product", "Topic"
EVENT_WORDS = frozenset(
    "party wedding conference parade festival concert race marathon meeting workshop retreat trip tournament "
    "competition "
    "exhibition exhibit convention birthday anniversary graduation gala fair interview show event hackathon".split()
)
_WORD = re.compile(r"[A-Za-zÀ-ɏ][A-Za-zÀ-ɏ0-9+#-]*(?:['’](?!s\b)[A-Za-zÀ-ɏ]+)*|\d+|['’]s\b|\n|[^\sA-Za-z0-9À-ɏ]")


@dataclass(frozen=True, slots=True)
class Mention:
    """The characters ``content[start:end]`` name the entity `name`.

    `named` tells a name ("Oslo", "Ann's mother") from a word for a topic ("sailing course").
    """

    start: int
    end: int
    name: str
    type: str
    named: bool = False
    kin: str | None = None


@dataclass(frozen=True, slots=True)
class Token:
    """One word or mark of a text."""

    text: str
    start: int
    end: int

    @property
    def low(self) -> str:
        """The word in lower case with a plain apostrophe."""
        return self.text.casefold().replace("’", "'")

    @property
    def capital(self) -> bool:
        """Return whether it begins with a capital letter."""
        return self.text[0].isupper()

    @property
    def wordy(self) -> bool:
        """Return whether it is a word."""
        return self.text[0].isalpha()


def tokens(text: str) -> list[Token]:
    """Return the words and marks of *text*."""
    return [Token(match[0], match.start(), match.end()) for match in _WORD.finditer(text)]


def without_overlaps(found: Iterable[Mention]) -> list[Mention]:
    """Keep the earlier of mentions that overlap, and return them in the order of the text."""
    kept: list[Mention] = []
    taken: set[int] = set()
    for mention in found:
        if taken.isdisjoint(range(mention.start, mention.end)):
            taken.update(range(mention.start, mention.end))
            kept.append(mention)
    return sorted(kept, key=lambda one: one.start)


def by_sentence(found: list[Mention], cut: Sequence[Sentence]) -> Iterable[tuple[Sentence, list[Mention]]]:
    """Yield each sentence with the mentions that begin in it; both are in the order of the text."""
    at = 0
    for sentence in cut:
        begin = at
        while at < len(found) and found[at].start < sentence.end:
            at += 1
        yield sentence, found[begin:at]

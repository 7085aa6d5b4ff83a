"""Claims of a reader, and the passages that it read, as the check of support takes them. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cached_property, lru_cache
from itertools import chain
from typing import Literal, NamedTuple

from kg_memory.text.dates import DateMention, find_dates
from kg_memory.text.support_dates import Times
from kg_memory.text.tokenise import terms
from kg_memory.text.word_match import HAN, LISTS, WORD, Words, read_numbers, to_key

Language = Literal["english", "chinese", ""]
_LETTERS = re.compile(r"[^\W\d_]")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")
LIGHT = frozenset(map(to_key, LISTS["light"].split())) | frozenset(LISTS["light"].split())
LIGHT_CHINESE = frozenset(LISTS["light_chinese"])
_ENGLISH, _FOREIGN = frozenset(LISTS["english"].split()), frozenset(LISTS["foreign"].split())
_LONGEST_SPEAKER = 60
_SENTENCE_END = re.compile(r"[.!?\n\u3002\uff01\uff1f]")


class Claim(NamedTuple):
    """A fact as it was read; each of its entities by all `names` that it may have, and its type, if that is known."""

    sentence: str
    predicate: str
    names: Sequence[Sequence[str]]
    quote: str
    kind: str = "state"
    begin: str | None = None
    end: str | None = None
    types: Sequence[str] = ()


class Passage:
    """The words that a reader saw: the content of a piece, its speaker, and the texts before it, each with its time."""

    def __init__(
        self,
        content: str,
        at: datetime,
        speaker: str | None = None,
        previous: Sequence[tuple[str, datetime]] = (),
        *,
        is_record: bool = False,
    ) -> None:
        self.content, self.at, self.speaker, self.previous = content, at, speaker or "", previous
        self.is_record = is_record
        self.words = Words(content)
        self.context = Words("\n".join((self.speaker, *(text for text, _ in previous))))

    @cached_property
    def language(self) -> Language:
        """The language of the content, if its words can be compared."""
        return language_of(self.content)

    @cached_property
    def mentions(self) -> tuple[DateMention, ...]:
        """The dates that the content and the texts before it name."""
        texts = ((self.content, self.at), *self.previous)
        return tuple(chain.from_iterable(find_dates(text, at) for text, at in texts))

    @cached_property
    def text(self) -> str:
        """The content and the texts before it."""
        return f"{self.content}\n{self.context.text}"

    @cached_property
    def told_numbers(self) -> frozenset[str]:
        """The numbers in the content and the texts before it."""
        return self.words.numbers | self.context.numbers

    @cached_property
    def numbers(self) -> frozenset[str]:
        """The numbers that a reader may tell: those, and those of the dates that the texts name."""
        ends = ((mention.interval.start, mention.interval.end) for mention in self.mentions)
        times = filter(None, chain((self.at, *(at for _, at in self.previous)), chain.from_iterable(ends)))
        local = (time.astimezone(self.at.tzinfo) for time in times)
        return self.told_numbers | read_numbers(" ".join(f"{time:%Y %m %d %H %M}" for time in local))

    def times_by(self, words: str) -> Iterator[Times]:
        """Yield what tells times: *words* of the content, if they tell any; else all of it; else the texts before."""
        own = Times(words, tuple(find_dates(words, self.at)), read_numbers(words))
        if own.mentions:
            yield own
            return
        here = Times(self.content, tuple(find_dates(self.content, self.at)), self.words.numbers)
        yield here
        if not here.mentions:
            yield Times(self.context.text, self.mentions, self.told_numbers)

    @cached_property
    def speakers(self) -> Words:
        """The names of the speaker, and of those before."""
        heads = (text.partition(":")[0] for text, _ in self.previous if ":" in text[:_LONGEST_SPEAKER])
        return Words("\n".join((self.speaker, *heads)))

    @cached_property
    def asked(self) -> str:
        """The last question of the text before it, if that ends with one."""
        text = self.previous[-1][0].partition(": ")[2] or self.previous[-1][0] if self.answers else ""
        return _SENTENCE_END.split(text.rstrip().rstrip("?\uff1f"))[-1]

    @cached_property
    def answers(self) -> bool:
        """Whether the text before it ends with a question."""
        return any(text.rstrip()[-1:] in ("?", "\uff1f") for text, _ in self.previous[-1:])


# Words


def proper_words(name: str) -> Iterator[str]:
    """Yield the words of *name* that no reader may bring: with a capital, a digit, or in a script without case."""
    for match in WORD.finditer(name):
        word = match[0]
        if HAN.search(word):
            yield from filter(None, word.split("的"))
        elif not word.islower() and not word.isdecimal():
            yield word


def matter_of(sentence: Words, claim: Claim) -> list[str]:
    """Return the keys of the words of the sentence that tell something, besides names and numbers."""
    proper = {to_key(word) for name in chain.from_iterable(claim.names) for word in proper_words(name)}
    keys = dict.fromkeys(to_key(word) for word in sentence.words if word[0].isalpha() and not HAN.search(word))
    return [key for key in keys if key not in proper and key not in LIGHT and len(key) > 1 and terms(key)]


def characters_of(sentence: Words, claim: Claim) -> list[str]:
    """Return the Chinese characters of the sentence that tell something, besides names."""
    proper = set("".join(chain.from_iterable(claim.names)))
    return [char for char in sorted(sentence.han) if char not in proper and char not in LIGHT_CHINESE]


# Languages


@lru_cache(maxsize=1024)
def language_of(text: str) -> Language:
    """Return whether *text* is English or Chinese; an empty string for all else, and for a mixture."""
    letters = _LETTERS.findall(text)
    han, latin = len(HAN.findall(text)), len(_LATIN.findall(text))
    if not letters or han + latin < 0.9 * len(letters):
        return ""
    if han * 2 > latin:
        return "chinese"
    words = Counter(map(str.casefold, WORD.findall(text.replace("’", "'"))))
    english, foreign = (sum(words[word] for word in words.keys() & each) for each in (_ENGLISH, _FOREIGN))
    accents = latin - len(re.findall("[A-Za-z]", text))
    return "english" if english >= foreign and accents <= 0.02 * latin + 2 else ""

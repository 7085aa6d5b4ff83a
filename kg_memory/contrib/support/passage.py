"""Compares the words of claims (extracted facts) with passages (the texts from which they were extracted).

Words match by stem, by groups of synonyms, and by Chinese characters. Pure functions, in time linear in the texts.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property, lru_cache
from itertools import chain, pairwise
from typing import Literal, NamedTuple

from kg_memory.contrib.support.times import Times
from kg_memory.ingestion.records import Piece, ResolvedEntity
from kg_memory.ingestion.state import Draft
from kg_memory.settings import Settings
from kg_memory.temporal.interval import local_time, parse_instant
from kg_memory.text import read_table
from kg_memory.text.dates import DateMention, chinese, english, find_dates
from kg_memory.text.tokenise import terms

WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_NUMBER_WORDS = {word: str(number) for number, word in enumerate(english.SMALL)}
_NUMBER_WORDS |= {"thirty": "30", "forty": "40", "fifty": "50", "couple": "2", "dozen": "12", "twice": "2", "both": "2"}
_DIGITS = re.compile(r"\d+")
_DECIMAL = re.compile(r"(?<![\d.])(\d+)\.(\d+)(?![\d.])")
_KILO = re.compile(r"(?<!\d)([1-9]\d*)k\b", re.IGNORECASE)
_THOUSANDS = re.compile(r"(?<=\d)[,.' ](?=\d{3}(?!\d))")
_CHINESE_NUMBER = re.compile("[零一二两三四五六七八九十百]+")
DATE_NUMBER = re.compile(
    r"(\d{4}-\d\d(?:-\d\d)?)(?!\d)|((?:19|20)\d\d)(?!\d)"
    r"|(\d{1,2})(?:st|nd|rd|th)?\s(?=(?:of\s)?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec))"
    r"|\b([0-9]{1,2}[:.][0-9]{2})\b|([0-9]{1,2})\s?(?=[ap]\.?m\b)"
    r"|([0-9]{1,4})(?=[\u5e74\u6708\u65e5\u53f7\u70b9\u65f6])",
    re.IGNORECASE,
)
"""Matches numbers that are part of a date or time of day."""
_SAME_ROOT, SAME_MEANING = 0.8, 0.7
_PREFIX = 4
"""Words with this many equal first letters have the same root: "radiographer", "radiography"."""


def _load_groups(table: Mapping[str, Mapping[str, str]]) -> tuple[Mapping[str, frozenset[str]], ...]:
    """Return the names of the synonym groups of each word, and of each Chinese character: ``{"car": {"vehicle"}}``."""
    words: dict[str, set[str]] = {}
    characters: dict[str, set[str]] = {}
    for group, text in table["words"].items():
        for word in text.split():
            words.setdefault(to_key(word), set()).add(group)
    for group, text in table["chinese"].items():
        for char in text:
            characters.setdefault(char, set()).add(group)
    return tuple({key: frozenset(names) for key, names in each.items()} for each in (words, characters))


@lru_cache(maxsize=65_536)
def to_key(word: str) -> str:
    """Return the stem of *word*, by which words are compared: ``"Cats" -> "cat"``; without a stem, in lower case."""
    plain = word.replace("’", "'").casefold()
    stems = terms(plain.removesuffix("'s"))
    return stems[0] if stems else plain


def read_numbers(text: str) -> set[str]:
    """Return the numbers in *text* as digits: ``"twelve cats, 3.50, 5k" -> {"12", "3", "50", "3.5", "5", "5000"}``."""
    plain = _THOUSANDS.sub("", unicodedata.normalize("NFKC", text))
    numbers = {digits.lstrip("0") or "0" for digits in _DIGITS.findall(plain)}
    numbers |= {f"{whole.lstrip('0') or '0'}.{part.rstrip('0') or '0'}" for whole, part in _DECIMAL.findall(plain)}
    numbers |= {f"{digits}000" for digits in _KILO.findall(plain)}
    numbers |= {_NUMBER_WORDS[word] for word in map(str.casefold, WORD.findall(plain)) if word in _NUMBER_WORDS}
    return numbers | {str(chinese.number(run)) for run in _CHINESE_NUMBER.findall(plain) if len(run) < 8}


class Words:
    """The words of a text, prepared for comparison with other texts. The methods call the stem of a word its "key"."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def plain(self) -> str:
        """The text, normalized (Unicode form NFKC) and case-folded."""
        return unicodedata.normalize("NFKC", self.text).casefold()

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words of the text in order, as written."""
        return tuple(WORD.findall(self.text))

    @cached_property
    def keys(self) -> frozenset[str]:
        """The keys (stems) of all words, and of the parts of compounds such as "camelCase"."""
        keys = set(map(to_key, self.words))
        for word in self.words:
            if not word.isalpha() or not (word.islower() or word.istitle()):
                keys.update(terms(word))
                keys.update(map(to_key, word.replace("’", "'").split("'")))
        return frozenset(keys)

    @cached_property
    def han(self) -> frozenset[str]:
        """The Chinese characters in the text."""
        return frozenset(HAN.findall(self.text))

    @cached_property
    def numbers(self) -> frozenset[str]:
        """The numbers in the text, as digits."""
        return frozenset(read_numbers(self.text))

    @cached_property
    def _prefixes(self) -> frozenset[str]:
        return frozenset(key[:_PREFIX] for key in self.keys if len(key) >= _PREFIX)

    @cached_property
    def _groups(self) -> frozenset[str]:
        return _join(_GROUPS.get(key, frozenset()) for key in self.keys)

    @cached_property
    def _han_groups(self) -> frozenset[str]:
        return _join(_HAN_GROUPS.get(char, frozenset()) for char in self.han)

    def has(self, key: str) -> bool:
        """Return whether a word of the text matches the stem *key*: by the same stem, a related word, or a synonym."""
        return self.rate(key) > 0

    def rate(self, key: str) -> float:
        """Return how well the words of the text match the stem *key*, from 0.0 to 1.0."""
        if key in self.keys:
            return 1.0
        if len(key) >= _PREFIX and key[:_PREFIX] in self._prefixes:
            return _SAME_ROOT
        return 0.0 if _GROUPS.get(key, frozenset()).isdisjoint(self._groups) else SAME_MEANING

    def has_character(self, char: str) -> bool:
        """Return whether the text has this Chinese character or a synonym of it."""
        return char in self.han or not _HAN_GROUPS.get(char, frozenset()).isdisjoint(self._han_groups)

    def names(self, word: str) -> bool:
        """Return whether *word*, a part of a name, occurs in the text, also with an ending or inside another word."""
        return to_key(word) in self.keys or (len(word) > 2 and word.casefold() in self.plain)


def _join(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*sets)


_TABLE: Mapping[str, Mapping[str, str]] = read_table(__package__, "support.toml")
_GROUPS, _HAN_GROUPS = _load_groups(_TABLE)
LISTS = _TABLE["lists"]
"""Word lists by name, from ``support.toml``."""
PATTERNS = {name: re.compile(words, re.IGNORECASE | re.VERBOSE) for name, words in _TABLE["patterns"].items()}
"""Regular expressions by name, from ``support.toml``."""

Language = Literal["english", "chinese", ""]
_LETTERS = re.compile(r"[^\W\d_]")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")
LIGHT = frozenset(map(to_key, LISTS["light"].split())) | frozenset(LISTS["light"].split())
LIGHT_CHINESE = frozenset(LISTS["light_chinese"])
_ENGLISH, _FOREIGN = frozenset(LISTS["english"].split()), frozenset(LISTS["foreign"].split())
_LONGEST_SPEAKER = 60
_SENTENCE_END = re.compile(r"[.!?\n\u3002\uff01\uff1f]")


class Claim(NamedTuple):
    """A fact that was extracted from a message, before it is checked against the text of the message."""

    sentence: str
    predicate: str
    names: Sequence[Sequence[str]]
    quote: str
    kind: str = "state"
    begin: str | None = None
    end: str | None = None
    types: Sequence[str] = ()


class Passage:
    """A message from which facts were extracted, with its speaker and the messages before it."""

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
        """The language of the message: ``english``, ``chinese``, or ``""`` for others, where quotes are not checked."""
        return language_of(self.content)

    @cached_property
    def mentions(self) -> tuple[DateMention, ...]:
        """The dates in the message and in the messages before it."""
        texts = ((self.content, self.at), *self.previous)
        return tuple(chain.from_iterable(find_dates(text, at) for text, at in texts))

    @cached_property
    def told_numbers(self) -> frozenset[str]:
        """The numbers in the message and in the messages before it."""
        return self.words.numbers | self.context.numbers

    @cached_property
    def numbers(self) -> frozenset[str]:
        """The numbers that a fact in this message may contain: those in the texts, and in their dates and times."""
        ends = ((mention.interval.start, mention.interval.end) for mention in self.mentions)
        times = filter(None, chain((self.at, *(at for _, at in self.previous)), chain.from_iterable(ends)))
        local = (time.astimezone(self.at.tzinfo) for time in times)
        return self.told_numbers | read_numbers(" ".join(f"{time:%Y %m %d %H %M}" for time in local))

    def times_by(self, words: str) -> Iterator[Times]:
        """Yield the texts in which to look for the date of a fact, best first, each with its dates and numbers."""
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
        """The names of the speaker of the message, and of the speakers of the messages before."""
        heads = (text.partition(":")[0] for text, _ in self.previous if ":" in text[:_LONGEST_SPEAKER])
        return Words("\n".join((self.speaker, *heads)))

    @cached_property
    def asked(self) -> str:
        """The question at the end of the message before, which this message may answer; empty if there is none."""
        text = self.previous[-1][0].partition(": ")[2] or self.previous[-1][0] if self.answers else ""
        return _SENTENCE_END.split(text.rstrip().rstrip("?\uff1f"))[-1]

    @cached_property
    def answers(self) -> bool:
        """True if the message before ends with a question, which this message may answer."""
        return any(text.rstrip()[-1:] in ("?", "\uff1f") for text, _ in self.previous[-1:])


def make_passage(draft: Draft, piece: Piece, settings: Settings) -> Passage:
    """Convert *piece*, a part of a message, to a `Passage` with the messages that come before it.

    *draft* is the state of ingestion of the message.
    """
    episode = draft.episode
    at = local_time(episode.at, episode.offset)
    before = [(message.line, parse_instant(message.at) or at) for message in draft.previous]
    others = [other.content for other, after in pairwise(draft.pieces) if after == piece]
    previous = [*((text, at) for text in (settings.instructions, *others) if text), *before]
    return Passage(piece.content, at, episode.speaker_name, previous, is_record=episode.kind == "json")


def names_of(entity: ResolvedEntity) -> tuple[str, ...]:
    """Return all names of *entity* without duplicates; the names that the current message uses come first."""
    return tuple(dict.fromkeys((*entity.called, entity.name, *entity.aliases)))


# Words


def proper_words(name: str) -> Iterator[str]:
    """Yield the words of *name* that a text must contain: ``"the Eiffel Tower"`` -> Eiffel, Tower."""
    for match in WORD.finditer(name):
        word = match[0]
        if HAN.search(word):
            yield from filter(None, word.split("的"))
        elif not word.islower() and not word.isdecimal():
            yield word


def matter_of(sentence: Words, claim: Claim) -> list[str]:
    """Return the stems of the content words in *sentence*, the sentence of *claim*, without names and numbers."""
    proper = {to_key(word) for name in chain.from_iterable(claim.names) for word in proper_words(name)}
    keys = dict.fromkeys(to_key(word) for word in sentence.words if word[0].isalpha() and not HAN.search(word))
    return [key for key in keys if key not in proper and key not in LIGHT and len(key) > 1 and terms(key)]


def characters_of(sentence: Words, claim: Claim) -> list[str]:
    """Return the Chinese characters in *sentence*, the sentence of *claim*, without names and function words."""
    proper = set("".join(chain.from_iterable(claim.names)))
    return [char for char in sorted(sentence.han) if char not in proper and char not in LIGHT_CHINESE]


# Languages


@lru_cache(maxsize=1024)
def language_of(text: str) -> Language:
    """Return the language of *text*, ``english`` or ``chinese``; ``""`` for other languages and for mixtures."""
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


# The span


def find_span(quote: str, content: str) -> tuple[tuple[int, int] | None, float]:
    """Return the position of *quote* in *content*, and the share of its words found: ``((0, 12), 1.0)``.

    ``(None, _WITHOUT_SPAN)`` if fewer than 60 % of the words occur close together.
    """
    exact = locate(quote, content)
    if exact is not None:
        return exact, 1.0
    spans = [(to_key(match[0]), match.start(), match.end()) for match in _UNIT.finditer(content)]
    needed = Counter(to_key(match[0]) for match in _UNIT.finditer(quote))
    most = needed.total()
    if not most:
        return None, _WITHOUT_SPAN
    width, inside, hits, best = most + most // 2 + 2, Counter[str](), 0, (0, 0)
    for place, (key, _, _) in enumerate(spans):
        inside[key] += 1
        hits += inside[key] <= needed[key]
        if place >= width:
            old = spans[place - width][0]
            hits -= inside[old] <= needed[old]
            inside[old] -= 1
        best = max(best, (hits, -place))
    share, place = best[0] / most, -best[1]
    if share < _MOST_WORDS:
        return None, _WITHOUT_SPAN
    within = [span for span in spans[max(place - width + 1, 0) : place + 1] if span[0] in needed]
    return (within[0][1], within[-1][2]), share


def locate(quote: str, content: str) -> tuple[int, int] | None:
    """Return the position (start, end) of *quote* in *content*, ignoring case and white space, or ``None``."""
    quote = quote.strip()
    if not quote:
        return None
    start = content.find(quote)
    if start >= 0:
        return start, start + len(quote)
    if " ".join(quote.casefold().split()) not in " ".join(content.casefold().split()):
        return None  # a quick check, as the search below may take time proportional to the product of both lengths
    match = re.search(r"\s+".join(map(re.escape, quote.split())), content, re.IGNORECASE)
    return match.span() if match else None


_UNIT = re.compile(rf"{HAN.pattern}|[^\W_]+?(?={HAN.pattern})|[^\W_]+(?:['’][^\W_]+)*")
_MOST_WORDS, _WITHOUT_SPAN = 0.6, 0.45

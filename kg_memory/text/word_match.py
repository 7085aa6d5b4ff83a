"""Match the words of one text with those of another: by stems, groups of words that tell the same, and characters.

Takes time in proportion to the texts. Pure.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from importlib.resources import files

from kg_memory.text import tokenise

WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
NUMBER_WORDS = {
    word: str(number)
    for number, word in enumerate(
        """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
        seventeen eighteen nineteen twenty""".split()
    )
} | {"thirty": "30", "forty": "40", "fifty": "50", "couple": "2", "dozen": "12", "twice": "2", "both": "2"}
_DIGITS = re.compile(r"\d+")
_DECIMAL = re.compile(r"(?<![\d.])(\d+)\.(\d+)(?![\d.])")
_KILO = re.compile(r"([1-9]\d*)k\b", re.IGNORECASE)
_THOUSANDS = re.compile(r"(?<=\d)[,.' ](?=\d{3}(?!\d))")
_CHINESE_NUMBER = re.compile("[零一二两三四五六七八九十百]+")
_CHINESE_DIGITS = {char: value for value, char in enumerate("零一二三四五六七八九")} | {"两": 2}
_SAME_ROOT, SAME_MEANING = 0.8, 0.7
_PREFIX = 4
"""The letters that words of one root share: "radiographer", "radiography"."""


def _load_groups(table: Mapping[str, Mapping[str, str]]) -> tuple[Mapping[str, frozenset[str]], ...]:
    """Return the groups of each word, by its key, and of each Chinese character."""
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
    """Return the form by which *word* is compared: its stem, or itself where it has none."""
    plain = word.replace("’", "'").casefold()
    terms = tokenise.terms(plain.removesuffix("'s"))
    return terms[0] if terms else plain


def read_numbers(text: str) -> set[str]:
    """Return the numbers in *text*, in digits or in words, without leading zeros."""
    plain = _THOUSANDS.sub("", unicodedata.normalize("NFKC", text))
    numbers = {digits.lstrip("0") or "0" for digits in _DIGITS.findall(plain)}
    numbers |= {f"{whole.lstrip('0') or '0'}.{part.rstrip('0') or '0'}" for whole, part in _DECIMAL.findall(plain)}
    numbers |= {f"{digits}000" for digits in _KILO.findall(plain)}
    numbers |= {NUMBER_WORDS[word] for word in map(str.casefold, WORD.findall(plain)) if word in NUMBER_WORDS}
    return numbers | {str(_read_chinese(run)) for run in _CHINESE_NUMBER.findall(plain) if len(run) < 8}


def _read_chinese(run: str) -> int:
    total, digit = 0, 0
    for char in run:
        if char in "十百":
            total += (digit or 1) * (10 if char == "十" else 100)
            digit = 0
        else:
            digit = digit * 10 + _CHINESE_DIGITS[char]
    return total + digit


class Words:
    """The words of a text, made for matching those of others."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def plain(self) -> str:
        """The text as it is compared: NFKC, case-folded."""
        return unicodedata.normalize("NFKC", self.text).casefold()

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words in order, as they are written."""
        return tuple(WORD.findall(self.text))

    @cached_property
    def keys(self) -> frozenset[str]:
        """The keys of the words and of their parts: "camelCase"."""
        keys = set(map(to_key, self.words))
        for word in self.words:
            if not word.isalpha() or not (word.islower() or word.istitle()):
                keys.update(tokenise.terms(word))
                keys.update(map(to_key, word.replace("’", "'").split("'")))
        return frozenset(keys)

    @cached_property
    def han(self) -> frozenset[str]:
        """The Chinese characters."""
        return frozenset(HAN.findall(self.text))

    @cached_property
    def numbers(self) -> frozenset[str]:
        """The numbers, in digits."""
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
        """Return whether a word has this *key*, its root, or tells the same."""
        return self.rate(key) > 0

    def rate(self, key: str) -> float:
        """Return how well a word fits this *key*: 1 for the same stem, less for the same root or meaning."""
        if key in self.keys:
            return 1.0
        if len(key) >= _PREFIX and key[:_PREFIX] in self._prefixes:
            return _SAME_ROOT
        return 0.0 if _GROUPS.get(key, frozenset()).isdisjoint(self._groups) else SAME_MEANING

    def has_character(self, char: str) -> bool:
        """Return whether the text has this Chinese character, or one that tells the same."""
        return char in self.han or not _HAN_GROUPS.get(char, frozenset()).isdisjoint(self._han_groups)

    def names(self, word: str) -> bool:
        """Return whether *word*, of a name, stands in the text, inflected or as a part of a word too."""
        return to_key(word) in self.keys or (len(word) > 2 and word.casefold() in self.plain)


def _join(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*sets)


_TABLE: Mapping[str, Mapping[str, str]] = tomllib.loads(
    files(__package__).joinpath("support.toml").read_text(encoding="utf-8")
)
_GROUPS, _HAN_GROUPS = _load_groups(_TABLE)
LISTS = _TABLE["lists"]
"""Other lists of words, by their names."""

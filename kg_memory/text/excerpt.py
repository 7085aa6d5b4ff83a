"""A text on one line, and of a long one the part that bears on a question; and facts that only quote a text. Pure."""

from __future__ import annotations

import re
import unicodedata
from itertools import groupby

from kg_memory.models.graph import Fact
from kg_memory.text.sentences import split_sentences
from kg_memory.text.tokenise import terms

LONGEST_TEXT = 500
"""The characters of one text; of a longer one, the part that fits the question best is shown."""
SEARCHED = 100_000
# Not the question mark, nor signs of number and money: they change what is said.
_AROUND = ".,;:!…\"'“”‘’`*_()[]{}«»。，；：！、（）「」『』《》"
_PIECE = re.compile(r".{1,120}(?:\s|$)|.{1,120}", re.DOTALL)
# Control characters, marks that turn the direction of writing, halves of characters, and separators of lines.
_BREAKS = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
# No characters at all: they end an XML document.
_NOTHING = frozenset("\ufffe\uffff")


def one_line(text: str, words: frozenset[str] | set[str] = frozenset(), length: int = LONGEST_TEXT) -> str:
    """Return *text* on one line and with visible characters only, or a stretch of it when it is too long."""
    line = " ".join(text[:SEARCHED].split())
    if not line.isprintable():
        visible = "".join(" " if _is_break(char) else char for char in line)
        line = " ".join(visible.split())
    return excerpt(line, words, length)


def excerpt(text: str, words: frozenset[str] | set[str], length: int) -> str:
    """Return at most about *length* characters of *text*: its sentences with most of *words* and those behind them."""
    if len(text) <= length:
        return text
    sentences = [sentence.text for sentence in split_sentences(text)] or [text]
    hits = [len(words.intersection(terms(sentence))) for sentence in sentences]
    weights = [hits[place] + hits[place - 1] / 4 if place else hits[0] + 0.1 for place in range(len(hits))]
    room, chosen = length, set[int]()
    for place in sorted(range(len(sentences)), key=lambda place: -weights[place]):
        if len(sentences[place]) <= room:
            chosen.add(place)
            room -= len(sentences[place]) + 1
    best = max(range(len(sentences)), key=hits.__getitem__)
    if best not in chosen:
        return _stretch(text, words, length)
    parts = [sentences[place] if place in chosen else "…" for place in range(len(sentences))]
    return " ".join(part for part, _ in groupby(parts))


def _stretch(text: str, words: frozenset[str] | set[str], length: int) -> str:
    """Return about *length* characters of *text*, around where most of *words* are."""
    pieces = [match.span() for match in _PIECE.finditer(text)]
    hits = [len(words.intersection(terms(text[start:end]))) for start, end in pieces]
    wide = max(length // 120, 1)
    best = max(range(len(pieces)), key=lambda place: (sum(hits[place : place + wide]), -place))
    start = pieces[best][0]
    end = min(start + length, len(text))
    start = min(start, max(end - length, 0))
    return ("… " if start else "") + text[start:end].strip() + (" …" if end < len(text) else "")


def _is_break(char: str) -> bool:
    return char in _NOTHING or unicodedata.category(char) in _BREAKS


def fold(text: str) -> tuple[str, ...]:
    """Return the words of *text* without case and punctuation; unlike tokens they keep "not", tenses and "-5"."""
    words = (word.strip(_AROUND) for word in unicodedata.normalize("NFKC", text).casefold().split())
    return tuple(filter(None, words)) or (text,)


def is_quote(fact: Fact) -> bool:
    """Return whether *fact* only quotes what somebody said, as facts read offline often do."""
    speaker, _, said = fact.sentence.partition(": ")
    return any(source.speaker == speaker and fold(source.quote) == fold(said) for source in fact.sources)

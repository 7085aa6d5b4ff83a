"""Split a text into sentences, shorten it to those that match a question, and name communities."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from kg_memory.models.graph import Fact
from kg_memory.text.tokenise import terms

_END = re.compile(r"(?<![\s.])(?<!\S[!?…])(?:[.!?…]+[\"'”’)\]]*(?=\s|$)|[。！？；]+[”’」』）]*|(?=\n))|\n")
_ABBREVIATION = re.compile(
    r"(?:\b(?:mr|mrs|ms|dr|prof|st|jr|sr|vs|etc|e\.g|i\.e|inc|ltd|no|approx|u\.s|u\.k)|\b[A-Z])\.$", re.IGNORECASE
)
# "I'm moving to Oslo, can you recommend a school?" states something, and then asks.
_THEN_ASKS = re.compile(
    r"(?P<stated>(?:\w+[,!] )?(?:I|I['’]\w+|We|We['’]\w+|My|Our)\b.{15,}?(?:[,;–—]| -| and| so) ?)"
    r"(?:can|could|would|will|do|does|did|is|are|should|what|how|which|any|where|when|who|why|have) (?=\w)",
    re.DOTALL,
)
# "I opened a shop - pretty cool, huh?" is a statement.
_TAG = re.compile(r"[,\s–—-](?:huh|right|eh|you know|isn't it|don't you think|ok|okay|haha)\?+$", re.IGNORECASE)
_CHINESE_QUESTION = re.compile(r"[吗呢么][。！\s]*$|^(?:怎么|什么|为什么|哪|谁|几点|多少)")
_CHINESE = re.compile("[\u3400-\u9fff]")
# The most characters of a sentence; longer text without an end is cut at a space or comma.
_LONGEST = 400
LONGEST_SUMMARY = 300
LONGEST_NAME = 200
NAMED = 4
"""The number of members whose names form the name of a community."""
LONGEST_TEXT = 500
"""The most characters of one text; of a longer one, the part that fits the question best is shown."""
SEARCHED = 30_000
"""The most characters of one text in which that part is looked for."""
# Without the question mark and signs of numbers and money, which change the meaning.
_AROUND = ".,;:!…\"'“”‘’`*_()[]{}«»。，；：！、（）「」『』《》"
_PIECE = re.compile(r".{1,120}(?:\s|$)|.{1,120}", re.DOTALL)
# Control characters, format characters such as direction marks, surrogates, and separators of lines and paragraphs.
_BREAKS = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
# Noncharacters, which XML does not allow.
_NOTHING = frozenset("\ufffe\uffff")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence in a text, the content: its `text` is ``content[start:end]``."""

    start: int
    end: int
    text: str

    @property
    def asks(self) -> bool:
        """Whether the sentence is a question."""
        bare = self.text.rstrip("\"'”’)」』） \t")
        if bare.endswith(("?", "？")):
            return _TAG.search(bare) is None
        return _CHINESE_QUESTION.search(self.text) is not None


def split_sentences(content: str) -> list[Sentence]:
    """Split *content* into its sentences, in order and without surrounding white space: "Hi! I moved." has two."""
    sentences: list[Sentence] = []
    start = 0
    for match in _END.finditer(content):
        if _ABBREVIATION.search(content[max(start, match.end() - 8) : match.end()]):
            continue
        sentences += _cut(content, start, match.end())
        start = match.end()
    return [*sentences, *_cut(content, start, len(content))]


def _cut(content: str, start: int, end: int) -> Iterator[Sentence]:
    while end - start > _LONGEST:
        within = start + _LONGEST // 2, start + _LONGEST
        cut = max(content.rfind(mark, *within) for mark in (", ", "，", "; ", "；"))
        cut = cut if cut > 0 else max(content.rfind(mark, *within) for mark in " ,、;")
        cut = cut + 1 if cut > 0 else start + _LONGEST
        yield from _strip(content, start, cut)
        start = cut
    yield from _strip(content, start, end)


def _strip(content: str, start: int, end: int) -> Iterator[Sentence]:
    """Yield ``content[start:end]`` as sentences without surrounding white space; a question is yielded separately."""
    text = content[start:end]
    start += len(text) - len(text.lstrip())
    text = text.strip()
    asks_after = _THEN_ASKS.match(text) if text.endswith("?") else None
    if asks_after:
        head = asks_after["stated"].rstrip(" ,;-–—")
        yield Sentence(start, start + len(head), head)
        start, text = start + asks_after.end("stated"), text[asks_after.end("stated") :]
        start, text = start + len(text) - len(text.lstrip()), text.strip()
    if text:
        yield Sentence(start, start + len(text), text)


def content_stems(text: str) -> frozenset[str]:
    """Return the stems of the words in *text* without stop words: "the two dogs" -> {"two", "dog"}."""
    return frozenset(terms(text))


def describe_members(items: Sequence[Mapping[str, str]]) -> tuple[str, str]:
    """Return (name, summary) of a community (a group of related entities), written without a model."""
    names = [item["entity"] for item in items if "entity" in item]
    facts = [item["fact"] for item in items if "fact" in item]
    for item in items:
        if "part" in item:
            names += filter(None, re.split(", |、", item["part"]))
            facts.append(item["summary"])
    first = list(dict.fromkeys(names))[:NAMED]
    comma = "、" if _CHINESE.search("".join(first)) else ", "
    return comma.join(first)[:LONGEST_NAME], " ".join(facts)[:LONGEST_SUMMARY]


# Texts on one line, and excerpts


def one_line(text: str, words: frozenset[str] | set[str] = frozenset(), length: int = LONGEST_TEXT) -> str:
    """Return *text* on one line, without invisible characters, shortened to about *length* characters."""
    line = " ".join(text[:SEARCHED].split())
    if not line.isprintable():
        line = " ".join("".join(" " if _is_break(char) else char for char in line).split())
    return excerpt(line, words, length)


def excerpt(text: str, words: frozenset[str] | set[str], length: int) -> str:
    """Return the sentences of *text* that contain most of *words*, in about *length* characters at most."""
    if len(text) <= length:
        return text
    sentences = [sentence.text for sentence in split_sentences(text)] or [text]
    found = [frozenset(terms(sentence)) for sentence in sentences]
    hits = [len(words & own) for own in found]
    before = [0, *hits]
    weights = [hits[index] + before[index] / 4 + len(own) / 50 for index, own in enumerate(found)]
    room, chosen = length, set[int]()
    for index in sorted(range(len(sentences)), key=lambda index: -weights[index]):
        if len(sentences[index]) <= room:
            chosen.add(index)
            room -= len(sentences[index]) + 1
    best = max(range(len(sentences)), key=weights.__getitem__)
    if best not in chosen:
        return _stretch(text, words, length)
    parts = [sentences[index] if index in chosen else "…" for index in range(len(sentences))]
    return " ".join(part for part, _ in groupby(parts))


def _stretch(text: str, words: frozenset[str] | set[str], length: int) -> str:
    """Return one piece of *text* of about *length* characters that has most of *words*, with "…" where it is cut."""
    pieces = [match.span() for match in _PIECE.finditer(text)]
    hits = [len(words.intersection(terms(text[start:end]))) for start, end in pieces]
    wide = max(length // 120, 1)
    best = max(range(len(pieces)), key=lambda index: (sum(hits[index : index + wide]), -index))
    start = pieces[best][0]
    end = min(start + length, len(text))
    start = min(start, max(end - length, 0))
    return ("… " if start else "") + text[start:end].strip() + (" …" if end < len(text) else "")


def _is_break(char: str) -> bool:
    return char in _NOTHING or unicodedata.category(char) in _BREAKS


def fold(text: str) -> tuple[str, ...]:
    """Return the words of *text* in lower case and without punctuation: "Don't go!" -> ("don't", "go").

    A text of over `SEARCHED` characters, or without words, is returned whole: ``(text,)``.
    """
    words = unicodedata.normalize("NFKC", text).casefold().split() if len(text) <= SEARCHED else ()
    return tuple(filter(None, (word.strip(_AROUND) for word in words))) or (text,)


def is_quote(fact: Fact) -> bool:
    """Return whether the sentence of *fact* is only a speaker with a quote: "Ann: I love jazz"."""
    speaker, _, said = fact.sentence.partition(": ")
    return any(source.speaker == speaker and fold(source.quote) == fold(said) for source in fact.sources)

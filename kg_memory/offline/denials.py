"""Tell what is denied ("I have never used Flask"), and which facts say the contrary."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kg_memory.offline.moods import NEVER
from kg_memory.offline.sameness import key, said, words_of

_NEVER = re.compile(
    r"\b(?:I|we|he|she|they)(?:['’]ve|['’]s| have| has| had| did)? (?:\w+ly )?never (?:\w+ly |"
    r"ever )?(?P<what>[^,;:.!?()–—]+)|"
    r"(?:从来没有?|从没有?|从未|从来不|未曾|压根没有?|根本没有?)(?P<chinese>[^，,；;。！!？?]+)",
    re.IGNORECASE,
)
_PARTS = re.compile(r"\b(?:or|and|nor|but|so|before|because|since)\b|或者?|和|[、，]", re.IGNORECASE)
_DONE = re.compile(
    r"\b(?:I|we)(?:(?:'ve| have| had)(?: \w+ly| just| also| been| now)* (?!heard|thought|felt|known|seen|"
    r"been told)\w+|(?:'m| am|'re| are)"
    r"(?: \w+ly| now| already| also)* (?:using|working|building|practi[cs]ing|running|doing|having)| (?:\w+ly |"
    r"also |just )*(?:use|did|"
    r"(?!want|need|think|know)\w{3,}ed|built|wrote|made|got|ran|went|took|gave|taught|began|won|sent|set up|met|"
    r"bought|read))\b|"
    r"我[^，。]{0,6}(?:[了过]|正在|使用|一直|在?用)|[了过]|正在|使用|一直",
    re.IGNORECASE,
)
_NOT_DONE = re.compile(
    r"\b(?:never|not|no longer|without|want|wants|wanted|would|will|should|could|can|need|needs|plan|plans|planning|"
    r"hope|hoping|"
    r"going to|'ll|if|trying to|try to|considering|thinking|wondering|how to|whether|yet to|goal)\b|n't\b|"
    r"没|不|想|打算|计划|希望|准备|将|如果|假如|要是",
    re.IGNORECASE,
)
_CLAUSES = re.compile(
    r"[,;:.!?()–—]\s|\s-\s|\s(?:but|so|because|which)\s|\sand\s(?=(?:I|we)\b)|[，；。！？]", re.IGNORECASE
)
_DOUBTED = re.compile(r"\b(?:whether|if|clarify that)\s(?:it is that\s)?$", re.IGNORECASE)
_LIGHT = frozenset(
    "any ever project app application thing feature work done use used using completed complete tried worked before "
    "related involving regarding concerning about kind type time lot actual one".split()
)
_FEWEST = 2

Fact = Mapping[str, Any]


def is_denial(fact: Fact) -> bool:
    """Return whether *fact* says that something was never so."""
    return str(fact["predicate"]).startswith(NEVER)


def denies(denial: Fact, other: Fact) -> bool:
    """Return whether *denial* says that what *other* tells was never so."""
    if not is_denial(denial) or is_denial(other) or str(other["predicate"]).startswith(("PLANS", "WANTS", "NOT_")):
        return False
    shared = {key(one) for one in denial["objects"]} & {key(one) for one in other["objects"]}
    base = denial["predicate"].removeprefix(NEVER)
    if shared and base == other["predicate"]:
        return True
    told = [words_of(one) for one in _done(said(other).replace("’", "'"))]
    # Only a clause that tells of the objects of the other is what that one says.
    told = [words for words in told if any(not words_of(name).isdisjoint(words) for name in other["objects"])]
    return any(_covers(part, words) for part in _denied(said(denial)) for words in told)


def _denied(words: str) -> list[frozenset[str]]:
    """Return the content words of each thing that *words* deny, without the verb."""
    found: list[frozenset[str]] = []
    for match in _NEVER.finditer(words):
        if _DOUBTED.search(words[: match.start()]):
            continue
        what = match["what"] or match["chinese"]
        verb = words_of(what.split(" ", 1)[0]) if match["what"] else frozenset()
        found += [
            words_of(part) - _LIGHT - (verb if place == 0 else frozenset())
            for place, part in enumerate(_PARTS.split(what))
        ]
    return found


def _done(words: str) -> list[str]:
    """Return the clauses of *words* that tell what is or was done."""
    return [one for one in _CLAUSES.split(words) if _DONE.search(one) and not _NOT_DONE.search(one)]


def _covers(denied: frozenset[str], told: frozenset[str]) -> bool:
    """Return whether all that is denied is told of, and is more than one word."""
    return len(denied) >= _FEWEST and denied <= told

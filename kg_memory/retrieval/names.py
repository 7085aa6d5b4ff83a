"""The names that a question may contain, purely: every stretch of it that could be one."""

from __future__ import annotations

import re
from functools import lru_cache

from kg_memory.text.identity import alias_key
from kg_memory.text.tokenise import terms

LONGEST = 5
"""Words of a name."""
LONGEST_UNSPACED = 8
"""Characters of a name in a script without spaces."""
MOST_WORDS = 200
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff]+")
_EDGES = re.compile(r"^[\W_]+|[\W_]+$")
_POSSESSIVE = re.compile(r"['’]s?$")


def name_keys(question: str) -> list[str]:
    """Return the alias keys of all stretches of *question* that could be a name, without repeats."""
    return list(dict.fromkeys(alias_key(name) for name in _candidates(question)))


def _candidates(question: str) -> list[str]:
    words = question.split()[:MOST_WORDS]
    found = [
        name
        for length in range(1, LONGEST + 1)
        for start in range(len(words) - length + 1)
        for name in _forms(" ".join(words[start : start + length]))
    ]
    for run in _UNSPACED.findall(question[: MOST_WORDS * LONGEST]):
        found += [run[start:end] for start in range(len(run)) for end in range(start + 1, start + LONGEST_UNSPACED + 1)]
    return [name for name in dict.fromkeys(found) if _says_something(name)]


def _says_something(name: str) -> bool:
    """Return whether any word of *name* is more than a stop word."""
    return any(map(_tells, name.split()))


@lru_cache(maxsize=4096)
def _tells(word: str) -> bool:
    return bool(terms(word))


def _forms(stretch: str) -> list[str]:
    """Return *stretch* without the punctuation around it, and without a possessive ending."""
    bare = _EDGES.sub("", stretch)
    return [form for form in dict.fromkeys((stretch, bare, _POSSESSIVE.sub("", bare))) if form]

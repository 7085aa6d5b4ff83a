"""The names that a question may contain, and those of the person who asks it; pure."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from functools import lru_cache

from kg_memory.text.identity import alias_key, is_first_person, replace_unstorable, without_possessive
from kg_memory.text.tokenise import terms

USER = "user"
"""The name of a person who gives none, as adapters store it."""
LONGEST_NAME = 5
"""The words of a name."""
HYPHENS = range(1, 3)
"""The hyphens that a name may have where a question has spaces: "billing service" for billing-service."""
LONGEST_UNSPACED = 8
"""The characters of a name in a script without spaces."""
MOST_WORDS = 200
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff]+")
_EDGES = re.compile(r"^[\W_]+|[\W_]+$")


def asker_keys(question: str, asker: str | None) -> list[str]:
    """Return the key of the name of who asks, else of `USER`, where the question is about them: "I", "the user", 我."""
    return [alias_key(replace_unstorable(asker or USER))] if is_first_person(question) else []


def name_keys(text: str) -> list[str]:
    """Return the alias keys of all stretches of *text* that could be a name, without repeats."""
    return list(dict.fromkeys(alias_key(name) for name in _possible_names(text)))


def without_names(text: str, keys: AbstractSet[str]) -> str:
    """Return *text* without the names of those *keys*; as it is if nothing else is in it."""
    words = text.split()
    for length in range(min(LONGEST_NAME, len(words)), 0, -1):
        for start in range(len(words) - length, -1, -1):
            if not keys.isdisjoint(map(alias_key, _forms(" ".join(words[start : start + length])))):
                del words[start : start + length]
    rest = _UNSPACED.sub(lambda run: _without_unspaced(run[0], keys), " ".join(words))
    return rest if terms(rest) else text


def _without_unspaced(run: str, keys: AbstractSet[str]) -> str:
    for length in range(min(LONGEST_UNSPACED, len(run)), 1, -1):
        for start in range(len(run) - length, -1, -1):
            if alias_key(run[start : start + length]) in keys:
                run = run[:start] + run[start + length :]
    return run


def _possible_names(text: str) -> list[str]:
    words = text.split()
    if _UNSPACED.search(text):
        words += _UNSPACED.sub(" ", text).split()  # a name in letters need not have spaces beside it: "Ann住在哪里"
    words = words[:MOST_WORDS]
    stretches: list[str] = []
    for length in range(1, LONGEST_NAME + 1):
        for start in range(len(words) - length + 1):
            stretches += _forms(" ".join(words[start : start + length]))
    for run in _UNSPACED.findall(text[: MOST_WORDS * LONGEST_NAME]):
        for start in range(len(run)):
            stretches += [run[start:end] for end in range(start + 1, start + LONGEST_UNSPACED + 1)]
    return [name for name in dict.fromkeys(stretches) if any(map(_has_terms, name.split()))]


@lru_cache(maxsize=4096)
def _has_terms(word: str) -> bool:
    """Return whether *word* is more than a stop word."""
    return bool(terms(word))


def _forms(stretch: str) -> list[str]:
    """Return *stretch* without the punctuation around it, without a possessive ending, and with or without hyphens."""
    bare = _EDGES.sub("", stretch)
    plain = without_possessive(bare)
    forms = [stretch, bare, plain, plain.replace("-", " ")]
    if plain.count(" ") in HYPHENS:
        forms.append(plain.replace(" ", "-"))
    return [form for form in dict.fromkeys(forms) if form]

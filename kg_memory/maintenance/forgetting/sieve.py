"""Which texts may have a word that is searched for: a quick look at how their words begin, before they are read."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain

_RUNS = re.compile(r"[a-z]+|[0-9]+")
_INNER = re.compile(r"[a-z][A-Z]")
"""Where a word begins within a word."""
_LONG, _SHORT = 3, 2


class Sieve:
    """Lets each text through that may have one of *words*, and few others.

    A word is searched for by its stem, which may differ in its end, and in a short word in all but its beginning.
    What is not plain English letters and digits goes through.
    """

    def __init__(self, words: Iterable[str]) -> None:
        wanted = set(words)
        runs = {found[0] if (found := _RUNS.findall(word)) else "" for word in wanted if word.isascii()}
        letters = {run for run in runs if run.isalpha()}
        self._long = {run[:_LONG] for run in letters if len(run) > _LONG}
        self._short = {run[:_SHORT] for run in letters if 1 < len(run) <= _LONG}
        self._single = {run for run in letters if len(run) == 1} | ({"d", "l", "t", "s"} if letters & _ODD else set())
        self._digits = any(run.isdigit() for run in runs)
        self._any = bool(wanted)

    def passes(self, text: str) -> bool:
        """Tell whether *text* may have one of the words."""
        if not self._any:
            return False
        if not text.isascii() or _INNER.search(text):
            return True
        for run in _RUNS.findall(text.lower()):
            if run[:_LONG] in self._long or run[:_SHORT] in self._short or run[:1] in self._single:
                return True
            if self._digits and run[0] <= "9":
                return True
        return False


_ODD = frozenset({"die", "lie", "tie", "sky"})
"""Stems that do not begin as their words do: dying, lying, tying, skies."""


def longest(names: Iterable[Iterable[str]]) -> set[str]:
    """Return the longest word of each: a text without it has not all of them."""
    return set(chain.from_iterable([max(each, key=len)] for each in map(list, names) if each))

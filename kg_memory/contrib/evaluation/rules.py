"""Judge answers by rules, where the expected answer is exact: a choice, a date, a number, or a few words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from datetime import date
from string import ascii_lowercase

from kg_memory.contrib.evaluation.records import Question

_ARTICLES = frozenset({"a", "an", "the"})
_TOKEN = re.compile(r"\d+(?:\.\d+)?|\w+")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")
_NUMBERS = dict(
    zip(
        "zero one two three four five six seven eight nine ten eleven twelve".split(),
        map(str, range(13)),
        strict=True,
    )
)
_MONTHS = tuple("january february march april may june july august september october november december".split())
_MONTH = "|".join(f"{name[:3]}(?:{name[3:]})?" if len(name) > 3 else name for name in _MONTHS)
_DATES = (
    re.compile(r"\b(?P<year>\d{4})[-/.](?P<number>\d{1,2})[-/.](?P<day>\d{1,2})\b"),
    re.compile(
        rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<name>{_MONTH})\w*\.?,? (?P<year>\d{{4}})", re.IGNORECASE
    ),
    re.compile(rf"\b(?P<name>{_MONTH})\w*\.? (?P<day>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<year>\d{{4}})", re.IGNORECASE),
)
_UNKNOWN = re.compile(
    r"\b(?:unknown|unanswerable|not (?:known|mentioned|stated|specified|provided|given|in the notes|enough|available)"
    r"|no (?:information|mention|record|answer)|(?:do|does|did)(?: not|n't) (?:know|say|mention|state|contain)"
    r"|cannot (?:be )?(?:answer|determin|tell|know)\w*|can't (?:answer|tell|say)|isn't (?:known|mentioned))",
    re.IGNORECASE,
)
_LETTER = re.compile(
    r"^\W*(?:(?:the )?(?:(?:option|answer|choice)\W*(?:is\W*)?)+([a-z])\b|([a-z])(?=[.):,]|\W*$))", re.IGNORECASE
)
_OWN_LETTER = re.compile(r"\s*\(([a-z])\)", re.IGNORECASE)
_BOXED = re.compile(r"\(([a-z])\)", re.IGNORECASE)


def judge(question: Question, answer: str) -> dict[str, float]:
    """Return the strict and the lenient verdict, 1 or 0.

    Strict: the answer is the expected one, but for case, articles, punctuation and the form of dates and numbers.
    Lenient: the words of the expected answer stand in it, in their order.
    """
    if not question.answerable and not question.choices:
        verdict = float(says_unknown(answer))
        return {"strict": verdict, "lenient": verdict}
    expected = question.answer or ""
    if question.choices:
        verdict = float(choice(answer, question.choices) == _place(expected, question.choices))
        return {"strict": verdict, "lenient": verdict}
    wanted, given = normalise(expected), normalise(answer)
    return {"strict": float(bool(wanted) and wanted == given), "lenient": float(_stands_in(wanted, given))}


def says_unknown(answer: str) -> bool:
    """Tell whether *answer* says that there is no answer."""
    return not answer.strip() or _UNKNOWN.search(answer) is not None


def choice(answer: str, choices: Sequence[str]) -> int | None:
    """Return the place of the choice that *answer* names by its letter or its text; None if none, or several."""
    match = _LETTER.match(answer)
    letters = {letter.lower() for letter in _BOXED.findall(answer)} or {(match[1] or match[2]).lower() if match else ""}
    own = [match[1].lower() if (match := _OWN_LETTER.match(text)) else None for text in choices]
    named = [own[place] or letter for place, letter in enumerate(ascii_lowercase[: len(choices)])]
    if len(letters) == 1 and (only := letters.pop()) in named:
        return named.index(only)
    given = normalise(answer)
    places = [place for place, text in enumerate(choices) if _stands_in(normalise(_OWN_LETTER.sub("", text)), given)]
    return places[0] if len(places) == 1 else None


def starts_with_letter(text: str) -> bool:
    """Tell whether a choice has its letter in its text, as in "(a) tea"."""
    return _OWN_LETTER.match(text) is not None


def normalise(text: str) -> list[str]:
    """Return the words of *text*: folded, without articles; dates as ISO 8601, number words as figures."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    folded = _THOUSANDS.sub("", folded)
    for pattern in _DATES:
        folded = pattern.sub(lambda match: f" {_day(match) or match[0]} ", folded)
    tokens = re.findall(rf"\d{{4}}-\d\d-\d\d|{_TOKEN.pattern}", folded)
    return [_figure(_NUMBERS.get(token, token)) for token in tokens if token not in _ARTICLES]


def _day(match: re.Match[str]) -> str | None:
    parts = match.groupdict()
    month = parts.get("number")
    named = next((place for place, name in enumerate(_MONTHS, 1) if (parts.get("name") or "-").startswith(name[:3])), 0)
    try:
        return date(int(parts["year"]), int(month or named), int(parts["day"])).isoformat()
    except ValueError:
        return None


def _figure(token: str) -> str:
    """Return a number without leading zeros and without zeros behind the point."""
    return f"{float(token):g}" if re.fullmatch(r"\d+(?:\.\d+)?", token) and len(token) < 16 else token


def _stands_in(wanted: Sequence[str], given: Sequence[str]) -> bool:
    size = len(wanted)
    return size > 0 and any(given[place : place + size] == wanted for place in range(len(given) - size + 1))


def _place(expected: str, choices: Sequence[str]) -> int | None:
    """Return the place of the expected choice, which is given by its text or its letter."""
    return choices.index(expected) if expected in choices else choice(expected, choices)

"""Tell when two facts measure the same thing and the later one has another number: "90 commits", "now 110"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from typing import Any

from kg_memory.offline.lexicon import BE, STOP, VERB_FORMS
from kg_memory.offline.sameness import key, said, words_of
from kg_memory.text.dates import find_dates, parse_instant

_NUMBER = re.compile(
    r"(?<![A-Za-z0-9_.#/:–-])(?P<money>[$€£¥]\s?)?(?P<value>\d{1,3}(?:[,，]\d{3})+(?:\.\d+)?|"
    r"\d{1,9}(?:\.\d+)?)(?![\d.,]*\d|"
    r"[/:–-]\d|(?:st|nd|rd|th)\b)"
)
_UNIT = re.compile(
    r"\s?(?P<unit>%|percent|ms|milliseconds?|sec(?:ond)?s?|min(?:ute)?s?|hours?|hrs?|[kmgt]b|kg|km|dollars?|euros?|"
    r"pounds?)(?![\w])",
    re.IGNORECASE,
)
_NOUNS = re.compile(r"(?:[\s-][A-Za-z][A-Za-z'’]*){1,5}")
_PER = re.compile(
    r"\s?(?:/|per\s|an?\s|each\s|every\s)\s?(?P<per>second|minute|hour|day|week|month|year)\b", re.IGNORECASE
)
_CHINESE_UNIT = re.compile(r"\s?(?P<unit>[\u4e00-\u9fff])(?P<noun>[\u4e00-\u9fff]{0,4})")
_CLAUSE = re.compile(
    r"[,;.!?()–—](?=\s|$)(?! ?(?:which|that|who|now|for|of)\b)(?! (?:19|20)\d\d\b)|\s(?:but|so|because|and I|and we|"
    r"and it|while|although)(?=[\s'’])|[，；。！？\n]",
    re.IGNORECASE,
)
_GOES_ON = re.compile(
    r"[\s,]*(?:after|with|including|scoring|bringing|reaching|for|and (?:I|we)(?:'ve| have)(?: \w+ly|"
    r" now)* (?:reach|achiev|brought|got))",
    re.IGNORECASE,
)
_CHANGED = re.compile(
    r"\b(?:now|increas(?:ed|ing)|gr(?:own|ew)|r(?:ose|isen)|reach(?:ed|es|ing)|updated?|extended|moved|adjusted|raised|"
    r"lowered|dropped|fall(?:en)?|fell|decreased|reduced|improved|changed|shifted|postponed|pushed|bumped|rescheduled|"
    r"brought forward|went (?:up|down)|new(?= (?:\w+ ){0,2}(?:deadline|quota|limit|total|budget|date|price|rate|"
    r"score|cap)))\b|"
    r"现在|目前|如今|最新|增加到|增加至|增长到|升到|上升到|达到|提高到|降到|降至|减少到|改到|改成|改为|调整到|"
    r"调整为|延长到|延期到|推迟到|提前到|"
    r"更新为|更新到|涨到|变成",
    re.IGNORECASE,
)
"""Words before a number that say that it is so now."""
_WISHED = re.compile(
    r"\b(?:at least|at most|under|below|above|over|within|more than|less than|fewer than|goal|target(?:s|ing)?|"
    r"aim(?:s|ing)?|"
    r"trying to|need|if|estimat\w*|about to|achieve|by)(?:\s[\w'’]+){0,4}\s?[$€£¥]?$|"
    r"\b(?:want|would|'d|should|could|might|will|'ll|hop(?:e|ing)|plan(?:s|ning)? to)(?:\s[\w'’]+){0,12}\s?[$€£¥]?$|"
    r"(?:目标|至少|最多|超过|希望|打算|计划|如果|大约需要)[^，。]{0,8}$",
    re.IGNORECASE,
)
"""Words right before a number that make it no measure of what is."""
_LABEL = re.compile(
    r"(?:\b(?:version|step|chapter|question|page|line|port|room|level|phase|task|issue|day|week|sprint|problem|part|"
    r"number|no\.|"
    r"error|status|code|release|grade|unit|section|v)|(?<![.!?]\s)(?<!^)\b[A-Z][\w-]*|第)\s?$"
)
_DUE = re.compile(
    r"\b(?:deadline|due|launch|release|meeting|appointment|exam|interview|demo|review|flight|wedding|party|"
    r"presentation|"
    r"delivery|start date|end date|go-live)s?\b|截止|会议|考试|面试|发布|上线|交付|婚礼",
    re.IGNORECASE,
)
_TO_ANOTHER = re.compile(
    r"\s?(?:%|percent|[a-z]{1,7}|[\u4e00-\u9fff])?\s?(?:to|until|-|–|到|至)\s?[$€£¥]?\d", re.IGNORECASE
)
_TOTAL = re.compile(r"\b(?:total of|in total|altogether)\s$|(?:一共|总共|总计|共有?)\s?$", re.IGNORECASE)
_FROM = re.compile(r"(?:\bfrom|从|由)\s?[$€£¥]?[\d.,]+\s?(?:%|percent|[A-Za-z]{1,12}|[\u4e00-\u9fff])?", re.IGNORECASE)
_WHAT = frozenset(
    "accuracy score coverage rate latency response load quota limit budget price cost weight salary rent usage "
    "retention share "
    "discount mastery confidence size temperature speed distance height age income revenue traffic error "
    "success".split()
)
"""Nouns that a number with a unit measures; two clauses that have other ones of them speak of different things."""
_LIGHT = frozenset(
    "trying try make made want need sure help using use used project app now recently new current currently "
    "currently total reflect "
    "update updated increased improved reached adjusted extended changed after adding completed complete like know "
    "get got work "
    "working think understand problem number time".split()
)
_NEARLY_ALL = 0.6
"""How much of all their words two clauses must share, where nothing but a unit is told of the number; or else:"""
_SEVERAL, _HALF = 3, 0.5
"""How many words, and how much of the shorter clause."""

Fact = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Measure:
    """A number, or a date, with what it counts: `unit` or the words of `noun`.

    `topic` are the words of its clause, `context` also those of the clause that this one goes on about.
    """

    value: str
    unit: str
    noun: tuple[str, ...]
    per: str
    topic: frozenset[str]
    context: frozenset[str]
    changed: bool
    total: bool = False


def changed_number(later: Fact, earlier: Fact) -> str | None:
    """Return the number that *later* tells of what *earlier* gave another for, or ``None`` where it tells no change."""
    for new in (one for one in _measures(later) if one.changed):
        for old in _measures(earlier):
            about = _about(earlier, old) and _about(later, new)
            other = old.value != new.value and (not new.per or not old.per or new.per == old.per)
            if other and about and (_same_thing(new, old) or _same_total(new, old, later, earlier)):
                return new.value
    return None


def _same_total(new: _Measure, old: _Measure, later: Fact, earlier: Fact) -> bool:
    """Return whether *new* is the total of what both facts are about: "14 frames", "a total of 20 frames"."""
    if not new.total or not new.noun or not old.noun or new.noun[-1] != old.noun[-1]:
        return False
    shared = {key(one) for one in later["objects"]} & {key(one) for one in earlier["objects"]}
    return any(name.split()[-1:] == [new.noun[-1]] for name in shared)


def _about(fact: Fact, measure: _Measure) -> bool:
    """Return whether the objects of *fact* are of the clause of the number, and not of another of its sentence."""
    return any(not (words_of(name) | _topic(name)).isdisjoint(measure.context) for name in fact["objects"])


def _same_thing(new: _Measure, old: _Measure) -> bool:
    shared = new.context & old.context
    if not new.unit and not old.unit and new.noun and old.noun:
        return new.noun[-1] == old.noun[-1] and _alike(new, old, shared)
    if not new.unit and not new.noun and old.noun:
        # "The commits have now reached 110": the number stands alone.
        return old.noun[-1] in new.context and len(shared - {old.noun[-1]}) >= 1
    if not new.unit or new.unit != old.unit:
        return False
    ours, theirs = new.topic & _WHAT, old.topic & _WHAT
    if ours and theirs and ours.isdisjoint(theirs):
        return False
    same = new.topic & old.topic
    if same and len(same) >= _NEARLY_ALL * len(new.topic | old.topic):
        return True
    return len(shared) >= _SEVERAL and len(shared) >= _HALF * min(len(new.topic), len(old.topic))


def _alike(new: _Measure, old: _Measure, shared: frozenset[str]) -> bool:
    """Return whether two that count the same noun count the same kind of it: not "chess" and "card games"."""
    ours, theirs = set(new.noun[:-1]), set(old.noun[:-1])
    if ours and theirs:
        return ours == theirs
    if ours or theirs:
        return (ours | theirs) <= (old.context if ours else new.context)
    return len(shared - {new.noun[-1]}) >= 2 or (bool(new.per) and new.per == old.per)


def _measures(fact: Fact) -> Iterator[_Measure]:
    """Yield the measures of *fact*, of "from 60 to 80" the second."""
    words = said(fact).replace("’", "'")
    cuts = [0, *(cut.end() for cut in _CLAUSE.finditer(words)), len(words)]
    before: frozenset[str] = frozenset()
    for start, end in pairwise(cuts):
        clause = words[start:end]
        # "After solving 6 riddles" and "and I've reached 52%" go on about the clause before.
        context = _topic(clause) | (before if _GOES_ON.match(clause) else frozenset())
        found = [*_dates(clause, fact), *(_measure(clause, match) for match in _NUMBER.finditer(clause))]
        yield from (replace(one, context=context) for one in found if one is not None)
        before = context


def _measure(clause: str, match: re.Match[str]) -> _Measure | None:
    before, after = clause[: match.start()], clause[match.end() :]
    if _LABEL.search(before) or _WISHED.search(before) or _TO_ANOTHER.match(after):
        return None
    unit, noun, rest = _counted(match, after)
    if not unit and not noun and re.fullmatch(r"(?:19|20)\d\d", match["value"]):
        return None
    per = _PER.match(rest)
    each = per["per"].casefold() if per else _every(clause)
    value = re.sub("[,，]", "", match["value"])
    topic, total = _topic(clause), _TOTAL.search(before) is not None
    return _Measure(value, unit, noun, each, topic, topic, _is_changed(before), total)


def _is_changed(before: str) -> bool:
    """Return whether a word for a change comes before a number, and no other number but what it was before."""
    marks = list(_CHANGED.finditer(before))
    between = before[marks[-1].end() :] if marks else ""
    return bool(marks) and re.search(r"\d", _FROM.sub(" ", between)) is None


def _counted(match: re.Match[str], after: str) -> tuple[str, tuple[str, ...], str]:
    """Return the unit or the noun that a number counts, and what comes after."""
    if match["money"]:
        return match["money"].strip(), (), after
    unit = _UNIT.match(after)
    if unit is not None:
        return _UNITS.get(unit["unit"].casefold(), unit["unit"].casefold().rstrip("s")), (), after[unit.end() :]
    han = _CHINESE_UNIT.match(after)
    if han is not None:
        return han["unit"], (), after[han.end() :]
    nouns = _NOUNS.match(after)
    if nouns is None:
        return "", (), after
    written = [one for one in re.split(r"[\s-]", nouns[0]) if one]
    kept = list(takewhile(_is_noun, written))
    found = [next(iter(words_of(one)), "") for one in kept]
    place = nouns[0].find(kept[-1]) + len(kept[-1]) if kept else 0
    return "", tuple(one for one in found if one), after[place:]


def _is_noun(word: str) -> bool:
    low = word.casefold()
    return low not in STOP and low not in BE and not (low in VERB_FORMS and low.endswith(("ed", "ing")))


def _every(clause: str) -> str:
    for word, per in (
        ("daily", "day"),
        ("weekly", "week"),
        ("monthly", "month"),
        ("hourly", "hour"),
        ("yearly", "year"),
    ):
        if word in clause.casefold():
            return per
    return ""


def _dates(clause: str, fact: Fact) -> Iterator[_Measure]:
    """Yield the day on which something is due."""
    due, at = _DUE.search(clause), parse_instant(fact.get("said_at"))
    if due is None or at is None:
        return
    for one in find_dates(clause, at):
        if one.interval.precision == "day" and one.interval.start is not None:
            changed = _is_changed(clause[: one.start])
            day = f"{one.interval.start:%Y-%m-%d}"
            topic = _topic(clause[: one.start] + clause[one.end :])
            yield _Measure(day, f"date of {due[0].casefold()}", (), "", topic, topic, changed)


def _topic(clause: str) -> frozenset[str]:
    """Return the words of *clause* that tell what is measured; of Chinese ones, each two characters."""
    han = "".join(re.findall(r"[\u4e00-\u9fff]+", _CHANGED.sub(" ", clause)))
    pairs = {han[place : place + 2] for place in range(len(han) - 1)}
    words = {
        one for one in words_of(_PER.sub(" ", clause)) if not re.search(r"\d|[\u4e00-\u9fff]", one) and len(one) > 2
    }
    return frozenset((words | pairs) - _LIGHT)


_UNITS = {
    "percent": "%", "milliseconds": "ms", "millisecond": "ms", "secs": "second", "sec": "second", "mins": "minute",
    "min": "minute", "hrs": "hour", "hr": "hour", "ms": "ms",
}  # fmt: skip

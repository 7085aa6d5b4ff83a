"""Compare the words of two facts: whether one denies the other, and whether the later one gives a new number."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, pairwise, takewhile
from typing import Any

from kg_memory.contrib.offline.clauses import NEVER
from kg_memory.contrib.offline.facts import name_key
from kg_memory.contrib.offline.lexicon import BE, STOP, VERB_FORMS, content_words
from kg_memory.temporal.interval import parse_instant, parse_period
from kg_memory.text.dates import find_dates

_DENIAL = re.compile(
    r"\b(?:I|we|he|she|they)(?:['’]ve|['’]s| have| has| had| did)? (?:\w+ly )?never (?:\w+ly |"
    r"ever )?(?P<what>[^,;:.!?()–—]+)|"
    r"(?:从来没有?|从没有?|从未|从来不|未曾|压根没有?|根本没有?)(?P<chinese>[^，,；;。！!？?]+)",
    re.IGNORECASE,
)
_PARTS = re.compile(r"\b(?:or|and|nor|but|so|before|because|since)\b|或者?|和|[、，]", re.IGNORECASE)
_DEED = re.compile(
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
_LIGHT_OF_DENIAL = frozenset(
    "any ever project app application thing feature work done use used using completed complete tried worked before "
    "related involving regarding concerning about kind type time lot actual one".split()
)
_FEWEST = 2
"""The fewest words of a denied thing."""
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
"""Words before a number that is new."""
_WISHED = re.compile(
    r"\b(?:at least|at most|under|below|above|over|within|more than|less than|fewer than|goal|target(?:s|ing)?|"
    r"aim(?:s|ing)?|"
    r"trying to|need|if|estimat\w*|about to|achieve|by)(?:\s[\w'’]+){0,4}\s?[$€£¥]?$|"
    r"\b(?:want|would|'d|should|could|might|will|'ll|hop(?:e|ing)|plan(?:s|ning)? to)(?:\s[\w'’]+){0,12}\s?[$€£¥]?$|"
    r"(?:目标|至少|最多|超过|希望|打算|计划|如果|大约需要)[^，。]{0,8}$",
    re.IGNORECASE,
)
"""Words right before a number that is wished for or estimated."""
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
_MEASURED_NOUNS = frozenset(
    "accuracy score coverage rate latency response load quota limit budget price cost weight salary rent usage "
    "retention share "
    "discount mastery confidence size temperature speed distance height age income revenue traffic error "
    "success".split()
)
"""Nouns that a number with a unit measures; clauses with different ones measure different things."""
_LIGHT_OF_TOPIC = frozenset(
    "trying try make made want need sure help using use used project app now recently new current currently "
    "currently total reflect "
    "update updated increased improved reached adjusted extended changed after adding completed complete like know "
    "get got work "
    "working think understand problem number time".split()
)
_NEARLY_ALL = 0.6
"""The share of all their words that two clauses must have in common if the numbers have only a unit; or else:"""
_SEVERAL, _HALF = 3, 0.5
"""This many words, and this share of the shorter clause."""
_EVERY = {"daily": "day", "weekly": "week", "monthly": "month", "hourly": "hour", "yearly": "year"}
_UNITS = {
    "percent": "%",
    "milliseconds": "ms",
    "millisecond": "ms",
    "secs": "second",
    "sec": "second",
    "mins": "minute",
    "min": "minute",
    "hrs": "hour",
    "hr": "hour",
    "ms": "ms",
}


@dataclass(frozen=True, slots=True)
class JudgedFact:
    """A fact of the prompt `judge`, its times as instants in ISO 8601."""

    subject: str
    predicate: str
    objects: tuple[str, ...]
    sentence: str
    said_at: str | None
    valid_at: str | None
    invalid_at: str | None
    one_at_a_time: bool
    quote: str = ""

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> JudgedFact:
        """Return the fact that a prompt shows as *fields*."""
        return cls(
            fields["subject"],
            fields["predicate"],
            tuple(fields["objects"]),
            fields["sentence"],
            fields.get("said_at"),
            _first_instant(fields.get("valid_at")),
            _first_instant(fields.get("invalid_at")),
            bool(fields.get("one_at_a_time")),
            fields.get("quote") or "",
        )

    @property
    def words(self) -> str:
        """The words that state it; the sentence without its speaker where those are not known."""
        return self.quote or re.split(": |：", self.sentence, maxsplit=1)[-1]

    @property
    def object_keys(self) -> set[str]:
        """The names of the objects as `name_key` writes them."""
        return {name_key(name) for name in self.objects}


def _first_instant(text: str | None) -> str | None:
    """Return when the period begins that *text* names: "2024-05" is the first of May."""
    period = parse_period(text)
    return period.start.isoformat() if period and period.start else None


# Denials.


def denies(denial: JudgedFact, fact: JudgedFact) -> bool:
    """Return whether *denial* says that *fact* was never so."""
    if not denial.predicate.startswith(NEVER) or fact.predicate.startswith((NEVER, "PLANS", "WANTS", "NOT_")):
        return False
    if denial.predicate.removeprefix(NEVER) == fact.predicate and denial.object_keys & fact.object_keys:
        return True
    denied = [thing for thing in _things_denied(denial.words) if len(thing) >= _FEWEST]
    for clause in _CLAUSES.split(fact.words.replace("’", "'")):
        if not _DEED.search(clause) or _NOT_DONE.search(clause):
            continue
        words = content_words(clause)
        # Only a clause with an object of the fact states that fact.
        states_it = any(not content_words(name).isdisjoint(words) for name in fact.objects)
        if states_it and any(thing <= words for thing in denied):
            return True
    return False


def _things_denied(words: str) -> Iterator[frozenset[str]]:
    """Yield the content words of each thing that *words* deny, without the verb."""
    for match in _DENIAL.finditer(words):
        if _DOUBTED.search(words[: match.start()]):
            continue
        what = match["what"] or match["chinese"]
        verb = content_words(what.split(" ", 1)[0]) if match["what"] else frozenset()
        first, *further = _PARTS.split(what)
        yield content_words(first) - _LIGHT_OF_DENIAL - verb
        yield from (content_words(part) - _LIGHT_OF_DENIAL for part in further)


# Numbers.


@dataclass(frozen=True, slots=True)
class _Measure:
    """A number or a date, and its `unit` or the words of the `noun` that it counts.

    `topic` has the words of its clause, `context` also those of the clause that this one continues.
    """

    value: str
    unit: str
    noun: tuple[str, ...]
    per: str
    topic: frozenset[str]
    context: frozenset[str]
    changed: bool
    total: bool = False


def find_new_number(later: JudgedFact, earlier: JudgedFact) -> str | None:
    """Return the number in *later* that replaces one in *earlier*, if any."""
    for new in _measures(later):
        if not (new.changed and _is_of_objects(later, new)):
            continue
        for old in _measures(earlier):
            differs = old.value != new.value and (not new.per or not old.per or new.per == old.per)
            if not (differs and _is_of_objects(earlier, old)):
                continue
            if _measures_same(new, old) or _is_same_total(new, old, later.object_keys & earlier.object_keys):
                return new.value
    return None


def _is_same_total(new: _Measure, old: _Measure, shared: set[str]) -> bool:
    """Return whether *new* is the total of an object that both facts *share*: "14 frames", "a total of 20 frames"."""
    if not new.total or not new.noun or not old.noun or new.noun[-1] != old.noun[-1]:
        return False
    return any(name.split()[-1:] == [new.noun[-1]] for name in shared)


def _is_of_objects(fact: JudgedFact, measure: _Measure) -> bool:
    """Return whether the clause of the number mentions an object of *fact*."""
    return any(not (content_words(name) | _topic(name)).isdisjoint(measure.context) for name in fact.objects)


def _measures_same(new: _Measure, old: _Measure) -> bool:
    shared = new.context & old.context
    if not new.unit and not old.unit and new.noun and old.noun:
        return new.noun[-1] == old.noun[-1] and _alike(new, old, shared)
    if not new.unit and not new.noun and old.noun:
        # "The commits have now reached 110": the number stands alone.
        return old.noun[-1] in new.context and len(shared - {old.noun[-1]}) >= 1
    if not new.unit or new.unit != old.unit:
        return False
    ours, theirs = new.topic & _MEASURED_NOUNS, old.topic & _MEASURED_NOUNS
    if ours and theirs and ours.isdisjoint(theirs):
        return False
    same = new.topic & old.topic
    if same and len(same) >= _NEARLY_ALL * len(new.topic | old.topic):
        return True
    return len(shared) >= _SEVERAL and len(shared) >= _HALF * min(len(new.topic), len(old.topic))


def _alike(new: _Measure, old: _Measure, shared: frozenset[str]) -> bool:
    """Return whether two counts of the same noun count the same kind of it: not "chess" and "card games"."""
    ours, theirs = set(new.noun[:-1]), set(old.noun[:-1])
    if ours and theirs:
        return ours == theirs
    if ours or theirs:
        return (ours | theirs) <= (old.context if ours else new.context)
    return len(shared - {new.noun[-1]}) >= 2 or (bool(new.per) and new.per == old.per)


def _measures(fact: JudgedFact) -> Iterator[_Measure]:
    """Yield the measures of *fact*; of "from 60 to 80" the second."""
    words = fact.words.replace("’", "'")
    cuts = [0, *(cut.end() for cut in _CLAUSE.finditer(words)), len(words)]
    before: frozenset[str] = frozenset()
    for start, end in pairwise(cuts):
        clause = words[start:end]
        # "After solving 6 riddles" and "and I've reached 52%" continue the clause before.
        context = _topic(clause) | (before if _GOES_ON.match(clause) else frozenset())
        for measure in (*_due_dates(clause, fact), *_numbers(clause)):
            yield replace(measure, context=context)
        before = context


def _numbers(clause: str) -> Iterator[_Measure]:
    for match in _NUMBER.finditer(clause):
        before, after = clause[: match.start()], clause[match.end() :]
        if _LABEL.search(before) or _WISHED.search(before) or _TO_ANOTHER.match(after):
            continue
        unit, noun, rest = _unit_or_noun(match, after)
        if not unit and not noun and re.fullmatch(r"(?:19|20)\d\d", match["value"]):
            continue
        per = _PER.match(rest)
        period = per["per"].casefold() if per else _every(clause)
        value = re.sub("[,，]", "", match["value"])
        topic, total = _topic(clause), _TOTAL.search(before) is not None
        yield _Measure(value, unit, noun, period, topic, topic, _is_changed(before), total)


def _is_changed(before: str) -> bool:
    """Return whether a word for a change precedes a number, without another number between but the old one."""
    marks = list(_CHANGED.finditer(before))
    between = before[marks[-1].end() :] if marks else ""
    return bool(marks) and re.search(r"\d", _FROM.sub(" ", between)) is None


def _unit_or_noun(match: re.Match[str], after: str) -> tuple[str, tuple[str, ...], str]:
    """Return the unit or the noun that a number counts, and the text after it."""
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
    words = list(takewhile(_is_noun, filter(None, re.split(r"[\s-]", nouns[0]))))
    noun = chain.from_iterable(map(content_words, words))
    place = nouns[0].find(words[-1]) + len(words[-1]) if words else 0
    return "", tuple(noun), after[place:]


def _is_noun(word: str) -> bool:
    low = word.casefold()
    return low not in STOP and low not in BE and not (low in VERB_FORMS and low.endswith(("ed", "ing")))


def _every(clause: str) -> str:
    low = clause.casefold()
    return next((per for word, per in _EVERY.items() if word in low), "")


def _due_dates(clause: str, fact: JudgedFact) -> Iterator[_Measure]:
    """Yield the days on which something is due."""
    due, at = _DUE.search(clause), parse_instant(fact.said_at)
    if due is None or at is None:
        return
    for date in find_dates(clause, at):
        if date.interval.precision == "day" and date.interval.start is not None:
            changed = _is_changed(clause[: date.start])
            day = f"{date.interval.start:%Y-%m-%d}"
            topic = _topic(clause[: date.start] + clause[date.end :])
            yield _Measure(day, f"date of {due[0].casefold()}", (), "", topic, topic, changed)


def _topic(clause: str) -> frozenset[str]:
    """Return the words of *clause* that describe what is measured; for Chinese, each pair of characters."""
    han = "".join(re.findall(r"[\u4e00-\u9fff]+", _CHANGED.sub(" ", clause)))
    pairs = {han[place : place + 2] for place in range(len(han) - 1)}
    content = content_words(_PER.sub(" ", clause))
    words = {word for word in content if len(word) > 2 and not re.search(r"\d|[\u4e00-\u9fff]", word)}
    return frozenset((words | pairs) - _LIGHT_OF_TOPIC)

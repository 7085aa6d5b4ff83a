"""Find the events that a question uses as a time: "before she moved to Oslo", 在腾讯工作的时候."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Literal

Relation = Literal["before", "after", "since", "while"]
Edge = Literal["start", "end"]


@dataclass(frozen=True, slots=True)
class EventTime:
    """A time relative to the period of a fact: before, after or since one *edge* of it, or while it holds.

    *subject* and *object* are the words of the question, pronouns included; ``None`` where it has none.
    """

    relation: Relation
    predicate: str
    edge: Edge
    subject: str | None
    object: str | None


@dataclass(frozen=True, slots=True)
class EventMention:
    """The characters ``text[start:end]`` and the event that they name."""

    start: int
    end: int
    event: EventTime


Row = tuple[str, Edge | None, str]
"""A predicate, the edge of its period that the words name (``None``: the whole period), and their pattern."""

_RELATIONS: dict[str, Relation] = {
    "before": "before",
    "until": "before",
    "till": "before",
    "prior to": "before",
    "after": "after",
    "since": "since",
    "while": "while",
    "whilst": "while",
    "when": "while",
    "during": "while",
}
_CONJUNCTION = re.compile(
    r"\b(?P<word>before|until|till|prior\sto|after|since|while|whilst|when|during)\s", re.IGNORECASE
)
_AUXILIARY = (
    r"(?:(?:had|has|have|was|were|is|are|am|been|being|first|finally|eventually|just|still|ever|originally|used\sto|"
    r"actually|recently|last|later|both|all|already)\s){0,3}"
)
_SUBJECT = rf"(?:(?P<subject>[\w'.-]{{1,30}}(?:\s[\w'.-]{{1,30}}){{0,2}}?)\s{_AUXILIARY})?"
_NO_SUBJECT = re.compile(
    r"(?:it|this|that|these|those|which|what|who|whom|there|being|having|and|or|not|never)\b|.*\b(?:not|never|n't)$|.*n't\b",
    re.IGNORECASE,
)
_NO_NAME = (
    r"(?!(?:an?|the|her|his|my|our|their|your|its|this|that|these|those|some|any|another|new|old|in|on|at|to|from|with|"
    r"by|for|of|and|or|it|him|them|me|us|last|next|there|here|again|once|both|as|all|full|part|home|work|together|one|"
    r"two|three|january|february|march|april|june|july|august|september|october|november|december|monday|tuesday|"
    r"wednesday|thursday|friday|saturday|sunday|today|tomorrow|yesterday|did|does|do|was|were|what|where|who|how|which)\b)"
)
_CAPITAL = (
    r"(?-i:(?:[Tt]he\s)?(?!(?:January|February|March|April|May|June|July|August|September|October|November|December|Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday|I)\b)"
    r"[A-Z][\w&'.+#-]{0,30}(?:\s(?:(?:of|de|la|and|&)\s)?[A-Z0-9][\w&'.+#-]{0,30}){0,4})"
)
_OWN = r"(?:a|an|the|her|his|my|our|their|your)"
_JOB = rf"{_OWN}\s(?:(?:new|old|first|last|previous|current|own)\s)?(?:job|position|role|company|firm|work)\b"
_SCHOOL = r"(?:(?:high|middle|grad|graduate|medical|law|art)\s)?(?:school|college|university|uni)\b"
_THEN = (
    r"(?=\s*$|\s*[,.?!;:)]|\s(?:(?:in|on)\s(?:\d|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)|last|because|and|did|do|"
    r"does|was|were|is|has|had|what|where|who|which|how|there|here|again|house|home)\b)"
)


_ANY_NAME = rf"(?:{_CAPITAL}|{_NO_NAME}(?!\d)[\w&'+#.-]{{2,40}})"
_SLOTS = {"CAPITAL": _CAPITAL, "NAME": _ANY_NAME, "THEN": _THEN, "JOB": _JOB, "SCHOOL": _SCHOOL, "OWN": _OWN}
_SLOT = re.compile("|".join(_SLOTS))


def _fill(words: str, slots: dict[str, str]) -> str:
    """Replace the slots in *words* by their patterns; names become the groups `object1`, `object2`."""
    numbers = count(1)

    def fill(match: re.Match[str]) -> str:
        pattern = slots[match[0]]
        return f"(?P<object{next(numbers)}>{pattern})" if match[0] in ("NAME", "CAPITAL") else pattern

    return _SLOT.sub(fill, words)


def _row(predicate: str, edge: Edge | None, words: str) -> Row:
    return predicate, edge, rf"(?i){_SUBJECT}(?P<verb>{_fill(words, _SLOTS)})"


_ROWS: tuple[Row, ...] = (
    _row("LIVES_IN", "end", r"mov(?:ed|ing)(?:\s(?:away|out|back))?\s(?:from|of)\sNAME"),
    _row("LIVES_IN", "end", r"mov(?:ed|ing)\s(?:away|out)THEN"),
    _row(
        "LIVES_IN",
        "start",
        r"(?:(?:mov|relocat|emigrat|migrat)(?:ed|ing)(?:\s(?:back|over|out|down|up|abroad))?\s(?:to|into)|"
        r"settl(?:ed|ing)(?:\sdown)?\sin)\sNAME(?!\s(?:apartment|flat|house)\b)",
    ),
    _row("LIVES_IN", "start", r"(?:mov|relocat|emigrat)(?:ed|ing)(?:\s(?:here|there|abroad))?THEN"),
    _row("LIVES_IN", None, r"(?:lived?|living|resided|residing|based)\s(?:(?:alone|together|back|abroad)\s)?in\sNAME"),
    _row("STUDIES_AT", "end", r"graduat(?:ed|ing)(?:\sfrom\s(?:SCHOOL|NAME)|THEN)"),
    _row("STUDIES_AT", "end", r"dropp(?:ed|ing)\sout(?:\sof\s(?:SCHOOL|NAME)|THEN)"),
    _row(
        "STUDIES_AT",
        "end",
        r"(?:left|leaving|quit|finish(?:ed|ing)|complet(?:ed|ing))\s(?:OWN\s(?:studies|degree|phd)|SCHOOL)",
    ),
    _row(
        "STUDIES_AT",
        "start",
        r"(?:start(?:ed|ing)|began|beginning|enter(?:ed|ing))\s(?:SCHOOL|OWN\sstudies|studying)(?:\sat\sNAME|THEN)",
    ),
    _row("STUDIES_AT", "start", r"enroll?(?:ed|ing)\s(?:at|in)\sCAPITAL"),
    _row("STUDIES_AT", None, r"stud(?:y|ied|ying)\s(?:\w+\s){0,2}?at\sNAME"),
    _row("STUDIES_AT", None, r"(?:was|were|being)\s(?:a\sstudent\sat\sNAME|(?:a\sstudent|(?:in|at)\sSCHOOL)THEN)"),
    _row("STUDIES_AT", None, r"(?:went\sto|going\sto|attended|attending)\sSCHOOL"),
    _row("WORKS_AT", "start", r"join(?:ed|ing)\sCAPITAL"),
    _row("WORKS_AT", "start", r"(?:start(?:ed|ing)|began|beginning)\s(?:to\swork\s|work(?:ing)?\s)?(?:at|for)\sNAME"),
    _row("WORKS_AT", "start", r"(?:got\s|getting\s|being\s)?hired\s(?:by|at)\sNAME"),
    _row(
        "WORKS_AT",
        "start",
        r"(?:got|getting|land(?:ed|ing)|took|taking|start(?:ed|ing)|began|accept(?:ed|ing))\sJOB\s(?:at|with|for)\sNAME",
    ),
    _row("WORKS_AT", "end", r"(?:left|leaving|quit|quitting)\s(?:CAPITAL|JOB(?:\s(?:at|with)\sNAME|THEN))"),
    _row(
        "WORKS_AT",
        "end",
        r"(?:(?:got\s|getting\s|being\s)?(?:fired|laid\soff|let\sgo)|resign(?:ed|ing)|retir(?:ed|ing))"
        r"(?:\s(?:from|by)\sNAME|THEN)",
    ),
    _row("WORKS_AT", "end", r"(?:lost|losing)\sJOB(?:\s(?:at|with)\sNAME|THEN)"),
    _row("WORKS_AT", "end", r"stopp(?:ed|ing)\s(?:working|work)\s(?:at|for)\sNAME"),
    _row("WORKS_AT", None, r"(?:work(?:ed|ing)?|intern(?:ed|ing)|employed)\s(?:\w+\s)?(?:at|for|by)\sNAME"),
    _row("WORKS_AT", None, r"(?:was|were|being)\s(?:working\s)?at\sCAPITAL"),
    _row("WORKS_AS", None, r"work(?:ed|ing)\sas\s(?:an?\s)?NAME"),
    _row("IS_MARRIED_TO", None, r"(?:was|were|being|been)\smarried(?:\sto\sNAME|THEN)"),
    _row("IS_MARRIED_TO", "start", r"(?:got|getting)\smarried(?:\sto\sNAME|THEN)"),
    _row("IS_MARRIED_TO", "start", r"marr(?:ied|ying)(?:\sNAME|THEN)"),
    _row("IS_MARRIED_TO", "end", r"(?:got\s|getting\s)?divorc(?:ed|ing)(?:(?:\sfrom)?\sNAME|THEN)"),
    _row("IS_MARRIED_TO", "end", r"separat(?:ed|ing)\sfrom\sNAME"),
    _row("IS_IN_RELATIONSHIP_WITH", "end", r"(?:broke|breaking|split|splitting)\sup\swith\sNAME"),
    _row("IS_IN_RELATIONSHIP_WITH", "start", r"(?:start(?:ed|ing)|began|beginning)\s(?:dating|seeing)\sNAME"),
    _row("IS_IN_RELATIONSHIP_WITH", None, r"dat(?:ed|ing)\sNAME"),
    _row("USES", "start", r"(?:start(?:ed|ing)|began|beginning)\s(?:using|to\suse)\sNAME"),
    _row("USES", "start", r"(?:switch|migrat|chang)(?:ed|ing)\s(?:over\s)?(?:from\s[\w+#.-]{1,40}\s)?to\sNAME"),
    _row("USES", "end", r"(?:(?:stopp(?:ed|ing)|quit)\susing|switch(?:ed|ing)\s(?:away\s)?from)\sNAME"),
    # Not "when using X": that asks how to, not when it was.
    _row("USES", None, r"used\sNAME"),
)


_OWNER = r"(?:(?P<subject>her|his|my|our|their|your|the|[\w.-]{1,30}(?:\s[\w.-]{1,30})?'s)\s)"


def _noun(predicate: str, edge: Edge | None, words: str) -> Row:
    return predicate, edge, rf"(?i){_OWNER}(?P<verb>{_fill(words, _SLOTS)})"


_NOUNS: tuple[Row, ...] = (
    _noun("LIVES_IN", "end", r"(?:move|relocation)\s(?:away\s)?from\sNAME"),
    _noun("LIVES_IN", "start", r"(?:move|relocation)(?:\sto\sNAME|THEN)"),
    _noun("LIVES_IN", None, r"(?:time|years)\sin\sNAME"),
    _noun("STUDIES_AT", "end", r"graduation(?:\sfrom\sNAME|THEN)"),
    _noun("STUDIES_AT", None, r"studies\sat\sNAME"),
    _noun("WORKS_AT", None, r"(?:time|years|stint|tenure|career|job|internship)\s(?:at|with)\sNAME"),
    _noun("IS_MARRIED_TO", "end", r"divorce(?:\sfrom\sNAME|THEN)"),
    _noun("IS_MARRIED_TO", "start", r"wedding(?:\s(?:to|with)\sNAME|THEN)"),
    _noun("IS_MARRIED_TO", None, r"marriage(?:\s(?:to|with)\sNAME|THEN)"),
)
_GRADUATION = re.compile(rf"graduation{_THEN}", re.IGNORECASE)
_LEARNING = re.compile(r"\b(?:university|college|school|academy|institute|mit)\b", re.IGNORECASE)

_VERBS: dict[str, str] = {
    r"\b(?:lived?|living|resid(?:e|ed|ing)|based|home)\b|居?住": "LIVES_IN",
    r"\b(?:work(?:ed|ing)?|job|employ(?:ed|er)|boss)\b|工作|上班|任职|就职": "WORKS_AT",
    r"\b(?:stud(?:y|ied|ying)|school|university|college)\b|读书|上学|就读": "STUDIES_AT",
}
"""The verbs that stand for the predicates of events, in questions that name none but its place."""
_FORMER = re.compile(
    r"\b(?:before(?:\s(?:that|this|then|now))?(?=\s*[?.!]*\s*$)|previously|formerly|used?\sto(?=\s(?:live|reside|work|study)\b))\b|"
    r"(?<![了天年月周日久])(?:以前|之前|从前|原来|原先|曾经)(?=[^，,。？?]{0,6}(?:居?住|工作|上班|任职|就职|读书|上学|就读))",
    re.IGNORECASE,
)

_CHINESE_SLOTS = {"NAME": r"(?:[A-Za-z][\w .&+#-]{0,30}?|[\u4e00-\u9fffA-Za-z0-9·]{1,12}?)"}
_MARKED: dict[Relation, tuple[str, ...]] = {
    "before": ("之前", "以前", "前"),
    "after": ("之后", "以后", "后"),
    "since": ("之后到现在", "以来", "至今"),
    "while": ("的时候", "时", "期间", "那时候", "那段时间", "的那段时间", "的那几年"),
}
_MARKERS = {marker: relation for relation, markers in _MARKED.items() for marker in markers}
_MARKER = (
    r"(?P<marker>之后到现在|之前|以前|前(?![往面台端辈夫妻任途男女景后])|之后|以后|以来|至今|后(?![来面台端悔果天年])|的时候|时(?![候间代常刻区装])|"
    r"期间|那时候|的?那段时间|的那几年)"
)
_PRONOUN = r"(?:我们|你们|他们|她们|我|你|您|他|她)"
_WHO = (
    rf"(?:(?P<subject>{_PRONOUN}|(?:(?<=^)|(?<=[，,。？?、 ]))(?:[\u4e00-\u9fff]{{2,3}}|[A-Za-z][\w.-]{{0,20}}\s?))"
    r"(?:刚|最初|当初|还没有?|没有?|还|自从|曾经?|一直)?)?"
)


def _chinese(predicate: str, edge: Edge | None, words: str) -> Row:
    return predicate, edge, _WHO + rf"(?P<verb>{_fill(words, _CHINESE_SLOTS)})了?{_MARKER}"


_CHINESE: tuple[Row, ...] = (
    _chinese("LIVES_IN", "end", r"从NAME(?:搬走|搬出来?|搬离)|搬离NAME|搬走"),
    _chinese("LIVES_IN", "start", r"搬家?(?:到|去|来|进|回)了?NAME|移居到?NAME|定居(?:在|到)?NAME|搬家"),
    _chinese("LIVES_IN", None, r"居?住在NAME|在NAME(?:居住|生活|住)"),
    _chinese("STUDIES_AT", "end", r"(?:从NAME|在NAME)?(?:大学|高中)?(?:毕业|退学)"),
    _chinese("STUDIES_AT", "start", r"考[上入]了?NAME|入学"),
    _chinese("STUDIES_AT", None, r"在NAME(?:读书|上学|读研|读博|留学|念书)|就读于NAME|[上读](?:大学|高中|初中|小学)"),
    _chinese("WORKS_AT", "start", r"加入了?NAME|入职(?:NAME)?|跳槽(?:到|去)了?NAME|(?:开始在|去)NAME(?:工作|上班)"),
    _chinese("WORKS_AT", "end", r"从NAME(?:离职|辞职|退休)|离开了?NAME|离职|辞职|退休|被(?:解雇|裁员?|开除)"),
    _chinese("WORKS_AT", None, r"在NAME(?:工作|上班|任职|实习)|[就任]职于NAME"),
    _chinese("IS_MARRIED_TO", "start", r"[和跟与]NAME结婚|嫁给了?NAME|娶了?NAME|结婚"),
    _chinese("IS_MARRIED_TO", "end", r"[和跟与]NAME离婚|离婚"),
    _chinese("IS_IN_RELATIONSHIP_WITH", "end", r"[和跟与]NAME分手|分手"),
    _chinese("USES", "start", r"开始使?用NAME|(?:换|改|切换)(?:成|到|用)了?NAME"),
    _chinese("USES", "end", r"(?:停止使用|停用|不再使?用)NAME"),
    _chinese("USES", None, r"(?<![停不再])使用NAME"),
)


_compile = cache(re.compile)
"""Compile a pattern when it is first needed: all of them take a fifth of a second, too long for an import."""


def find_events(text: str) -> list[EventMention]:
    """Return the events that *text* uses as a time, in order, without overlaps."""
    english = [_english_event(text, match) or _bare_event(text, match) for match in _CONJUNCTION.finditer(text)]
    mentions = [*filter(None, english), *_chinese_events(text), *_former_times(text)]
    kept: list[EventMention] = []
    for mention in sorted(mentions, key=lambda mention: (mention.start, -mention.end)):
        if not kept or kept[-1].end <= mention.start:
            kept.append(mention)
    return kept


def _english_event(text: str, conjunction: re.Match[str]) -> EventMention | None:
    word, start = " ".join(conjunction["word"].casefold().split()), conjunction.start()
    relation = _RELATIONS[word]
    if relation in ("before", "after", "since") and (alone := _GRADUATION.match(text, conjunction.end())):
        return EventMention(start, alone.end(), EventTime(relation, "STUDIES_AT", "end", None, None))
    rows = _NOUNS if word == "during" else _ROWS if relation == "while" else _ROWS + _NOUNS
    for predicate, edge, pattern in rows:
        match = _compile(pattern).match(text, conjunction.end())
        if match is not None and _has_actor(match):
            event = _event(relation, predicate, edge, match)
            return EventMention(start, match.end(), event) if event else None
    return None


def _bare_event(text: str, conjunction: re.Match[str]) -> EventMention | None:
    """Return the event that is only named, as in "Where did Ann live before Oslo?"; the verb before it tells of what.

    Without any verb it may be a job as well as a home: the graph tells.
    """
    relation = _RELATIONS[" ".join(conjunction["word"].casefold().split())]
    match = _compile(rf"{_CAPITAL}(?=\s*[?,.!]*\s*$)").match(text, conjunction.end())
    if match is None or relation not in ("before", "after"):
        return None
    predicate = _verb_before(text[: conjunction.start()])
    if predicate is None:
        return None
    edge: Edge = "start" if relation == "before" else "end"
    return EventMention(conjunction.start(), match.end(), EventTime(relation, predicate, edge, None, match[0]))


def _verb_before(text: str) -> str | None:
    """Return the predicate that the verb of *text* stands for; of a text that asks nothing, a job or a home."""
    if not re.search(r"\w", re.sub(r"^\s*(?:and|what about|how about)\b", "", text, flags=re.IGNORECASE)):
        return "WORKS_AT"
    verbs = (predicate for verb, predicate in _VERBS.items() if _compile(f"(?i){verb}").search(text))
    return next(verbs, None)


def _former_times(text: str) -> Iterator[EventMention]:
    """Yield the time before the present home, job or school: "Where did Ann live before?", 以前住在哪里."""
    for match in _FORMER.finditer(text):
        predicate = _verb_before(text[: match.start()] + " " + text[match.end() :])
        if predicate is not None and re.search(r"\w", text.replace(match[0], "")):
            yield EventMention(match.start(), match.end(), EventTime("before", predicate, "start", None, None))


def _has_actor(match: re.Match[str]) -> bool:
    """Return whether a clause has a subject, or none but a verb in -ing."""
    subject = match["subject"]
    if subject is None:
        return match["verb"].split()[0].casefold().endswith("ing")
    return _NO_SUBJECT.match(subject) is None


def _event(relation: Relation, predicate: str, edge: Edge | None, match: re.Match[str]) -> EventTime | None:
    """Return the event, or ``None`` for "when she moved", which is an instant, and for "joined Acme's gym"."""
    named = next((value for name, value in match.groupdict().items() if name.startswith("object") and value), "")
    named = named.strip().rstrip(".-")
    if (edge is not None and relation == "while") or re.search(r"'s?$", named):
        return None
    if predicate == "WORKS_AT" and edge is None and _LEARNING.search(named):
        predicate = "WORKS_AT" if re.match(r"work|job|career|在.*(?:工作|上班)", match["verb"]) else "STUDIES_AT"
    # Before a period is before its start, after it is after its end.
    edge = edge or ("end" if relation == "after" else "start")
    return EventTime(relation, predicate, edge, _subject(match["subject"]), named or None)


def _subject(words: str | None) -> str | None:
    bare = re.sub(r"'(?:s|d|ve|re|m)$", "", (words or "").strip(), flags=re.IGNORECASE)
    return bare if bare and bare.casefold() != "the" else None


def _chinese_events(text: str) -> Iterator[EventMention]:
    if text.isascii():
        return
    for predicate, edge, pattern in _CHINESE:
        for match in _compile(pattern).finditer(text):
            event = _event(_MARKERS[match["marker"]], predicate, edge, match)
            if event is not None:
                yield EventMention(match.start(), match.end(), event)

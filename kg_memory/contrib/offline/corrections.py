"""Apply corrections that leave out what they correct: "Sorry, I meant Bergen, not Oslo", "Actually I moved in June"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from kg_memory.contrib.offline.statements import FUNCTIONAL, LOOSE, PRODUCT, STATES, Mention, Reading, Statement
from kg_memory.text.dates import find_dates
from kg_memory.text.sentences import Sentence, split_sentences

MAY_CORRECT = re.compile(
    r"\b(?:actually|correction|sorry|oops|wait|my mistake|in fact|I (?:meant|misspoke|mistyped|was wrong|"
    r"was mistaken))\b|"
    r"\bnot\b[^.!?]{1,40}\bbut\b|\bit was\b[^.!?]{1,40}\bnot\b|"
    r"其实|更正|纠正|说错了|搞错了|记错了|写错了|不是[^。！？]{1,20}(?:而?是)",
    re.IGNORECASE,
)
"""Words that may take something back, where an earlier message has it."""
_RESTATED_VERB = re.compile(
    r"(?<!\btold you )(?<!\btold you that )(?<!\bsaid )(?<!\bsaid that )(?<!\bthought )"
    r"\b(?:I|we)(?:['’]ve| have)? (?:actually |really |just |already )?(?P<verb>moved|relocated|joined|started|left|"
    r"quit|"
    r"met|visited|bought|married|graduated|got married)\b|(?P<chinese>搬|加入|入职|离开|离职|去|买|认识|毕业|结婚)",
    re.IGNORECASE,
)
_DATE = (
    r"(?:\d[^,;.!?]{0,20}?|last [a-z]+|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b[^,;.!?]{0,12}?|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day)"
)
_OPENING = r"^(?:(?:no|oh|well|wait|hmm|sorry|oops|actually|correction|my mistake)\b[,.!:]? ?)*"
_IT_WAS = r"(?:it|that) was (?:actually |really )?|I meant (?:to say )?"
_DATE_NOT_THEN = re.compile(
    rf"(?:\b(?:{_IT_WAS}|(?:I|we)(?:['’]ve| have)? (?:actually |really )?(?P<verb>[a-z]+) )|{_OPENING})"
    rf"(?:in |on |since )?(?:the )?(?P<date>{_DATE})(?:,? and|,| [-–—])? not (?:in |on |since )?(?:the )?"
    rf"(?P<wrong>{_DATE})(?=[,;.!?\s]*$|[,;.!?])",
    re.IGNORECASE,
)
"""A date in the place of another: "it was in April, not March"."""
_DATE_ALONE = re.compile(
    rf"{_OPENING}(?:{_IT_WAS})(?:in |on )?(?:the )?(?P<date>[^,;.!?]{{3,30}})[.!\s]*$", re.IGNORECASE
)
"""Nothing but a date: "Actually it was April"."""
_MEANT = re.compile(r"\bI (?:meant|misspoke|mistyped)\b|\bcorrection\b|说错了|写错了|更正", re.IGNORECASE)
_VAGUE = LOOSE | {"IS_A"}
_ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)

Earlier = Sequence[tuple[str, Sequence[Statement]]]
"""Earlier messages of the speaker with their statements, the last one last."""


def may_correct(content: str) -> bool:
    """Return whether *content* may take something back that was said before."""
    return MAY_CORRECT.search(content) is not None or any(
        _DATE_NOT_THEN.search(sentence.text) for sentence in split_sentences(content) if " not " in sentence.text
    )


def apply_corrections(content: str, reading: Reading, earlier: Earlier) -> Reading:
    """Return *reading* with the corrections in *content* of the statements *earlier*; a question corrects nothing."""
    added: list[Statement] = []
    kept = list(reading.statements)
    for sentence in split_sentences(content):
        inside = [statement for statement in kept if sentence.start <= statement.start < sentence.end]
        if sentence.asks or not may_correct(sentence.text) or any(one.predicate not in _VAGUE for one in inside):
            continue
        names = [one for one in reading.mentions if sentence.start <= one.start < sentence.end and one.named]
        before = (content[: sentence.start], [one for one in kept if one.end <= sentence.start])
        correction = _correct_object(sentence, names, earlier) or _correct_date(sentence, names, [*earlier, before])
        if correction is not None:
            added.append(correction)
            kept = [one for one in kept if one not in inside and not _is_same(one, correction)]
    statements = sorted((*kept, *added), key=lambda statement: statement.start)
    return replace(reading, statements=tuple(statements)) if added else reading


def _is_same(statement: Statement, correction: Statement) -> bool:
    """Return whether *correction* is of *statement*, which is in the same message."""
    return (statement.subject, statement.objects) == (correction.subject, correction.objects)


def _latest_first(earlier: Earlier) -> Iterator[tuple[Statement, str]]:
    """Yield the statements with a known verb, the last one first, each with its message."""
    for content, statements in reversed(earlier):
        yield from ((one, content) for one in reversed(statements) if one.predicate not in LOOSE)


def _correct_object(sentence: Sentence, names: Sequence[Mention], earlier: Earlier) -> Statement | None:
    """Return the statement that has another object now: "not Oslo but Bergen", "I meant Bergen"."""
    for statement, _ in _latest_first(earlier):
        if len(statement.objects) != 1:
            continue
        old = statement.objects[0]
        other_names = (name for name in names if name.name not in (old.name, statement.subject.name))
        right = next((name for name in other_names if name.type in (old.type, "Entity", PRODUCT)), None)
        wrong = re.search(rf"(?:\bnot|不是)\s?(?:\w{{2,4}}\s)?{re.escape(old.name)}", sentence.text, re.IGNORECASE)
        meant = statement.predicate in FUNCTIONAL and _MEANT.search(sentence.text)
        if right is not None and (wrong or meant):
            new = replace(right, type=old.type)
            return _restate(statement, sentence, objects=(new,), verb=None)
    return None


def _correct_date(sentence: Sentence, names: Sequence[Mention], earlier: Earlier) -> Statement | None:
    """Return the statement whose verb is repeated without its object, or only its date: "Actually I moved in June"."""
    named = {name.name for name in names}
    known = [(one, content) for one, content in _latest_first(earlier) if named <= _names_of(one)]
    if match := _DATE_NOT_THEN.search(sentence.text):
        verb, wrong = (match["verb"] or "").casefold(), match["wrong"].casefold()
        for statement, content in known:
            told = content[statement.start : statement.end].casefold()
            if wrong in told and (not verb or _has_verb(statement, content, verb)):
                return _redate(statement, sentence, match)
    elif (match := _DATE_ALONE.search(sentence.text)) and not named:
        last = _last_dated(earlier)
        return _redate(last, sentence, match) if last else None
    repeated = _RESTATED_VERB.search(sentence.text)
    if repeated is None:
        return None
    group = "verb" if repeated["verb"] else "chinese"
    start, end = (sentence.start + at for at in repeated.span(group))
    same = (one for one, content in known if _has_verb(one, content, repeated[group].casefold()))
    return next((_restate(one, sentence, verb=(start, end)) for one in same), None)


def _names_of(statement: Statement) -> set[str]:
    return {mention.name for mention in (statement.subject, *statement.objects)}


def _has_verb(statement: Statement, content: str, verb: str) -> bool:
    return statement.verb is not None and verb in content[slice(*statement.verb)].casefold()


def _last_dated(earlier: Earlier) -> Statement | None:
    """Return the statement of the last date told before, if it is of a state: a date alone is about that."""
    for content, statements in reversed(earlier):
        dates = find_dates(content, _ANY_TIME)
        if dates:
            at = dates[-1].start
            about = [one for one in statements if one.quote[0] <= at < one.quote[1]]
            return about[-1] if about and about[-1].predicate in STATES else None
    return None


def _redate(statement: Statement, sentence: Sentence, match: re.Match[str]) -> Statement | None:
    """Return *statement* with the date that *match* in *sentence* gives it, if it is one."""
    start, end = match.span("date")
    if not any(start <= date.end - 1 < end for date in find_dates(sentence.text, _ANY_TIME)):
        return None
    begin = match.start("verb") if match.groupdict().get("verb") else match.start()
    return _restate(statement, sentence, verb=(sentence.start + begin, sentence.start + max(start, begin + 2)))


def _restate(statement: Statement, sentence: Sentence, **changes: Any) -> Statement:
    """Return *statement* with *changes*, as *sentence* corrects it."""
    return replace(statement, start=sentence.start, end=sentence.end, clause=None, confidence=0.8, **changes)

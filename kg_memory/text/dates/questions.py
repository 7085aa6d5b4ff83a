"""Find the times that a question asks about, and parse a time that a caller gives."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime

from kg_memory.temporal.interval import Interval
from kg_memory.text.dates.events import EventTime, find_events
from kg_memory.text.dates.find import find_dates
from kg_memory.text.dates.periods import instant_period, parse_period
from kg_memory.text.dates.windows import find_windows

_LONGEST_TIME = 100
_LONGEST_QUESTION = 1000
"""In characters. Which of its times a longer, pasted text asks about is not clear."""

_NOW = re.compile(
    r"(?:right\s)?now|currently|at\s(?:the\smoment|present)|present|the\spresent|these\sdays|nowadays|"
    r"现在|此刻|目前|当前|如今|眼下",
    re.IGNORECASE,
)
_ONE_WORD = re.compile(r"(?:the\s)?[A-Za-z]+\.?")
_SMALL = re.compile(
    r"(?:\s|[,.:;!?()，。、]|\b(?:in|on|at|as|of|since|from|the|by|during|for|around|about|between|back|over|"
    r"within|time|year|month|week|day|morning|afternoon|evening|night)\b|在|于|自从|从|自|到|截至|截止|的时候|时候|的|时|那时|期间|左右|早上|上午|下午|晚上|里|中|份|那天|那年)*",
    re.IGNORECASE,
)
_SPACES = str.maketrans({"’": "'", "\t": " ", "\u3000": " ", "\xa0": " ", "\r": "\n"})
_QUOTED = re.compile(
    r"\"[^\"\n]{1,200}\"|“[^”\n]{1,200}”|「[^」\n]{1,200}」|『[^』\n]{1,200}』|《[^》\n]{1,200}》|"
    r"(?<!\w)'[^'\n]{2,100}'(?!\w)|`[^`\n]{1,200}`"
)
_SENTENCE_END = re.compile(r"[?!。！？\n]+|;|；|(?<=[a-z\d)]{3})\.(?=\s+[A-Z])")
_POLITE = re.compile(
    r"\s*(?:(?:please|hey|hi|hello|ok|okay|so|and|but|also|now|well|then)\b[\s,]*){0,4}"
    r"(?:(?:can|could|would|will)\syou\s(?:please\s|kindly\s)?)?(?:(?:tell|remind|show)\s(?:me|us)|(?:may|can|could)\si\sask(?:\syou)?)\b|"
    r"(?:你|您)?(?:能不能|能否|能|可以|可否)?请?(?:你|您)?(?:再|帮我)?(?:告诉|提醒)(?:一下)?我们?(?:一下)?",
    re.IGNORECASE,
)

_UNITS = r"(?:second|minute|hour|day|night|weekend|week|month|season|year|decade)s?\b"
_TIME_ASKED = re.compile(
    r"\bwhen(?:'s|'d|\sexactly)?\s(?:did|was|were|is|are|will|would|has|have|had|does|do|can|could|should|might)\b|"
    r"\b(?:know|remember|recall|sure|idea|find\sout|figure\sout|wonder|wondering|see|and|or|exactly|of|since|until|till|"
    r"by|from|between|tell\sme|tell\sus|remind\sme|remind\sus|show\sme)\s(?:exactly\s)?when\b|"
    r"\bhow\s(?:long|old|soon|recently|early|late|far\sback|much\s(?:more\s)?time)\b|"
    rf"\bhow\s(?:many|much)\s(?:\w+\s){{0,2}}{_UNITS}|"
    rf"\b(?:what|which)(?:'s|\sis|\sare|\swas|\swere)?(?:\sthe)?(?:\s(?:exact|first|last|latest|same))?\s(?:\w+\s)?"
    r"(?:date|day|year|month|time|week|season|decade|century|birthday|deadline|anniversary|age)s?\b|"
    r"\b(?:dates?|time|age)\s(?:of|when|at\swhich|between|elapsed|passed)\b|\b(?:elapsed|passed)\s(?:between|since)\b|"
    r"\bhow\s(?:many|much)\b.*\b(?:between|from)\b|(?:多少|几[个次本]).*之间|\bduration\b|\border\sin\swhich\b|\bin\s(?:what|which|chronological)\sorder\b|\bchronolog|\btimeline\b|"
    r"什么时候|什么时间|什么日期|什么日子|何时|几时|哪一?[年天月日周]|哪个(?:月|星期|季|周末)|几[号月点]|多久|多长|"
    r"多少(?:天|年|周|日|个月|个?小时|个?星期)|(?<![前这近好十上])几(?:天|年|周|个月|个?小时|个?星期)(?![前后以之来])|"
    r"生日|几岁|多大|年龄|顺序|先后|间隔|相隔",
    re.IGNORECASE,
)
_SAID = re.compile(
    r"\b(?:sa(?:y|ys|id|ying)|tell|tells|told|telling|mention\w*|ask|asks|asked|asking|talk|talks|talked|talking|discuss\w*|"
    r"chat|chats|chatted|chatting|speak|spoke|spoken|shar(?:e|es|ed|ing)|describ(?:e|es|ed|ing)|explain\w*|suggest\w*|"
    r"recommend\w*|advise[sd]?|remind|reminded|bring\sup|brought\sup|repl(?:y|ied)|answer|answered|respond\w*|reported|"
    r"confirm|confirmed|promised?|announce\w*|according\sto|conversations?|messages?|discussions?|(?:my|our|your)\ssessions?|"
    r"show|showed|shown|posted|claim|claimed|(?:did|had)\s(?:you|we|i)\s(?:know|believe|think|learn|remember))\b|"
    r"(?<![小传再])说(?!明|服)|告诉|提到|提过|提起|提醒|问(?:过|了|我|你|起|的)|[我你您]问|讲(?:过|了|到|的)|聊|谈(?:到|论|起|过)|讨论|分享|建议|推荐|"
    r"对话|记录",
    re.IGNORECASE,
)
_ABOUT_NOW = re.compile(
    r"(?<!from\s)\b(?:now|currently|nowadays|presently)\b|\b(?:at\s(?:the\smoment|present)|these\sdays)\b|"
    r"现在|目前|当前|如今|眼下|此刻|这阵子",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class TimeWords:
    """The characters ``question[start:end]``, which are *words*, and the time that they ask about.

    This is either a window of valid time, ``[interval.start, interval.end)`` with ``None`` for an open side, or an
    event in the graph that gives such a window.
    """

    words: str
    start: int
    end: int
    interval: Interval | None = None
    event: EventTime | None = None


def parse_when(when: date | str, now: datetime) -> Interval:
    """Return the period that *when* names: an instant, a day, ISO 8601 text, or words, also Chinese ("last March").

    Words are relative to *now*; "since 2016" and "until 2019" have an open side. A time without a zone is in UTC.
    Raises `ValueError` if *when* names no time.
    """
    here = now if now.tzinfo else now.replace(tzinfo=UTC)
    if isinstance(when, datetime):
        return _instant(when)
    text = _validate(when.isoformat() if isinstance(when, date) else when)
    if _NOW.fullmatch(text):
        return _instant(here)
    if (written := parse_period(text)) is not None:
        return written
    # A name of a month, a season or a weekday alone is a date only where nothing else is said.
    for lead in ("", "in ", "in the ") if _ONE_WORD.fullmatch(text) else ("",):
        period = _only_date(lead + text, here)
        if period is not None:
            return period
    shown = text if len(text) <= 40 else text[:39] + "…"
    raise ValueError(
        f'"{shown}" is not a time: give a date such as "2019-05-03", or words such as "last March" or "上个月".'
    )


def _instant(at: datetime) -> Interval:
    try:
        return instant_period(at if at.tzinfo else at.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        raise ValueError(f"{at.isoformat()} is outside the calendar in UTC: give a time inside it.") from None


def _validate(when: object) -> str:
    text = str(when).strip()
    if not text:
        raise ValueError('The time is empty: give a date such as "2019-05-03", or words such as "last March".')
    if len(text) > _LONGEST_TIME:
        raise ValueError(f"The time must have at most {_LONGEST_TIME} characters, got {len(text)}: give only the time.")
    if any(unicodedata.category(character).startswith("C") for character in text):
        raise ValueError("The time has control characters: give plain text.")
    return " ".join(text.split())


def _only_date(text: str, now: datetime) -> Interval | None:
    """Return the date in *text*, if the rest is only small words."""
    mentions = find_dates(text, now)
    if len(mentions) != 1:
        return None
    [mention] = mentions
    rest = text[: mention.start] + " " + text[mention.end :]
    return mention.interval if _SMALL.fullmatch(rest) else None


def find_times(question: str, now: datetime) -> list[TimeWords]:
    """Return the times that *question* clearly asks about, in order; relative ones count from *now*.

    A wrong window would put wrong answers first, so nothing is returned where the words may mean something else: in
    questions for a time ("when did ..."), about a conversation, about now, and where several times compete. Never
    raises.
    """
    here = now if now.tzinfo else now.replace(tzinfo=UTC)
    part = _question_part(question) if len(question) <= _LONGEST_QUESTION else None
    if part is None:
        return []
    offset, text = part
    return [
        TimeWords(question[offset + start : offset + end], offset + start, offset + end, interval, event)
        for start, end, interval, event in sorted(_times(text, here), key=lambda time: time[:2])
    ]


def _times(text: str, now: datetime) -> Iterator[tuple[int, int, Interval | None, EventTime | None]]:
    events = find_events(text)
    for mention in events:
        yield mention.start, mention.end, None, mention.event
    for window in find_windows(text, now, [(mention.start, mention.end) for mention in events]):
        yield window.start, window.end, window.interval, None


def _question_part(question: str) -> tuple[int, str] | None:
    """Return the place and the text, quotes blanked out, of the sentence that may ask about a time, if any.

    A question for a time, about a conversation, or about now, does not.
    """
    text = question.translate(_SPACES)
    text = _QUOTED.sub(lambda match: "_" * len(match[0]), text)
    span = _question_sentence(text)
    if span is None:
        return None
    start, end = span
    polite = _POLITE.match(text, start, end)
    part = text[start:end]
    asks = " " * (polite.end() - start) + text[polite.end() : end] if polite else part
    if _TIME_ASKED.search(part) or _SAID.search(asks) or _ABOUT_NOW.search(asks):
        return None
    return start, asks


def _question_sentence(text: str) -> tuple[int, int] | None:
    """Return the place of the only question in *text*, or of its only sentence."""
    sentences = []
    start = 0
    for match in [*_SENTENCE_END.finditer(text), None]:
        end = len(text) if match is None else match.end()
        if re.search(r"\w", text[start:end]):
            sentences.append((start, end))
        start = end
    asking = [span for span in sentences if re.search(r"[?？]", text[slice(*span)])] or sentences
    return asking[0] if len(asking) == 1 else None

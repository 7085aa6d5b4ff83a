"""Find the times that a question asks about (windows and events), and parse a time given by a caller."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime

from kg_memory.temporal.interval import Interval, instant_period, parse_period
from kg_memory.text.dates import chinese
from kg_memory.text.dates.events import EventTime, find_events
from kg_memory.text.dates.find import find_dates
from kg_memory.text.dates.periods import DateMention

_LONGEST_TIME = 100
# In characters. In a longer, pasted text it is unclear which of its times the question is about.
_LONGEST_QUESTION = 1000

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
    """A time that a question asks about; *words* name it in the question, and are ``question[start:end]``."""

    words: str
    start: int
    end: int
    interval: Interval | None = None
    event: EventTime | None = None


def parse_when(when: date | str, now: datetime) -> Interval:
    """Return the period that *when* means: an instant, a day, ISO 8601 text, or words such as "last March".

    Errors: `ValueError` if *when* is not a time.
    """
    here = now if now.tzinfo else now.replace(tzinfo=UTC)
    if isinstance(when, datetime):
        return _instant(when)
    text = _clean_time_text(when.isoformat() if isinstance(when, date) else when)
    if _NOW.fullmatch(text):
        return _instant(here)
    if (written := parse_period(text)) is not None:
        return written
    # The rules accept some single words, such as "May" or "summer", only after "in" or "in the": try these too.
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
        raise ValueError(f"{at.isoformat()} is outside the calendar: give a time in the years 1 to 9999 UTC.") from None


def _clean_time_text(when: object) -> str:
    text = str(when).strip()
    if not text:
        raise ValueError('The time is empty: give a date such as "2019-05-03", or words such as "last March".')
    if len(text) > _LONGEST_TIME:
        raise ValueError(f"The time must have at most {_LONGEST_TIME} characters, got {len(text)}: give only the time.")
    if any(unicodedata.category(character).startswith("C") for character in text):
        raise ValueError("The time has control characters: give plain text.")
    return re.sub(r"(T[\d:.]{5,15}) (\d\d:\d\d)$", r"\1+\2", " ".join(text.split()))  # a "+" in a URL is a space


def _only_date(text: str, now: datetime) -> Interval | None:
    """Return the period of the date in *text*, such as "in May 2019"; None if *text* has any other content."""
    mentions = find_dates(text, now)
    if len(mentions) != 1:
        return None
    [mention] = mentions
    return mention.interval if _SMALL.fullmatch(text[: mention.start] + " " + text[mention.end :]) else None


def find_times(question: str, now: datetime) -> list[TimeWords]:
    """Return the time words of *question* that limit the time it asks about, each with its period or event."""
    here = now if now.tzinfo else now.replace(tzinfo=UTC)
    # In doubt none, as a wrong time would rank wrong answers first.
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
    """Return ``(offset, text)`` of the sentence in *question* that may name a time, or None.

    Quotes and a polite opening are blanked out, so that all offsets stay.
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
    return None if _TIME_ASKED.search(part) or _SAID.search(asks) or _ABOUT_NOW.search(asks) else (start, asks)


def _question_sentence(text: str) -> tuple[int, int] | None:
    """Return ``(start, end)`` of the only question in *text*, or if it has none, of its only sentence; else None."""
    sentences = []
    start = 0
    for match in [*_SENTENCE_END.finditer(text), None]:
        end = len(text) if match is None else match.end()
        if re.search(r"\w", text[start:end]):
            sentences.append((start, end))
        start = end
    asking = [span for span in sentences if re.search(r"[?？]", text[slice(*span)])] or sentences
    return asking[0] if len(asking) == 1 else None


# The window of time that a question asks about: "before 2019", "last summer", 去年

_LEAD = re.compile(
    r"(?:\b(?P<as_of>as\sof|as\sat)|\b(?P<before>before|prior\sto|earlier\sthan)|\b(?P<after>after|later\sthan)|"
    r"\b(?P<since>since|starting(?:\sin|\sfrom)?)|\b(?P<until>until|till|up\sto)|"
    r"\b(?P<inside>(?:back\s)?in|on|at|during|over|throughout|within|around|through|across))"
    r"\s{1,2}(?:(?:about|around|early|late|mid|roughly)\s)?(?:the\s)?(?:year\s|month\sof\s|week\sof\s)?$",
    re.IGNORECASE,
)
_RANGE_LEAD = re.compile(r"\b(?:between|from)\s(?:the\s)?$", re.IGNORECASE)
_RANGE = re.compile(r"\s(?:and|to|until|till|through|-)\s|[–—~至到]", re.IGNORECASE)
_ALONE = re.compile(
    r"(?:the\s)?(?:last|past|previous|this|current|next|coming|upcoming|yesterday|today|tonight|tomorrow|earlier)\b|"
    r".*\b(?:ago|back|earlier|before|after|last)\b",
    re.IGNORECASE,
)
"""Times that need no preposition."""
_OWN_LEAD = re.compile(r"(?:in|on|at|during|over|within|since|until|till|ever)\b", re.IGNORECASE)
_OPENING = re.compile(r"(?:^|[,:(])\s*(?:the\s)?$")
_DURATION = re.compile(
    r"(?:in|for|within)\s(?!the\b)(?!\d{4}\b)(?:\w+\s){1,3}?(?:minute|hour|day|week|month|year|decade)s?", re.IGNORECASE
)
_FOLLOWING = re.compile(
    r"\s*(?:$|[,.?!:;)]|(?:in|on|at|to|from|with|by|for|of|and|or|but|as|while|when|before|after|since|until|if|because|"
    r"that|which|who|what|where|how|why|did|does|do|is|was|were|are|has|have|had|will|would|can|could|should|he|she|"
    r"they|i|we|you|it|her|his|their|my|our|the|a|an|there|this|about|\w+ing)\b)",
    re.IGNORECASE,
)
"""The text after a time that is not part of a name, unlike in "the 2024 Olympics" or "the May report"."""
_OTHER_CLAUSE = re.compile(
    r"\b(?:before|after|since|until|till|while|when|whenever|once|as\ssoon\sas|because|if|although|though|than)\b"
    r"(?!\s(?:the\s)?#)|(?<!know)(?<!think)(?<!believe)(?<!sure)\s(?:that|whom|whose)\s",
    re.IGNORECASE,
)
"""The start of a clause that has the time: "after the trip in 2019", "the friend that Ann met in 2019"."""
_PRONOUN = re.compile(r"(?<![\w'])(?P<before>[\w']+)\s(?:i|he|she|we|they|i've|i'd|she'd|he'd)\s\w", re.IGNORECASE)
_ASKING = frozenset(
    "did do does was were is are am had has have will would can could should may might must shall "
    "didn't wasn't weren't don't doesn't hadn't haven't hasn't what where who whom which why how when "
    "if that and or but so than think believe guess hope once sure then".split()
)
"""A pronoun after any word except these begins a clause about a noun: "the book she read in 2019"."""
_BESIDE = re.compile(
    r"\s*(?:,|and|or|vs\.?|versus|than|to|和|与|跟|还是|或者?|、)\s*(?:in\s|on\s|the\s)?", re.IGNORECASE
)
_WITHOUT_YEAR = re.compile(
    r"(?!.*\d{4})(?!.*\b(?:last|past|previous|this|current|next|coming|upcoming|ago|before|after)\b)", re.IGNORECASE
)
_TENSE = re.compile(
    r"\b(?P<past>did|was|were|had|has|have|been|used\sto|\w{3,}ed|went|wrote|met|made|built|bought|got|left|won|lost)\b|"
    r"\b(?:will|going\sto|plans?|planning|'ll|supposed\sto|scheduled|due)\b",
    re.IGNORECASE,
)
_HABIT = re.compile(
    r"\b(?:usually|always|often|ever|every|each|typically|normally|generally|sometimes)\b", re.IGNORECASE
)
_NAMES_A_THING = re.compile(r"(?:\b(?:is|are|am)|\b(?:what|who|where|which|that|there|it|how)'s)\b", re.IGNORECASE)


def find_windows(text: str, now: datetime, events: Sequence[tuple[int, int]] = ()) -> list[DateMention]:
    """Return the period that the question *text* asks about, such as "before 2019", as a list of one, or []."""
    dates = find_dates(text, now)
    mentions = [replace(date, end=date.start + len(text[date.start : date.end].rstrip("的 "))) for date in dates]
    windows = list(filter(None, (_window(text, mention, mentions, events) for mention in mentions)))
    if len(windows) == 2:
        return _combine_half_open(windows)
    return windows if len(windows) == 1 and not _has_rival(text, windows[0], mentions) else []


def _has_rival(text: str, window: DateMention, mentions: Sequence[DateMention]) -> bool:
    """Return whether *text* offers another date as an alternative to *window*: "in May or June"."""
    if len(mentions) > 1 and chinese.HAN.search(text, window.start, window.end):
        return True
    return any(
        _BESIDE.fullmatch(text, window.end, mention.start) or _BESIDE.fullmatch(text, mention.end, window.start)
        for mention in mentions
    )


def _combine_half_open(windows: list[DateMention]) -> list[DateMention]:
    """Return two periods with opposite open ends as one, in a list: "after May" and "before July"; else ``[]``."""
    first, second = (window.interval for window in windows)
    start, end = first.start or second.start, first.end or second.end
    if (first.start is None) == (second.start is None) or (first.end is None) == (second.end is None):
        return []
    if start is None or end is None or not start < end:
        return []
    return [DateMention(windows[0].start, windows[1].end, Interval(start, end, first.precision))]


def _window(
    text: str, mention: DateMention, mentions: Sequence[DateMention], events: Sequence[tuple[int, int]]
) -> DateMention | None:
    """Return *mention* as the period that it means with its preposition: "before 2019" has no start.

    None if the date may not limit the time asked about.
    """
    if any(start <= mention.start < end for start, end in events):
        return None
    if chinese.HAN.search(text, mention.start, mention.end):
        return _chinese_window(text, mention)
    words, before = text[mention.start : mention.end], text[: mention.start]
    lead = (_RANGE_LEAD.search(before) if _RANGE.search(words) else None) or _LEAD.search(before)
    lead = None if _OWN_LEAD.match(words) else lead
    head = before[: lead.start()] if lead else before
    if lead is None and not (_OWN_LEAD.match(words) or _ALONE.match(words) or _OPENING.search(before)):
        return None
    if _DURATION.fullmatch(words) or not _FOLLOWING.match(text, mention.end):
        return None
    interval = _apply_lead(mention.interval, lead.lastgroup if lead else None)
    if interval is None or _in_other_clause(head, mentions, events) or not _fits_tense(text, words, head):
        return None
    return DateMention(lead.start() if lead else mention.start, mention.end, interval)


def _in_other_clause(head: str, mentions: Sequence[DateMention], events: Sequence[tuple[int, int]]) -> bool:
    """Return whether a date belongs to a subordinate clause, as in "Who wrote the book she read in 2019?"."""
    masked = head
    for mention in mentions:
        if mention.end <= len(head):
            masked = masked[: mention.start] + "#" * (mention.end - mention.start) + masked[mention.end :]
    clause = masked.rpartition(",")[2]
    if _OTHER_CLAUSE.search(clause) or any("," not in head[end:] for _, end in events if end <= len(head)):
        return True
    return any(match["before"].casefold() not in _ASKING for match in _PRONOUN.finditer(clause))


def _apply_lead(interval: Interval, kind: str | None) -> Interval | None:
    if kind in ("before", "until"):
        return Interval(None, interval.start, interval.precision) if interval.start else None
    if kind == "after":
        return Interval(interval.end, None, interval.precision) if interval.end else None
    if kind == "since":
        return Interval(interval.start, None, interval.precision) if interval.start else None
    if kind == "as_of":
        return instant_period(interval.start) if interval.start else None
    return interval


def _fits_tense(text: str, words: str, head: str) -> bool:
    """Return whether the tense of the question *text* allows the date *words* to be the time asked about."""
    if _WITHOUT_YEAR.match(words) and (_HABIT.search(text) or not _TENSE.search(text)):
        return False
    named = _NAMES_A_THING.search(head)
    # "What is the book she bought in 2019?" asks about the book, which may be mentioned at any time.
    return named is None or not any(match["past"] for match in _TENSE.finditer(head))


# In Chinese

_SUFFIX = re.compile(
    r"\s?(?:(?P<before>之前|以前|前(?![往面台端辈夫妻任途男女景]))|(?P<after>之后|以后|后(?![来面台端悔]))|(?P<since>以来|至今|开始|起)|"
    r"(?P<inside>的时候|时|期间|里|中|那年|那时|那会儿|晚上|早上|上午|下午))"
)
_PREFIX = re.compile(r"(?:(?P<as_of>截[至止]到?)|(?P<until>直到|一直到)|(?P<inside>在|于)|(?P<since>自从|自|从))\s?$")
_TAKES_AWAY = re.compile(r"(?:[比像跟和与同为给对每到第]|关于|除了?|不是|结婚|离婚|毕业|搬家|离职|入职|工作|出生)\s?$")
_THING = re.compile(r"[的届]?\s?(?:奥运|世界杯|亚运|春晚|大会|会议|版|款|届|级|考试|预算|报告|计划|目标|合同|出生)")
_CHINESE_WITHOUT_YEAR = re.compile(
    r"[\d一二三四五六七八九十]{1,3}月|(?:周|星期|礼拜)[一二三四五六日天末]$|周末$|今[天日早晚]"
)
_CHINESE_TENSE = re.compile(r"了|过|曾|要|会|将|打算|计划|准备")
_CHINESE_HABIT = re.compile(r"通常|一般|经常|总是|平时|每")
_LATER = re.compile(r".*(?:后|来)$")


def _chinese_window(text: str, mention: DateMention) -> DateMention | None:
    """Return *mention* as the period that it means with the words beside it: 2019年之前 has no start.

    None if the date may not limit the time asked about.
    """
    words, before, after = text[mention.start : mention.end], text[: mention.start], text[mention.end :]
    prefix, suffix = _PREFIX.search(before), _SUFFIX.match(after)
    if _THING.match(after) or (_LATER.match(words) and before.strip()) or (not prefix and _TAKES_AWAY.search(before)):
        return None
    if _CHINESE_WITHOUT_YEAR.match(words) and (_CHINESE_HABIT.search(text) or not _CHINESE_TENSE.search(text)):
        return None
    kind = suffix.lastgroup if suffix else prefix.lastgroup if prefix else None
    kind = "inside" if kind == "since" and _RANGE.search(words) else kind
    interval = _apply_lead(mention.interval, kind)
    if interval is None:
        return None
    end = mention.end + (suffix.end() if suffix else 0)
    return DateMention(prefix.start() if prefix else mention.start, end, interval)

"""Find the window of time that a question asks about: "before 2019", "last summer", 去年."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from kg_memory.temporal.interval import Interval
from kg_memory.text.dates.find import find_dates
from kg_memory.text.dates.periods import DateMention, instant_period

_HAN = re.compile(r"[\u4e00-\u9fff]")
_LEAD = re.compile(
    r"(?:\b(?P<as_of>as\sof|as\sat)|\b(?P<before>before|prior\sto|earlier\sthan)|\b(?P<after>after|later\sthan)|"
    r"\b(?P<since>since|starting(?:\sin|\sfrom)?)|\b(?P<until>until|till|up\sto)|"
    r"\b(?P<inside>(?:back\s)?in|on|at|during|over|throughout|within|around|through|across))"
    r"\s{1,2}(?:(?:about|around|early|late|mid|roughly)\s)?(?:the\s)?(?:year\s|month\sof\s|week\sof\s)?$",
    re.IGNORECASE,
)
_LED = re.compile(r"(?:in|on|at|during|over|within|since|until|till|up\sto|ever\ssince)\b", re.IGNORECASE)
_STRANDED = re.compile(
    r"\b(?:what|where|which|who|whom)\b.*\b(?:go|going|gone|went|work\w*|travel\w*|fly|move|listen|apply|live|living|stay|study|"
    r"eat|hang\sout|play|look|pay|wait|drive|run|meet|volunteer|vote|date)\s(?:to|for|with|at|on|in)\s$",
    re.IGNORECASE,
)
"""A preposition of the verb, not of the time: "where did I go to last Friday"."""
_RANGE_LEAD = re.compile(r"\b(?:between|from)\s(?:the\s)?$", re.IGNORECASE)
_RANGE = re.compile(r"\s(?:and|to|until|till|through|-)\s|[–—~至到]", re.IGNORECASE)
_OPENING = re.compile(r"(?:^|[,:(])\s*(?:the\s)?$")
_PREVIOUS = re.compile(r"(?P<word>[\w']+)\s*$")
_TAKES_AWAY = frozenset(
    "than to for by from of about like unlike as with versus vs every each any regarding per another good black cyber "
    "ash easter fat super a an the her his my our their your its next-to".split()
)
"""Words before a time that give it another role: "the budget for 2019", "more than"."""

_RELATIVE = re.compile(
    r"(?:the\s)?(?:last|past|previous|this|current|next|coming|upcoming|yesterday|today|tonight|tomorrow|earlier)\b|"
    r".*\b(?:ago|back|earlier|before|after|last)\b|(?:in|over|during|within|at|on)\b",
    re.IGNORECASE,
)
_WITHOUT_YEAR = re.compile(
    r"(?!.*\d{4})(?!.*\b(?:last|past|previous|this|current|next|coming|upcoming|ago|before|after)\b)",
    re.IGNORECASE,
)
_TODAY = re.compile(r"today|tonight|this\s(?:morning|afternoon|evening)|earlier\stoday", re.IGNORECASE)
_DURATION = re.compile(
    r"(?:in|for|within)\s(?!the\b)(?!\d{4}\b)(?:\w+\s){1,3}?(?:minute|hour|day|week|month|year|decade)s?",
    re.IGNORECASE,
)
_FOLLOWING = re.compile(
    r"\s*(?:$|[,.?!:;)]|(?:in|on|at|to|from|with|by|for|of|and|or|but|as|while|when|before|after|since|until|if|because|than|"
    r"that|which|who|what|where|how|why|did|does|do|is|was|were|are|has|have|had|will|would|can|could|should|he|she|"
    r"they|i|we|you|it|her|his|their|my|our|the|a|an|there|this|please|again|too|also|instead|exactly|alone|together|not|"
    r"only|morning|afternoon|evening|night|during|around|near|into|through|about|\w+ing)\b)",
    re.IGNORECASE,
)
_PAST = re.compile(
    r"\b(?:did|was|were|had|has|have|been|used\sto|\w{3,}ed|went|wrote|met|made|bought|got|left|won|lost)\b",
    re.IGNORECASE,
)
_FUTURE = re.compile(r"\b(?:will|going\sto|plans?|planning|'ll|supposed\sto|scheduled|due)\b", re.IGNORECASE)
_HABIT = re.compile(
    r"\b(?:usually|always|often|ever|every|each|typically|normally|generally|sometimes)\b",
    re.IGNORECASE,
)
_NAMES_A_THING = re.compile(r"(?:\b(?:is|are|am)|\b(?:what|who|where|which|that|there|it|how)'s)\b", re.IGNORECASE)
_WAS_ASKED = re.compile(r"\b(?:did|was|were|had|has|have)\b", re.IGNORECASE)
_CLAUSE = re.compile(
    r"\b(?:before|after|since|until|till|while|when|whenever|once|as\ssoon\sas|because|if|although|though|so\sthat|"
    r"by\sthe\stime|than)\b(?!\s(?:the\s)?#)",
    re.IGNORECASE,
)
_RELATIVE_CLAUSE = re.compile(
    r"(?<!know)(?<!think)(?<!believe)(?<!sure)(?<!was it)(?<!is it)\s(?:that|whom|whose)\s|"
    r"(?<=\w\w)(?<!\bin)(?<!\bat)(?<!\bon)(?<!\bof)(?<!\bto)(?<!\bask)(?<!\bfor)(?<!\bfrom)(?<!\bwith)(?<!know)(?<!remember)"
    r"(?<!recall)(?<!and)\s(?:who|which)\s",
    re.IGNORECASE,
)
_ASKING = frozenset(
    "did do does was were is are am had has have will would can could should may might must shall "
    "didn't wasn't weren't don't doesn't hadn't haven't hasn't what where who whom which why how when "
    "while before after since until till because "
    "if that and or but so than think believe guess hope as though although once sure then".split()
)
"""A pronoun after another word than these begins a clause about a noun: "the book she read in 2019"."""
_PRONOUN = re.compile(r"(?P<before>[\w']+)\s(?:i|he|she|we|they|i've|i'd|she'd|he'd)\s\w", re.IGNORECASE)
_BESIDE = re.compile(
    r"\s*(?:,|and|or|vs\.?|versus|than|to|和|与|跟|还是|或者?|、)\s*(?:in\s|on\s|the\s)?",
    re.IGNORECASE,
)
_PARTICIPLE = re.compile(
    r"\b(?:\w{2,}ed|built|made|bought|held|born|written|taken|given|sent|won|shot|drawn|sold)\s(?:\w+\s)?$",
    re.IGNORECASE,
)


def find_windows(text: str, now: datetime, events: Sequence[tuple[int, int]] = ()) -> list[DateMention]:
    """Return the window of time that the question *text* asks about, with the words before it, or none.

    *events* are the places of the events in it: a date inside one, or in its clause, dates the event.
    """
    mentions = _mentions(text, now)
    candidates = (_window(text, mention, mentions, events) for mention in mentions)
    windows = list(filter(None, candidates))
    if len(windows) == 2:
        return _both_sides(windows)
    return windows if len(windows) == 1 and not _has_rival(text, windows[0], mentions) else []


def _has_rival(text: str, window: DateMention, mentions: Sequence[DateMention]) -> bool:
    """Return whether another time stands beside it on a par: "May 2020 or June 2021"."""
    if len(mentions) > 1 and _HAN.search(text, window.start, window.end):
        return True
    return any(
        _BESIDE.fullmatch(text, window.end, mention.start) is not None
        or _BESIDE.fullmatch(text, mention.end, window.start) is not None
        for mention in mentions
    )


def _window(
    text: str, mention: DateMention, mentions: Sequence[DateMention], events: Sequence[tuple[int, int]]
) -> DateMention | None:
    if any(start <= mention.start < end for start, end in events):
        return None
    if _HAN.search(text, mention.start, mention.end):
        return _chinese_window(text, mention)
    return _english_window(text, mention, mentions, events)


def _both_sides(windows: list[DateMention]) -> list[DateMention]:
    """Join "after A and before B" into one window; any other pair is unclear."""
    first, second = (window.interval for window in windows)
    start, end = first.start or second.start, first.end or second.end
    if (first.start is None) == (second.start is None) or (first.end is None) == (second.end is None):
        return []
    if start is None or end is None or not start < end:
        return []
    return [DateMention(windows[0].start, windows[1].end, Interval(start, end, first.precision))]


# English.


def _english_window(
    text: str, mention: DateMention, mentions: Sequence[DateMention], events: Sequence[tuple[int, int]]
) -> DateMention | None:
    words, before = text[mention.start : mention.end], text[: mention.start]
    lead = None if _LED.match(words) else _LEAD.search(before)
    stranded = _STRANDED.search(before) if _RELATIVE.match(words) else None
    lead = None if stranded else lead
    head = before[: lead.start()] if lead else before
    range_lead = _RANGE_LEAD.search(before)
    if range_lead and _RANGE.search(words):
        head, lead = before[: range_lead.start()], range_lead
    elif lead is None and stranded is None and not _stands_alone(before, words):
        return None
    if not _is_time(text, mention, words) or _in_other_clause(head, mentions, events):
        return None
    interval = _apply_lead(mention.interval, lead.lastgroup if lead else None)
    if interval is None or not _fits(text, words, head, lead):
        return None
    return DateMention(lead.start() if lead else mention.start, mention.end, interval)


def _stands_alone(before: str, words: str) -> bool:
    previous = _PREVIOUS.search(before)
    if previous and previous["word"].casefold() in _TAKES_AWAY:
        return False
    opened = re.match(r"(?:since|until|till|up to|ever since)\b", words, re.IGNORECASE)
    return bool(opened or _RELATIVE.match(words) or _OPENING.search(before))


def _is_time(text: str, mention: DateMention, words: str) -> bool:
    """Return whether the words are a time, and not part of a name ("the 2024 Olympics") or a duration."""
    after = text[mention.end :]
    if re.match(r"'s?\b|'|[-/_]\w|_", after) or _DURATION.fullmatch(words):
        return False
    first = text[: mention.start].strip(" ,").casefold() in ("", "in", "on", "back in")
    if first or _FOLLOWING.match(after):
        return True
    previous = _PREVIOUS.search(text[: mention.start])
    return _RELATIVE.match(words) is not None and not (previous and previous["word"].casefold() in _TAKES_AWAY)


def _in_other_clause(head: str, mentions: Sequence[DateMention], events: Sequence[tuple[int, int]]) -> bool:
    """Return whether the time belongs to a clause before it: "after the trip in 2019", "the book she read in 2019"."""
    masked = head
    for mention in mentions:
        if mention.end <= len(head):
            masked = masked[: mention.start] + "#" * (mention.end - mention.start) + masked[mention.end :]
    clause = masked.rpartition(",")[2]
    if _CLAUSE.search(clause) or any("," not in head[end:] for _, end in events if end <= len(head)):
        return True
    if _RELATIVE_CLAUSE.search(masked.lstrip()):
        return True
    return any(match["before"].casefold() not in _ASKING for match in _PRONOUN.finditer(clause))


def _apply_lead(interval: Interval, kind: str | None) -> Interval | None:
    """Return the window that a word such as "before" makes of *interval*, or ``None`` if that side is open."""
    if kind in ("before", "until"):
        return Interval(None, interval.start, interval.precision) if interval.start else None
    if kind == "after":
        return Interval(interval.end, None, interval.precision) if interval.end else None
    if kind == "since":
        return Interval(interval.start, None, interval.precision) if interval.start else None
    if kind == "as_of":
        return instant_period(interval.start) if interval.start else None
    return interval


def _fits(text: str, words: str, head: str, lead: re.Match[str] | None) -> bool:
    """Return whether the tense of the question fits the time."""
    past, future = _PAST.search(text), _FUTURE.search(text)
    if _TODAY.match(words):
        return bool(past or future)
    if lead and lead.lastgroup in ("as_of", "since", "before", "after"):
        return True
    if _WITHOUT_YEAR.match(words) and (_HABIT.search(text) or not (past or future)):
        return False
    named = _NAMES_A_THING.search(head)
    if named is None or _WAS_ASKED.search(head, 0, named.start()):
        return True
    # "What is the book she bought in 2019?" asks about the book, which may be mentioned at any time.
    return not (_PAST.search(head, named.end()) or _PARTICIPLE.search(head))


# Chinese.

_SUFFIX = re.compile(
    r"\s?(?:(?P<before>之前|以前|前(?![往面台端辈夫妻任途男女景]))|(?P<after>之后|以后|后(?![来面台端悔]))|(?P<since>以来|至今|开始|起)|"
    r"(?P<inside>的时候|时|期间|里|中|那年|那时|那会儿|晚上|早上|上午|下午))"
)
_PREFIX = re.compile(r"(?:(?P<as_of>截[至止]到?)|(?P<until>直到|一直到)|(?P<inside>在|于)|(?P<since>自从|自|从))\s?$")
_CHINESE_TAKES_AWAY = re.compile(
    r"(?:[比像跟和与同为给对每到第]|关于|除了?|不是|结婚|离婚|毕业|搬家|离职|入职|工作|出生)\s?$"
)
_THING = re.compile(
    r"[的届]?\s?(?:第.届)?(?:奥运|世界杯|亚运|春晚|大会|会议|版|款|届|级|考试|预算|报告|计划|目标|合同|出生)"
)
_CHINESE_CLAUSE = re.compile(r"[^，,。？?]{0,20}?(?:之前|以前|之后|以后|的时候|期间)")
_CHINESE_RELATIVE_CLAUSE = re.compile(
    r"[^，,。？?]{0,8}(?:买|做|写|拍|去|看|读|认识|遇到|见|送|收到|参加|出版|建|画|学|住|工作|加入|发布|开|搬)[^，,。？?]{0,6}的[^，,。？?]{1,12}"
    r"(?:是|叫|在|有|怎)"
)
_CHINESE_WITHOUT_YEAR = re.compile(
    r"[\d一二三四五六七八九十]{1,3}月|(?:周|星期|礼拜)[一二三四五六日天末]$|周末$|今[天日早晚]"
)
_CHINESE_TENSE = re.compile(r"了|过|曾|要|会|将|打算|计划|准备")
_CHINESE_HABIT = re.compile(r"通常|一般|经常|总是|平时|每")
_LATER = re.compile(r".*(?:后|来)$")
_GAP = re.compile(r"\s?(?:到|至|[-–—~])\s?")
_YEAR_BEFORE = re.compile(r"(?<!\d)\d{4}年(?=前(?![往面台端辈夫妻任途男女景])|后(?![来面台端悔]))")


def _mentions(text: str, now: datetime) -> list[DateMention]:
    """Return the dates in *text*, also 2019年前 and 2019年到2021年, which in a statement are not one date."""
    dates = find_dates(text, now)
    mentions = [replace(date, end=date.start + len(text[date.start : date.end].rstrip("的 "))) for date in dates]
    for match in _YEAR_BEFORE.finditer(text):
        if not any(mention.start < match.end() and match.start() < mention.end for mention in mentions):
            mentions += [replace(date, start=match.start(), end=match.end()) for date in find_dates(match[0], now)]
    joined: list[DateMention] = []
    for mention in sorted(mentions, key=lambda mention: mention.start):
        whole = _join_gap(text, joined[-1], mention) if joined else None
        if whole is None:
            joined.append(mention)
        else:
            joined[-1] = whole
    return joined


def _join_gap(text: str, first: DateMention, second: DateMention) -> DateMention | None:
    start, end = first.interval.start, second.interval.end
    if not (_GAP.fullmatch(text, first.end, second.start) and _HAN.search(text, first.start, first.end)):
        return None
    if start is None or end is None or not start < end:
        return None
    return DateMention(first.start, second.end, Interval(start, end, second.interval.precision))


def _chinese_window(text: str, mention: DateMention) -> DateMention | None:
    words, before, after = text[mention.start : mention.end], text[: mention.start], text[mention.end :]
    prefix, suffix = _PREFIX.search(before), _SUFFIX.match(after)
    if (prefix is None and _CHINESE_TAKES_AWAY.search(before)) or _CHINESE_RELATIVE_CLAUSE.match(after):
        return None
    if _THING.match(after) or (_LATER.match(words) and before.strip()):
        return None
    if _CHINESE_WITHOUT_YEAR.match(words) and (_CHINESE_HABIT.search(text) or not _CHINESE_TENSE.search(text)):
        return None
    kind = suffix.lastgroup if suffix else prefix.lastgroup if prefix else None
    kind = "inside" if kind == "since" and _RANGE.search(words) else kind
    rest = after[suffix.end() :] if suffix else after
    if _CHINESE_CLAUSE.match(rest) or (
        prefix and prefix.lastgroup == "since" and not suffix and mention.interval.end and not _RANGE.search(words)
    ):
        return None
    interval = _apply_lead(mention.interval, kind)
    if interval is None:
        return None
    end = mention.end + (suffix.end() if suffix else 0)
    return DateMention(prefix.start() if prefix else mention.start, end, interval)

"""Rules for time expressions in Chinese."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime

from kg_memory.temporal.interval import Interval
from kg_memory.text.dates import periods
from kg_memory.text.dates.periods import Rule

_DIGITS = dict(zip("〇零一二两三四五六七八九", (0, 0, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9), strict=True))
_N = r"(?:\d{1,3}|[一二两三四五六七八九十]{1,3}|好?几|半)"
_SMALL = r"(?:\d{1,2}|[一二三四五六七八九十]{1,3})"
_YEAR = r"(?:\d{4}|[一二][〇零一二三四五六七八九]{3})"
_WEEK = r"(?:周|星期|礼拜)"
_UNITS = {
    "分钟": "minute",
    "小时": "hour",
    "钟头": "hour",
    "天": "day",
    "日": "day",
    "周": "week",
    "星期": "week",
    "礼拜": "week",
    "月": "month",
    "年": "year",
    "季度": "season",
}
_UNIT = r"(?:个半?)?(?:分钟|小时|钟头|天|日|周|星期|礼拜|月|年)"
_SEASONS = {"春": periods.SPRING, "夏": periods.SUMMER, "秋": periods.AUTUMN, "冬": periods.WINTER}
_YEARS = {"大前年": -3, "前年": -2, "去年": -1, "上一年": -1, "今年": 0, "本年": 0, "明年": 1, "后年": 2}
_DAYS = {
    "大前天": -3,
    "前天": -2,
    "前晚": -2,
    "昨天": -1,
    "昨日": -1,
    "昨晚": -1,
    "昨夜": -1,
    "今天": 0,
    "今日": 0,
    "今早": 0,
    "今晚": 0,
    "明天": 1,
    "明日": 1,
    "明早": 1,
    "明晚": 1,
    "后天": 2,
    "大后天": 3,
}
_WHICH = r"(?:上上个?|上个?|前一?个|这个?|本|下下个?|下个?)"
_AHEAD = re.compile(r"要|会|将|打算|计划|准备|想去|下|快|即将|截止|预定|希望")
_BACK = re.compile(r"了|过|曾|以前|已经|刚")
_SINCE = re.compile("以来|至今|到现在")
_ONWARDS = re.compile("开始|起")
_SENTENCE_END = re.compile(r"[。！？；\n!?;]")


def _tense(match: re.Match[str]) -> int:
    text, start, end = match.string, match.start(), match.end()
    before = _SENTENCE_END.split(text[max(0, start - 20) : start])[-1]
    sentence = before + _SENTENCE_END.split(text[end : end + 20], maxsplit=1)[0]
    if _BACK.search(sentence):
        return -1
    return 1 if _AHEAD.search(sentence) else 0


def _number(text: str) -> int:
    """Return the whole number below 100 that *text* spells in digits or characters."""
    if text.isdigit():
        return int(text)
    tens, ten, ones = text.rpartition("十")
    if not ten:
        return int("".join(str(_DIGITS[character]) for character in text))
    return (_DIGITS[tens] if tens else 1) * 10 + (_DIGITS[ones] if ones else 0)


def _year_number(text: str) -> int:
    return int(text) if text.isdigit() else int("".join(str(_DIGITS[character]) for character in text))


def _offset(which: str) -> int:
    if which.startswith(("上上", "下下")):
        return -2 if which[0] == "上" else 2
    return {"上": -1, "前": -1, "下": 1}.get(which[0], 0)


def _date(match: re.Match[str], now: datetime) -> Interval:
    """Read a year, perhaps with a month and a day; the year may be a word such as 去年."""
    year_, month_, day_ = match["year"], match["month"], match["day"]
    whole = now.year + _YEARS[year_] if year_ in _YEARS else _year_number(year_.rstrip("年"))
    if match["season"]:
        return periods.season(whole, _SEASONS[match["season"]], now)
    if match["part"]:
        return periods.month(whole, 1 if match["part"] == "初" else 12, now)
    if month_ is None:
        return periods.year(whole, now)
    if day_:
        return periods.date(whole, _number(month_), _number(day_), now)
    return _calendar_month(whole, _number(month_), now)


def _month_day(match: re.Match[str], now: datetime) -> Interval:
    month_, day_ = _number(match["month"]), match["day"]
    if day_:
        return _yearly(match, now, lambda year_: periods.date(year_, month_, _number(day_), now))
    return _yearly(match, now, lambda year_: _calendar_month(year_, month_, now))


def _yearly(match: re.Match[str], now: datetime, make: Callable[[int], Interval]) -> Interval:
    """Return the occurrence of a yearly period that *match* means; 以来 makes it a past one."""
    text, which = match.string, _tense(match)
    if _SINCE.match(text, match.end()) or text.endswith("自从", 0, match.start()):
        return periods.yearly(now, make, -1)
    onwards = which == 0 and _ONWARDS.match(text, match.end())
    return periods.started(now, make) if onwards else periods.yearly(now, make, which)


def _calendar_month(year_: int, month_: int, now: datetime) -> Interval:
    if not 1 <= month_ <= 12:
        raise ValueError("no such month")
    return periods.month(year_, month_, now)


def _steps(match: re.Match[str], now: datetime) -> Interval:
    back = "前" in match["direction"]
    unit = _UNITS[match["unit"].removeprefix("个").removeprefix("半")]
    written, half = match["n"], 0.5 if "半" in match["unit"] or match.groupdict().get("half") else 0
    if written == "半":
        unit, count = {"year": ("month", 6), "month": ("week", 2), "day": ("hour", 12)}.get(unit, (unit, 1))
        return periods.steps_away(now, -count if back else count, unit)
    vague = "几" in written
    count_ = 3 if vague else _number(written) + half
    if unit == "month" and half:
        unit, count_ = "week", round(count_ * 4.35)
    return periods.steps_away(now, -count_ if back else count_, unit, vague=vague)


def _since(match: re.Match[str], now: datetime) -> Interval:
    unit = _UNITS[match["unit"].removeprefix("个")]
    vague = "几" in match["n"]
    count = 3 if vague else 1 if match["n"] == "半" else _number(match["n"])
    began = periods.steps_away(now, -count, unit, vague=vague)
    return Interval(began.start, None, began.precision)


def _weekday(match: re.Match[str], now: datetime) -> Interval:
    day_ = "一二三四五六日".index(match["weekday"].replace("天", "日"))
    if match["which"]:
        return periods.weekday_of_week(now, day_, _offset(match["which"]))
    return periods.next_weekday(now, day_) if _tense(match) > 0 else periods.last_weekday(now, day_, today_counts=True)


def _weekend(match: re.Match[str], now: datetime) -> Interval:
    if match["which"]:
        return periods.weekend(now, _offset(match["which"]))
    return periods.weekend(now, 0 if _tense(match) > 0 or now.weekday() >= 5 else -1)


def _which_month(match: re.Match[str], now: datetime) -> Interval:
    whole = periods.month(now.year, now.month + _offset(match["which"]), now)
    if match["day"] and whole.start:
        return periods.day(whole.start.replace(day=_number(match["day"])))
    part = {"初": 0, "中": 1, "底": 2, "末": 2}.get(match["part"] or "")
    return whole if part is None else periods.third(whole, part)


def _recent(match: re.Match[str], now: datetime) -> Interval:
    unit = _UNITS[match["unit"].removeprefix("个")]
    return periods.steps_away(now, -2 if match["n"] == "两" else -3, unit, vague=True)


def _rule(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


_YEAR_WORD = "|".join(sorted(_YEARS, key=len, reverse=True))
_DAY_WORD = "|".join(sorted(_DAYS, key=len, reverse=True))

RULES: tuple[Rule, ...] = (
    (
        _rule(
            rf"(?<![\d〇零一二三四五六七八九十])(?P<year>{_YEAR}年|{_YEAR_WORD})(?!前|后|来|级)(?:的|\s)?"
            rf"(?:(?P<month>{_SMALL})月份?(?:(?P<day>{_SMALL})[日号])?|(?P<season>[春夏秋冬])[天季]?|年?(?P<part>[初底末]))?"
        ),
        _date,
    ),
    (
        _rule(
            rf"(?<![\d个年〇零一二三四五六七八九十])(?P<month>{_SMALL})月(?:份|(?P<day>{_SMALL})[日号])?(?![个前后])"
        ),
        _month_day,
    ),
    (_rule(_DAY_WORD), lambda match, now: periods.day(now, _DAYS[match[0]])),
    (_rule(rf"(?<![\d几])(?P<n>{_N})(?P<unit>{_UNIT})(?P<direction>之?以?前|之?以?后)"), _steps),
    (_rule(rf"(?<![\d几])(?P<n>{_N})(?P<unit>年)(?P<half>半)(?P<direction>之?以?前|之?以?后)"), _steps),
    (_rule(r"前(?P<n>几|两|些)(?P<unit>天|个月|周|年|日)"), _recent),
    (_rule(rf"(?:已经?|快|都)有?(?P<n>{_N})(?P<unit>个?(?:年|月|星期|礼拜|周))多?了"), _since),
    (_rule(rf"(?<!\d)(?P<n>{_N})(?P<unit>年)(?:以|多)?来"), _since),
    (_rule(rf"(?P<which>{_WHICH})?(?:周末)"), _weekend),
    (_rule(rf"(?P<which>{_WHICH})?{_WEEK}(?P<weekday>[一二三四五六日天])(?![个年月周])"), _weekday),
    (
        _rule(rf"(?P<which>{_WHICH}){_WEEK}(?![一二三四五六日天末])"),
        lambda match, now: periods.week(now, _offset(match["which"])),
    ),
    (_rule(rf"(?P<which>{_WHICH})月(?:(?P<day>{_SMALL})[日号]|(?P<part>[初中底末]))?"), _which_month),
)

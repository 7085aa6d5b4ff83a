"""Rules for time expressions in Chinese."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from datetime import datetime
from functools import partial

from kg_memory.temporal.interval import Interval
from kg_memory.text.dates import english, periods
from kg_memory.text.dates.periods import Rule, add_rule

HAN = re.compile("[\u4e00-\u9fff]")
_N = r"(?<![\d几一二两三四五六七八九十百千万])(?P<n>\d{1,3}|[一二两三四五六七八九十百]{1,5}|好?几|半)"
_FIRST_OF_TWO = re.compile("[一二三四五六七八九](?=[二两三四五六七八九])|两(?=三)")
_SMALL = r"(?:\d{1,2}|[一二三四五六七八九十]{1,3})"
_YEAR = r"(?:\d{4}|[一二][〇零一二三四五六七八九]{3})"
_WEEK = r"(?:周|星期|礼拜)"
_UNITS = {
    words: unit
    for unit, names in {
        "minute": "分钟",
        "hour": "小时 钟头",
        "day": "天 日",
        "week": "周 星期 礼拜",
        "month": "月",
        "season": "季度",
        "year": "年",
    }.items()
    for words in names.split()
}
_UNIT = r"(?:个半?)?(?:分钟|小时|钟头|天|日|周|星期|礼拜|月|年半?)"
_SEASONS = {"春": 3, "夏": 6, "秋": 9, "冬": 12}
_YEARS = {"大前年": -3, "前年": -2, "去年": -1, "上一年": -1, "今年": 0, "本年": 0, "明年": 1, "后年": 2}
_DAYS = {
    words: offset
    for offset, names in {
        -3: "大前天",
        -2: "前天 前晚",
        -1: "昨天 昨日 昨晚 昨夜",
        0: "今天 今日 今早 今晚",
        1: "明天 明日 明早 明晚",
        2: "后天",
        3: "大后天",
    }.items()
    for words in names.split()
}
_WHICH = r"(?:上上个?|上个?|前一?个|这个?|本|下下个?|下个?)"
_AHEAD = re.compile(r"要|会|将|打算|计划|准备|想去|下|快|即将|截止|预定|希望")
_BACK = re.compile(r"了|过|曾|以前|已经|刚")
_SINCE = re.compile("以来|至今|到现在")
_ONWARDS = re.compile("开始|起")
_SENTENCE_END = re.compile(r"[。！？；\n!?;]")
_YEAR_WORD = "|".join(sorted(_YEARS, key=len, reverse=True))
_DAY_WORD = "|".join(sorted(_DAYS, key=len, reverse=True))

RULES: list[Rule] = []
"""The expressions and the functions that resolve them; of equally long matches, the earlier rule wins."""
_rule = partial(add_rule, RULES)


def _tense(match: re.Match[str]) -> int:
    """Return -1 if the Chinese sentence around *match*, a date, is about the past, 1 if about the future, else 0."""
    text, start, end = match.string, match.start(), match.end()
    before = _SENTENCE_END.split(text[max(0, start - 20) : start])[-1]
    sentence = before + _SENTENCE_END.split(text[end : end + 20], maxsplit=1)[0]
    return -1 if _BACK.search(sentence) else 1 if _AHEAD.search(sentence) else 0


def number(text: str) -> int:
    """Return the integer that *text* spells in digits or in Chinese: "12", "一二" and "十二" all give 12."""
    total, digits = 0, 0
    for value in map(int, map(unicodedata.numeric, text.replace("两", "二"))):
        if value >= 10:
            total, digits = total + (digits or 1) * value, 0
        else:
            digits = digits * 10 + value
    return total + digits


def _amount(match: re.Match[str]) -> tuple[str, float, bool]:
    """Return the unit and the count of a duration, and whether the count is vague: 两三天 -> ("day", 3, True)."""
    written, unit = match["n"], _UNITS[match["unit"].removeprefix("个").strip("半")]
    latter = _FIRST_OF_TWO.sub("", written)  # 两三天 is "two or three days"
    vague = "几" in written or latter != written
    count = 3 if "几" in written else 0.5 if written == "半" else number(latter)
    if "半" in match["unit"]:
        unit, count = ("week", round((count + 0.5) * 4.35)) if unit == "month" else (unit, count + 0.5)
    return *english.unit(unit, count), vague


def weekday_number(text: str) -> int:
    """Return the weekday that *text* names as a number from 0 for Monday: 二 -> 1; 日 and 天 both name Sunday."""
    return "一二三四五六日".index(text.replace("天", "日"))


def _offset(which: str) -> int:
    if which.startswith(("上上", "下下")):
        return -2 if which[0] == "上" else 2
    return {"上": -1, "前": -1, "下": 1}.get(which[0], 0)


def _calendar_month(year_: int, month_: int, now: datetime) -> Interval:
    if not 1 <= month_ <= 12:
        raise ValueError("a month must be from 1 to 12")
    return periods.month(year_, month_, now)


def _yearly(match: re.Match[str], now: datetime, make: Callable[[int], Interval]) -> Interval:
    """Return the date named by *match*, such as 五月 ("May"), in the year that fits the sentence around it."""
    text, which = match.string, _tense(match)
    if _SINCE.match(text, match.end()) or text.endswith("自从", 0, match.start()):
        return periods.yearly(now, make, -1)
    onwards = which == 0 and _ONWARDS.match(text, match.end())
    return periods.started(now, make) if onwards else periods.yearly(now, make, which)


@_rule(
    rf"(?<![\d〇零一二三四五六七八九十])(?P<year>{_YEAR}年|{_YEAR_WORD})(?!前|后|来|级)(?:的|\s)?"
    rf"(?:(?P<month>{_SMALL})月份?(?:(?P<day>{_SMALL})[日号])?|(?P<season>[春夏秋冬])[天季]?|年?(?P<part>[初底末]))?"
)
def _date(match: re.Match[str], now: datetime) -> Interval:
    """Return the period of a date with a year: 2019年 and 去年 ("last year") are years, 2019年5月 is May 2019."""
    year_, month_, day_ = match["year"], match["month"], match["day"]
    whole = now.year + _YEARS[year_] if year_ in _YEARS else number(year_.rstrip("年"))
    if match["season"]:
        return periods.season(whole, _SEASONS[match["season"]], now)
    if match["part"]:
        return periods.month(whole, 1 if match["part"] == "初" else 12, now)
    if month_ is None:
        return periods.year(whole, now)
    if day_:
        return periods.calendar_day(whole, number(month_), number(day_), now)
    return _calendar_month(whole, number(month_), now)


@_rule(rf"(?<![\d个年〇零一二三四五六七八九十])(?P<month>{_SMALL})月(?:份|(?P<day>{_SMALL})[日号])?(?![个前后])")
def _month_day(match: re.Match[str], now: datetime) -> Interval:
    month_, day_ = number(match["month"]), match["day"]
    if day_:
        return _yearly(match, now, lambda year_: periods.calendar_day(year_, month_, number(day_), now))
    return _yearly(match, now, lambda year_: _calendar_month(year_, month_, now))


@_rule(_DAY_WORD)
def _day(match: re.Match[str], now: datetime) -> Interval:
    return periods.day(now, _DAYS[match[0]])


@_rule(rf"{_N}(?P<unit>{_UNIT})(?P<direction>之?以?前|之?以?后)")
def _steps(match: re.Match[str], now: datetime) -> Interval:
    """Return the period a duration before or after *now*: 三天前 ("three days ago"), 半年后 ("in half a year")."""
    unit, count, vague = _amount(match)
    return periods.steps_away(now, -count if "前" in match["direction"] else count, unit, vague=vague)


@_rule(r"前(?P<n>几|两|些)(?P<unit>天|个月|周|年|日)")
def _recent(match: re.Match[str], now: datetime) -> Interval:
    unit = _UNITS[match["unit"].removeprefix("个")]
    return periods.steps_away(now, -2 if match["n"] == "两" else -3, unit, vague=True)


@_rule(rf"{_N}(?P<unit>年)(?:以|多)?来")
@_rule(rf"(?:已经?|快|都)有?{_N}(?P<unit>个?(?:年|月|星期|礼拜|周))多?了")
def _since(match: re.Match[str], now: datetime) -> Interval:
    """Return the period without an end that began a duration before *now*: 三年来 ("for three years")."""
    unit, count, vague = _amount(match)
    began = periods.steps_away(now, -count, unit, vague=vague)
    return Interval(began.start, None, began.precision)


@_rule(rf"(?P<which>{_WHICH})?(?:周末)")
def _weekend(match: re.Match[str], now: datetime) -> Interval:
    if match["which"]:
        return periods.weekend(now, _offset(match["which"]))
    return periods.weekend(now, 0 if _tense(match) > 0 or now.weekday() >= 5 else -1)


@_rule(rf"(?P<which>{_WHICH})?{_WEEK}(?P<weekday>[一二三四五六日天])(?![个年月周])")
def _weekday(match: re.Match[str], now: datetime) -> Interval:
    day_ = weekday_number(match["weekday"])
    if match["which"]:
        return periods.weekday_of_week(now, day_, _offset(match["which"]))
    return periods.next_weekday(now, day_) if _tense(match) > 0 else periods.last_weekday(now, day_, today_counts=True)


@_rule(rf"(?P<which>{_WHICH}){_WEEK}(?![一二三四五六日天末])")
def _week(match: re.Match[str], now: datetime) -> Interval:
    return periods.week(now, _offset(match["which"]))


@_rule(rf"(?P<which>{_WHICH})月(?:(?P<day>{_SMALL})[日号]|(?P<part>[初中底末]))?")
def _which_month(match: re.Match[str], now: datetime) -> Interval:
    whole = periods.month(now.year, now.month + _offset(match["which"]), now)
    if match["day"] and whole.start:
        return periods.day(whole.start.replace(day=number(match["day"])))
    part = {"初": 0, "中": 1, "底": 2, "末": 2}.get(match["part"] or "")
    return whole if part is None else periods.third(whole, part)

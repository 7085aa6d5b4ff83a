"""Rules for time expressions in English, and for dates in digits."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import partial

from kg_memory.temporal.interval import MONTHS, SEASONS, WEEKDAYS, Interval, instant_of, midnight
from kg_memory.text.dates import periods

SHORT_MONTHS = [name[:3].lower() for name in MONTHS]
SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen twenty"
).split()
_NUMBERS: dict[str, float] = {word: number for number, word in enumerate(SMALL)} | {
    "a": 1,
    "an": 1,
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "couple": 2,
    "few": 3,
    "several": 4,
    "half": 0.5,
}
_VAGUE = ("couple", "few", "several")

NUMBER = (
    r"(?:\d{1,3}|(?:an?\s)?(?:couple|few)(?:\sof)?|several|half\san?|an?|"
    + "|".join(SMALL[1:])
    + "|thirty|forty|fifty)"
)
UNIT = r"(?:minute|min|hour|day|week|fortnight|month|year|decade)"
MONTH = r"(?:january|february|march|april|may|june|july|august|september|october|november|december)"
_SHORT_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sept?|oct|nov|dec)\b\.?"
ANY_MONTH = rf"(?:{MONTH}\b|{_SHORT_MONTH})"
WEEKDAY = r"(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday)"
SHORT_WEEKDAY = r"(?:mon|tues?|wed|thu(?:rs)?|fri|sat|sun)"
SEASON = r"(?:spring|summer|fall|autumn|winter)"
WHICH = r"(?:last|past|previous|this|current|next|coming|upcoming)"
YEAR = r"(?:1[5-9]\d\d|20\d\d)"
NTH = r"(?:0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?"

_ = r"\s{1,3}"
_DAYS = {
    words: offset
    for offset, names in {
        -2: "the day before yesterday|day before yesterday",
        -1: "yesterday|last night",
        0: "today|tonight|this morning|this afternoon|this evening|earlier today",
        1: "tomorrow",
        2: "the day after tomorrow|day after tomorrow",
    }.items()
    for words in names.split("|")
}
_HOLIDAYS = {
    words: date
    for date, names in {
        (12, 24): "christmas eve",
        (12, 25): "christmas|christmas day|xmas",
        (12, 31): "new year's eve",
        (1, 1): "new year|new year's|new year's day",
        (10, 31): "halloween",
    }.items()
    for words in names.split("|")
}
"""The month and day of each holiday; Easter is computed."""
_HOLIDAY = "|".join(("easter", *sorted(_HOLIDAYS, reverse=True))).replace("'", "['’]")
_LEAD = (
    r"(?:in|since|until|till|til|by|from|to|through|of|during|for|around|before|after|between|and|early|late|mid|"
    r"starting)"
)
_IT_WAS = rf"(?:it{_}was(?:{_}actually|{_}really)?|I{_}meant)"

RULES: list[periods.Rule] = []
"""The expressions and the functions that resolve them; of equally long matches, the earlier rule wins."""
_rule = partial(periods.add_rule, RULES)


def number(text: str) -> tuple[float, bool]:
    """Return the number in *text*, and whether it is vague: "two" -> (2, False), "a few" -> (3, True)."""
    words = text.casefold().split()
    if words[0].isdigit():
        return int(words[0]), False
    word = next((word for word in words if word in _NUMBERS and word not in ("a", "an")), words[0])
    return _NUMBERS[word], word in _VAGUE


def unit(text: str, count: float) -> tuple[str, float]:
    """Return the standard unit of time for *text*, and *count* in that unit: ("fortnight", 2) -> ("week", 4)."""
    name = text.casefold()
    if name == "fortnight":
        return "week", 2 * count
    if name == "decade":
        return "year", 10 * count
    if name == "min":
        return "minute", count
    if count == 0.5:
        return {"year": ("month", 6), "month": ("week", 2), "day": ("hour", 12)}.get(name, (name, count))
    return name, count


def weekday_number(text: str) -> int:
    """Return the weekday that *text* names as a number from 0 for Monday: "Tue" -> 1."""
    return next(number for number, name in enumerate(WEEKDAYS) if name.startswith(text[:3].capitalize()))


def month_number(text: str) -> int:
    """Return the month that *text* names as a number from 1 for January: "Sept" -> 9."""
    return SHORT_MONTHS.index(text.casefold()[:3]) + 1


def _offset(which: str) -> int:
    return {"last": -1, "past": -1, "previous": -1, "this": 0, "current": 0}.get(which.casefold(), 1)


def _period(name: str, now: datetime, offset: int) -> Interval:
    """Return the week, weekend, month, year or season (*name*) around *now*, or the one *offset* later (-1: before)."""
    match name:
        case "week":
            return periods.week(now, offset)
        case "weekend":
            # On Monday "last weekend" is two days ago; on Sunday it is a week ago, which is the same rule.
            return periods.weekend(now, offset)
        case "month":
            return periods.month(now.year, now.month + offset, now)
        case "year":
            return periods.year(now.year + offset, now)
    return periods.season_near(now, SEASONS[name], offset)


def _amount(match: re.Match[str]) -> tuple[float, str, bool]:
    """Return ``(count, unit, is vague)`` of a duration, *match*: "two and a half years" -> (2.5, "year", False)."""
    count, vague = number(match["n"] or "one")
    name, count = unit(match["unit"], count)
    return count + 0.5 * bool((match.groupdict().get("half") or "").strip()), name, vague


@_rule(
    r"(?<!\d)(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})[T ](?P<hour>\d{1,2}):(?P<minute>\d{2})"
    r"(?::(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,9}))?)?(?P<zone>Z|[+-]\d{2}(?::?\d{2})?)?(?!\d)"
)
def _instant(match: re.Match[str], now: datetime) -> Interval:
    start = instant_of(match, now.tzinfo or UTC)
    return Interval(start, start + timedelta(seconds=1 if match["second"] else 60), "instant")


@_rule(r"(?<![\d-])(?P<year>\d{4})([-/.])(?P<month>\d{1,2})\2(?P<day>\d{1,2})(?![\d-])")
def _iso_day(match: re.Match[str], now: datetime) -> Interval:
    return periods.calendar_day(int(match["year"]), int(match["month"]), int(match["day"]), now)


@_rule(r"(?<![\d./])(?P<a>\d{1,2})(?P<mark>[/.])(?P<b>\d{1,2})(?P=mark)(?P<year>(?:19|20)\d\d)(?![\d/])")
def _numeric_date(match: re.Match[str], now: datetime) -> Interval:
    first, second, year_ = int(match["a"]), int(match["b"]), int(match["year"])
    # 6/9/2023 is read as in the US, 09.06.2023 as in Europe, and 25/12/2023 can be read in one way only.
    day_first = match["mark"] == "." or first > 12
    return periods.calendar_day(year_, second if day_first else first, first if day_first else second, now)


@_rule(rf"(?<![\d.:-])(?P<day>{NTH})\s{{0,2}}(?:of\s)?(?P<month>{ANY_MONTH})(?:\s?,?\s?(?P<year>{YEAR})(?!\d))?")
@_rule(rf"\b(?P<month>{ANY_MONTH})\s{{0,2}}(?:the\s)?(?P<day>{NTH})(?![\d:])(?:\s?,?\s?(?P<year>{YEAR})(?!\d))?")
def _month_day(match: re.Match[str], now: datetime) -> Interval:
    month_, day_ = month_number(match["month"]), int(re.sub(r"\D", "", match["day"]))
    if match["year"]:
        return periods.calendar_day(int(match["year"]), month_, day_, now)
    return periods.yearly_by_words(match, now, lambda year_: periods.calendar_day(year_, month_, day_, now))


@_rule(r"\bon the (?P<day>[12]?\d|3[01])(?:st|nd|rd|th)(?=[,.!?;]|$)")
def _day_of_month(match: re.Match[str], now: datetime) -> Interval:
    """Return the day that "on the 5th" means: the next one in a sentence about the future, otherwise the last one."""
    day_ = int(match["day"])
    offsets = (0, 1, 2) if periods.tense_of(match) > 0 else (0, -1, -2)
    for offset in offsets:
        first = periods.month(now.year, now.month + offset, now).start
        try:
            day = periods.day(first.replace(day=day_)) if first else None
        except ValueError:
            continue
        if day and day.start and (offset or (day.start >= midnight(now)) == (offsets[1] > 0)):
            return day
    raise ValueError("no such day")


# Only as the start or end of a period: the length of "at Christmas" and the year of "by Christmas" are unclear.
@_rule(
    rf"\b(?:since|until|till|before){_}(?P<span>(?P<holiday>{_HOLIDAY})"
    rf"(?:{_}(?P<year>{YEAR}))?)(?=\s?$|\s?[,.!?;:)\n]|{_}(?:and|or|but|so|because|when|while|in|at|on|to|I|we)\b)"
)
def _holiday(match: re.Match[str], now: datetime) -> Interval:
    name = match["holiday"].casefold().replace("’", "'")

    def of(year_: int) -> Interval:
        return periods.calendar_day(year_, *(_HOLIDAYS.get(name) or periods.easter(year_)), now)

    return of(int(match["year"])) if match["year"] else periods.yearly_by_words(match, now, of)


@_rule(rf"(?<!\d )\b(?P<month>{ANY_MONTH}),?\s{{0,2}}(?:of{_})?(?P<year>{YEAR})\b")
def _month_year(match: re.Match[str], now: datetime) -> Interval:
    return periods.month(int(match["year"]), month_number(match["month"]), now)


@_rule(rf"\b(?:in{_})?(?P<season>{SEASON}){_}(?:of{_})?(?P<year>{YEAR})\b")
def _season_year(match: re.Match[str], now: datetime) -> Interval:
    return periods.season(int(match["year"]), SEASONS[match["season"].casefold()], now)


@_rule(rf"\b(?:in|during|over){_}(?:the{_})?(?P<season>{SEASON})\b(?!{_}(?:of{_})?\d{{4}})")
def _bare_season(match: re.Match[str], now: datetime) -> Interval:
    return periods.season_near(now, SEASONS[match["season"].casefold()], 0 if periods.tense_of(match) > 0 else -1)


@_rule(rf"\b(?P<which>{WHICH}){_}(?P<month>{MONTH})\b(?!{_}\d)")
def _which_month(match: re.Match[str], now: datetime) -> Interval:
    month_, offset = month_number(match["month"]), _offset(match["which"])
    if offset == 0:
        return periods.month(now.year, month_, now)
    if offset < 0:
        return periods.month(now.year - (month_ >= now.month), month_, now)
    return periods.month(now.year + (month_ <= now.month), month_, now)


@_rule(rf"\b(?:{_LEAD}|{_IT_WAS})[\s-](?P<span>(?P<month>{MONTH}))\b(?!{_}\d)")
def _bare_month(match: re.Match[str], now: datetime) -> Interval:
    month_ = month_number(match["month"])
    return periods.yearly_by_words(match, now, lambda year_: periods.month(year_, month_, now))


@_rule(
    rf"\b(?:the{_})?(?P<which>{WHICH}){_}(?P<period>week|month|year|weekend|"
    rf"{SEASON})\b(?!{_}(?:of{_})?\d{{4}})"
)
def _which_period(match: re.Match[str], now: datetime) -> Interval:
    return _period(match["period"].casefold(), now, _offset(match["which"]))


@_rule(rf"\b(?:the{_})?(?P<which>{WHICH}){_}(?P<weekday>{WEEKDAY}|{SHORT_WEEKDAY})\b")
def _which_weekday(match: re.Match[str], now: datetime) -> Interval:
    which, day_ = _offset(match["which"]), weekday_number(match["weekday"])
    if which < 0:
        return periods.last_weekday(now, day_)
    if which == 0:
        return periods.weekday_of_week(now, day_, 0)
    if match["which"].casefold() == "next":
        return periods.weekday_of_week(now, day_, 1)
    return periods.next_weekday(now, day_)


@_rule(rf"(?<!\bevery )(?<!\beach )\b(?P<weekday>{WEEKDAY})\b(?!s|{_}(?:mornings|afternoons|evenings|nights)\b)")
def _bare_weekday(match: re.Match[str], now: datetime) -> Interval:
    day_ = weekday_number(match["weekday"])
    if periods.tense_of(match) > 0:
        return periods.next_weekday(now, day_)
    return periods.last_weekday(now, day_, today_counts=True)


@_rule(r"\b(?:over|on|at|during) the weekend\b")
def _weekend(match: re.Match[str], now: datetime) -> Interval:
    return periods.weekend(now, 0 if periods.tense_of(match) > 0 or now.weekday() >= 5 else -1)


@_rule(rf"\bin{_}(?:about{_})?(?P<n>{NUMBER}){_}(?P<unit>{UNIT})s?\b(?!{_}of\b)")
@_rule(rf"\b(?P<n>{NUMBER}){_}(?P<unit>{UNIT})s?{_}from{_}now\b")
@_rule(rf"\b(?P<n>{NUMBER}){_}(?P<unit>{UNIT})s?(?P<half>{_}and a half)?{_}(?P<back>ago|back|earlier)\b")
def _steps(match: re.Match[str], now: datetime) -> Interval | None:
    count, name, vague = _amount(match)
    back = match.groupdict().get("back")
    if back is None and periods.tense_of(match) < 0:
        return None  # "I read it in two days" is a duration
    return periods.steps_away(now, -count if back else count, name, vague=vague)


@_rule(
    rf"\b(?:the{_})?(?P<unit>week|month|year|weekend|{WEEKDAY}){_}before{_}last\b(?!{_}(?:week|month|"
    rf"year|{WEEKDAY}))"
)
@_rule(rf"\b(?P<n>{NUMBER}){_}(?P<unit>weekend|{WEEKDAY})s?{_}ago\b")
def _periods_ago(match: re.Match[str], now: datetime) -> Interval:
    """Return the day or period that "two weekends ago", "three Fridays ago" or "the week before last" means."""
    count, name = int(number(match.groupdict().get("n") or "two")[0]), match["unit"].casefold()
    if name.capitalize() not in WEEKDAYS:
        return _period(name, now, -count)
    return periods.day(periods.last_weekday(now, weekday_number(name)).start or now, 7 * (1 - count))


@_rule(
    rf"\bfor{_}(?:about{_}|over{_}|almost{_}|nearly{_}|around{_})?(?P<past>the{_}(?:past|"
    rf"last){_})?(?P<n>{NUMBER}){_}(?P<unit>{UNIT})s?\b(?!-)"
)
def _since(match: re.Match[str], now: datetime) -> Interval | None:
    """Return the period without an end that "for 4 years" means; None for "I lived there for 4 years"."""
    count, name, vague = _amount(match)
    sentence = periods.sentence_around(match).replace("’", "'")
    over = periods.BACK.search(sentence) or periods.AHEAD.search(sentence)
    if over and not periods.PERFECT.search(sentence) and not match["past"]:
        return None
    # Durations are rounded: somebody who has lived in a town for three years moved there about three years ago.
    began = periods.steps_away(now, -count, name, vague=vague or name in ("week", "month", "year"))
    return Interval(began.start, None, began.precision)


@_rule(rf"\b(?:in|over|during|within){_}the{_}(?:past|last){_}(?:(?P<n>{NUMBER}){_})?(?P<unit>{UNIT})s?\b")
def _within(match: re.Match[str], now: datetime) -> Interval:
    count, name, vague = _amount(match)
    began = periods.steps_away(now, -count, name, vague=vague)
    return Interval(began.start, now + timedelta(microseconds=1), began.precision)


@_rule(r"\bthe other day\b")
def _other_day(_: re.Match[str], now: datetime) -> Interval:
    return periods.steps_away(now, -3, "day", vague=True)


@_rule(r"\b(?:" + "|".join(sorted(map(re.escape, _DAYS), key=len, reverse=True)) + r")\b(?!'s)")
def _day(match: re.Match[str], now: datetime) -> Interval:
    return periods.day(now, _DAYS[match[0].casefold()])


@_rule(r"\((?P<span>(?P<year>(?:19|20)\d\d))\)")
@_rule(
    rf"\b(?:{_LEAD}|{_IT_WAS}|year|(?:end|start|beginning|summer|spring|fall|"
    rf"winter){_}of){_}(?P<span>(?P<year>{YEAR}))\b(?![-/.,]?\d|{_}?(?:%|\$|€|people|dollars|miles|km|"
    rf"kg|words))"
)
def _year(match: re.Match[str], now: datetime) -> Interval:
    return periods.year(int(match["year"]), now)


@_rule(rf"\bthe{_}(?P<year>(?:19|20)\d0)s\b")
def _decade(match: re.Match[str], now: datetime) -> Interval:
    return periods.year(int(match["year"]), now, 10)

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_memory.text import tokenise
from kg_memory.text.dates import find_dates

THURSDAY = datetime(2023, 5, 25, 14, 30, tzinfo=UTC)

# The text (written on Thursday 25 May 2023), the expected first day, the day after the last one, and the precision;
# for a day, its date alone.
EXPECTED = {
    "dates of the calendar": """
2023-06-09 = 2023-06-09 | 2021/12/31 = 2021-12-31 | 25/12/2022 = 2022-12-25 | 12/25/2022 = 2022-12-25 |
09.06.2023 = 2023-06-09 | on 9 June 2023 = 2023-06-09 | the 9th of June, 2021 = 2021-06-09 |
June 9th, 2021 = 2021-06-09 | Sept. 3, 2020 = 2020-09-03 | on 29 February 2024 = 2024-02-29 |
I was born on 29 February = 2020-02-29 | June 9 = 2023-06-09 | We met on June 9. = 2022-06-09 |
My birthday is on 3 August = 2023-08-03 | May 2023 = 2023-05-01 2023-06-01 month |
in December 2022 = 2022-12-01 2023-01-01 month | in 2019 = 2019-01-01 2020-01-01 year |
the summer of 2021 = 2021-06-01 2021-09-01 season | in the 1990s = 1990-01-01 2000-01-01 year |
I moved in May. = 2023-05-01 2023-06-01 month | I moved in July. = 2022-07-01 2022-08-01 month |
I will move in July. = 2023-07-01 2023-08-01 month | It happened on the 9th. = 2023-05-09""",
    "days around today": """
today = 2023-05-25 | tonight = 2023-05-25 | yesterday = 2023-05-24 | last night = 2023-05-24 |
the day before yesterday = 2023-05-23 | tomorrow = 2023-05-26 | the day after tomorrow = 2023-05-27 |
last Friday = 2023-05-19 | last Thursday = 2023-05-18 | this Friday = 2023-05-26 | next Thursday = 2023-06-01 |
I went there on Sunday = 2023-05-21 | I'm going there on Sunday = 2023-05-28 | two Fridays ago = 2023-05-12""",
    "weeks, months, seasons, years": """
last week = 2023-05-15 2023-05-22 week | this week = 2023-05-22 2023-05-29 week |
next month = 2023-06-01 2023-07-01 month | last month = 2023-04-01 2023-05-01 month |
last year = 2022-01-01 2023-01-01 year | last summer = 2022-06-01 2022-09-01 season |
last winter = 2022-12-01 2023-03-01 season | next summer = 2023-06-01 2023-09-01 season |
last May = 2022-05-01 2022-06-01 month | last weekend = 2023-05-20 2023-05-22 weekend |
this weekend = 2023-05-27 2023-05-29 weekend | next weekend = 2023-06-03 2023-06-05 weekend |
the weekend before last = 2023-05-13 2023-05-15 weekend | the week before last = 2023-05-08 2023-05-15 week |
early 2021 = 2021-01-01 2021-05-02 year""",
    "steps": """
two weeks ago = 2023-05-11 2023-05-18 week | a few days ago = 2023-05-22 2023-05-23 about |
the other day = 2023-05-22 2023-05-23 about | 10 years ago = 2013-05-25 2014-05-25 year |
a year and a half ago = 2021-11-25 2022-11-25 year | half a year ago = 2022-11-25 2022-12-25 month |
in two weeks = 2023-06-08 2023-06-15 week | three days from now = 2023-05-28""",
    "relative to another date": """
the week before 9 June = 2023-06-02 2023-06-09 week | the Sunday before 25 May = 2023-05-21 |
two days after 9 June 2023 = 2023-06-11 | the day after 9 June 2023 = 2023-06-10 |
the weekend before 9 June 2023 = 2023-06-03 2023-06-05 weekend""",
    "open ends and durations": """
from 2019 until 2021 = 2019-01-01 2021-01-01 year | from March 2020 till May 2022 = 2020-03-01 2022-05-01 month |
since 2016 = 2016-01-01 open year | until 2019 = open 2019-01-01 year | for 4 years = 2019-01-01 open about |
We've been married for five years = 2018-01-01 open about""",
    "since a month, which is the last such one, and from a month, which may be the next one": """
I work there since November. = 2022-11-01 open month |
I live there since 10 July, and plan to move. = 2022-07-10 open day |
I will work there from November. = 2023-11-01 2023-12-01 month |
I work there from November. = 2022-11-01 2022-12-01 month | I am away from June. = 2023-06-01 2023-07-01 month |
I am away from September to November. = 2023-09-01 2023-12-01 month | 我十一月以来在那里工作。 = 2022-11-01 open month |
我从十一月起在那里工作。 = 2022-11-01 open month""",
    "holidays at the edge of a period": """
I left before Christmas. = 2022-12-25 | I will leave before Christmas. = 2023-12-25 |
before Easter 2024 = 2024-03-31 | I moved two days before Easter. = 2023-04-07 |
I live there since New Year’s Eve. = 2022-12-31 open day | from 2016 to 2019 = 2016-01-01 2020-01-01 year |
between May and July 2022 = 2022-05-01 2022-08-01 month""",
    "chinese": """
2023年6月9日 = 2023-06-09 | 6月9日 = 2023-06-09 | 6月9号我们见了面 = 2022-06-09 | 二〇二三年六月 = 2023-06-01 2023-07-01 month |
2019年 = 2019-01-01 2020-01-01 year | 今天 = 2023-05-25 | 昨天 = 2023-05-24 | 前天 = 2023-05-23 | 大前天 = 2023-05-22 |
后天 = 2023-05-27 | 上周五 = 2023-05-19 | 下周四 = 2023-06-01 | 上上周三 = 2023-05-10 | 这周末 = 2023-05-27 2023-05-29 weekend |
下周 = 2023-05-29 2023-06-05 week | 上个月 = 2023-04-01 2023-05-01 month | 上个月5号 = 2023-04-05 |
去年 = 2022-01-01 2023-01-01 year | 去年夏天 = 2022-06-01 2022-09-01 season | 明年三月 = 2024-03-01 2024-04-01 month |
去年12月 = 2022-12-01 2023-01-01 month | 两周前 = 2023-05-11 2023-05-18 week | 10年前 = 2013-05-25 2014-05-25 year |
三个月后 = 2023-08-25 2023-09-25 month | 半年前 = 2022-11-25 2022-12-25 month | 几天前 = 2023-05-22 2023-05-23 about |
两三天前 = 2023-05-22 2023-05-23 about | 一两年前 = 2021-01-01 2022-01-01 about |
二三十年前我住在北京 = 1993-01-01 1994-01-01 about | 一百二十天前 = 2023-01-25 2023-01-26 day |
前几天 = 2023-05-22 2023-05-23 about | 从2016年开始 = 2016-01-01 open year | 2016年以来 = 2016-01-01 open year |
已经三年了 = 2020-05-25 open year""",
}


def day(instant: datetime | None) -> str:
    return f"{instant:%Y-%m-%d}" if instant else "open"


def expected(table: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield the text, the start, the end and the precision of each row of *table*."""
    for row in table.split("|"):
        said, period = row.strip().split(" = ")
        start, end, precision = period.split() if " " in period else (period, "", "day")
        yield said, start, end or str(date.fromisoformat(start) + timedelta(days=1)), precision


@pytest.mark.parametrize(("said", "start", "end", "precision"), list(expected("|".join(EXPECTED.values()))))
def test_find_dates_returns_the_expected_period(said, start, end, precision):
    """Each date expression has the expected start, end and precision.

    Features: A24.
    """
    result = find_dates(said, THURSDAY)

    assert [(day(one.interval.start), day(one.interval.end), one.interval.precision) for one in result] == [
        (start, end, precision)
    ]


WITHOUT_A_DAY = """
I am busy now. | Currently I live here. | You may go. | March on! | We lived there for 4 years. | I read it in two days.
| 31 June 2023 | 30 February | 2023-13-45 | I have 2000 dollars. | Call 555-1234-12. | Version 3.11.2 is out. |
the second one | 我现在很忙 | 第三天的心情 | 他跑了五公里 | 十几年前 | 一千二百年前 | | Mondays are hard. | an hourly rate"""


@pytest.mark.parametrize("said", [text.strip() for text in WITHOUT_A_DAY.split("|")])
def test_find_dates_ignores_text_without_a_day(said):
    assert find_dates(said, THURSDAY) == []


@pytest.mark.parametrize("window", [1, 7, 40])
def test_find_dates_searches_a_long_text_in_windows(monkeypatch, window):
    said = "Yes. I met Ann on 5 May 2019, and again two weeks before Easter; 我去年搬到巴黎. " * 9
    whole = find_dates(said, THURSDAY)
    monkeypatch.setattr(tokenise, "WINDOW", window)
    assert find_dates(said, THURSDAY) == whole


@pytest.mark.parametrize(
    ("at", "said", "start"),
    [
        (datetime(2024, 2, 29, 9, tzinfo=UTC), "a year ago", "2023-02-28"),
        (datetime(2024, 4, 5, 9, tzinfo=UTC), "we finished the plan, and analytics is due by April 19", "2024-04-19"),
        (datetime(2024, 4, 5, 9, tzinfo=UTC), "I finished it by March 29", "2024-03-29"),
        (datetime(2024, 4, 5, 9, tzinfo=UTC), "we moved the deadline to April 19", "2024-04-19"),
        (datetime(2024, 4, 5, 9, tzinfo=UTC), "I went there on April 19", "2023-04-19"),
        (datetime(2024, 2, 29, 9, tzinfo=UTC), "4年前", "2020-02-29"),
        (datetime(2023, 3, 31, 9, tzinfo=UTC), "a month ago", "2023-02-28"),
        (datetime(2023, 1, 1, 9, tzinfo=UTC), "last month", "2022-12-01"),
        (datetime(2023, 12, 31, 9, tzinfo=UTC), "tomorrow", "2024-01-01"),
        (datetime(2023, 1, 15, 9, tzinfo=UTC), "last winter", "2021-12-01"),
        (datetime(2023, 5, 28, 9, tzinfo=UTC), "last weekend", "2023-05-20"),
        (datetime(2023, 5, 29, 9, tzinfo=UTC), "last weekend", "2023-05-27"),
    ],
)
def test_find_dates_handles_month_ends_and_leap_days(at, said, start):
    assert [day(one.interval.start) for one in find_dates(said, at)] == [start]


def test_find_dates_uses_the_time_zone_of_the_speaker():
    (result,) = find_dates("昨天", datetime(2023, 5, 25, 23, 30, tzinfo=ZoneInfo("Asia/Shanghai")))

    assert result.interval.start == datetime(2023, 5, 23, 16, tzinfo=UTC)
    assert result.interval.end == datetime(2023, 5, 24, 16, tzinfo=UTC)


def test_find_dates_uses_the_zone_of_a_timestamp():
    (result,) = find_dates("It started at 2023-06-09T10:00:00+08:00 sharp.", THURSDAY)

    assert result.interval.start == datetime(2023, 6, 9, 2, tzinfo=UTC)
    assert result.interval.precision == "instant"


def test_find_dates_counts_hours_from_the_reference_instant():
    (result,) = find_dates("I ate 3 hours ago.", THURSDAY)

    assert result.interval.start == THURSDAY - timedelta(hours=3)


def test_find_dates_takes_reference_without_zone_as_utc():
    assert find_dates("yesterday", THURSDAY.replace(tzinfo=None)) == find_dates("yesterday", THURSDAY)


def test_find_dates_returns_dates_in_text_order():
    text = "I came yesterday, left on 3 March 2021 and 去年夏天又来了."

    result = find_dates(text, THURSDAY)

    assert [text[one.start : one.end] for one in result] == ["yesterday", "3 March 2021", "去年夏天"]


def test_find_dates_skips_dates_outside_the_calendar():
    first = datetime(1, 1, 1, tzinfo=UTC)
    last = datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-12)))

    [may] = find_dates("yesterday, 10 years ago, last summer, in May, on Friday", first)
    assert may.interval.start == datetime(1, 5, 1, tzinfo=UTC)
    assert find_dates("tomorrow", last) == []
    assert find_dates("since 2016", last)[0].interval.end is None


def test_find_dates_reads_a_long_text():
    assert len(find_dates("I went there two weeks ago and it was fine. " * 2000, THURSDAY)) == 2000


WORDS = st.sampled_from(
    "last next this week month year Friday weekend summer two a few ago in since until for May June 9 2023 31 the before after days "
    "yesterday from to between and early 上 下 周 个 月 年 前 后 去年 三 十 半 几 昨天 6月 9日 2023年 周末 以来 - / . 2023-05-09".split()
)
REFERENCES = st.datetimes(timezones=st.timezones() | st.just(UTC))


@settings(max_examples=300, deadline=None)
@given(
    text=st.lists(WORDS, max_size=12).map(" ".join) | st.lists(WORDS, max_size=12).map("".join) | st.text(max_size=80),
    at=REFERENCES,
)
def test_any_text_gives_ordered_spans_and_nonempty_periods(text, at):
    end = 0
    for result in find_dates(text, at):
        assert end <= result.start < result.end <= len(text)
        end = result.end
        start, stop = result.interval.start, result.interval.end
        assert start is not None or stop is not None
        assert start is None or start.tzinfo is UTC
        assert start is None or stop is None or start < stop

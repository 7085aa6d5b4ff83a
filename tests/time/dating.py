"""Scenarios of dates: missing, equal, future, coarse, in other zones and scripts, and learned late."""

from __future__ import annotations

from dataclasses import replace

from tests.time.changes import ACME, MOVES, OSLO, PARIS, ROME, lives, works
from tests.time.scenarios import WHEN_SAID, Scenario, Told, at, each_pair, said, told


def stays(place: str, since: str | None = WHEN_SAID) -> Told:
    return Told("小明", "住在", place, f"小明住在{place}", since)


UNDATED = (
    Scenario(
        "undated first",
        (said("2024-01-10", lives("Oslo", None)), said("2024-06-10", lives("Paris", "2024-06-01"))),
        MOVES,
        (
            at("2023-06-01"),
            at("2024-03-01", OSLO),
            at("2024-06-01", PARIS),
            at(None, PARIS),
            at("2024-07-01", OSLO, after=1),
            at("2023-06-01", after=1),
        ),
    ),
    Scenario(
        "undated between dated ones",
        (
            said("2024-01-10", lives("Oslo", "2024-01-01")),
            said("2024-04-01", lives("Paris", None)),
            said("2024-09-10", lives("Rome", "2024-09-01")),
        ),
        MOVES,
        (
            at("2024-03-01", OSLO),
            at("2024-05-01", PARIS),
            at("2024-09-02", ROME),
            at(None, ROME),
            at("2024-05-01", OSLO, after=1),
            at("2024-09-02", PARIS, after=2),
        ),
    ),
    Scenario(
        "undated last, told of before",
        (said("2024-06-10", lives("Paris", "2024-06-01")), said("2024-01-10", lives("Oslo", None))),
        MOVES,
        (at("2023-06-01"), at("2024-03-01", OSLO), at("2024-07-01", PARIS), at(None, PARIS), at("2024-03-01", after=1)),
    ),
    Scenario(
        "only undated ones",
        (said("2024-01-10", lives("Oslo", None)), said("2024-06-10", lives("Paris", None))),
        MOVES,
        (at("2023-06-01"), at("2024-03-01", OSLO), at("2024-07-01", PARIS), at(None, PARIS), at(None, OSLO, after=1)),
    ),
    Scenario(
        "an undated fact gets its start later",
        (said("2023-01-10", works("Acme", None)), said("2024-01-10", works("Acme", "2015-01-01"))),
        (),
        (
            at("2014-06-01"),
            at("2018-06-01", ACME),
            at("2023-06-01", ACME),
            at(None, ACME),
            at("2018-06-01", after=1),
            at("2023-06-01", ACME, after=1),
        ),
        stored=1,
    ),
    Scenario(
        "an end is learned late",
        (said("2020-01-10", works("Acme")), said("2024-01-10", works("Acme", None, "2022-01-01"))),
        (),
        (at("2021-06-01", ACME), at("2023-06-01"), at(None), at("2023-06-01", ACME, after=1), at(None, ACME, after=1)),
        stored=1,
    ),
)

EQUAL = (
    Scenario(
        "the same start, the one said later arrives first",
        (said("2024-07-01", lives("Paris", "2024-05-01")), said("2024-06-01", lives("Oslo", "2024-05-01"))),
        MOVES,
        (at("2024-04-01"), at("2024-05-15", PARIS), at(None, PARIS), at("2024-05-15", PARIS, after=1)),
    ),
    Scenario(
        "the same start, the one said later arrives last",
        (said("2024-06-01", lives("Oslo", "2024-05-01")), said("2024-07-01", lives("Paris", "2024-05-01"))),
        MOVES,
        (at("2024-04-01"), at("2024-05-15", PARIS), at(None, PARIS), at("2024-05-15", OSLO, after=1)),
    ),
    Scenario(
        "said and begun at the same instants",
        (said("2024-06-01", lives("Oslo", "2024-05-01")), said("2024-06-01", lives("Paris", "2024-05-01"))),
        MOVES,
        (at("2024-04-01"), at("2024-05-15", OSLO), at(None, OSLO), at(None, after=0)),
        tie=(OSLO, PARIS),
    ),
    Scenario(
        "the future",
        (said("2024-01-10", lives("Oslo")), said("2024-06-01", lives("Paris", "2090-01-01"))),
        MOVES,
        (
            at("2024-03-01", OSLO),
            at(None, OSLO),
            at("2089-12-31", OSLO),
            at("2090-01-01", PARIS),
            at("2090-01-01", OSLO, after=1),
        ),
    ),
    Scenario(
        "a stay that will end",
        (said("2024-01-10", lives("Oslo", WHEN_SAID, "2090-01-01")),),
        (),
        (at("2024-03-01", OSLO), at(None, OSLO), at("2089-12-31", OSLO), at("2090-01-01"), at(None, after=0)),
    ),
)

ZONES = (
    Scenario(
        "the local date says otherwise",
        (said("2024-03-01T00:30:00+09:00", lives("Kyoto")), said("2024-02-29T20:00:00+00:00", lives("Oslo"))),
        MOVES,
        (
            at("2024-02-29T15:00"),
            at("2024-02-29T16:00", "Ann lives in Kyoto"),
            at("2024-02-29T21:00", OSLO),
            at(None, OSLO),
            at(None, "Ann lives in Kyoto", after=1),
        ),
    ),
    Scenario(
        "one instant in two zones, the one said later holds",
        (
            said("2024-03-02T12:00:00+00:00", lives("Oslo", "2024-03-01T00:00:00+00:00")),
            said("2024-03-02T12:00:00+09:00", lives("Kyoto", "2024-03-01T09:00:00+09:00")),
        ),
        MOVES,
        (at("2024-02-29"), at("2024-03-01T00:00", OSLO), at(None, OSLO), at("2024-03-01", OSLO, after=1)),
    ),
    Scenario(
        "a day begins where it was said",
        (said("2024-03-05T08:00:00+09:00", works("Acme", "2024-03-01")),),
        (),
        (
            at("2024-02-29T14:59:59"),
            at("2024-02-29T15:00", ACME),
            at("2024-03-01T00:00+09:00", ACME),
            at(None, ACME),
            at("2024-03-02", after=0),
        ),
    ),
    Scenario(
        "midnight between two zones",
        (
            said("2024-03-05T08:00:00+09:00", lives("Kyoto", "2024-03-01")),
            said("2024-03-05T08:00:00-05:00", lives("Paris", "2024-03-01")),
        ),
        MOVES,
        (
            at("2024-02-29T16:00", "Ann lives in Kyoto"),
            at("2024-03-01T04:59", "Ann lives in Kyoto"),
            at("2024-03-01T05:00", PARIS),
            at(None, PARIS),
            at("2024-03-01T06:00", "Ann lives in Kyoto", after=1),
        ),
    ),
)

COARSE = (
    Scenario(
        "a leap day",
        (said("2024-03-10", works("Acme", "2024-02-29")), said("2028-03-10", works("Acme", None, "2028-02-29"))),
        (),
        (
            at("2024-02-28T23:59"),
            at("2024-02-29", ACME),
            at("2028-02-28", ACME),
            at("2028-02-29"),
            at("2028-03-01", ACME, after=1),
        ),
    ),
    Scenario(
        "years only",
        (said("2020-05-10", lives("Oslo", "2019")), said("2023-05-10", lives("Paris", "2022"))),
        MOVES,
        (
            at("2018-12-31T23:59"),
            at("2019-01-01", OSLO),
            at("2021-12-31T23:59", OSLO),
            at("2022-01-01", PARIS),
            at(None, PARIS),
            at("2022-06-01", OSLO, after=1),
        ),
    ),
    Scenario(
        "months only",
        (said("2024-06-10", lives("Paris", "2024-05")), said("2024-06-12", lives("Oslo", "2024-03", "2024-05"))),
        MOVES,
        (
            at("2024-02-29T23:59"),
            at("2024-03-01", OSLO),
            at("2024-04-30T23:59", OSLO),
            at("2024-05-01", PARIS),
            at(None, PARIS),
            at("2024-04-01", after=1),
        ),
    ),
    Scenario(
        "a year made finer by a day",
        (said("2020-05-10", works("Acme", "2019")), said("2021-05-10", works("Acme", "2019-05-03"))),
        (),
        (
            at("2018-06-01"),
            at("2019-03-01"),
            at("2019-05-03", ACME),
            at(None, ACME),
            at("2019-03-01", ACME, after=1),
            at("2018-06-01", after=1),
        ),
        stored=1,
    ),
    Scenario(
        "a day told again as its year",
        (said("2020-05-10", works("Acme", "2019-05-03")), said("2021-05-10", works("Acme", "2019"))),
        (),
        (at("2019-03-01"), at("2019-05-03", ACME), at(None, ACME), at("2019-03-01", after=1), at(None, ACME, after=1)),
        stored=1,
    ),
    Scenario(
        "a year that cannot be before the day told earlier",
        (said("2019-03-02", lives("Paris", "2019-03-01")), said("2019-12-01", lives("Oslo", "2019"))),
        MOVES,
        (
            at("2019-02-01"),
            at("2019-03-01", PARIS),
            at("2019-06-01", OSLO),
            at(None, OSLO),
            at("2019-06-01", PARIS, after=1),
        ),
    ),
    Scenario(
        "a year, and a day in it told later",
        (said("2019-06-10", lives("Oslo", "2019")), said("2019-11-10", lives("Paris", "2019-11-01"))),
        MOVES,
        (
            at("2018-12-01"),
            at("2019-05-01", OSLO),
            at("2019-10-31", OSLO),
            at("2019-11-01", PARIS),
            at(None, PARIS),
            at("2019-11-05", OSLO, after=1),
        ),
    ),
    Scenario(
        "a season, and the day in it",
        (
            said("2023-12-10", replace(works("Acme", "2023-06-01"), words="Ann has worked at Acme since summer 2023")),
            said("2024-02-10", works("Acme", "2023-08-15")),
        ),
        (),
        (
            at("2023-05-31"),
            at("2023-07-01"),
            at("2023-08-15", ACME),
            at(None, ACME),
            at("2023-07-01", ACME, after=1),
            at("2023-05-31", after=1),
        ),
        stored=1,
    ),
    Scenario(
        "a week, and the day in it",
        (
            said("2024-03-13", replace(works("Acme", "2024-03-04"), words="Ann started to work at Acme last week")),
            said("2024-03-20", works("Acme", "2024-03-06")),
        ),
        (),
        (
            at("2024-03-03"),
            at("2024-03-05"),
            at("2024-03-06", ACME),
            at(None, ACME),
            at("2024-03-05", ACME, after=1),
            at("2024-03-03", after=1),
        ),
        stored=1,
    ),
    Scenario(
        "a year begins where it was said",
        (said("2020-03-05T08:00:00+09:00", works("Acme", "2019")),),
        (),
        (at("2018-12-31T14:59"), at("2018-12-31T15:00", ACME), at(None, ACME), at(None, after=0)),
    ),
)

HARALD = told("Oslo", "was founded by", "Harald", "1048")
SCRIPTS = (
    Scenario(
        "in Chinese",
        (said("2024-01-10", stays("北京")), said("2024-06-01", stays("上海")), said("2024-09-01", stays("北京"))),
        each_pair("supersedes", stays("北京").sentence, stays("上海").sentence),
        (
            at("2023-06-01"),
            at("2024-03-01", stays("北京").sentence),
            at("2024-07-01", stays("上海").sentence),
            at(None, stays("北京").sentence),
            at(None, stays("上海").sentence, after=2),
        ),
        stored=2,
    ),
    Scenario(
        "a month named in Chinese",
        (
            said("2024-01-10", stays("北京")),
            said("2024-06-15", replace(stays("上海", "2024-05"), words="小明上个月搬到上海")),
        ),
        each_pair("supersedes", stays("北京").sentence, stays("上海").sentence),
        (
            at("2024-04-30T23:59", stays("北京").sentence),
            at("2024-05-01", stays("上海").sentence),
            at(None, stays("上海").sentence),
            at("2024-05-02", stays("北京").sentence, after=1),
        ),
    ),
    Scenario(
        "two scripts, one change",
        (said("2024-01-10", stays("北京")), said("2024-06-01", told("小明", "lives in", "Shanghai"))),
        each_pair("supersedes", stays("北京").sentence, "小明 lives in Shanghai"),
        (
            at("2024-03-01", stays("北京").sentence),
            at("2024-07-01", "小明 lives in Shanghai"),
            at(None, "小明 lives in Shanghai"),
            at(None, stays("北京").sentence, after=1),
        ),
    ),
    Scenario(
        "a thousand years ago",
        (said("2024-01-10", HARALD), said("2024-02-10", told("Oslo", "was burnt by", "Erik", "1624-08-17"))),
        each_pair("unrelated", HARALD.sentence, "Oslo was burnt by Erik"),
        (
            at("1047-12-31"),
            at("1048-01-01", HARALD.sentence),
            at("1624-08-16", HARALD.sentence),
            at(None, HARALD.sentence, "Oslo was burnt by Erik"),
            at(None, HARALD.sentence, after=1),
        ),
    ),
    Scenario(
        "the first day of the calendar",
        (said("2024-01-10", told("Oslo", "lies in", "Norway", "0001-01-01")),),
        (),
        (
            at("0001-01-01", "Oslo lies in Norway"),
            at("1000-01-01", "Oslo lies in Norway"),
            at(None, "Oslo lies in Norway"),
            at(None, after=0),
        ),
    ),
    Scenario(
        "the last year of the calendar",
        (said("2024-01-10", lives("Oslo", "2024-01-01", "9999-12-31")), said("2024-02-10", lives("Paris", "9999"))),
        MOVES,
        (
            at("2024-06-01", OSLO),
            at(None, OSLO),
            at("9998-12-31", OSLO),
            at("9999-06-01", PARIS),
            at("9999-06-01", OSLO, after=1),
        ),
    ),
)
SCENARIOS = (*UNDATED, *EQUAL, *ZONES, *COARSE, *SCRIPTS)

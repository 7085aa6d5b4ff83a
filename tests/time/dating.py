"""Scenarios of dates: missing, equal, future, coarse, in other zones and scripts, and learned late."""

from dataclasses import replace

from tests.time.changes import episodes, lives, works
from tests.time.scenarios import OSLO, PARIS, WHEN_SAID, Told, each_pair, said, scenario, told


def stays(place: str, since: str | None = WHEN_SAID) -> Told:
    return Told("小明", "住在", place, f"小明住在{place}", since)


UNDATED = (
    scenario(
        "undated first",
        episodes("2024-01-10 Oslo undated; 2024-06-10 Paris since 2024-06-01"),
        "2023-06-01 nothing; 2024-03-01 Oslo; 2024-06-01 Paris; now Paris",
        {1: "2024-07-01 Oslo; 2023-06-01 nothing"},
    ),
    scenario(
        "undated between dated ones",
        episodes("2024-01-10 Oslo since 2024-01-01; 2024-04-01 Paris undated; 2024-09-10 Rome since 2024-09-01"),
        "2024-03-01 Oslo; 2024-05-01 Paris; 2024-09-02 Rome; now Rome",
        {1: "2024-05-01 Oslo", 2: "2024-09-02 Paris"},
    ),
    scenario(
        "undated last, told of before",
        episodes("2024-06-10 Paris since 2024-06-01; 2024-01-10 Oslo undated"),
        "2023-06-01 nothing; 2024-03-01 Oslo; 2024-07-01 Paris; now Paris",
        {1: "2024-03-01 nothing"},
    ),
    scenario(
        "only undated ones",
        episodes("2024-01-10 Oslo undated; 2024-06-10 Paris undated"),
        "2023-06-01 nothing; 2024-03-01 Oslo; 2024-07-01 Paris; now Paris",
        {1: "now Oslo"},
    ),
    scenario(
        "an undated fact gets its start later",
        episodes("2023-01-10 Acme undated; 2024-01-10 Acme since 2015-01-01"),
        "2014-06-01 nothing; 2018-06-01 Acme; 2023-06-01 Acme; now Acme",
        {1: "2018-06-01 nothing; 2023-06-01 Acme"},
        stored=1,
    ),
    scenario(
        "an end is learned late",
        episodes("2020-01-10 Acme; 2024-01-10 Acme undated until 2022-01-01"),
        "2021-06-01 Acme; 2023-06-01 nothing; now nothing",
        {1: "2023-06-01 Acme; now Acme"},
        stored=1,
    ),
)

EQUAL = (
    scenario(
        "the same start, the one said later arrives first",
        episodes("2024-07-01 Paris since 2024-05-01; 2024-06-01 Oslo since 2024-05-01"),
        "2024-04-01 nothing; 2024-05-15 Paris; now Paris",
        {1: "2024-05-15 Paris"},
    ),
    scenario(
        "the same start, the one said later arrives last",
        episodes("2024-06-01 Oslo since 2024-05-01; 2024-07-01 Paris since 2024-05-01"),
        "2024-04-01 nothing; 2024-05-15 Paris; now Paris",
        {1: "2024-05-15 Oslo"},
    ),
    scenario(
        "said and begun at the same instants",
        episodes("2024-06-01 Oslo since 2024-05-01; 2024-06-01 Paris since 2024-05-01"),
        "2024-04-01 nothing; 2024-05-15 Oslo; now Oslo",
        {0: "now nothing"},
        tie=(OSLO, PARIS),
    ),
    scenario(
        "the future",
        episodes("2024-01-10 Oslo; 2024-06-01 Paris since 2090-01-01"),
        "2024-03-01 Oslo; now Oslo; 2089-12-31 Oslo; 2090-01-01 Paris",
        {1: "2090-01-01 Oslo"},
    ),
    scenario(
        "a stay that will end",
        (said("2024-01-10", lives("Oslo", WHEN_SAID, "2090-01-01")),),
        "2024-03-01 Oslo; now Oslo; 2089-12-31 Oslo; 2090-01-01 nothing",
        {0: "now nothing"},
    ),
)

ZONES = (
    scenario(
        "the local date says otherwise",
        episodes("2024-03-01T00:30:00+09:00 Kyoto; 2024-02-29T20:00:00+00:00 Oslo"),
        "2024-02-29T15:00 nothing; 2024-02-29T16:00 Kyoto; 2024-02-29T21:00 Oslo; now Oslo",
        {1: "now Kyoto"},
    ),
    scenario(
        "one instant in two zones, the one said later holds",
        episodes(
            "2024-03-02T12:00:00+00:00 Oslo since 2024-03-01T00:00:00+00:00; 2024-03-02T12:00:00+09:00 Kyoto since 2024-03-01T09:00:00+09:00"
        ),
        "2024-02-29 nothing; 2024-03-01T00:00 Oslo; now Oslo",
        {1: "2024-03-01 Oslo"},
    ),
    scenario(
        "a day begins where it was said",
        episodes("2024-03-05T08:00:00+09:00 Acme since 2024-03-01"),
        "2024-02-29T14:59:59 nothing; 2024-02-29T15:00 Acme; 2024-03-01T00:00+09:00 Acme; now Acme",
        {0: "2024-03-02 nothing"},
    ),
    scenario(
        "midnight between two zones",
        episodes("2024-03-05T08:00:00+09:00 Kyoto since 2024-03-01; 2024-03-05T08:00:00-05:00 Paris since 2024-03-01"),
        "2024-02-29T16:00 Kyoto; 2024-03-01T04:59 Kyoto; 2024-03-01T05:00 Paris; now Paris",
        {1: "2024-03-01T06:00 Kyoto"},
    ),
)

COARSE = (
    scenario(
        "a leap day",
        episodes("2024-03-10 Acme since 2024-02-29; 2028-03-10 Acme undated until 2028-02-29"),
        "2024-02-28T23:59 nothing; 2024-02-29 Acme; 2028-02-28 Acme; 2028-02-29 nothing",
        {1: "2028-03-01 Acme"},
    ),
    scenario(
        "years only",
        episodes("2020-05-10 Oslo since 2019; 2023-05-10 Paris since 2022"),
        "2018-12-31T23:59 nothing; 2019-01-01 Oslo; 2021-12-31T23:59 Oslo; 2022-01-01 Paris; now Paris",
        {1: "2022-06-01 Oslo"},
    ),
    scenario(
        "months only",
        episodes("2024-06-10 Paris since 2024-05; 2024-06-12 Oslo since 2024-03 until 2024-05"),
        "2024-02-29T23:59 nothing; 2024-03-01 Oslo; 2024-04-30T23:59 Oslo; 2024-05-01 Paris; now Paris",
        {1: "2024-04-01 nothing"},
    ),
    scenario(
        "a year made finer by a day",
        episodes("2020-05-10 Acme since 2019; 2021-05-10 Acme since 2019-05-03"),
        "2018-06-01 nothing; 2019-03-01 nothing; 2019-05-03 Acme; now Acme",
        {1: "2019-03-01 Acme; 2018-06-01 nothing"},
        stored=1,
    ),
    scenario(
        "a day told again as its year",
        episodes("2020-05-10 Acme since 2019-05-03; 2021-05-10 Acme since 2019"),
        "2019-03-01 nothing; 2019-05-03 Acme; now Acme",
        {1: "2019-03-01 nothing; now Acme"},
        stored=1,
    ),
    scenario(
        "a year that cannot be before the day told earlier",
        episodes("2019-03-02 Paris since 2019-03-01; 2019-12-01 Oslo since 2019"),
        "2019-02-01 nothing; 2019-03-01 Paris; 2019-06-01 Oslo; now Oslo",
        {1: "2019-06-01 Paris"},
    ),
    scenario(
        "a year, and a day in it told later",
        episodes("2019-06-10 Oslo since 2019; 2019-11-10 Paris since 2019-11-01"),
        "2018-12-01 nothing; 2019-05-01 Oslo; 2019-10-31 Oslo; 2019-11-01 Paris; now Paris",
        {1: "2019-11-05 Oslo"},
    ),
    scenario(
        "a season, and the day in it",
        (
            said("2023-12-10", replace(works("Acme", "2023-06-01"), words="Ann has worked at Acme since summer 2023")),
            said("2024-02-10", works("Acme", "2023-08-15")),
        ),
        "2023-05-31 nothing; 2023-07-01 nothing; 2023-08-15 Acme; now Acme",
        {1: "2023-07-01 Acme; 2023-05-31 nothing"},
        stored=1,
    ),
    scenario(
        "a week, and the day in it",
        (
            said("2024-03-13", replace(works("Acme", "2024-03-04"), words="Ann started to work at Acme last week")),
            said("2024-03-20", works("Acme", "2024-03-06")),
        ),
        "2024-03-03 nothing; 2024-03-05 nothing; 2024-03-06 Acme; now Acme",
        {1: "2024-03-05 Acme; 2024-03-03 nothing"},
        stored=1,
    ),
    scenario(
        "a year begins where it was said",
        episodes("2020-03-05T08:00:00+09:00 Acme since 2019"),
        "2018-12-31T14:59 nothing; 2018-12-31T15:00 Acme; now Acme",
        {0: "now nothing"},
    ),
)

HARALD = told("Oslo", "was founded by", "Harald", "1048")
SCRIPTS = (
    scenario(
        "in Chinese",
        (said("2024-01-10", stays("北京")), said("2024-06-01", stays("上海")), said("2024-09-01", stays("北京"))),
        "2023-06-01 nothing; 2024-03-01 北京; 2024-07-01 上海; now 北京",
        {2: "now 上海"},
        stored=2,
        verdicts=each_pair("supersedes", stays("北京").sentence, stays("上海").sentence),
    ),
    scenario(
        "a month named in Chinese",
        (
            said("2024-01-10", stays("北京")),
            said("2024-06-15", replace(stays("上海", "2024-05"), words="小明上个月搬到上海")),
        ),
        "2024-04-30T23:59 北京; 2024-05-01 上海; now 上海",
        {1: "2024-05-02 北京"},
        verdicts=each_pair("supersedes", stays("北京").sentence, stays("上海").sentence),
    ),
    scenario(
        "two scripts, one change",
        (said("2024-01-10", stays("北京")), said("2024-06-01", told("小明", "lives in", "Shanghai"))),
        "2024-03-01 北京; 2024-07-01 Shanghai; now Shanghai",
        {1: "now 北京"},
        verdicts=each_pair("supersedes", stays("北京").sentence, "小明 lives in Shanghai"),
    ),
    scenario(
        "a thousand years ago",
        (said("2024-01-10", HARALD), said("2024-02-10", told("Oslo", "was burnt by", "Erik", "1624-08-17"))),
        "1047-12-31 nothing; 1048-01-01 Harald; 1624-08-16 Harald; now Harald + Erik",
        {1: "now Harald"},
        verdicts=each_pair("unrelated", HARALD.sentence, "Oslo was burnt by Erik"),
    ),
    scenario(
        "the first day of the calendar",
        (said("2024-01-10", told("Oslo", "lies in", "Norway", "0001-01-01")),),
        "0001-01-01 Norway; 1000-01-01 Norway; now Norway",
        {0: "now nothing"},
    ),
    scenario(
        "the last year of the calendar",
        episodes("2024-01-10 Oslo since 2024-01-01 until 9999-12-31; 2024-02-10 Paris since 9999"),
        "2024-06-01 Oslo; now Oslo; 9998-12-31 Oslo; 9999-06-01 Paris",
        {1: "9999-06-01 Oslo"},
    ),
)
SCENARIOS = (*UNDATED, *EQUAL, *ZONES, *COARSE, *SCRIPTS)

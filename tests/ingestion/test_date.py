"""Step 6, date: dates of the model get the precision of the words, and words give dates that the model did not."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_memory.settings import Settings
from kg_memory.temporal.interval import OPEN_END, OPEN_START, instant, micros
from tests.ingestion.stepping import date, ended, fact, state

LIVE, MOVED = "I live in Oslo.", "I moved to Oslo"
SPOKEN = "2024-01-01T00:00:00Z"


def stated(content: str, **given: Any) -> dict[str, Any]:
    """Return a fact that is not dated yet, with all of *content* as its quote."""
    return {**fact(end=len(content)), "sentence": "Ann lives in Oslo.", **given}


def dated(content: str, *facts: dict[str, Any], settings: Settings | None = None, **episode: Any) -> list[Any]:
    """Return *facts* with dates, for the message *content* of 1 January 2024."""
    found = ended(date(state(content, facts=list(facts), episode=episode), settings or Settings()))["facts"]
    for one in found:
        assert OPEN_START <= one["valid_at"] < min(OPEN_END, one["window_end"])
        assert one["valid_at"] == OPEN_START or one["valid_at"] < one["invalid_at"]
    return list(found)


def found(content: str = LIVE, since: str | None = None, until: str | None = None, **given: Any) -> dict[str, Any]:
    """Return the only fact of *content* with dates, where *since* and *until* are the dates of the model."""
    episode = {name: given.pop(name) for name in ("at", "offset") if name in given}
    settings = given.pop("settings", None)
    [one] = dated(
        content, stated(content, stated_from=since, stated_until=until, **given), settings=settings, **episode
    )
    return one  # type: ignore[no-any-return]


def day(year: int, month: int = 1, day_: int = 1) -> datetime:
    return datetime(year, month, day_, tzinfo=UTC)


# The message, the start and end of the model, further fields, and the expected start and end.
HOLDS: list[tuple[str, str | None, str | None, dict[str, Any], datetime | None, datetime | None]] = [
    # Dates of the model are in UTC, or in the time zone of the message.
    (LIVE, "2024-05-01", None, {}, day(2024, 5), None),
    (LIVE, "2024-05-01T02:00:00+02:00", "2025", {}, day(2024, 5), day(2025)),
    (LIVE, None, "2023-12-01", {}, None, day(2023, 12)),
    (LIVE, "2019-05-03", None, {"offset": 540}, day(2019, 5, 3) - timedelta(hours=9), None),
    (LIVE, "2019-05-03T10:00:00Z", None, {"offset": 540}, day(2019, 5, 3) + timedelta(hours=10), None),
    # An end that is not after the start is dropped.
    (LIVE, "2024-05-01", "2024-04-01", {}, day(2024, 5), None),
    (LIVE, "2024-05-01", "2024-05-01", {}, day(2024, 5), None),
    (LIVE, "2024-05-01", "2023", {}, day(2024, 5), None),
    # Words give the date if the model gave none, and do not change a date of the model.
    (f"{MOVED} in 2019.", "2018-01-01T00:00:00Z", None, {}, day(2018), None),
    (f"{MOVED} on 5 May 2023.", None, None, {}, day(2023, 5, 5), None),
    (f"{MOVED} yesterday.", None, None, {}, day(2023, 12, 31), None),
    ("I was born on 29 February 2020.", None, None, {}, day(2020, 2, 29), None),
    (LIVE, "2023-02-29", None, {}, None, None),
    ("I left Oslo on 5 May 2023.", None, "2023-05-05", {}, None, day(2023, 5, 5)),
    ("We met on 5 May 2023.", None, None, {"kind": "event"}, day(2023, 5, 5), None),
    ("I was in Oslo on 5 May 2023 and in Rome on 6 June 2023.", None, None, {}, None, None),
    ("I moved here and sing on Tuesday evenings.", None, None, {}, None, None),
    ("I moved here and swim every Monday.", None, None, {}, None, None),
    # A fact in the past tense ends at its stated end, else with the period of its start, else with the message.
    *((LIVE, None, None, {"wording": over}, None, day(2024)) for over in ("LIVED_IN", "WORKED_AT", "WAS_LIVING_IN")),
    (LIVE, None, "2020", {"wording": "LIVED_IN"}, None, day(2020)),
    (LIVE, "2019", None, {"wording": "LIVED_IN"}, day(2019), day(2020)),
    *(
        (LIVE, None, None, {"wording": open_}, None, None)
        for open_ in ("LIVES_IN", "VISITED", "WAS_BORN_IN", "NO_LONGER_LIVES_IN", "HAS_LIVED_IN")
    ),
    *(
        (LIVE, "2019", None, {"wording": "WORKED_AT", "sentence": goes_on}, day(2019), None)
        for goes_on in ("Ann has worked at Acme since 2019.", "Ann has been at Acme.", "小美2019年以来住在上海。")
    ),
    ("It is due by 5 May 2024.", "by 2024-05-05", None, {"kind": "plan", "offset": 600}, day(2024, 5, 5), None),
    *((LIVE, text, text, {}, None, None) for text in ("soon", "2024-13-01", "0000-00-00", "99999", "2024-02-30")),
    *((LIVE, text, text, {}, None, None) for text in ("now", "\x00", "-" * 50)),
]


@pytest.mark.parametrize(("content", "since", "until", "given", "begins", "ends"), HOLDS)
def test_date_sets_start_and_end_of_a_fact(content, since, until, given, begins, ends):
    one = found(content, since, until, **given)
    assert (instant(one["valid_at"]), instant(one["invalid_at"])) == (begins, ends)


@pytest.mark.parametrize(
    ("content", "goes_on"),
    [
        ("I have lived in Oslo since 2020.", True), ("I've lived in Oslo for 4 years.", True), ("我自2020年以来住在奥斯陆。", True),
        ("I moved to Oslo in 2020 since I got a job there.", False), ("I've worked at Acme in 2020.", False),
        ("I moved to Oslo in 2020, since Rome was too hot.", False), ("I moved to Oslo in 2020.", False),
    ],
)  # fmt: skip
def test_only_words_since_a_date_say_that_a_state_goes_on(content, goes_on):
    assert found(content, "2020")["goes_on"] == goes_on


# The time of the message is no start of a fact, unless words or figures name that day.
NOW_IS: list[tuple[str, str | None, dict[str, Any], datetime | None]] = [
    (LIVE, SPOKEN, {}, None),
    (LIVE, "2024-01-01", {}, None),
    ("I live in Oslo since today.", SPOKEN, {}, day(2024)),
    (LIVE, SPOKEN, {"settings": Settings(undated_start="reference")}, day(2024)),
    ("They offered me the job.", "by 2024-01-01", {"kind": "event"}, None),
    ("They offered me the job.", "2024-01-01", {"kind": "event"}, None),
    ("They offered me the job today.", "2024-01-01", {"kind": "event"}, day(2024)),
    ("Updated 1-Jan-2024.", "2024-01-01", {"kind": "event"}, day(2024)),
    ('{"updated": "2024-01-01"}', "2024-01-01", {"kind": "event"}, day(2024)),
    ("I signed just now.", "2024-01-01", {"kind": "event"}, day(2024)),
    ("Today's a holiday.", "2024-01-01", {"kind": "event"}, day(2024)),
]


@pytest.mark.parametrize(("content", "since", "given", "begins"), NOW_IS)
def test_present_tense_without_date_gives_no_start(content, since, given, begins):
    """A present tense without a date gives a fact no start.

    Features: A55.
    """
    assert instant(found(content, since, **given)["valid_at"]) == begins


@pytest.mark.parametrize(
    ("since", "precision", "until"),
    [
        ("2019", "year", day(2020)), ("2019-05", "month", day(2019, 6)), ("2019-05-03", "day", day(2019, 5, 4)),
        ("2024-W10-weekend", "weekend", day(2024, 3, 11)), ("2020-02-29", "day", day(2020, 3)),
        ("2019-12", "month", day(2020)), ("2019-05-03T10:00:00Z", "instant", None),
        ("2019-05-03T00:00:00+00:00", "instant", None), (None, "instant", None),
    ],
)  # fmt: skip
def test_date_has_the_precision_of_its_text(since, precision, until):
    """The precision of a date is that of its text.

    Features: B8.
    """
    one = found(since=since)
    assert (one["precision"], instant(one["window_end"]), one["invalid_at"]) == (precision, until, OPEN_END)


@pytest.mark.parametrize(
    ("content", "since", "begins", "precision"),
    [
        (f"{MOVED} in 2019.", "2019-01-01T00:00:00Z", day(2019), "year"),
        (f"{MOVED} in 2019.", "2019-01-01", day(2019), "year"),
        (f"{MOVED} in 2019.", None, day(2019), "year"),
        (f"{MOVED} in May 2019.", "2019-05-01T00:00:00Z", day(2019, 5), "month"),
        (f"{MOVED} on 3 May 2019.", "2019-05-03T00:00:00Z", day(2019, 5, 3), "day"),
        ("我2019年搬到了奥斯陆。", "2019-01-01T00:00:00Z", day(2019), "year"),
        (f"{MOVED} in 2019.", "2019-05-03", day(2019, 5, 3), "day"),
        (f"{MOVED}.", "2019-01-01T00:00:00Z", day(2019), "instant"),
        (f"{MOVED} a few years ago.", "2021", day(2021), "about"),
        (f"{MOVED} around 2019.", "2019", day(2019), "about"),
        ("I have lived in Oslo for three years.", "2021", day(2021), "about"),
        ("We had sold it by May 2023.", "by 2023-05", day(2023, 5), "by"),
        (f"{MOVED} last week.", "2023-12-25", day(2023, 12, 25), "week"),
        ("Last weekend we drove to Oslo.", "2023-12-30", day(2023, 12, 30), "weekend"),
        ("上周末我们去了奥斯陆。", "2023-12-30", day(2023, 12, 30), "weekend"),
        (f"{MOVED} in summer.", "2023-summer", day(2023, 6), "season"),
    ],
)
def test_date_has_the_precision_of_the_quoted_words(content, since, begins, precision):
    one = found(content, since)
    assert (instant(one["valid_at"]), one["precision"]) == (begins, precision)


@pytest.mark.parametrize(
    ("content", "since", "kind", "precision"),
    [
        ("I told him on 1 January. I signed this week.", "2024-01-01", "event", "day"),  # a week begins on that day
        ("I start on 1 March 2024 at 10:00, for two years.", "2024-03-01T10:00:00Z", "plan", "instant"),
    ],
)
def test_date_precision_ignores_other_dates_in_the_words(content, since, kind, precision):
    assert found(content, since, kind=kind)["precision"] == precision


@pytest.mark.parametrize(
    ("content", "since", "until", "kind", "ends", "precision"),
    [
        ("I lived in Oslo.", None, "2021", "state", day(2021), "year"),
        ("I lived in Oslo.", None, "2021-05", "state", day(2021, 5), "month"),
        ("I lived in Oslo.", None, "2021-05-03T00:00:00Z", "state", day(2021, 5, 3), "instant"),
        ("I left Oslo in 2021.", None, "2021-01-01T00:00:00Z", "state", day(2021), "year"),
        ("I lived in Oslo.", None, "soon", "state", None, "instant"),
        ("I lived in Oslo.", None, None, "state", None, "instant"),
        (LIVE, "2024-05", "2023", "state", None, "instant"),
        # The time of the message is no exact end: the state ended by then.
        ("I left Acme.", None, SPOKEN, "former", day(2024), "by"),
        ("I left Acme today.", None, "2024-01-01", "former", day(2024), "day"),
        ("I bought a car in 2019, I had it for long.", "2019", None, "former", day(2024), "by"),
        ("I used to smoke.", None, None, "former", day(2024), "by"),
    ],
)
def test_end_has_the_precision_of_its_source(content, since, until, kind, ends, precision):
    one = found(content, since, until, kind=kind)
    assert (instant(one["invalid_at"]), one["end_precision"]) == (ends, precision)


def test_yesterday_is_resolved_in_time_zone_of_the_message():
    """The word "yesterday" is resolved in the time zone of the message.

    Features: A11.
    """
    # 1 January, 1 a.m. in Tokyo, is still 31 December in UTC.
    said = {"at": micros(datetime(2023, 12, 31, 16, tzinfo=UTC), default=0), "offset": 540}
    one = found(f"{MOVED} yesterday.", **said)
    begins = datetime(2023, 12, 31, tzinfo=UTC) - timedelta(hours=9)
    assert (instant(one["valid_at"]), one["precision"]) == (begins, "day")
    assert instant(one["window_end"]) == begins + timedelta(days=1)


SOLD = "I sold the car, bought in 2019."


@pytest.mark.parametrize(
    ("content", "facts"),
    [
        ("I live in Oslo. We met on 5 May 2023.", [stated(LIVE)]),
        (SOLD, [{**stated(SOLD), "quoted": False}]),
        (SOLD, [stated(SOLD), stated(SOLD)]),
        # The model gave that date to another fact.
        (SOLD, [stated(SOLD, kind="event"), stated(SOLD, kind="event", id="bought", stated_from="2019", start=17)]),
    ],
)
def test_ambiguous_dates_are_not_assigned_to_a_fact(content, facts):
    assert dated(content, *facts)[0]["valid_at"] == OPEN_START


def test_date_precision_uses_words_outside_the_quote():
    content = "Last week I moved. Oslo!"
    [one] = dated(content, stated(content, stated_from="2023-12-25", start=19, end=24))
    assert one["precision"] == "week"


TIMES = st.none() | st.text(max_size=30) | st.dates().map(str) | st.datetimes().map(datetime.isoformat)


@given(TIMES, TIMES, st.text(max_size=60), st.integers(-1080, 1080))
def test_any_dates_and_words_give_a_valid_interval(since, until, content, offset):
    found(content, since, until, offset=offset)

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_memory.settings import Settings
from kg_memory.temporal.interval import OPEN_END, OPEN_START, instant, micros
from tests.ingestion.stepping import NOW, date, ended, fact, state


def stated(content: str, **given: Any) -> dict[str, Any]:
    """Return a fact that all of *content* states, before it is dated."""
    return {**fact(end=len(content)), "sentence": "Ann lives in Oslo.", **given}


def found(
    content: str = "I live in Oslo.",
    stated_from: str | None = None,
    stated_until: str | None = None,
    kind: str = "state",
    settings: Settings | None = None,
    **episode: Any,
) -> dict[str, Any]:
    """Return such a fact, said on 1 January 2024, once it is dated."""
    undated = stated(content, stated_from=stated_from, stated_until=stated_until, kind=kind)
    [dated_fact] = ended(date(state(content, facts=[undated], episode=episode), settings or Settings()))["facts"]
    assert OPEN_START <= dated_fact["valid_at"] < OPEN_END
    assert dated_fact["valid_at"] == OPEN_START or dated_fact["valid_at"] < dated_fact["invalid_at"]
    return dated_fact


def dated(*given: Any, **named: Any) -> tuple[Any, Any]:
    """Return when that fact holds."""
    fact_ = found(*given, **named)
    return instant(fact_["valid_at"]), instant(fact_["invalid_at"])


def day(year: int, month: int = 1, day_: int = 1) -> datetime:
    return datetime(year, month, day_, tzinfo=UTC)


def test_the_models_dates_are_taken_in_utc():
    assert dated(stated_from="2024-05-01") == (day(2024, 5), None)
    assert dated(stated_from="2024-05-01T02:00:00+02:00", stated_until="2025") == (day(2024, 5), day(2025))
    assert dated(stated_until="2023-12-01") == (None, day(2023, 12))


@pytest.mark.parametrize("text", ["soon", "2024-13-01", "0000-00-00", "99999", "2024-02-30", "now", "\x00", "-" * 50])
def test_a_date_that_is_none_is_no_date(text):
    assert dated(stated_from=text, stated_until=text) == (None, None)


@pytest.mark.parametrize(
    ("stated_from", "precision", "until"),
    [
        ("2019", "year", day(2020)), ("2019-05", "month", day(2019, 6)), ("2019-05-03", "day", day(2019, 5, 4)),
        ("2020-02-29", "day", day(2020, 3)), ("2019-12", "month", day(2020)),
    ],
)  # fmt: skip
def test_a_date_is_as_coarse_as_it_is_written(stated_from, precision, until):
    fact = found(stated_from=stated_from)
    assert (fact["precision"], instant(fact["window_end"])) == (precision, until)
    assert fact["invalid_at"] == OPEN_END


@pytest.mark.parametrize("stated_from", ["2019-05-03T10:00:00Z", "2019-05-03T00:00:00+00:00", None])
def test_an_instant_and_no_date_have_no_window(stated_from):
    fact = found(stated_from=stated_from)
    assert (fact["precision"], fact["window_end"]) == ("instant", OPEN_END)


@pytest.mark.parametrize(
    ("content", "stated_from", "precision"),
    [
        ("I moved to Oslo in 2019.", "2019-01-01T00:00:00Z", "year"),
        ("I moved to Oslo in 2019.", "2019-01-01", "year"),
        ("I moved to Oslo in May 2019.", "2019-05-01T00:00:00Z", "month"),
        ("I moved to Oslo on 3 May 2019.", "2019-05-03T00:00:00Z", "day"),
        ("我2019年搬到了奥斯陆。", "2019-01-01T00:00:00Z", "year"),
        ("I moved to Oslo in 2019.", "2019-05-03", "day"),
        ("I moved to Oslo.", "2019-01-01T00:00:00Z", "instant"),
    ],
)
def test_what_the_model_gives_as_an_instant_is_as_coarse_as_the_words_that_say_it(content, stated_from, precision):
    assert found(content, stated_from)["precision"] == precision


@pytest.mark.parametrize(
    ("content", "stated_until", "precision"),
    [
        ("I lived in Oslo.", "2021", "year"),
        ("I lived in Oslo.", "2021-05", "month"),
        ("I lived in Oslo.", "2021-05-03T10:00:00Z", "instant"),
        ("I left Oslo in 2021.", "2021-01-01T00:00:00Z", "year"),
        ("I lived in Oslo.", "soon", "instant"),
        ("I lived in Oslo.", None, "instant"),
    ],
)
def test_an_end_is_as_coarse_as_it_is_told(content, stated_until, precision):
    assert found(content, stated_until=stated_until)["end_precision"] == precision


def test_an_end_that_is_dropped_has_no_precision():
    assert found(stated_from="2024-05", stated_until="2023")["end_precision"] == "instant"


def test_the_words_do_not_move_a_date_of_the_model():
    assert dated("I moved to Oslo in 2019.", "2018-01-01T00:00:00Z") == (day(2018), None)


def test_where_the_model_gave_none_the_words_that_state_the_fact_may_name_one():
    assert dated("I moved to Oslo on 5 May 2023.") == (day(2023, 5, 5), None)
    assert dated("I moved to Oslo yesterday.") == (day(2023, 12, 31), None)
    assert found("I moved to Oslo in 2019.")["precision"] == "year"


def test_yesterday_is_the_day_before_by_the_clock_of_where_it_was_said():
    # 1 January, one at night in Tokyo, is still 31 December in UTC.
    said = {"at": micros(datetime(2023, 12, 31, 16, tzinfo=UTC), default=0), "offset": 540}
    fact = found("I moved to Oslo yesterday.", **said)
    begins = datetime(2023, 12, 31, tzinfo=UTC) - timedelta(hours=9)
    assert (instant(fact["valid_at"]), fact["precision"]) == (begins, "day")
    assert instant(fact["window_end"]) == begins + timedelta(days=1)


def test_a_date_without_a_zone_is_one_of_where_it_was_said():
    assert dated(stated_from="2019-05-03", offset=540) == (day(2019, 5, 3) - timedelta(hours=9), None)
    assert dated(stated_from="2019-05-03T10:00:00Z", offset=540)[0] == datetime(2019, 5, 3, 10, tzinfo=UTC)


def test_a_birthday_on_a_leap_day_is_that_day_and_one_in_another_year_is_none():
    assert dated("I was born on 29 February 2020.") == (day(2020, 2, 29), None)
    assert dated(stated_from="2023-02-29") == (None, None)


def test_two_dates_in_the_words_are_no_date_as_nobody_knows_which():
    assert dated("I was in Oslo on 5 May 2023 and in Rome on 6 June 2023.") == (None, None)


def test_a_date_in_other_words_of_the_episode_is_not_the_facts():
    given_state = state("I live in Oslo. We met on 5 May 2023.", facts=[stated("I live in Oslo.")])
    [dated_fact] = ended(date(given_state, Settings()))["facts"]
    assert dated_fact["valid_at"] == OPEN_START


def test_words_that_were_not_found_or_that_state_several_facts_give_none_a_date():
    content = "I work with Acme. My sister was born in 1990."
    fact = stated(content)
    for facts in ([{**fact, "quoted": False}], [fact, fact]):
        told = ended(date(state(content, facts=facts), Settings()))["facts"]
        assert {each["valid_at"] for each in told} == {OPEN_START}


@pytest.mark.parametrize("until", ["2024-04-01", "2024-05-01", "2023"])
def test_an_end_that_is_not_after_the_start_is_dropped(until):
    assert dated(stated_from="2024-05-01", stated_until=until) == (day(2024, 5), None)


def test_an_end_given_by_the_model_is_not_given_a_start_from_the_words():
    assert dated("I left Oslo on 5 May 2023.", stated_until="2023-05-05") == (None, day(2023, 5, 5))


@pytest.mark.parametrize("wording", ["LIVED_IN", "WORKED_AT", "WAS_LIVING_IN"])
def test_what_is_worded_as_over_has_ended_when_it_is_said(wording):
    [fact] = ended(date(state(facts=[stated("I live in Oslo.", wording=wording)]), Settings()))["facts"]
    assert (fact["valid_at"], fact["invalid_at"]) == (OPEN_START, NOW)


@pytest.mark.parametrize("wording", ["LIVES_IN", "VISITED", "WAS_BORN_IN", "NO_LONGER_LIVES_IN", "HAS_LIVED_IN"])
def test_what_is_so_now_or_happened_once_or_says_its_end_by_its_name_is_not_over(wording):
    [fact] = ended(date(state(facts=[stated("I live in Oslo.", wording=wording)]), Settings()))["facts"]
    assert fact["invalid_at"] == OPEN_END


def test_what_is_worded_as_over_ends_where_it_is_said_to():
    told = stated("I live in Oslo.", wording="LIVED_IN", stated_until="2020")
    [fact] = ended(date(state(facts=[told]), Settings()))["facts"]
    assert instant(fact["invalid_at"]) == day(2020)


def test_what_was_in_a_coarse_time_and_is_over_ended_with_that_time():
    told = stated("I live in Oslo.", wording="LIVED_IN", stated_from="2019")
    [fact] = ended(date(state(facts=[told]), Settings()))["facts"]
    assert (instant(fact["valid_at"]), instant(fact["invalid_at"])) == (day(2019), day(2020))


TIMES = st.none() | st.text(max_size=30) | st.dates().map(str) | st.datetimes().map(datetime.isoformat)


@given(TIMES, TIMES, st.text(max_size=60), st.integers(-1080, 1080))
def test_whatever_the_model_and_the_words_say_the_interval_is_one(stated_from, stated_until, content, offset):
    fact = found(content, stated_from, stated_until, offset=offset)
    assert fact["window_end"] > fact["valid_at"]


@pytest.mark.parametrize(
    "sentence", ["Ann has worked at Acme since 2019.", "Ann has been at Acme.", "小美2019年以来住在上海。"]
)
def test_what_goes_on_is_not_over_whatever_the_tense_of_its_predicate(sentence):
    told = stated("I live in Oslo.", wording="WORKED_AT", sentence=sentence, stated_from="2019")
    [fact] = ended(date(state(facts=[told]), Settings()))["facts"]
    assert fact["invalid_at"] == OPEN_END


def test_that_something_is_so_now_is_no_start():
    spoken = "2024-01-01T00:00:00Z"
    assert dated("I live in Oslo.", spoken) == (None, None)
    assert dated("I live in Oslo.", "2024-01-01") == (None, None)
    assert dated("I live in Oslo since today.", spoken) == (day(2024), None)
    assert dated("I live in Oslo.", spoken, settings=Settings(undated_start="reference")) == (day(2024), None)


def test_an_event_takes_place_when_it_is_told_to():
    assert dated("We met on 5 May 2023.", kind="event") == (day(2023, 5, 5), None)


def test_that_an_event_has_happened_by_now_is_no_time():
    assert dated("They offered me the job.", "by 2024-01-01", kind="event") == (None, None)
    assert dated("They offered me the job.", "2024-01-01", kind="event") == (None, None)
    assert dated("They offered me the job today.", "2024-01-01", kind="event") == (day(2024), None)


def test_a_day_that_is_named_stays_a_day_beside_a_week_that_begins_on_it():
    assert found("I told him on 1 January. I signed this week.", "2024-01-01", kind="event")["precision"] == "day"


def test_that_it_is_over_by_now_is_no_end():
    left = found("I left Acme.", stated_until="2024-01-01T00:00:00Z", kind="former")
    assert (instant(left["invalid_at"]), left["end_precision"]) == (day(2024), "by")
    today = found("I left Acme today.", stated_until="2024-01-01", kind="former")
    assert (instant(today["invalid_at"]), today["end_precision"]) == (day(2024), "day")


def test_what_recurs_on_a_day_has_no_date():
    for words in ("I moved here and sing on Tuesday evenings.", "I moved here and swim every Monday."):
        assert dated(words) == (None, None)


def test_the_latest_day_is_the_day_that_was_told_wherever_that_was():
    found_by = found("It is due by 5 May 2024.", "by 2024-05-05", kind="plan", offset=600)
    assert instant(found_by["valid_at"]) == day(2024, 5, 5)


@pytest.mark.parametrize(
    "content", ["Updated 1-Jan-2024.", '{"updated": "2024-01-01"}', "I signed just now.", "Today's a holiday."]
)
def test_the_day_of_the_message_is_a_date_where_words_or_figures_name_it(content):
    assert dated(content, "2024-01-01", kind="event") == (day(2024), None)


def test_what_lasts_for_years_makes_no_other_date_vague():
    content = "I start on 1 March 2024 at 10:00, for two years."
    assert found(content, "2024-03-01T10:00:00Z", kind="plan")["precision"] == "instant"


def test_a_date_in_the_words_that_the_model_gave_to_another_fact_is_not_taken():
    content = "I sold the car, bought in 2019."
    sold = {**stated(content, kind="event"), "id": "sold"}
    bought = {**stated(content, kind="event", stated_from="2019"), "id": "bought", "start": 17}
    first, _ = ended(date(state(content, facts=[sold, bought], episode={}), Settings()))["facts"]
    assert first["valid_at"] == OPEN_START


def test_what_began_in_a_year_and_is_over_did_not_end_with_it():
    owned = found("I bought a car in 2019, I had it for long.", "2019", kind="former")
    assert (instant(owned["invalid_at"]), owned["end_precision"]) == (day(2024), "by")


def test_what_is_over_without_a_date_ended_before_it_was_told():
    fact = found("I used to smoke.", kind="former")
    assert (instant(fact["valid_at"]), instant(fact["invalid_at"]), fact["end_precision"]) == (None, day(2024), "by")


@pytest.mark.parametrize(
    ("content", "given", "begins", "precision"),
    [
        ("I moved to Oslo a few years ago.", "2021", day(2021), "about"),
        ("I moved to Oslo around 2019.", "2019", day(2019), "about"),
        ("I have lived in Oslo for three years.", "2021", day(2021), "about"),
        ("We had sold it by May 2023.", "by 2023-05", day(2023, 5), "by"),
        ("I moved to Oslo last week.", "2023-12-25", day(2023, 12, 25), "week"),
        ("I moved to Oslo in summer.", "2023-summer", day(2023, 6), "season"),
    ],
)
def test_a_date_is_as_vague_as_the_words_that_tell_it(content, given, begins, precision):
    fact = found(content, given)
    assert (instant(fact["valid_at"]), fact["precision"]) == (begins, precision)


def test_the_words_of_the_whole_message_tell_how_exact_a_date_is():
    fact = stated("Last week I moved. Oslo!", stated_from="2023-12-25", start=19, end=24)
    [dated_fact] = ended(date(state("Last week I moved. Oslo!", facts=[fact], episode={}), Settings()))["facts"]
    assert dated_fact["precision"] == "week"

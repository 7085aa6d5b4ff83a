"""Sentences with dates, as in summaries."""

from datetime import UTC, datetime
from typing import Any

import pytest

from kg_memory.temporal.interval import OPEN_END, OPEN_START, micros
from kg_memory.text.dated import DatedFact, dated, dated_past, without_dates


def us(*parts: int) -> int:
    return micros(datetime(*parts, tzinfo=UTC), default=0)  # type: ignore[misc]


MAY, LATER = us(2024, 5, 14), us(2025, 1, 1)


def fact(sentence: str, start: int = OPEN_START, end: int = OPEN_END, **told: Any) -> DatedFact:
    dates = {"valid_at": start, "invalid_at": end, "precision": "day", "end_precision": "day"}
    said = {"kind": "state", "predicate": "LIKES", "said_at": us(2024, 6, 1, 10), "offset": 0}
    return {"sentence": sentence, **dates, **said, **told}  # type: ignore[typeddict-item]


SENTENCES: dict[str, tuple[DatedFact, str]] = {
    "a state": (fact("Ann lives in Oslo", MAY), "Ann lives in Oslo (since 2024-05-14)"),
    "a stop": (fact("Ann lives in Oslo.", MAY), "Ann lives in Oslo (since 2024-05-14)."),
    "in Chinese": (fact("安住在奥斯陆。", MAY), "安住在奥斯陆 (since 2024-05-14)。"),
    "a time of day": (fact("Ann sails", us(2024, 5, 14, 9, 30), precision="instant"), "Ann sails (since 2024-05-14)"),
    "an event of a day": (fact("Ann moved to Oslo", MAY, kind="event"), "Ann moved to Oslo (on 2024-05-14)"),
    "an event of a month": (
        fact("Ann moved to Oslo", us(2024, 5, 1), kind="event", precision="month"), "Ann moved to Oslo (in 2024-05)",
    ),
    "a week": (
        fact("Ann moved to Oslo", us(2024, 5, 6), kind="event", precision="week"),
        "Ann moved to Oslo (in the week of 2024-05-06)",
    ),
    "a weekend": (
        fact("Ann drove to Lucca", us(2024, 3, 9), kind="event", precision="weekend"),
        "Ann drove to Lucca (on the weekend of 2024-03-09)",
    ),
    "a season": (fact("Ann sails", us(2024, 6, 1), precision="season"), "Ann sails (since summer 2024)"),
    "about": (
        fact("Ann got a dog a few years ago", us(2020, 1, 1), kind="event", precision="about"),
        "Ann got a dog a few years ago (about 2020)",
    ),
    "by": (fact("Ann sold it", MAY, kind="event", precision="by"), "Ann sold it (by 2024-05-14)"),
    "a state by": (fact("Ann lives in Rome", MAY, precision="by"), "Ann lives in Rome (by 2024-05-14)"),
    "by a message on the first of a month": (
        fact("Ann lives in Rome", us(2024, 5, 1, 9), precision="by"), "Ann lives in Rome (by 2024-05-01)",
    ),
    "a plan": (
        fact("Ann is to move to Rome", us(2025, 1, 1), kind="plan", precision="month"),
        "Ann is to move to Rome (planned for 2025-01)",
    ),
    "with an end": (fact("Ann studies", MAY, LATER), "Ann studies (from 2024-05-14 to 2025-01-01)"),
    "only an end": (fact("Ann studies", end=LATER), "Ann studies (until 2025-01-01)"),
    "no date": (fact("Ann likes tea."), "Ann likes tea."),
    "a passing state": (fact("Ann is tired", predicate="FEELS"), "Ann is tired (said on 2024-06-01)"),
    "a state that may pass": (fact("Ann's knee is sore", predicate="HAS_SORE"), "Ann's knee is sore (said on 2024-06-01)"),
    "no date but words that count from when it was said": (
        fact("Ann: we met a few years ago"), "Ann: we met a few years ago (said on 2024-06-01)",
    ),
    "an event without a date": (fact("Ann won", kind="event"), "Ann won (said on 2024-06-01)"),
}  # fmt: skip


@pytest.mark.parametrize(("told", "sentence"), SENTENCES.values(), ids=SENTENCES.keys())
def test_dated_appends_dates_with_their_precision(told, sentence):
    assert dated(told) == sentence
    assert without_dates(sentence).rstrip(".。") == told["sentence"].rstrip(".。")


def test_dated_past_begins_with_the_end():
    assert dated_past(fact("Ann lives in Oslo", end=MAY)) == "Until 2024-05-14: Ann lives in Oslo"
    lived = fact("Ann lives in Oslo", us(2019, 1, 1), MAY, precision="year", end_precision="month")
    assert dated_past(lived) == "From 2019 until 2024-05: Ann lives in Oslo"
    left = fact("Ann lives in Oslo", end=MAY, end_precision="by")
    assert dated_past(left) == "Until 2024-05-14 at the latest: Ann lives in Oslo"
    trip = fact("Ann sailed", MAY, us(2024, 5, 20), kind="event")
    assert dated_past(trip) == "Ann sailed (from 2024-05-14 to 2024-05-20)"


@pytest.mark.parametrize("sentence", ["Ann lives in Oslo (Norway)", "Ann (on leave)", "Ann works at Acme (in Oslo)."])
def test_without_dates_leaves_other_brackets(sentence):
    assert without_dates(sentence) == sentence

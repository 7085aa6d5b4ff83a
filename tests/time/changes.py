"""Scenarios of change: facts that end others, return, or are learned late."""

from __future__ import annotations

from dataclasses import replace

from tests.time.scenarios import WHEN_SAID, Scenario, Told, at, each_pair, said, told


def lives(place: str, since: str | None = WHEN_SAID, until: str | None = None) -> Told:
    return told("Ann", "lives in", place, since, until)


def works(firm: str, since: str | None = WHEN_SAID, until: str | None = None) -> Told:
    return told("Ann", "works at", firm, since, until)


OSLO, PARIS, ROME, KYOTO, BERGEN = (lives(each).sentence for each in ("Oslo", "Paris", "Rome", "Kyoto", "Bergen"))
ACME, BETA = works("Acme").sentence, works("Beta").sentence
MOVES = each_pair("supersedes", OSLO, PARIS, ROME, KYOTO, BERGEN)
MEETS_LATE = replace(told("Ann", "is to meet", "Bo", "2090-08-23"), kind="plan")
MEETS_EARLY = replace(told("Ann", "decided to meet", "Bo", "2090-08-22"), kind="plan")
CALLED_OFF = replace(told("Ann", "decided not to meet", "Bo", None), kind="event")
PLANS = each_pair("supersedes", MEETS_LATE.sentence, MEETS_EARLY.sentence, CALLED_OFF.sentence)

SCENARIOS = (
    Scenario(
        "in order",
        (said("2024-01-10", lives("Oslo", "2024-01-10")), said("2024-06-01", lives("Paris", "2024-06-01"))),
        MOVES,
        (
            at("2024-01-09"),
            at("2024-03-01", OSLO),
            at("2024-05-31T23:59:59", OSLO),
            at("2024-06-01", PARIS),
            at(None, PARIS),
            at(None, after=0),
            at(None, OSLO, after=1),
            at("2024-07-01", OSLO, after=1),
        ),
        stored=2,
    ),
    Scenario(
        "back-dated",
        (said("2024-01-10", lives("Oslo")), said("2024-09-01", lives("Paris", "2024-03-01"))),
        MOVES,
        (at("2024-02-01", OSLO), at("2024-05-01", PARIS), at(None, PARIS), at("2024-05-01", OSLO, after=1)),
    ),
    Scenario(
        "back-dated between two",
        (
            said("2024-01-10", lives("Oslo")),
            said("2024-09-01", lives("Rome")),
            said("2024-10-01", lives("Paris", "2024-06-01")),
        ),
        MOVES,
        (
            at("2024-03-01", OSLO),
            at("2024-07-01", PARIS),
            at("2024-09-02", ROME),
            at(None, ROME),
            at("2024-07-01", OSLO, after=2),
            at("2024-09-02", OSLO, after=1),
            at(None, ROME, after=2),
        ),
    ),
    Scenario(
        "out of order",
        (said("2024-06-01", lives("Paris")), said("2024-01-10", lives("Oslo"))),
        MOVES,
        (
            at("2024-02-01", OSLO),
            at("2024-07-01", PARIS),
            at(None, PARIS),
            at("2024-02-01", after=1),
            at(None, PARIS, after=1),
        ),
    ),
    Scenario(
        "returning",
        (said("2024-01-10", lives("Oslo")), said("2024-06-01", lives("Paris")), said("2024-09-01", lives("Oslo"))),
        MOVES,
        (
            at("2024-03-01", OSLO),
            at("2024-07-01", PARIS),
            at("2024-10-01", OSLO),
            at(None, OSLO),
            at(None, PARIS, after=2),
            at("2024-10-01", PARIS, after=2),
            at("2024-10-01", OSLO, after=1),
        ),
        stored=2,
    ),
    Scenario(
        "returning twice",
        (
            said("2020-01-10", lives("Oslo")),
            said("2021-01-10", lives("Paris")),
            said("2022-01-10", lives("Oslo")),
            said("2023-01-10", lives("Paris")),
            said("2024-01-10", lives("Oslo")),
        ),
        MOVES,
        (
            at("2020-06-01", OSLO),
            at("2021-06-01", PARIS),
            at("2022-06-01", OSLO),
            at("2023-06-01", PARIS),
            at(None, OSLO),
            at(None, PARIS, after=4),
            at("2022-06-01", PARIS, after=2),
        ),
        stored=2,
    ),
    Scenario(
        "returning, the stay between learned last",
        (said("2024-09-01", lives("Oslo")), said("2024-01-10", lives("Oslo")), said("2024-06-01", lives("Paris"))),
        MOVES,
        (
            at("2024-03-01", OSLO),
            at("2024-07-01", PARIS),
            at("2024-10-01", OSLO),
            at(None, OSLO),
            at("2024-07-01", OSLO, after=2),
            at("2024-07-01", after=1),
        ),
    ),
    Scenario(
        "five moves, shuffled",
        (
            said("2022-01-10", lives("Rome")),
            said("2020-01-10", lives("Oslo")),
            said("2024-01-10", lives("Bergen")),
            said("2021-01-10", lives("Paris")),
            said("2023-01-10", lives("Kyoto")),
        ),
        MOVES,
        (
            at("2019-06-01"),
            at("2020-06-01", OSLO),
            at("2021-06-01", PARIS),
            at("2022-06-01", ROME),
            at("2023-06-01", KYOTO),
            at(None, BERGEN),
            at("2023-06-01", ROME, after=2),
            at(None, BERGEN, after=3),
        ),
    ),
    Scenario(
        "three values that began together and apart",
        (
            said("2024-04-02", lives("Rome", "2024-03-01")),
            said("2024-01-10", lives("Oslo")),
            said("2024-04-01", lives("Paris", "2024-03-01")),
        ),
        MOVES,
        (
            at("2024-02-01", OSLO),
            at("2024-03-15", ROME),
            at(None, ROME),
            at("2024-02-01", after=1),
            at("2024-03-15", ROME, after=2),
        ),
    ),
    Scenario(
        "an earlier stay told after a later one, with both its dates",
        (
            said("2020-01-10", lives("Oslo")),
            said("2023-01-10", lives("Paris", "2022-01-01", "2022-07-01")),
            said("2023-02-10", lives("Oslo")),
        ),
        MOVES,
        (
            at("2021-06-01", OSLO),
            at("2022-03-01", PARIS),
            at("2022-09-01"),
            at("2023-03-01", OSLO),
            at(None, OSLO),
            at("2022-03-01", OSLO, after=1),
            at("2023-03-01", after=2),
        ),
    ),
    Scenario(
        "overlapping stays",
        (
            said("2024-01-10", lives("Oslo", "2024-01-01", "2024-06-01")),
            said("2024-05-10", lives("Paris", "2024-05-01")),
        ),
        MOVES,
        (
            at("2024-04-01", OSLO),
            at("2024-05-15", PARIS),
            at("2024-06-15", PARIS),
            at("2024-05-15", OSLO, after=1),
            at("2024-06-15", after=1),
        ),
    ),
    Scenario(
        "stays with gaps between",
        (
            said("2024-01-10", lives("Oslo", "2020-01-01", "2021-01-01")),
            said("2024-02-10", lives("Paris", "2022-01-01", "2023-01-01")),
            said("2024-03-10", lives("Oslo", "2023-06-01", "2023-12-01")),
        ),
        MOVES,
        (
            at("2020-06-01", OSLO),
            at("2021-06-01"),
            at("2022-06-01", PARIS),
            at("2023-03-01"),
            at("2023-07-01", OSLO),
            at(None),
            at("2023-07-01", after=2),
            at("2020-06-01", OSLO, after=1),
        ),
        stored=2,
    ),
    Scenario(
        "one episode tells the old and the new",
        (said("2024-01-10", lives("Oslo", "2020-01-01", "2023-05-01"), lives("Paris", "2023-05-01")),),
        MOVES,
        (at("2022-01-01", OSLO), at("2023-05-01", PARIS), at(None, PARIS), at(None, after=0), at(None, PARIS, after=1)),
    ),
    Scenario(
        "an old start told after the move",
        (
            said("2024-01-10", lives("Oslo")),
            said("2024-06-01", lives("Paris")),
            said("2024-12-01", lives("Oslo", "2020-01-01")),
        ),
        MOVES,
        (
            at("2019-06-01"),
            at("2022-01-01", OSLO),
            at("2024-03-01", OSLO),
            at(None, PARIS),
            at("2022-01-01", after=2),
            at(None, PARIS, after=2),
        ),
        stored=2,
    ),
    Scenario(
        "a plan is brought forward, then called off",
        (said("2024-01-10", MEETS_LATE), said("2024-02-10", MEETS_EARLY), said("2024-03-10", CALLED_OFF)),
        PLANS,
        (
            at("2090-08-24", MEETS_LATE.sentence, after=1),
            at("2090-08-24", MEETS_EARLY.sentence, after=2),
            at("2090-08-24", CALLED_OFF.sentence),
            at(None, CALLED_OFF.sentence),
        ),
        stored=3,
    ),
)

"""Scenarios of change: facts that end others, return, or are learned late."""

import re
from dataclasses import replace

from tests.time.scenarios import WHEN_SAID, Said, Told, each_pair, said, scenario, told


def lives(place: str, since: str | None = WHEN_SAID, until: str | None = None) -> Told:
    return told("Ann", "lives in", place, since, until)


def works(firm: str, since: str | None = WHEN_SAID, until: str | None = None) -> Told:
    return told("Ann", "works at", firm, since, until)


def episodes(text: str) -> tuple[Said, ...]:
    """Return the episodes of Ann in *text*: ``2024-01-10 Oslo + Acme undated; 2024-09-01 Paris since 2024-03``."""
    return tuple(
        said(each.split(" ", 1)[0], *map(_fact, each.split(" ", 1)[1].split(" + "))) for each in text.split("; ")
    )


def _fact(text: str) -> Told:
    name, undated, since, until = re.fullmatch(r"(\w+)( undated)?(?: since (\S+))?(?: until (\S+))?", text).groups()
    return (works if name in FIRMS else lives)(name, since or (None if undated else WHEN_SAID), until)


FIRMS = ("Acme", "Beta")
ACME, BETA = works("Acme").sentence, works("Beta").sentence
MEETS_LATE = replace(told("Ann", "is to meet", "Bo", "2090-08-23"), kind="plan")
MEETS_EARLY = replace(told("Ann", "decided to meet", "Bo", "2090-08-22"), kind="plan")
CALLED_OFF = replace(told("Ann", "decided not to meet", "Bo", None), kind="event")
PLANS = each_pair("supersedes", MEETS_LATE.sentence, MEETS_EARLY.sentence, CALLED_OFF.sentence)

SCENARIOS = (
    scenario(
        "in order",
        episodes("2024-01-10 Oslo since 2024-01-10; 2024-06-01 Paris since 2024-06-01"),
        "2024-01-09 nothing; 2024-03-01 Oslo; 2024-05-31T23:59:59 Oslo; 2024-06-01 Paris; now Paris",
        {0: "now nothing", 1: "now Oslo; 2024-07-01 Oslo"},
        stored=2,
    ),
    scenario(
        "back-dated",
        episodes("2024-01-10 Oslo; 2024-09-01 Paris since 2024-03-01"),
        "2024-02-01 Oslo; 2024-05-01 Paris; now Paris",
        {1: "2024-05-01 Oslo"},
    ),
    scenario(
        "back-dated between two",
        episodes("2024-01-10 Oslo; 2024-09-01 Rome; 2024-10-01 Paris since 2024-06-01"),
        "2024-03-01 Oslo; 2024-07-01 Paris; 2024-09-02 Rome; now Rome",
        {1: "2024-09-02 Oslo", 2: "2024-07-01 Oslo; now Rome"},
    ),
    scenario(
        "out of order",
        episodes("2024-06-01 Paris; 2024-01-10 Oslo"),
        "2024-02-01 Oslo; 2024-07-01 Paris; now Paris",
        {1: "2024-02-01 nothing; now Paris"},
    ),
    scenario(
        "returning",
        episodes("2024-01-10 Oslo; 2024-06-01 Paris; 2024-09-01 Oslo"),
        "2024-03-01 Oslo; 2024-07-01 Paris; 2024-10-01 Oslo; now Oslo",
        {1: "2024-10-01 Oslo", 2: "now Paris; 2024-10-01 Paris"},
        stored=2,
    ),
    scenario(
        "returning twice",
        episodes("2020-01-10 Oslo; 2021-01-10 Paris; 2022-01-10 Oslo; 2023-01-10 Paris; 2024-01-10 Oslo"),
        "2020-06-01 Oslo; 2021-06-01 Paris; 2022-06-01 Oslo; 2023-06-01 Paris; now Oslo",
        {2: "2022-06-01 Paris", 4: "now Paris"},
        stored=2,
    ),
    scenario(
        "returning, the stay between learned last",
        episodes("2024-09-01 Oslo; 2024-01-10 Oslo; 2024-06-01 Paris"),
        "2024-03-01 Oslo; 2024-07-01 Paris; 2024-10-01 Oslo; now Oslo",
        {1: "2024-07-01 nothing", 2: "2024-07-01 Oslo"},
    ),
    scenario(
        "five moves, shuffled",
        episodes("2022-01-10 Rome; 2020-01-10 Oslo; 2024-01-10 Bergen; 2021-01-10 Paris; 2023-01-10 Kyoto"),
        "2019-06-01 nothing; 2020-06-01 Oslo; 2021-06-01 Paris; 2022-06-01 Rome; 2023-06-01 Kyoto; now Bergen",
        {2: "2023-06-01 Rome", 3: "now Bergen"},
    ),
    scenario(
        "three values that began together and apart",
        episodes("2024-04-02 Rome since 2024-03-01; 2024-01-10 Oslo; 2024-04-01 Paris since 2024-03-01"),
        "2024-02-01 Oslo; 2024-03-15 Rome; now Rome",
        {1: "2024-02-01 nothing", 2: "2024-03-15 Rome"},
    ),
    scenario(
        "an earlier stay told after a later one, with both its dates",
        episodes("2020-01-10 Oslo; 2023-01-10 Paris since 2022-01-01 until 2022-07-01; 2023-02-10 Oslo"),
        "2021-06-01 Oslo; 2022-03-01 Paris; 2022-09-01 nothing; 2023-03-01 Oslo; now Oslo",
        {1: "2022-03-01 Oslo", 2: "2023-03-01 nothing"},
    ),
    scenario(
        "overlapping stays",
        episodes("2024-01-10 Oslo since 2024-01-01 until 2024-06-01; 2024-05-10 Paris since 2024-05-01"),
        "2024-04-01 Oslo; 2024-05-15 Paris; 2024-06-15 Paris",
        {1: "2024-05-15 Oslo; 2024-06-15 nothing"},
    ),
    scenario(
        "stays with gaps between",
        episodes(
            "2024-01-10 Oslo since 2020-01-01 until 2021-01-01; 2024-02-10 Paris since 2022-01-01 until 2023-01-01; 2024-03-10 Oslo since 2023-06-01 until 2023-12-01"
        ),
        "2020-06-01 Oslo; 2021-06-01 nothing; 2022-06-01 Paris; 2023-03-01 nothing; 2023-07-01 Oslo; now nothing",
        {1: "2020-06-01 Oslo", 2: "2023-07-01 nothing"},
        stored=2,
    ),
    scenario(
        "one episode tells the old and the new",
        episodes("2024-01-10 Oslo since 2020-01-01 until 2023-05-01 + Paris since 2023-05-01"),
        "2022-01-01 Oslo; 2023-05-01 Paris; now Paris",
        {0: "now nothing", 1: "now Paris"},
    ),
    scenario(
        "an old start told after the move",
        episodes("2024-01-10 Oslo; 2024-06-01 Paris; 2024-12-01 Oslo since 2020-01-01"),
        "2019-06-01 nothing; 2022-01-01 Oslo; 2024-03-01 Oslo; now Paris",
        {2: "2022-01-01 nothing; now Paris"},
        stored=2,
    ),
    scenario(
        "a plan is brought forward, then called off",
        (said("2024-01-10", MEETS_LATE), said("2024-02-10", MEETS_EARLY), said("2024-03-10", CALLED_OFF)),
        "2090-08-24 not to meet Bo; now not to meet Bo",
        {1: "2090-08-24 is to meet Bo", 2: "2090-08-24 decided to meet Bo"},
        stored=3,
        verdicts=PLANS,
    ),
)

"""Scenarios of wrong facts: corrected, denied, retracted and restored."""

from __future__ import annotations

from tests.time.changes import ACME, MOVES, OSLO, PARIS, ROME, lives, works
from tests.time.scenarios import Scenario, Told, Verdict, at, each_pair, said, told


def born(place: str) -> Told:
    return told("Ann", "was born in", place, "1990")


BORN_OSLO, BORN_BERGEN, BORN_ROME = (born(each).sentence for each in ("Oslo", "Bergen", "Rome"))
NEVER_ACME = told("Ann", "never worked at", "Acme", None)
NEVER_PARIS = told("Ann", "never lived in", "Paris", None)
BIRTHS = each_pair("conflicts", BORN_OSLO, BORN_BERGEN, BORN_ROME)
NO_PARIS = told("Ann", "will not live in", "Paris", None)
SCENARIOS = (
    Scenario(
        "a value corrected",
        (said("2024-01-10", born("Oslo")), said("2024-02-10", born("Bergen"))),
        BIRTHS,
        (at("1989-06-01"), at("2000-01-01", BORN_BERGEN), at(None, BORN_BERGEN), at("2000-01-01", BORN_OSLO, after=1)),
    ),
    Scenario(
        "corrected twice",
        (said("2024-01-10", born("Oslo")), said("2024-02-10", born("Bergen")), said("2024-03-10", born("Rome"))),
        BIRTHS,
        (
            at(None, BORN_ROME),
            at("2000-01-01", BORN_ROME),
            at(None, BORN_OSLO, after=1),
            at(None, BORN_BERGEN, after=2),
            at("2000-01-01", BORN_BERGEN, after=2),
        ),
    ),
    Scenario(
        "a correction taken back",
        (said("2024-01-10", born("Oslo")), said("2024-02-10", born("Bergen")), said("2024-03-10", born("Oslo"))),
        BIRTHS,
        (
            at(None, BORN_OSLO),
            at("2000-01-01", BORN_OSLO),
            at(None, BORN_BERGEN, after=2),
            at(None, BORN_OSLO, after=1),
        ),
        stored=2,
    ),
    Scenario(
        "a date corrected: June, not May",
        (said("2024-07-10", works("Acme", "2024-05-01")), said("2024-08-10", works("Acme", "2024-06-01"))),
        (Verdict(ACME, ACME, "conflicts"),),
        (at("2024-05-15"), at("2024-06-15", ACME), at(None, ACME), at("2024-05-15", ACME, after=1)),
        stored=1,
    ),
    Scenario(
        "a date corrected to an earlier one: April, not May",
        (said("2024-07-10", works("Acme", "2024-05-01")), said("2024-08-10", works("Acme", "2024-04-01"))),
        (Verdict(ACME, ACME, "conflicts"),),
        (at("2024-03-15"), at("2024-04-15", ACME), at(None, ACME), at("2024-04-15", after=1), at(None, ACME, after=1)),
        stored=1,
    ),
    Scenario(
        "a date corrected twice",
        (
            said("2024-07-10", works("Acme", "2024-05-01")),
            said("2024-08-10", works("Acme", "2024-06-01")),
            said("2024-09-10", works("Acme", "2024-04-01")),
        ),
        (Verdict(ACME, ACME, "conflicts"),),
        (
            at("2024-03-15"),
            at("2024-04-15", ACME),
            at(None, ACME),
            at("2024-05-15", after=2),
            at("2024-06-15", ACME, after=2),
            at("2024-05-15", ACME, after=1),
        ),
        stored=1,
    ),
    Scenario(
        "an end corrected: June, not January",
        (
            said("2020-01-10", works("Acme")),
            said("2023-01-10", works("Acme", None, "2022-01-01")),
            said("2024-01-10", works("Acme", None, "2022-06-01")),
        ),
        (Verdict(ACME, ACME, "conflicts"),),
        (
            at("2021-06-01", ACME),
            at("2022-03-01", ACME),
            at("2022-06-01"),
            at(None),
            at("2022-03-01", after=2),
            at("2022-03-01", ACME, after=1),
        ),
        stored=1,
    ),
    Scenario(
        "a date corrected in other words",
        (
            said("2024-07-10", works("Acme", "2024-05-01")),
            said(
                "2024-08-10", Told("Ann", "JOINED", "Acme", "Ann joined Acme a month later than she told", "2024-06-01")
            ),
        ),
        (Verdict("Ann joined Acme a month later than she told", ACME, "conflicts"),),
        (
            at("2024-05-15"),
            at("2024-06-15", "Ann joined Acme a month later than she told"),
            at("2024-05-15", ACME, after=1),
            at("2024-06-15", ACME, after=1),
        ),
    ),
    Scenario(
        "a move corrected: Rome, not Paris",
        (
            said("2023-01-10", lives("Oslo")),
            said("2024-02-10", lives("Paris", "2024-01-01")),
            said("2024-02-20", lives("Rome", "2024-01-01")),
        ),
        (
            *each_pair("supersedes", OSLO, PARIS),
            *each_pair("supersedes", OSLO, ROME),
            Verdict(PARIS, ROME, "conflicts"),
        ),
        (
            at("2023-06-01", OSLO),
            at("2024-01-15", ROME),
            at(None, ROME),
            at("2024-01-15", PARIS, after=2),
            at("2024-01-15", OSLO, after=1),
        ),
    ),
    Scenario(
        "retracted",
        (said("2024-01-10", works("Acme")), said("2024-03-10", NEVER_ACME)),
        (Verdict(NEVER_ACME.sentence, ACME, "conflicts"),),
        (
            at("2024-02-01"),
            at("2024-04-01", NEVER_ACME.sentence),
            at(None, NEVER_ACME.sentence),
            at("2024-02-01", ACME, after=1),
            at(None, ACME, after=1),
        ),
    ),
    Scenario(
        "what the retracted fact had ended is restored",
        (said("2023-01-10", lives("Oslo")), said("2024-01-10", lives("Paris")), said("2024-03-10", NEVER_PARIS)),
        (*MOVES, Verdict(NEVER_PARIS.sentence, PARIS, "conflicts")),
        (
            at("2023-06-01", OSLO),
            at("2024-02-01", OSLO),
            at(None, OSLO, NEVER_PARIS.sentence),
            at("2024-02-01", PARIS, after=2),
            at(None, PARIS, after=2),
            at("2024-02-01", OSLO, after=1),
        ),
    ),
    Scenario(
        "the middle of three moves retracted",
        (
            said("2022-01-10", lives("Oslo")),
            said("2023-01-10", lives("Paris")),
            said("2024-01-10", lives("Rome")),
            said("2024-03-10", NEVER_PARIS),
        ),
        (*MOVES, Verdict(NEVER_PARIS.sentence, PARIS, "conflicts")),
        (
            at("2022-06-01", OSLO),
            at("2023-06-01", OSLO),
            at("2024-02-01", ROME),
            at(None, ROME, NEVER_PARIS.sentence),
            at("2023-06-01", PARIS, after=3),
            at(None, PARIS, after=2),
        ),
    ),
    Scenario(
        "an undated fact denied",
        (said("2024-01-10", works("Acme", None)), said("2024-03-10", NEVER_ACME)),
        (Verdict(NEVER_ACME.sentence, ACME, "conflicts"),),
        (
            at("2024-02-01"),
            at("2024-04-01", NEVER_ACME.sentence),
            at(None, NEVER_ACME.sentence),
            at("2024-02-01", ACME, after=1),
        ),
    ),
    Scenario(
        "a denial taken back",
        (said("2024-01-10", works("Acme")), said("2024-02-10", NEVER_ACME), said("2024-03-10", works("Acme"))),
        (Verdict(NEVER_ACME.sentence, ACME, "conflicts"),),
        (
            at("2024-01-20", ACME),
            at("2024-02-20", ACME),
            at(None, ACME),
            at(None, NEVER_ACME.sentence, after=2),
            at("2024-01-20", after=2),
            at(None, ACME, after=1),
        ),
        stored=2,
    ),
    Scenario(
        "a plan denied before it came true",
        (
            said("2024-01-10", lives("Oslo")),
            said("2024-02-10", lives("Paris", "2090-01-01")),
            said("2024-03-10", NO_PARIS),
        ),
        (*MOVES, Verdict(NO_PARIS.sentence, PARIS, "conflicts")),
        (
            at(None, OSLO, NO_PARIS.sentence),
            at("2090-02-01", OSLO, NO_PARIS.sentence),
            at("2090-02-01", PARIS, after=2),
            at("2089-12-31", OSLO, after=2),
            at(None, OSLO, after=1),
        ),
    ),
)

"""Scenarios of premises that end, with events and vague dates: facts that become doubtful, and facts that do not."""

from __future__ import annotations

from dataclasses import replace

from tests.time.scenarios import WHEN_SAID, Scenario, Told, at, each_pair, said, told


def works(firm: str, since: str | None = WHEN_SAID, until: str | None = None) -> Told:
    return told("Ann", "works at", firm, since, until)


def because(fact: Told, *premises: Told) -> Told:
    """Return *fact* with *premises*, which are stated in the same episode."""
    return replace(fact, because=tuple(premise.sentence for premise in premises))


def event(fact: Told) -> Told:
    """Return *fact* as an event."""
    return replace(fact, kind="event")


PARKS, KEEPS, FLIES = told("Ann", "parks at", "Garage"), told("Ann", "keeps", "Ticket"), told("Ann", "flew to", "Lyon")
ACME, BETA, GAMMA = (works(each).sentence for each in ("Acme", "Beta", "Gamma"))
JOBS = each_pair("supersedes", ACME, BETA)
RESTING = said("2024-01-10", because(PARKS, works("Acme")), works("Acme"))
CHAIN = said("2024-02-10", because(KEEPS, PARKS), PARKS)

SCENARIOS = (
    Scenario(
        "a reason ends",
        (RESTING, said("2024-06-01", works("Acme", None, "2024-05-03"))),
        (),
        (
            at("2024-02-01", ACME, PARKS.sentence),
            at("2024-05-10", PARKS.sentence, doubtful=[PARKS.sentence]),
            at(None, PARKS.sentence, doubtful=[PARKS.sentence]),
            at("2024-05-10", ACME, PARKS.sentence, after=1),
        ),
    ),
    Scenario(
        "a reason is replaced",
        (RESTING, said("2024-06-01", works("Beta", "2024-05-03"))),
        JOBS,
        (
            at("2024-05-02", ACME, PARKS.sentence),
            at("2024-05-10", BETA, PARKS.sentence, doubtful=[PARKS.sentence]),
            at(None, BETA, PARKS.sentence, doubtful=[PARKS.sentence]),
            at(None, ACME, PARKS.sentence, after=1),
        ),
    ),
    Scenario(
        "what lost its reason is said again",
        (RESTING, said("2024-06-01", works("Beta", "2024-05-03")), said("2024-07-01", PARKS)),
        JOBS,
        (
            at("2024-02-01", ACME, PARKS.sentence),
            at(None, BETA, PARKS.sentence),
            at(None, BETA, PARKS.sentence, after=2, doubtful=[PARKS.sentence]),
            at("2024-06-15", BETA, PARKS.sentence, after=2, doubtful=[PARKS.sentence]),
        ),
    ),
    Scenario(
        "a reason holds again",
        (RESTING, said("2024-06-01", works("Acme", None, "2024-05-03")), said("2024-08-01", works("Acme"))),
        (),
        (
            at("2024-02-01", ACME, PARKS.sentence),
            at("2024-06-15", PARKS.sentence, doubtful=[PARKS.sentence]),
            at(None, ACME, PARKS.sentence),
            at(None, PARKS.sentence, after=2, doubtful=[PARKS.sentence]),
        ),
    ),
    Scenario(
        "a chain of reasons",
        (RESTING, CHAIN, said("2024-06-01", works("Acme", None, "2024-05-03"))),
        (),
        (
            at("2024-03-01", ACME, PARKS.sentence, KEEPS.sentence),
            at(None, PARKS.sentence, KEEPS.sentence, doubtful=[PARKS.sentence, KEEPS.sentence]),
            at("2024-05-02", ACME, PARKS.sentence, KEEPS.sentence),
            at(None, ACME, PARKS.sentence, KEEPS.sentence, after=2),
        ),
    ),
    Scenario(
        "a reason that was never so",
        (RESTING, said("2024-06-01", works("Gamma", "2024-01-01"))),
        each_pair("conflicts", ACME, GAMMA),
        (
            at("2024-02-01", GAMMA, PARKS.sentence, doubtful=[PARKS.sentence]),
            at(None, GAMMA, PARKS.sentence, doubtful=[PARKS.sentence]),
            at("2024-02-01", ACME, PARKS.sentence, after=1),
            at(None, ACME, PARKS.sentence, after=1),
        ),
    ),
    Scenario(
        "what happened stands when its reason ends later",
        (
            said("2024-02-01", because(event(replace(FLIES, since="2024-01-20")), works("Acme")), works("Acme")),
            said("2024-06-01", works("Acme", None, "2024-05-03")),
        ),
        (),
        (
            at("2024-02-02", ACME, FLIES.sentence),
            at("2024-06-15", FLIES.sentence),
            at(None, FLIES.sentence),
            at(None, ACME, FLIES.sentence, after=1),
        ),
    ),
    Scenario(
        "a start that is known about, and an end by a day",
        (
            said("2024-01-10", because(PARKS, works("Acme", "about 2019")), works("Acme", "about 2019")),
            said("2024-06-01", works("Acme", None, "by 2024-05-03")),
        ),
        (),
        (
            at("2020-06-01", ACME),
            at("2024-02-01", ACME, PARKS.sentence),
            at(None, PARKS.sentence, doubtful=[PARKS.sentence]),
            at("2024-05-10", PARKS.sentence, doubtful=[PARKS.sentence]),
            at(None, ACME, PARKS.sentence, after=1),
        ),
    ),
    Scenario(
        "an end that is known by its month, and what is said in it",
        (RESTING, said("2024-05-20", works("Acme", None, "2024-05")), said("2024-05-21", PARKS)),
        (),
        (
            at("2024-02-01", ACME, PARKS.sentence),
            at(None, PARKS.sentence),
            at(None, PARKS.sentence, after=2, doubtful=[PARKS.sentence]),
            at("2024-05-10", PARKS.sentence, after=2, doubtful=[PARKS.sentence]),
        ),
    ),
)

"""Scenarios of premises that end, with events and vague dates: facts that become doubtful, and facts that do not."""

from dataclasses import replace

from tests.time.scenarios import WHEN_SAID, Told, each_pair, said, scenario, told


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
    scenario(
        "a reason ends",
        (RESTING, said("2024-06-01", works("Acme", None, "2024-05-03"))),
        "2024-02-01 Garage + Acme; 2024-05-10 Garage?; now Garage?",
        {1: "2024-05-10 Garage + Acme"},
    ),
    scenario(
        "a reason is replaced",
        (RESTING, said("2024-06-01", works("Beta", "2024-05-03"))),
        "2024-05-02 Garage + Acme; 2024-05-10 Garage? + Beta; now Garage? + Beta",
        {1: "now Garage + Acme"},
        verdicts=JOBS,
    ),
    scenario(
        "what lost its reason is said again",
        (RESTING, said("2024-06-01", works("Beta", "2024-05-03")), said("2024-07-01", PARKS)),
        "2024-02-01 Garage + Acme; now Garage + Beta",
        {2: "now Garage? + Beta; 2024-06-15 Garage? + Beta"},
        verdicts=JOBS,
    ),
    scenario(
        "a reason holds again",
        (RESTING, said("2024-06-01", works("Acme", None, "2024-05-03")), said("2024-08-01", works("Acme"))),
        "2024-02-01 Garage + Acme; 2024-06-15 Garage?; now Garage + Acme",
        {2: "now Garage?"},
    ),
    scenario(
        "a chain of reasons",
        (RESTING, CHAIN, said("2024-06-01", works("Acme", None, "2024-05-03"))),
        "2024-03-01 Garage + Acme + Ticket; now Garage? + Ticket?; 2024-05-02 Garage + Acme + Ticket",
        {2: "now Garage + Acme + Ticket"},
    ),
    scenario(
        "a reason that was never so",
        (RESTING, said("2024-06-01", works("Gamma", "2024-01-01"))),
        "2024-02-01 Garage? + Gamma; now Garage? + Gamma",
        {1: "2024-02-01 Garage + Acme; now Garage + Acme"},
        verdicts=each_pair("conflicts", ACME, GAMMA),
    ),
    scenario(
        "what happened stands when its reason ends later",
        (
            said("2024-02-01", because(event(replace(FLIES, since="2024-01-20")), works("Acme")), works("Acme")),
            said("2024-06-01", works("Acme", None, "2024-05-03")),
        ),
        "2024-02-02 Lyon + Acme; 2024-06-15 Lyon; now Lyon",
        {1: "now Lyon + Acme"},
    ),
    scenario(
        "a start that is known about, and an end by a day",
        (
            said("2024-01-10", because(PARKS, works("Acme", "about 2019")), works("Acme", "about 2019")),
            said("2024-06-01", works("Acme", None, "by 2024-05-03")),
        ),
        "2020-06-01 Acme; 2024-02-01 Garage + Acme; now Garage?; 2024-05-10 Garage?",
        {1: "now Garage + Acme"},
    ),
    scenario(
        "an end that is known by its month, and what is said in it",
        (RESTING, said("2024-05-20", works("Acme", None, "2024-05")), said("2024-05-21", PARKS)),
        "2024-02-01 Garage + Acme; now Garage",
        {2: "now Garage?; 2024-05-10 Garage?"},
    ),
)

"""Scenarios of wrong facts: corrected, denied, retracted and restored."""

from tests.time.changes import ACME, episodes, lives, works
from tests.time.scenarios import MOVES, OSLO, PARIS, ROME, Told, Verdict, each_pair, said, scenario, told


def born(place: str) -> Told:
    return told("Ann", "was born in", place, "1990")


BORN_OSLO, BORN_BERGEN, BORN_ROME = (born(each).sentence for each in ("Oslo", "Bergen", "Rome"))
NEVER_ACME = told("Ann", "never worked at", "Acme", None)
NEVER_PARIS = told("Ann", "never lived in", "Paris", None)
BIRTHS = each_pair("conflicts", BORN_OSLO, BORN_BERGEN, BORN_ROME)
NO_PARIS = told("Ann", "will not live in", "Paris", None)
SCENARIOS = (
    scenario(
        "a value corrected",
        (said("2024-01-10", born("Oslo")), said("2024-02-10", born("Bergen"))),
        "1989-06-01 nothing; 2000-01-01 Bergen; now Bergen",
        {1: "2000-01-01 Oslo"},
        verdicts=BIRTHS,
    ),
    scenario(
        "corrected twice",
        (said("2024-01-10", born("Oslo")), said("2024-02-10", born("Bergen")), said("2024-03-10", born("Rome"))),
        "now Rome; 2000-01-01 Rome",
        {1: "now Oslo", 2: "now Bergen; 2000-01-01 Bergen"},
        verdicts=BIRTHS,
    ),
    scenario(
        "a correction taken back",
        (said("2024-01-10", born("Oslo")), said("2024-02-10", born("Bergen")), said("2024-03-10", born("Oslo"))),
        "now Oslo; 2000-01-01 Oslo",
        {1: "now Oslo", 2: "now Bergen"},
        stored=2,
        verdicts=BIRTHS,
    ),
    scenario(
        "a date corrected: June, not May",
        episodes("2024-07-10 Acme since 2024-05-01; 2024-08-10 Acme since 2024-06-01"),
        "2024-05-15 nothing; 2024-06-15 Acme; now Acme",
        {1: "2024-05-15 Acme"},
        stored=1,
        verdicts=(Verdict(ACME, ACME, "conflicts"),),
    ),
    scenario(
        "a date corrected to an earlier one: April, not May",
        episodes("2024-07-10 Acme since 2024-05-01; 2024-08-10 Acme since 2024-04-01"),
        "2024-03-15 nothing; 2024-04-15 Acme; now Acme",
        {1: "2024-04-15 nothing; now Acme"},
        stored=1,
        verdicts=(Verdict(ACME, ACME, "conflicts"),),
    ),
    scenario(
        "a date corrected twice",
        episodes(
            "2024-07-10 Acme since 2024-05-01; 2024-08-10 Acme since 2024-06-01; 2024-09-10 Acme since 2024-04-01"
        ),
        "2024-03-15 nothing; 2024-04-15 Acme; now Acme",
        {1: "2024-05-15 Acme", 2: "2024-05-15 nothing; 2024-06-15 Acme"},
        stored=1,
        verdicts=(Verdict(ACME, ACME, "conflicts"),),
    ),
    scenario(
        "an end corrected: June, not January",
        episodes("2020-01-10 Acme; 2023-01-10 Acme undated until 2022-01-01; 2024-01-10 Acme undated until 2022-06-01"),
        "2021-06-01 Acme; 2022-03-01 Acme; 2022-06-01 nothing; now nothing",
        {1: "2022-03-01 Acme", 2: "2022-03-01 nothing"},
        stored=1,
        verdicts=(Verdict(ACME, ACME, "conflicts"),),
    ),
    scenario(
        "a date corrected in other words",
        (
            said("2024-07-10", works("Acme", "2024-05-01")),
            said(
                "2024-08-10", Told("Ann", "JOINED", "Acme", "Ann joined Acme a month later than she told", "2024-06-01")
            ),
        ),
        "2024-05-15 nothing; 2024-06-15 told",
        {1: "2024-05-15 Acme; 2024-06-15 Acme"},
        verdicts=(Verdict("Ann joined Acme a month later than she told", ACME, "conflicts"),),
    ),
    scenario(
        "a move corrected: Rome, not Paris",
        episodes("2023-01-10 Oslo; 2024-02-10 Paris since 2024-01-01; 2024-02-20 Rome since 2024-01-01"),
        "2023-06-01 Oslo; 2024-01-15 Rome; now Rome",
        {1: "2024-01-15 Oslo", 2: "2024-01-15 Paris"},
        verdicts=(
            *each_pair("supersedes", OSLO, PARIS),
            *each_pair("supersedes", OSLO, ROME),
            Verdict(PARIS, ROME, "conflicts"),
        ),
    ),
    scenario(
        "retracted",
        (said("2024-01-10", works("Acme")), said("2024-03-10", NEVER_ACME)),
        "2024-02-01 nothing; 2024-04-01 worked at Acme; now worked at Acme",
        {1: "2024-02-01 works at Acme; now works at Acme"},
        verdicts=(Verdict(NEVER_ACME.sentence, ACME, "conflicts"),),
    ),
    scenario(
        "what the retracted fact had ended is restored",
        (said("2023-01-10", lives("Oslo")), said("2024-01-10", lives("Paris")), said("2024-03-10", NEVER_PARIS)),
        "2023-06-01 Oslo; 2024-02-01 Oslo; now Oslo + lived in Paris",
        {1: "2024-02-01 Oslo", 2: "2024-02-01 lives in Paris; now lives in Paris"},
        verdicts=(*MOVES, Verdict(NEVER_PARIS.sentence, PARIS, "conflicts")),
    ),
    scenario(
        "the middle of three moves retracted",
        (
            said("2022-01-10", lives("Oslo")),
            said("2023-01-10", lives("Paris")),
            said("2024-01-10", lives("Rome")),
            said("2024-03-10", NEVER_PARIS),
        ),
        "2022-06-01 Oslo; 2023-06-01 Oslo; 2024-02-01 Rome; now Rome + lived in Paris",
        {2: "now lives in Paris", 3: "2023-06-01 lives in Paris"},
        verdicts=(*MOVES, Verdict(NEVER_PARIS.sentence, PARIS, "conflicts")),
    ),
    scenario(
        "an undated fact denied",
        (said("2024-01-10", works("Acme", None)), said("2024-03-10", NEVER_ACME)),
        "2024-02-01 nothing; 2024-04-01 worked at Acme; now worked at Acme",
        {1: "2024-02-01 works at Acme"},
        verdicts=(Verdict(NEVER_ACME.sentence, ACME, "conflicts"),),
    ),
    scenario(
        "a denial taken back",
        (said("2024-01-10", works("Acme")), said("2024-02-10", NEVER_ACME), said("2024-03-10", works("Acme"))),
        "2024-01-20 works at Acme; 2024-02-20 works at Acme; now works at Acme",
        {1: "now works at Acme", 2: "now worked at Acme; 2024-01-20 nothing"},
        stored=2,
        verdicts=(Verdict(NEVER_ACME.sentence, ACME, "conflicts"),),
    ),
    scenario(
        "a plan denied before it came true",
        (
            said("2024-01-10", lives("Oslo")),
            said("2024-02-10", lives("Paris", "2090-01-01")),
            said("2024-03-10", NO_PARIS),
        ),
        "now Oslo + live in Paris; 2090-02-01 Oslo + live in Paris",
        {1: "now Oslo", 2: "2090-02-01 lives in Paris; 2089-12-31 Oslo"},
        verdicts=(*MOVES, Verdict(NO_PARIS.sentence, PARIS, "conflicts")),
    ),
)

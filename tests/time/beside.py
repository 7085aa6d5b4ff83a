"""Scenarios of facts that hold together, of facts that end without a successor, and of unsure verdicts."""

from __future__ import annotations

from dataclasses import replace

from tests.time.changes import ACME, BETA, MOVES, OSLO, PARIS, lives, works
from tests.time.corrected import NEVER_ACME
from tests.time.scenarios import Scenario, Told, Verdict, at, each_pair, said, told

RETIRED = told("Ann", "retired from", "Acme")
ALSO_BETA = told("Ann", "also works at", "Beta")
CHESS, TENNIS = told("Ann", "plays", "chess"), told("Ann", "plays", "tennis")
STAYS = told("Ann", "is staying in", "Paris", "2024-07-01", "2024-07-08")
NO_LONGER = told("Ann", "no longer lives in", "Oslo", None, "2024-03-01")
HOME = Told("Ann", "HAS_HOME_IN", "Oslo", "Ann has her home in Oslo")
FOND = told("Ann", "is fond of", "chess")
OWNS = told("Ann", "owns", "Acme", "2021-01-01")
BESIDE = (
    Scenario(
        "two hobbies",
        (said("2024-01-10", CHESS), said("2024-06-01", TENNIS)),
        each_pair("complements", CHESS.sentence, TENNIS.sentence),
        (
            at("2024-03-01", CHESS.sentence),
            at(None, CHESS.sentence, TENNIS.sentence),
            at("2024-07-01", CHESS.sentence, after=1),
            at("2023-12-01"),
        ),
    ),
    Scenario(
        "also works at",
        (said("2024-01-10", works("Acme")), said("2024-06-01", ALSO_BETA)),
        each_pair("complements", ACME, ALSO_BETA.sentence),
        (
            at("2024-03-01", ACME),
            at("2024-07-01", ACME, ALSO_BETA.sentence),
            at(None, ACME, ALSO_BETA.sentence),
            at(None, ACME, after=1),
        ),
    ),
    Scenario(
        "the first of two jobs ends",
        (
            said("2024-01-10", works("Acme")),
            said("2024-06-01", ALSO_BETA),
            said("2024-09-01", works("Acme", None, "2024-08-01")),
        ),
        each_pair("complements", ACME, ALSO_BETA.sentence),
        (
            at("2024-03-01", ACME),
            at("2024-07-01", ACME, ALSO_BETA.sentence),
            at(None, ALSO_BETA.sentence),
            at("2024-08-15", ACME, ALSO_BETA.sentence, after=2),
        ),
        stored=2,
    ),
    Scenario(
        "one fact ends two",
        (said("2024-01-10", works("Acme")), said("2024-06-01", ALSO_BETA), said("2024-09-01", RETIRED)),
        (
            *each_pair("complements", ACME, ALSO_BETA.sentence),
            Verdict(RETIRED.sentence, ACME, "supersedes"),
            Verdict(RETIRED.sentence, ALSO_BETA.sentence, "supersedes"),
        ),
        (
            at("2024-07-01", ACME, ALSO_BETA.sentence),
            at(None, RETIRED.sentence),
            at("2024-10-01", ACME, ALSO_BETA.sentence, after=2),
            at("2024-03-01", ACME),
            at(None, ACME, after=1),
        ),
    ),
    Scenario(
        "a move does not end the job",
        (said("2024-01-10", lives("Oslo"), works("Acme")), said("2024-06-01", lives("Paris"))),
        MOVES,
        (
            at("2024-01-01"),
            at("2024-03-01", OSLO, ACME),
            at(None, PARIS, ACME),
            at(None, OSLO, ACME, after=1),
            at("2024-07-01", OSLO, ACME, after=1),
        ),
    ),
    Scenario(
        "the same pair, two predicates",
        (
            said("2024-01-10", works("Acme", "2020-01-01")),
            said("2024-02-10", OWNS),
            said("2024-03-10", works("Acme", None, "2024-03-01")),
        ),
        each_pair("complements", ACME, OWNS.sentence),
        (
            at("2020-06-01", ACME),
            at("2022-06-01", ACME, OWNS.sentence),
            at(None, OWNS.sentence),
            at("2024-03-05", ACME, OWNS.sentence, after=2),
            at(None, ACME, after=1),
        ),
    ),
    Scenario(
        "a passing state beside a lasting one",
        (said("2024-01-10", lives("Oslo")), said("2024-07-02", STAYS)),
        (Verdict(STAYS.sentence, OSLO, "temporary"),),
        (
            at("2024-06-01", OSLO),
            at("2024-07-03", OSLO, STAYS.sentence),
            at("2024-07-08", OSLO),
            at(None, OSLO),
            at("2024-07-03", OSLO, after=1),
        ),
    ),
    Scenario(
        "a passing state of a month, its end not told",
        (said("2024-01-10", lives("Oslo")), said("2024-07-02", replace(STAYS, since="2024-07", until=None))),
        (Verdict(STAYS.sentence, OSLO, "temporary"),),
        (
            at("2024-07-20", OSLO, STAYS.sentence),
            at("2024-08-01", OSLO),
            at(None, OSLO),
            at("2024-07-20", OSLO, after=1),
        ),
        in_order=True,
    ),
    Scenario(
        "no longer",
        (said("2023-01-10", lives("Oslo")), said("2024-03-10", lives("Oslo", None, "2024-03-01"))),
        (),
        (
            at("2022-12-01"),
            at("2023-06-01", OSLO),
            at("2024-02-29", OSLO),
            at("2024-03-01"),
            at(None),
            at("2024-03-05", OSLO, after=1),
            at(None, OSLO, after=1),
        ),
        stored=1,
    ),
    Scenario(
        "no longer, in a sentence of its own",
        (said("2023-01-10", lives("Oslo")), said("2024-03-10", NO_LONGER)),
        each_pair("duplicate", OSLO, NO_LONGER.sentence),
        (at("2022-12-01"), at("2023-06-01", OSLO), at("2024-03-01"), at(None), at("2024-03-05", OSLO, after=1)),
        stored=1,
    ),
    Scenario(
        "no longer, its start learned later",
        (said("2024-03-10", works("Acme", None, "2024-03-01")), said("2023-04-10", works("Acme", "2020-01-01"))),
        (),
        (
            at("2019-06-01"),
            at("2021-06-01", ACME),
            at("2024-03-05"),
            at(None),
            at("2019-06-01", ACME, after=1),
            at("2024-03-05", after=1),
        ),
        stored=1,
    ),
    Scenario(
        "no longer, without a start",
        (said("2024-03-10", works("Acme", None, "2019-01-01")), said("2024-04-10", works("Beta", "2021-01-01"))),
        each_pair("supersedes", ACME, BETA),
        (
            at("2018-06-01", ACME),
            at("2019-01-01"),
            at("2020-06-01"),
            at("2021-01-01", BETA),
            at(None, BETA),
            at("2018-06-01", ACME, after=1),
            at(None, after=1),
        ),
    ),
    Scenario(
        "ended, then stated again",
        (
            said("2022-01-10", lives("Oslo")),
            said("2023-02-10", lives("Oslo", None, "2023-01-01")),
            said("2024-01-10", lives("Oslo")),
        ),
        (),
        (
            at("2022-06-01", OSLO),
            at("2023-06-01"),
            at("2024-02-01", OSLO),
            at(None, OSLO),
            at("2024-02-01", after=2),
            at("2023-06-01", OSLO, after=1),
        ),
        stored=1,
    ),
    Scenario(
        "ended, and replaced some time later",
        (
            said("2022-01-10", lives("Oslo")),
            said("2023-02-10", lives("Oslo", None, "2023-01-01")),
            said("2023-09-10", lives("Paris", "2023-06-01")),
        ),
        MOVES,
        (
            at("2022-06-01", OSLO),
            at("2023-03-01"),
            at("2023-07-01", PARIS),
            at(None, PARIS),
            at("2023-07-01", after=2),
            at("2023-07-01", OSLO, after=1),
        ),
    ),
    Scenario(
        "stated again and again",
        (said("2024-01-10", lives("Oslo")), said("2024-03-10", lives("Oslo")), said("2024-06-10", lives("Oslo"))),
        (),
        (at("2024-01-01"), at("2024-02-01", OSLO), at(None, OSLO), at("2024-02-01", OSLO, after=1)),
        stored=1,
    ),
    Scenario(
        "a paraphrase",
        (said("2024-01-10", lives("Oslo")), said("2024-03-10", HOME), said("2024-06-10", lives("Paris"))),
        (*each_pair("duplicate", OSLO, HOME.sentence), *MOVES, Verdict(HOME.sentence, PARIS, "supersedes")),
        (at("2024-02-01", OSLO), at("2024-04-01", OSLO), at(None, PARIS), at(None, OSLO, after=2)),
        stored=2,
    ),
    Scenario(
        "a paraphrase that only a model knows for one",
        (said("2024-01-10", told("Ann", "likes", "chess")), said("2024-03-10", FOND)),
        each_pair("duplicate", "Ann likes chess", FOND.sentence),
        (
            at("2024-01-01"),
            at("2024-02-01", "Ann likes chess"),
            at(None, "Ann likes chess"),
            at("2024-04-01", "Ann likes chess", after=1),
        ),
        stored=1,
    ),
    Scenario(
        "someone else's move",
        (said("2024-01-10", lives("Oslo")), said("2024-06-01", told("Bo", "lives in", "Paris"))),
        each_pair("unrelated", OSLO, "Bo lives in Paris"),
        (at("2024-03-01", OSLO), at("2024-07-01", OSLO), at(None, OSLO), at(None, OSLO, after=1)),
        stored=2,
    ),
    Scenario(
        "two stays in one place that overlap",
        (
            said("2024-01-10", lives("Oslo", "2020-01-01", "2021-01-01")),
            said("2024-02-10", lives("Oslo", "2020-06-01", "2022-01-01")),
        ),
        (),
        (
            at("2019-06-01"),
            at("2020-03-01", OSLO),
            at("2021-06-01", OSLO),
            at("2022-01-01"),
            at(None),
            at("2021-06-01", after=1),
            at("2020-03-01", OSLO, after=1),
        ),
        stored=1,
    ),
)

BANDS = (
    Scenario(
        "an unsure change waits",
        (said("2024-01-10", lives("Oslo")), said("2024-06-01", lives("Paris"))),
        each_pair("supersedes", OSLO, PARIS, confidence=0.7),
        (at("2024-03-01", OSLO), at("2024-07-01", OSLO), at(None, OSLO), at(None, OSLO, after=1)),
    ),
    Scenario(
        "an unsure denial waits",
        (said("2024-01-10", works("Acme")), said("2024-06-01", NEVER_ACME)),
        (Verdict(NEVER_ACME.sentence, ACME, "conflicts", 0.5),),
        (at("2024-03-01", ACME), at("2024-07-01", ACME), at(None, ACME), at(None, ACME, after=1)),
    ),
    Scenario(
        "a guess is ignored",
        (said("2024-01-10", CHESS), said("2024-06-01", TENNIS)),
        each_pair("supersedes", CHESS.sentence, TENNIS.sentence, confidence=0.3),
        (
            at("2024-03-01", CHESS.sentence),
            at("2024-07-01", CHESS.sentence, TENNIS.sentence),
            at(None, CHESS.sentence, TENNIS.sentence),
            at(None, CHESS.sentence, after=1),
        ),
    ),
    Scenario(
        "just sure enough",
        (said("2024-01-10", lives("Oslo")), said("2024-06-01", lives("Paris"))),
        each_pair("supersedes", OSLO, PARIS, confidence=0.85),
        (at("2024-03-01", OSLO), at("2024-07-01", PARIS), at(None, PARIS), at("2024-07-01", OSLO, after=1)),
    ),
)
SCENARIOS = (*BESIDE, *BANDS)

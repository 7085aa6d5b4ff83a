"""Scenarios of facts that hold together, of facts that end without a successor, and of unsure verdicts."""

from dataclasses import replace

from tests.time.changes import ACME, BETA, episodes, lives, works
from tests.time.corrected import NEVER_ACME
from tests.time.scenarios import MOVES, OSLO, PARIS, Told, Verdict, each_pair, said, scenario, told

RETIRED = told("Ann", "retired from", "Acme")
ALSO_BETA = told("Ann", "also works at", "Beta")
CHESS, TENNIS = told("Ann", "plays", "chess"), told("Ann", "plays", "tennis")
STAYS = told("Ann", "is staying in", "Paris", "2024-07-01", "2024-07-08")
NO_LONGER = told("Ann", "no longer lives in", "Oslo", None, "2024-03-01")
HOME = Told("Ann", "HAS_HOME_IN", "Oslo", "Ann has her home in Oslo")
FOND = told("Ann", "is fond of", "chess")
OWNS = told("Ann", "owns", "Acme", "2021-01-01")
BESIDE = (
    scenario(
        "two hobbies",
        (said("2024-01-10", CHESS), said("2024-06-01", TENNIS)),
        "2024-03-01 chess; now chess + tennis; 2023-12-01 nothing",
        {1: "2024-07-01 chess"},
        verdicts=each_pair("complements", CHESS.sentence, TENNIS.sentence),
    ),
    scenario(
        "also works at",
        (said("2024-01-10", works("Acme")), said("2024-06-01", ALSO_BETA)),
        "2024-03-01 Acme; 2024-07-01 Acme + Beta; now Acme + Beta",
        {1: "now Acme"},
        verdicts=each_pair("complements", ACME, ALSO_BETA.sentence),
    ),
    scenario(
        "the first of two jobs ends",
        (
            said("2024-01-10", works("Acme")),
            said("2024-06-01", ALSO_BETA),
            said("2024-09-01", works("Acme", None, "2024-08-01")),
        ),
        "2024-03-01 Acme; 2024-07-01 Acme + Beta; now Beta",
        {2: "2024-08-15 Acme + Beta"},
        stored=2,
        verdicts=each_pair("complements", ACME, ALSO_BETA.sentence),
    ),
    scenario(
        "one fact ends two",
        (said("2024-01-10", works("Acme")), said("2024-06-01", ALSO_BETA), said("2024-09-01", RETIRED)),
        "2024-07-01 at Acme + Beta; now from Acme; 2024-03-01 at Acme",
        {1: "now at Acme", 2: "2024-10-01 at Acme + Beta"},
        verdicts=(
            *each_pair("complements", ACME, ALSO_BETA.sentence),
            Verdict(RETIRED.sentence, ACME, "supersedes"),
            Verdict(RETIRED.sentence, ALSO_BETA.sentence, "supersedes"),
        ),
    ),
    scenario(
        "a move does not end the job",
        episodes("2024-01-10 Oslo + Acme; 2024-06-01 Paris"),
        "2024-01-01 nothing; 2024-03-01 Oslo + Acme; now Acme + Paris",
        {1: "now Oslo + Acme; 2024-07-01 Oslo + Acme"},
    ),
    scenario(
        "the same pair, two predicates",
        (
            said("2024-01-10", works("Acme", "2020-01-01")),
            said("2024-02-10", OWNS),
            said("2024-03-10", works("Acme", None, "2024-03-01")),
        ),
        "2020-06-01 at Acme; 2022-06-01 at Acme + owns Acme; now owns Acme",
        {1: "now at Acme", 2: "2024-03-05 at Acme + owns Acme"},
        verdicts=each_pair("complements", ACME, OWNS.sentence),
    ),
    scenario(
        "a passing state beside a lasting one",
        (said("2024-01-10", lives("Oslo")), said("2024-07-02", STAYS)),
        "2024-06-01 Oslo; 2024-07-03 Oslo + Paris; 2024-07-08 Oslo; now Oslo",
        {1: "2024-07-03 Oslo"},
        verdicts=(Verdict(STAYS.sentence, OSLO, "temporary"),),
    ),
    scenario(
        "a passing state of a month, its end not told",
        (said("2024-01-10", lives("Oslo")), said("2024-07-02", replace(STAYS, since="2024-07", until=None))),
        "2024-07-20 Oslo + Paris; 2024-08-01 Oslo; now Oslo",
        {1: "2024-07-20 Oslo"},
        in_order=True,
        verdicts=(Verdict(STAYS.sentence, OSLO, "temporary"),),
    ),
    scenario(
        "no longer",
        episodes("2023-01-10 Oslo; 2024-03-10 Oslo undated until 2024-03-01"),
        "2022-12-01 nothing; 2023-06-01 Oslo; 2024-02-29 Oslo; 2024-03-01 nothing; now nothing",
        {1: "2024-03-05 Oslo; now Oslo"},
        stored=1,
    ),
    scenario(
        "no longer, in a sentence of its own",
        (said("2023-01-10", lives("Oslo")), said("2024-03-10", NO_LONGER)),
        "2022-12-01 nothing; 2023-06-01 Ann lives in Oslo; 2024-03-01 nothing; now nothing",
        {1: "2024-03-05 Ann lives in Oslo"},
        stored=1,
        verdicts=each_pair("duplicate", OSLO, NO_LONGER.sentence),
    ),
    scenario(
        "no longer, its start learned later",
        episodes("2024-03-10 Acme undated until 2024-03-01; 2023-04-10 Acme since 2020-01-01"),
        "2019-06-01 nothing; 2021-06-01 Acme; 2024-03-05 nothing; now nothing",
        {1: "2019-06-01 Acme; 2024-03-05 nothing"},
        stored=1,
    ),
    scenario(
        "no longer, without a start",
        episodes("2024-03-10 Acme undated until 2019-01-01; 2024-04-10 Beta since 2021-01-01"),
        "2018-06-01 Acme; 2019-01-01 nothing; 2020-06-01 nothing; 2021-01-01 Beta; now Beta",
        {1: "2018-06-01 Acme; now nothing"},
        verdicts=each_pair("supersedes", ACME, BETA),
    ),
    scenario(
        "ended, then stated again",
        episodes("2022-01-10 Oslo; 2023-02-10 Oslo undated until 2023-01-01; 2024-01-10 Oslo"),
        "2022-06-01 Oslo; 2023-06-01 nothing; 2024-02-01 Oslo; now Oslo",
        {1: "2023-06-01 Oslo", 2: "2024-02-01 nothing"},
        stored=1,
    ),
    scenario(
        "ended, and replaced some time later",
        episodes("2022-01-10 Oslo; 2023-02-10 Oslo undated until 2023-01-01; 2023-09-10 Paris since 2023-06-01"),
        "2022-06-01 Oslo; 2023-03-01 nothing; 2023-07-01 Paris; now Paris",
        {1: "2023-07-01 Oslo", 2: "2023-07-01 nothing"},
    ),
    scenario(
        "stated again and again",
        episodes("2024-01-10 Oslo; 2024-03-10 Oslo; 2024-06-10 Oslo"),
        "2024-01-01 nothing; 2024-02-01 Oslo; now Oslo",
        {1: "2024-02-01 Oslo"},
        stored=1,
    ),
    scenario(
        "a paraphrase",
        (said("2024-01-10", lives("Oslo")), said("2024-03-10", HOME), said("2024-06-10", lives("Paris"))),
        "2024-02-01 lives in Oslo; 2024-04-01 lives in Oslo; now Paris",
        {2: "now lives in Oslo"},
        stored=2,
        verdicts=(*each_pair("duplicate", OSLO, HOME.sentence), *MOVES, Verdict(HOME.sentence, PARIS, "supersedes")),
    ),
    scenario(
        "a paraphrase that only a model knows for one",
        (said("2024-01-10", told("Ann", "likes", "chess")), said("2024-03-10", FOND)),
        "2024-01-01 nothing; 2024-02-01 likes chess; now likes chess",
        {1: "2024-04-01 likes chess"},
        stored=1,
        verdicts=each_pair("duplicate", "Ann likes chess", FOND.sentence),
    ),
    scenario(
        "someone else's move",
        (said("2024-01-10", lives("Oslo")), said("2024-06-01", told("Bo", "lives in", "Paris"))),
        "2024-03-01 Oslo; 2024-07-01 Oslo; now Oslo",
        {1: "now Oslo"},
        stored=2,
        verdicts=each_pair("unrelated", OSLO, "Bo lives in Paris"),
    ),
    scenario(
        "two stays in one place that overlap",
        episodes(
            "2024-01-10 Oslo since 2020-01-01 until 2021-01-01; 2024-02-10 Oslo since 2020-06-01 until 2022-01-01"
        ),
        "2019-06-01 nothing; 2020-03-01 Oslo; 2021-06-01 Oslo; 2022-01-01 nothing; now nothing",
        {1: "2021-06-01 nothing; 2020-03-01 Oslo"},
        stored=1,
    ),
)

BANDS = (
    scenario(
        "an unsure change waits",
        episodes("2024-01-10 Oslo; 2024-06-01 Paris"),
        "2024-03-01 Oslo; 2024-07-01 Oslo; now Oslo",
        {1: "now Oslo"},
        verdicts=each_pair("supersedes", OSLO, PARIS, confidence=0.7),
    ),
    scenario(
        "an unsure denial waits",
        (said("2024-01-10", works("Acme")), said("2024-06-01", NEVER_ACME)),
        "2024-03-01 works at Acme; 2024-07-01 works at Acme; now works at Acme",
        {1: "now works at Acme"},
        verdicts=(Verdict(NEVER_ACME.sentence, ACME, "conflicts", 0.5),),
    ),
    scenario(
        "a guess is ignored",
        (said("2024-01-10", CHESS), said("2024-06-01", TENNIS)),
        "2024-03-01 chess; 2024-07-01 chess + tennis; now chess + tennis",
        {1: "now chess"},
        verdicts=each_pair("supersedes", CHESS.sentence, TENNIS.sentence, confidence=0.3),
    ),
    scenario(
        "just sure enough",
        episodes("2024-01-10 Oslo; 2024-06-01 Paris"),
        "2024-03-01 Oslo; 2024-07-01 Paris; now Paris",
        {1: "2024-07-01 Oslo"},
        verdicts=each_pair("supersedes", OSLO, PARIS, confidence=0.85),
    ),
)
SCENARIOS = (*BESIDE, *BANDS)

"""The commands that only read, on one conversation. Each row of the tables is a command and a part of its output."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from kg_memory import GraphMemory
from kg_memory.cli import main
from kg_memory.falkor.connect import graph_key
from kg_memory.models.filters import FIELDS
from kg_memory.retrieval.context.templates import TEMPLATES
from kg_memory.retrieval.recipe import RECIPES
from tests.cli_home import Run, home_of_the_module, lines, result, run_here  # noqa: F401 - fixtures

TALK = [
    {"content": "I have lived in Bergen since 2019.", "speaker": "Nora", "at": "2023-03-04T18:20:00Z", "source_id": "m1"},
    {"content": "I moved to Oslo in June 2024.", "speaker": "Nora", "at": "2024-09-21T17:00:00Z", "source_id": "m2"},
    {"content": "I work at Acme.", "speaker": "Nora", "at": "2024-09-22T17:00:00Z", "source_id": "m3"},
    {"content": "I work at Acme too.", "speaker": "Tom", "at": "2024-09-22T17:01:00Z", "source_id": "m4"},
    *(
        {"content": f"My plant number {count} grows well.", "speaker": "Tom", "at": f"2024-10-{count:02}T18:00:00Z"}
        for count in range(1, 10)
    ),
]  # fmt: skip
Shown = Callable[[str], str]


@pytest.fixture(name="talk", scope="module")
def talk_of_the_module(home: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The namespace that holds the conversation `TALK`."""
    assert home
    assert main(["ingest", str(lines(tmp_path_factory.mktemp("talk"), TALK)), "-n", "talk"]) == 0
    return "talk"


@pytest.fixture(name="shown")
def shown_here(run: Run, talk: str) -> Shown:
    """Run a command line, and return its results and remarks with single spaces between words."""

    def call(line: str) -> str:
        code, out, err = run(*shlex.split(line), "-n", talk)
        assert code == 0, err
        return " ".join((out + err).split())

    return call


FACT_OF_OSLO = "Nora lives in Oslo 2024-06 I moved to Oslo in June 2024. Nora, 2024-09-21 [m2]"
FACT_OF_BERGEN = "Nora lives in Bergen 2019 2024-06 I have lived in Bergen since 2019. Nora, 2023-03-04 [m1]"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("facts Nora", ["FACT SINCE UNTIL SAID SOURCE", FACT_OF_OSLO, FACT_OF_BERGEN]),
        ("facts Nora --on 2023-12-24", [FACT_OF_BERGEN, "- Oslo"]),
        ("facts Nora --as-of 'December 2023'", [FACT_OF_BERGEN, "- Oslo"]),
        ("facts Nora --on 2024-12-24", [FACT_OF_OSLO, "- Bergen"]),
        ("facts Nora --during 2024", [FACT_OF_OSLO, FACT_OF_BERGEN]),
        ("facts Nora --during 2024-08..2024-10", [FACT_OF_OSLO, "- Bergen"]),
        ("facts Nora --during '2024-08 .. '", [FACT_OF_OSLO, "- Bergen"]),
        ("facts Nora --during ..2024-01", [FACT_OF_BERGEN, "- Oslo"]),
        ("facts Nora --during 2023年", [FACT_OF_BERGEN, "- Oslo"]),
        ("facts Nora --on 1990", ["No facts about 'Nora'. Without --on there may be some."]),
        ("facts --limit 1", ["More on the next page: --after "]),
        ('facts --where \'{"predicate": "LIVES_IN"}\'', ["Oslo", "- Acme"]),
        ("facts Zoltan", ["No facts about 'Zoltan'. kg-memory entities lists the known names."]),
        ("facts Acm", ["Nothing is known about 'Acm'; these are about Acme.", "Tom works at Acme"]),
        ("history Nora 'lives in'", [f"{FACT_OF_OSLO} {FACT_OF_BERGEN}", "- Acme"]),
        ("history Nora contact", ["with the predicate 'contact'. Its predicates are LIVES_IN, WORKS_AT."]),
        ("timeline Nora", ["2019 began Nora lives in Bergen", "2024-06 ended Nora lives in Bergen"]),
        ("changes", ["learned Nora lives in Bergen - 2019 - now", "2019 - now 2019 - 2024-06 Nora, 2024-09-21 [m2]"]),
        ("changes --until 2020-01-01 --since 2019", ["Nothing changed since 2019. --since looks further back"]),
        ("around Nora --on 2023-12-24", ["0 Nora", "1 Bergen", "- Tom"]),
        ("around Nora", ["0 Nora", "1 Acme", "1 Oslo", "2 Tom", FACT_OF_OSLO]),
        ("around Nobody", ["No entity is called 'Nobody'. kg-memory entities lists the known names."]),
        ("entities --limit 1", ["NAME TYPE", "- Nora Person"]),
        ("entities --ids", ["NAME TYPE ALIASES LAST SEEN SUMMARY ID", "Nora Person"]),
        ("episodes --limit 1 --state done", ["2024-10-09 18:00 UTC Tom My plant number 9 grows well.", "- m2"]),
        ("stats", ["episodes 13", "facts "]),
        ("namespaces", ["NAMESPACE EPISODES FACTS ENTITIES WAITING FAILED PAUSED", "talk 13"]),
        ("saved --about Nora", [FACT_OF_OSLO[:19], "[m2]", "- Bergen"]),
        ("saved --limit 1", ["SAVED MEMORY SOURCE ID", "--after"]),
        ("saved --about Zoe", ["No saved memories."]),
        ("usage", ["No model was asked in the last 30 days."]),
        ("predicates 'lives in'", ["LIVES_IN LIVES_IN yes rules"]),
        ("predicates", ["No predicates were learned yet."]),
        ("review", ["Nothing waits for review."]),
        ("review --decided", ["Nothing was decided yet."]),
        ("conflicts", ["No facts contradict each other."]),
        ("communities", ["No communities: kg-memory communities --refresh finds them."]),
        ("audit", ["Nothing was forgotten so far."]),
        ("entities decisions", ["Nothing was merged or split."]),
    ],
)
def test_command_prints_expected_lines(shown, line, expected):
    """Features: C46."""
    out = shown(line)
    for text in expected:
        if text.startswith("- "):
            assert text[2:] not in out
        else:
            assert text in out


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "",
            [
                "FACT SINCE",
                "Nora lives in Oslo",
                "2024-09-21 17:00 UTC Nora",
                "(not so since 2024-06: see m2)",
                "- SCORE",
            ],
        ),
        ('--where \'{"speaker": "Tom"}\'', ["Tom", "- Nora lives"]),
        ("--context", ["Facts [sources]", "- Nora lives in Oslo (since June 2024) [m2]", "</EPISODES>"]),
        ("--template xml --limit 1", ["<fact ", "- [m1]"]),
        ("--explain --limit 1", ["FOUND BY SCORE", "words 1", "fused ", "LEFT OUT", "not among the first 1"]),
        ("--explain --limit 1", ["more; --json has all of them.", "Asked about what is true now. Known at 2"]),
        ("--on 2023-12-24 --explain", ["Asked about what was true at 2023-12-24. Known at 2", "Bergen"]),
        ("--context --explain --limit 1", ["</EPISODES> Asked about", "FOUND BY", "LEFT OUT"]),
        ("--near Tom --recipe distance --explain", ["fused ", "distance "]),
    ],
)
def test_ask_prints_expected_lines(shown, line, expected):
    out = shown(f"ask 'Where does Nora live?' {line}")
    for text in expected:
        if text.startswith("- ") and not text.startswith("- Nora lives in"):
            assert text[2:] not in out
        else:
            assert text in out


def test_ask_quotes_the_words_that_named_the_time(shown, run, talk):
    question = "'Where did Nora live in 2023?'"
    out = shown(f"ask {question}")
    assert out.startswith('Asked about what was true from 2023-01-01 until 2024-01-01, by the words "in 2023"')
    assert "which comes first. --on and --during leave the rest out." in out
    assert "Known at" in shown(f"ask {question} --explain")
    found = result(run, "ask", shlex.split(question)[0], "--explain", "--context", "-n", talk)
    assert found["time"]["words"] == "in 2023"
    assert found["context"].startswith("Facts [sources]")
    assert (found["tokens"] > 50, bool(found["facts"]), 0 <= found["relevance"] <= 1) == (True, True, True)
    assert {each["kind"] for each in found["explanations"]} >= {"facts", "episodes"}


def test_ask_reports_a_question_without_an_answer(run, talk, monkeypatch):
    question = "What did the plumber charge for the boiler?"
    doubt = 'The memory may not know this: nothing here tells of "plumber" (relevance 0.'
    assert doubt in run("ask", question, "-n", talk)[1]
    assert doubt not in run("ask", question, "--recipe", "meaning", "-n", talk)[1], "a search by no words cannot know"
    _, out, err = run("ask", question, "--context", "-n", talk)
    assert (doubt in out, doubt in err) == (False, True)
    code, out, err = run("ask", "???", "--context", "-n", talk)
    assert (code, out, "Nothing in the memory" in err) == (0, "", True)
    code, _, err = run("ask", question, "--near", "Nobody", "-n", talk)
    assert (code, "center must be the name of an entity" in err) == (1, True)
    monkeypatch.setenv("KG_MEMORY_ABSTAIN_BELOW", "0.2")
    for form in ([], ["--context"]):
        _, out, _ = run("ask", question, *form, "-n", talk)
        assert out.strip() == 'The memory does not know this: nothing here tells of "plumber".'
    assert result(run, "ask", question, "-n", talk)["answerable"]["abstains"]


def test_ask_help_names_every_recipe_template_and_field(capsys):
    assert main(["ask", "--help"]) == 0
    words = capsys.readouterr().out.replace(",", " ").split()
    assert {*RECIPES, *TEMPLATES, *FIELDS, "--where"} <= set(words)


COMMANDS = (
    "ask Where | ask Where --explain | facts | facts Nora | around Nora | entities | episodes | history Nora | "
    "timeline Nora | changes | conflicts | verdicts | review | predicates | communities | saved | digest | identity | "
    "handoff | doctor"
).split(" | ")


@pytest.mark.parametrize("command", COMMANDS)
def test_unknown_namespace_is_named_in_the_output(run, talk, command):
    code, out, _ = run(*command.split(), "-n", "nobody at all")
    assert (code, "There is no namespace 'nobody at all'. There " in out) == (0, True)
    assert "There is no namespace" not in run(*command.split(), "-n", talk)[1]


@pytest.mark.parametrize("command", ["facts", "facts Nora", "ask Nora", "history Nora", "timeline Nora"])
def test_believed_at_before_the_first_fact_is_explained(run, talk, command):
    code, out, _ = run(*command.split(), "-n", talk, "--believed-at", "2024-03")
    first = result(run, "changes", "-n", talk)[0]["at"]
    assert (code, out.count("\n")) == (0, 1)
    assert f"by 2024-03: the first was at {first[:10]} {first[11:16]} UTC" in out


def test_saved_source_prints_the_messages_behind_a_fact(run, talk):
    """`kg-memory saved source` prints the messages behind a saved fact.

    Features: I1.
    """
    place = ("-n", talk)
    assert {fact["objects"][0] for fact in result(run, "saved", "--about", "Nora", *place)} == {"Oslo", "Acme"}
    [oslo] = [fact for fact in result(run, "saved", *place) if fact["objects"] == ["Oslo"]]
    shown = run("saved", *place)[1]
    assert (oslo["id"] in shown, oslo["created_at"][:10] in shown) == (True, True)
    for id_ in (oslo["id"], oslo["id"][:8]):
        why = result(run, "saved", "source", id_, *place)
        assert [source["source_id"] for source in why["sources"]] == ["m2"]
    assert "Nora" in run("saved", "source", oslo["id"], *place)[1]
    assert "I moved to Oslo in June 2024." in run("saved", "source", oslo["id"], *place)[1]


def test_id_prefix_selects_a_fact_in_json_output(run, talk):
    place = ("-n", talk)
    [oslo, bergen] = [fact for fact in result(run, "facts", "Nora", *place) if fact["predicate"] == "LIVES_IN"]
    assert result(run, "history", "Nora", "RESIDES_IN", *place) == [oslo, bergen]
    for id_ in (oslo["id"], oslo["id"][:8]):
        assert [fact["objects"] for fact in result(run, "evolution", id_, *place)] == [["Bergen"], ["Oslo"]]
        assert result(run, "consequences", id_, *place) == []
    found = result(run, "around", "Nora", *place)
    depths = {entity["name"]: found["depths"][entity["id"]] for entity in found["entities"]}
    assert depths == {"Nora": 0, "Oslo": 1, "Acme": 1, "Tom": 2}


def test_consequences_marks_doubtful_dependent_facts(run):
    place = ("-n", "consequences")
    office = ("declare", "Polaris", "has an office in", "Oslo")
    run(*office, "--at", "2024-01-01", *place)
    (premise,) = result(run, "facts", "Polaris", *place)
    run("declare", "Ann", "commutes to", "Oslo", "--at", "2024-02-01", "--rests-on", premise["id"], *place)
    run(*office, "--invalid-at", "2024-05-03", "--at", "2024-06-01", *place)
    out = run("consequences", premise["id"], "--ids", *place)[1]
    assert "(doubtful since 2024-05-03)" in out
    (resting,) = result(run, "consequences", premise["id"], *place)
    assert resting["fact"]["id"] in out
    assert "doubtful" not in run("consequences", premise["id"], "--on", "2024-04-01", *place)[1]
    assert "No fact depends on this fact." in run("consequences", resting["fact"]["id"], *place)[1]


def test_predicates_command_stores_a_correction(run):
    place = ("-n", "predicates")
    code, out, err = run("predicates", "likes best", "--as", "prefers", "--several", *place)
    assert (code, " ".join(out.split()).endswith("LIKES_BEST PREFERS no corrected")) == (0, True)
    assert "from now on" in err
    stored = {"name": "LIKES_BEST", "canonical": "PREFERS", "single_valued": False, "origin": "corrected"}
    assert result(run, "predicates", *place) == [stored]
    assert result(run, "predicates", "likes best", *place) == stored
    assert result(run, "predicates", "likes best", "--one-at-a-time", *place)["single_valued"] is True


def test_commands_report_conflicting_records_for_review(run, tmp_path):
    place = ("-n", "born twice")
    for month, city in (("01", "Bergen"), ("02", "Oslo")):
        path = tmp_path / f"{month}.json"
        path.write_text(json.dumps({"name": "Nora Lind", "born_in": city}))
        code, out, _ = run("ingest", path, "--format", "json", "--at", f"2024-{month}-01", *place)
        assert code == 0
    assert "1 fact waits for review: kg-memory review -n 'born twice'" in out
    assert result(run, "stats", *place)["reviews"] == 1
    assert "1 verdict waits for review: kg-memory review -n 'born twice'" in run("stats", *place)[2]
    out = run("conflicts", *place)[1]
    assert "waits for review" in out
    assert "It happens once" in out
    out = run("facts", "Nora Lind", "--unreviewed", *place)[1]
    assert "  by 2024-01-01  " in out.splitlines()[-1]  # its start is not known
    assert ["(disputed)" in line for line in out.splitlines()[1:]] == [True, True]
    assert out == run("facts", "Nora Lind", *place)[1]
    [verdict] = result(run, "verdicts", *place)
    assert (verdict["ruling"], verdict["decided_by"]) == ("waiting", "auto")
    assert run("review", "--accept", verdict["id"], "--by", "ann", *place)[0] == 0
    out = run("conflicts", *place)[1]
    assert ", by ann, " in out
    assert "Bergen. (not believed)" in out


def test_usage_lists_the_cost_of_each_day(run, home, monkeypatch):
    with GraphMemory.open() as memory:
        memory.add("I moved to Oslo.", namespace="used")
        today = memory.driver.clock() // 86_400_000_000
        query = "MERGE (s:Spent {day: $day}) SET s.calls = 1234, s.input_tokens = 1000000, s.output_tokens = 500000"
        for day in (today, today - 2):
            memory.driver.store.database.query(graph_key("used"), query, {"day": day}, write=True)
    assert run("usage", "-n", "used")[1].count("1,234") == 2
    assert len(result(run, "usage", "-n", "used", "--days", "2")) == 1
    for name, value in (("INPUT_PRICE", "1"), ("OUTPUT_PRICE", "10"), ("DAY_CALLS", "2000"), ("DAY_MONEY", "7.5")):
        monkeypatch.setenv(f"KG_MEMORY_BUDGET_{name}", value)
    _, out, err = run("usage", "-n", "used")
    assert out.count("6.0") == 2
    assert "spent of today's budget: 1,234 of 2,000 calls, 6 of 7.5 money" in err
    monkeypatch.setenv("KG_MEMORY_BUDGET_DAY_CALLS", "lots")
    code, _, err = run("usage")
    assert (code, "KG_MEMORY_BUDGET_DAY_CALLS must be a valid integer" in err) == (1, True)

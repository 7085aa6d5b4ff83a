"""The commands that ask about time and look back, on a conversation that was read offline."""

import json
from pathlib import Path

import pytest

from tests.cli_home import Run, home_of_the_module, lines, result, run_here  # noqa: F401 - fixtures

TALK = [
    {
        "content": "I have lived in Bergen since 2019.",
        "speaker": "Nora",
        "at": "2023-03-04T18:20:00Z",
        "source_id": "m1",
    },
    {"content": "I moved to Oslo in June 2024.", "speaker": "Nora", "at": "2024-09-21T17:00:00Z", "source_id": "m2"},
    {"content": "I work at Acme.", "speaker": "Nora", "at": "2024-09-22T17:00:00Z", "source_id": "m3"},
    {"content": "I work at Acme too.", "speaker": "Tom", "at": "2024-09-22T17:01:00Z", "source_id": "m4"},
]


@pytest.fixture
def told(run: Run, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """A namespace in which the talk was read."""
    name = request.node.name
    assert run("ingest", lines(tmp_path, TALK), "-n", name)[0] == 0
    return name


def places(facts: list[dict]) -> list[str]:
    return [fact["objects"][0] for fact in facts if fact["predicate"] == "LIVES_IN"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--on", "2023-12-24"], ["Bergen"]),
        (["--as-of", "December 2023"], ["Bergen"]),
        (["--on", "2024-12-24"], ["Oslo"]),
        (["--during", "2024"], ["Oslo", "Bergen"]),
        (["--during", "2024-08..2024-10"], ["Oslo"]),
        (["--during", "..2024-01"], ["Bergen"]),
        (["--during", "2024-08 .. "], ["Oslo"]),
        (["--during", "2023年"], ["Bergen"]),
        (["--believed-at", "2020-01-01"], []),
        ([], ["Oslo", "Bergen"]),
    ],
)
def test_facts_are_those_of_the_time_that_is_named(
    run: Run, told: str, options: list[str], expected: list[str]
) -> None:
    assert places(result(run, "facts", "Nora", "-n", told, *options)) == expected


COMMANDS = [["facts"], ["facts", "Nora"], ["ask", "Where does Nora live?"], ["history", "Nora"], ["timeline", "Nora"]]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_what_finds_nothing_says_the_true_reason(run: Run, told: str, command: list[str]) -> None:
    code, out, _ = run(*command, "-n", "nobody")
    assert (code, out.count("\n")) == (0, 1)
    assert "There is no namespace 'nobody'." in out
    assert repr(told) in out or "kg-memory namespaces" in out
    code, out, _ = run(*command, "-n", told, "--believed-at", "2024-03")
    first = result(run, "changes", "-n", told)[0]["at"]
    assert (code, out.count("\n")) == (0, 1)
    assert f"by 2024-03: the first was learned at {first[:10]} {first[11:16]} UTC" in out
    assert "kg-memory entities" not in out
    if command[-1] == "Nora":
        assert "kg-memory entities lists the known names" in run(*command[:-1], "Zoltan", "-n", told)[1]


@pytest.mark.parametrize("command", ["digest", "identity", "handoff", "saved", "conflicts", "verdicts", "doctor"])
def test_a_namespace_that_is_not_there_is_told(run: Run, told: str, command: str) -> None:
    code, out, _ = run(command, "-n", "nobody")
    assert (code, "There is no namespace 'nobody'. There " in out) == (0, True)
    assert "There is no namespace" not in run(command, "-n", told)[1]


def test_no_fact_at_a_time_is_not_said_to_be_an_unknown_name(run: Run, told: str) -> None:
    _, out, _ = run("facts", "Nora", "--on", "1990", "-n", told)
    assert out == "No facts about 'Nora'. Without --on there may be some.\n"


def test_a_start_is_shown_as_exactly_as_it_is_known(run: Run, told: str) -> None:
    _, out, _ = run("history", "Nora", "lives in", "-n", told)
    header, oslo, bergen = out.splitlines()
    assert header.split()[:3] == ["FACT", "SINCE", "UNTIL"]
    assert "2024-06  " in oslo
    assert "  2019  " in bergen
    assert "  2024-06  " in bergen  # when it ended


def test_ask_says_which_words_named_the_time_and_explain_tells_all(run: Run, told: str) -> None:
    question = "Where did Nora live in 2023?"
    code, out, _ = run("ask", question, "-n", told)
    assert code == 0
    first, _, rest = out.partition("\n")
    assert '"in 2023"' in first
    assert "--on and --during" in first
    assert "Bergen" in rest
    assert "SCORE" not in out
    _, out, _ = run("ask", question, "--explain", "-n", told)
    for part in ("from 2023-01-01", "2024-01-01", 'the question: "in 2023"', "believed at", "SCORE"):
        assert part in out
    _, out, _ = run("ask", "Where does Nora live?", "-n", told)
    assert "Asked about" not in out
    _, out, _ = run("ask", "Where does Nora live?", "--on", "2023-12-24", "--explain", "-n", told)
    assert "the option: 2023-12-24" in out
    assert result(run, "ask", question, "-n", told)["time"]["words"] == "in 2023"


def test_a_line_that_is_not_so_any_more_is_marked(run: Run, told: str) -> None:
    _, out, _ = run("ask", "Where does Nora live?", "-n", told)
    marked = next(line for line in out.splitlines() if "I have lived" in line)
    assert "(not so since 2024-06: see m2)" in marked


def test_a_timeline_goes_from_the_earliest_to_the_latest(run: Run, told: str) -> None:
    _, out, _ = run("timeline", "Nora", "-n", told)
    rows = [" ".join(line.split()) for line in out.splitlines()[1:]]
    assert rows[0].startswith("2019 began Nora lives in Bergen")
    assert rows[1].startswith("2024-06 ended Nora lives in Bergen")
    assert rows[2].startswith("2024-06 began Nora lives in Oslo")
    assert [each["kind"] for each in result(run, "timeline", "Nora", "-n", told)][:3] == ["began", "ended", "began"]


def test_changes_tell_what_was_learned_and_ended_lately(run: Run, told: str) -> None:
    kinds = [
        (each["kind"], (each["after"] or each["before"])["sentence"]) for each in result(run, "changes", "-n", told)
    ]
    assert [kind for kind, _ in kinds].count("learned") == 4
    assert any(kind == "ended" and "Bergen" in sentence for kind, sentence in kinds)
    _, out, _ = run("changes", "-n", told)
    assert "2019 - now " in out
    [ended] = [line for line in out.splitlines() if "2019 - 2024-06 " in line]
    assert ended.endswith("Nora, 2024-09-21 [m2]"), "the message that ended it"
    _, out, _ = run("changes", "--until", "2020-01-01", "--since", "2019", "-n", told)
    assert "Nothing changed since 2019" in out


def test_an_evolution_is_asked_by_an_id_that_the_list_shows(run: Run, told: str) -> None:
    _, out, _ = run("facts", "Nora", "--ids", "-n", told)
    row = next(line for line in out.splitlines() if "Oslo" in line)
    assert places(result(run, "evolution", row.split()[-1], "-n", told)) == ["Bergen", "Oslo"]
    _, out, _ = run("evolution", row.split()[-1], "-n", told)
    assert out.index("Bergen") < out.index("Oslo")


def test_what_lies_around_is_told_with_its_steps(run: Run, told: str) -> None:
    found = result(run, "around", "Nora", "-n", told)
    depths = {entity["name"]: found["depths"][entity["id"]] for entity in found["entities"]}
    assert depths == {"Nora": 0, "Oslo": 1, "Acme": 1, "Tom": 2}
    code, out, _ = run("around", "Nora", "--on", "2023-12-24", "-n", told)
    assert code == 0
    assert [line.split()[:2] for line in out.split("\n\n")[0].splitlines()[1:]] == [["0", "Nora"], ["1", "Bergen"]]
    assert "kg-memory entities" in run("around", "Nobody", "-n", told)[1]


def test_a_predicate_is_told_and_corrected(run: Run) -> None:
    name = ("-n", "predicates")
    assert result(run, "predicates", "lives in", *name)["single_valued"] is True
    code, out, err = run("predicates", "likes best", "--as", "prefers", "--several", *name)
    assert (code, "LIKES_BEST" in out, "PREFERS" in out) == (0, True, True)
    assert "from now on" in err
    assert result(run, "predicates", *name) == [
        {"name": "LIKES_BEST", "canonical": "PREFERS", "single_valued": False, "origin": "corrected"}
    ]
    assert result(run, "predicates", "likes best", *name)["canonical"] == "PREFERS"
    assert result(run, "predicates", "likes best", "--one-at-a-time", *name)["single_valued"] is True


def test_conflicts_of_records_wait_and_ingest_and_stats_say_so(run: Run, tmp_path: Path) -> None:
    name = ("-n", "born twice")
    for month, place in (("01", "Bergen"), ("02", "Oslo")):
        path = tmp_path / f"{month}.json"
        path.write_text(json.dumps({"name": "Nora Lind", "born_in": place}))
        code, out, _ = run("ingest", path, "--format", "json", "--at", f"2024-{month}-01", *name)
        assert code == 0
    assert "1 fact waits for review: kg-memory review -n 'born twice'" in out
    assert result(run, "stats", *name)["reviews"] == 1
    assert "1 verdict waits for review: kg-memory review -n 'born twice'" in run("stats", *name)[2]
    _, out, _ = run("conflicts", *name)
    assert "waits for review" in out
    assert "It happens once" in out
    _, out, _ = run("facts", "Nora Lind", "--unreviewed", *name)
    assert "  by 2024-01-01  " in out.splitlines()[-1]  # its start is not known
    assert ["(disputed)" in line for line in out.splitlines()[1:]] == [True, True]
    assert out == run("facts", "Nora Lind", *name)[1]
    [verdict] = result(run, "verdicts", *name)
    assert (verdict["ruling"], verdict["decided_by"]) == ("waiting", "auto")
    [waiting] = result(run, "review", *name)
    assert run("review", "--accept", waiting["id"], "--by", "ann", *name)[0] == 0
    _, out, _ = run("conflicts", *name)
    assert "by ann, " in out
    assert "Bergen. (not believed)" in out


def test_consequences_lists_what_rests_on_a_fact_and_its_doubts(run: Run) -> None:
    home = "consequences"
    run("declare", "Polaris", "has an office in", "Oslo", "--at", "2024-01-01", "-n", home)
    (office,) = result(run, "facts", "Polaris", "-n", home)
    rests = ("--rests-on", office["id"])
    run("declare", "Ann", "commutes to", "Oslo", "--at", "2024-02-01", *rests, "-n", home)
    end = ("--invalid-at", "2024-05-03", "--at", "2024-06-01")
    run("declare", "Polaris", "has an office in", "Oslo", *end, "-n", home)
    (resting,) = result(run, "consequences", office["id"], "-n", home)
    assert resting["fact"]["doubtful_since"].startswith("2024-05-03")
    _, out, _ = run("consequences", office["id"], "-n", home)
    assert "(doubtful since 2024-05-03)" in out
    _, out, _ = run("consequences", office["id"], "--on", "2024-04-01", "-n", home)
    assert "doubtful" not in out
    _, out, _ = run("consequences", resting["fact"]["id"], "-n", home)
    assert "Nothing rests on this fact." in out


def test_history_of_a_predicate_that_is_not_there_names_those_that_are(run: Run, told: str):
    code, shown, _ = run("history", "Nora", "contact", "-n", told)

    assert code == 0
    assert "No facts about 'Nora' with the predicate 'contact'." in shown
    assert "Its predicates are LIVES_IN, WORKS_AT." in " ".join(shown.split())

"""``kg-memory ask``: recipes, filters and centers, contexts for prompts, and what it tells of a search."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from kg_memory.cli import arguments, help_texts, main
from kg_memory.models.filters import FIELDS
from kg_memory.retrieval.context.templates import TEMPLATES
from kg_memory.retrieval.recipe import RECIPES
from kg_memory.settings import Settings
from tests.cli_home import Run, home_of_the_module, lines, result, run_here  # noqa: F401 - fixtures

QUESTION = "Where does Nora live?"
CHAT = [
    {"content": "I live in Bergen.", "speaker": "Nora", "at": "2023-03-04T18:00:00Z", "source_id": "m1"},
    {"content": "I moved to Oslo.", "speaker": "Nora", "at": "2024-06-01T18:00:00Z", "source_id": "m2"},
    {
        "content": "I live in Rome and I work at Acme.",
        "speaker": "Tom",
        "at": "2024-06-02T18:00:00Z",
        "source_id": "m3",
    },
    *(
        {"content": f"My plant number {count} grows well.", "speaker": "Tom", "at": f"2024-06-{count + 2:02}T18:00:00Z"}
        for count in range(1, 13)
    ),
]
Asked = Callable[..., str]


@pytest.fixture(name="told", scope="module")
def told_of_the_module(home: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = lines(tmp_path_factory.mktemp("chat"), CHAT)
    assert home
    assert main(["ingest", str(path), "-n", "asked"]) == 0
    return "asked"


@pytest.fixture(name="ask")
def ask_here(run: Run, told: str) -> Asked:
    """Ask the question and return what is printed."""

    def call(*arguments: object, question: str = QUESTION) -> str:
        code, out, err = run("ask", question, "-n", told, *arguments)
        assert code == 0, err
        return out

    return call


def speakers(found: Any) -> set[str]:
    return {each["speaker"] for each in found["episodes"]}


def test_a_filter_a_center_and_a_recipe_reach_the_search(run: Run, told: str) -> None:
    assert speakers(result(run, "ask", QUESTION, "-n", told)) == {"Nora", "Tom"}
    found = result(run, "ask", QUESTION, "--where", '{"speaker": "Nora"}', "-n", told)
    assert speakers(found) == {"Nora"}
    assert len(found["episodes"]) == 2
    found = result(run, "ask", "Who works somewhere?", "--near", "Tom", "--recipe", "distance", "--explain", "-n", told)
    assert {step for each in found["explanations"] for step, _ in each["scores"]} == {"fused", "distance"}
    code, _, err = run("ask", QUESTION, "--near", "Nobody", "-n", told)
    assert (code, "center must be the name of an entity" in err) == (1, True)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--where", "{speaker: Nora}"], "is no JSON"),
        (["--where", "[" * 100_000], "is no JSON"),
        (["--where", "[]"], "must be a dict"),
        (["--where", '{"speeker": "Nora"}'], "did you mean speaker?"),
        (["--where", '{"trust": {"$gte": "high"}}'], "must be a number"),
        (["--recipe", "no such"], "invalid choice: 'no such'"),
        (["--template", "no such"], "invalid choice: 'no such'"),
        (["--template", "zep", "--context"], "not allowed with"),
    ],
)
def test_a_wrong_option_is_told_before_anything_is_opened(
    given: list[str], says: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KG_MEMORY_URL", "falkor://127.0.0.1:1")
    assert main(["ask", QUESTION, *given]) == 2
    assert says in capsys.readouterr().err


def test_the_help_names_every_recipe_form_and_field(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ask", "--help"]) == 0
    told = capsys.readouterr().out.replace(",", " ").split()
    assert {*RECIPES, *TEMPLATES, "speaker", "said_at", "expired_at", "--where"} <= set(told)


def test_a_context_is_alone_on_stdout(ask: Asked) -> None:
    plain = ask("--context")
    assert plain == ask("--template", "plain")
    assert plain.startswith("Facts, and when they hold.")
    assert "- Nora lives in Oslo (since 1 June 2024 at the latest) [m2]" in plain
    assert plain.endswith("</EPISODES>\n")
    assert json.loads(ask("--template", "json"))["facts"][0]["sources"] == ["m2"]
    assert ask("--template", "xml", "--limit", 1).count("<fact ") == 1


def test_an_empty_context_prints_nothing_but_a_remark(run: Run, told: str) -> None:
    code, out, err = run("ask", "???", "--context", "-n", told)
    assert (code, out) == (0, "")
    assert "Nothing in the memory" in err


def test_json_has_the_context_too(run: Run, told: str) -> None:
    found = result(run, "ask", QUESTION, "--context", "--explain", "-n", told)
    assert found["context"].startswith("Facts, and when")
    assert found["tokens"] > 50
    assert found["facts"]
    assert 0 <= found["relevance"] <= 1
    assert {each["kind"] for each in found["explanations"]} >= {"facts", "episodes"}


def test_explain_tells_what_found_each_thing_and_what_was_left_out(ask: Asked) -> None:
    out = ask("--explain", "--limit", 1)
    facts, said, left = (part.splitlines() for part in out.split("\n\n")[1:])
    assert facts[0].split()[-3:] == ["FOUND", "BY", "SCORE"]
    assert "words 1" in facts[1]
    assert "fused 0." in facts[1] or "fused 1.0" in facts[1]
    assert "SCORE" in said[0]
    assert left[0].startswith("LEFT OUT")
    assert all(row.endswith("not among the first 1") for row in left[1:-1])
    assert sum(row.startswith("line ") for row in left) == 5
    assert left[-1].endswith("more; --json has all of them.")
    assert "FOUND BY" not in ask()


def test_a_context_is_explained_line_by_line(ask: Asked) -> None:
    out = ask("--context", "--explain", "--limit", 1)
    context, _, told = out.partition("\nAsked about ")
    assert context.rstrip().endswith("</EPISODES>")
    assert "LINE OF" in told
    assert "Nora lives in Oslo" in told
    assert "LEFT OUT" in told


def test_a_question_that_the_memory_can_hardly_answer_is_called_so(run: Run, told: str, ask: Asked) -> None:
    doubt = 'The memory may not know this: nothing here tells of "plumber" (relevance 0.'
    assert doubt in ask(question="What did the plumber charge for the boiler?")
    assert doubt not in ask()
    assert doubt not in ask("--recipe", "meaning"), "a search by no words cannot know"
    _, out, err = run("ask", "What did the plumber charge for the boiler?", "--context", "-n", told)
    assert (doubt in out, doubt in err) == (False, True)


def test_the_help_names_all_that_there_is():
    assert tuple(RECIPES) == help_texts.RECIPES
    assert tuple(TEMPLATES) == help_texts.TEMPLATES
    assert tuple(FIELDS) == help_texts.FIELDS
    assert get_args(get_type_hints(Settings)["plan"]) == arguments.PLANS


def test_a_memory_that_abstains_prints_why_and_nothing_else(
    run: Run, told: str, ask: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KG_MEMORY_ABSTAIN_BELOW", "0.2")
    question, text = "What did the plumber charge?", 'The memory does not know this: nothing here tells of "plumber".'
    assert ask(question=question).strip() == text
    assert ask("--context", question=question).strip() == text
    assert result(run, "ask", question, "-n", told)["answerable"]["abstains"]
    assert "Nora lives in Oslo" in ask()

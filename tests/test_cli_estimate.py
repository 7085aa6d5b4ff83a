"""The commands that tell what reading costs, before and after: on a real database, asking nobody."""

from __future__ import annotations

from pathlib import Path

import pytest

from kg_memory.falkor.connect import graph_key
from kg_memory.memory.memory import GraphMemory
from tests.cli_home import Run, home_of_the_module, lines, result, run_here  # noqa: F401 - fixtures

TALK = [
    {"content": "I live in Bergen.", "speaker": "Nora", "at": "2023-03-04T18:20:00Z", "thread": "one/1"},
    {"content": "I moved to Oslo.", "speaker": "Nora", "at": "2024-09-21T17:00:00Z", "thread": "two/1"},
    {"content": "Thanks!", "speaker": "Nora", "at": "2024-09-21T17:01:00Z", "thread": "two/1"},
]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model over a network that is not there."""
    monkeypatch.setenv("KG_MEMORY_MODEL", "gpt-none")
    monkeypatch.setenv("KG_MEMORY_BASE_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("KG_MEMORY_EMBEDDING_MODEL", "offline")


@pytest.mark.usefixtures("asked")
def test_a_dry_run_tells_what_it_will_cost_and_remembers_nothing(run: Run, tmp_path: Path) -> None:
    code, out, err = run("ingest", lines(tmp_path, TALK), "--dry-run", "-n", "dry")
    assert code == 0
    assert "3 episodes: 2 to read, 1 with nothing in them to read" in out
    assert "gpt-none will be asked by the plan standard" in out
    assert "tokens in" in out
    assert "KG_MEMORY_BUDGET_INPUT_PRICE" in err
    assert result(run, "stats", "-n", "dry")["episodes"] == 0


@pytest.mark.usefixtures("asked")
def test_with_prices_it_tells_the_money_and_a_dearer_plan_is_dearer(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KG_MEMORY_BUDGET_INPUT_PRICE", "0.4")
    monkeypatch.setenv("KG_MEMORY_BUDGET_OUTPUT_PRICE", "1.6")
    file = lines(tmp_path, TALK)
    assert "money" in run("ingest", file, "--dry-run", "-n", "dry")[1]
    told = {plan: result(run, "ingest", file, "--dry-run", "--plan", plan) for plan in ("standard", "thorough")}
    assert told["standard"]["calls"]["low"] == 2
    assert told["thorough"]["calls"]["low"] == 6
    assert 0 < told["standard"]["money"]["likely"] < told["thorough"]["money"]["likely"]
    apart = result(run, "ingest", file, "--dry-run", "--namespace-per-conversation")
    assert (apart["episodes"], apart["to_read"]) == (3, 2)


def test_offline_it_costs_nothing_and_what_is_there_is_not_read_again(run: Run, tmp_path: Path) -> None:
    file = lines(tmp_path, TALK)
    assert run("ingest", file, "-n", "offline")[0] == 0
    _, out, _ = run("ingest", file, "--dry-run", "-n", "offline")
    assert "3 episodes: 0 to read, 3 there already" in out
    assert "rules, which costs nothing" in run("ingest", file, "--dry-run", "-n", "dry")[1]


def test_an_empty_file_costs_nothing(run: Run, tmp_path: Path) -> None:
    assert run("ingest", lines(tmp_path, []), "--dry-run")[0] in (0, 1)


def test_usage_lists_what_each_day_took(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Nothing was asked in the last 30 days." in run("usage", "-n", "used")[1]
    with GraphMemory.open() as memory:
        memory.add("I moved to Oslo.", namespace="used")
        today = memory.driver.clock() // 86_400_000_000
        query = "MERGE (s:Spent {day: $day}) SET s.calls = 1234, s.input_tokens = 1000000, s.output_tokens = 500000"
        for day in (today, today - 2):
            memory.driver.store.database.query(graph_key("used"), query, {"day": day}, write=True)
    _, out, _ = run("usage", "-n", "used")
    assert out.count("1,234") == 2
    assert len(result(run, "usage", "-n", "used", "--days", "2")) == 1
    for name, value in (("INPUT_PRICE", "1"), ("OUTPUT_PRICE", "10"), ("DAY_CALLS", "2000"), ("DAY_MONEY", "7.5")):
        monkeypatch.setenv(f"KG_MEMORY_BUDGET_{name}", value)
    _, out, err = run("usage", "-n", "used")
    assert "6.0000" in out
    assert "of today's budget are spent: 1,234 of 2,000 calls, 6 of 7.5 money" in err


def test_a_budget_that_is_no_number_is_told_by_every_command(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KG_MEMORY_BUDGET_DAY_CALLS", "lots")
    code, _, err = run("usage")
    assert code != 0
    assert "KG_MEMORY_BUDGET_DAY_CALLS must be a number, got 'lots'; change or unset it" in err

"""``kg-memory communities``, as somebody types it, offline."""

from __future__ import annotations

import pytest

from kg_memory.cli import main
from tests.cli_home import lines, result, run_here  # noqa: F401 - a fixture

CHAT = [
    {"content": "I live in Bergen and work at Fjord Labs.", "speaker": "Nora", "at": "2024-03-04T18:20:00Z"},
    {"content": "小明住在北京。小明在清华大学工作。", "at": "2024-03-05T18:20:00Z", "kind": "text"},
]


@pytest.fixture(name="home")
def shared_home(server, monkeypatch):
    """The server of all tests in place of one that each command starts."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "KG_MEMORY_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KG_MEMORY_URL", server.url)
    monkeypatch.setenv("KG_MEMORY_MODEL", "offline")


def test_communities_are_found_listed_and_kept(run, namespace, tmp_path):
    assert "kg-memory communities --refresh finds them" in run("communities", "-n", namespace)[1]
    assert run("ingest", lines(tmp_path, CHAT), "-n", namespace)[0] == 0
    code, shown, said = run("communities", "--refresh", "-n", namespace)
    assert code == 0
    assert "Fjord Labs" in shown
    assert "2 communities summarised, 0 unchanged, 0 removed; 2 questions to the model." in said
    found = result(run, "communities", "-n", namespace)
    assert [sorted(each["members"]) for each in found if "Nora" in each["members"]] == [
        ["Bergen", "Fjord Labs", "Nora"]
    ]
    [chinese] = [each for each in found if "小明" in each["members"]]
    assert set(chinese["name"].split("、")) == set(chinese["members"])
    assert "小明" in chinese["summary"]
    assert "0 communities summarised, 2 unchanged" in run("communities", "--refresh", "-n", namespace)[2]


def test_full_without_a_refresh_is_a_clear_error(capsys):
    assert main(["communities", "--full"]) == 1
    assert "give --refresh too" in capsys.readouterr().err

"""``kg-memory communities``, as somebody types it, offline."""

import pytest

from tests.cli_home import home_of_the_module, lines, result, run_here  # noqa: F401 - fixtures

CHAT = [
    {"content": "I live in Bergen and work at Fjord Labs.", "speaker": "Nora", "at": "2024-03-04T18:20:00Z"},
    {"content": "小明住在北京。小明在清华大学工作。", "at": "2024-03-05T18:20:00Z", "kind": "text"},
]


def test_communities_command_refreshes_and_lists_communities(run, namespace, tmp_path):
    assert run("ingest", lines(tmp_path, CHAT), "-n", namespace)[0] == 0
    assert "kg-memory communities --refresh finds them" in run("communities", "-n", namespace)[1]
    code, shown, said = run("communities", "--refresh", "-n", namespace)
    assert code == 0
    assert "Fjord Labs" in shown
    assert "2 communities summarised, 0 unchanged, 0 removed; 1 question asked." in said
    found = result(run, "communities", "-n", namespace)
    assert [sorted(one["members"]) for one in found if "Nora" in one["members"]] == [["Bergen", "Fjord Labs", "Nora"]]
    [chinese] = [each for each in found if "小明" in each["members"]]
    assert set(chinese["name"].split("、")) == set(chinese["members"])
    assert "小明" in chinese["summary"]
    assert "0 communities summarised, 2 unchanged" in run("communities", "--refresh", "-n", namespace)[2]


def test_communities_command_shows_one_with_its_facts(run, namespace, tmp_path):
    run("ingest", lines(tmp_path, CHAT), "-n", namespace)
    run("communities", "--refresh", "-n", namespace)
    [name] = [each["name"] for each in result(run, "communities", "-n", namespace) if "Nora" in each["members"]]
    code, shown, _ = run("communities", name[:4], "-n", namespace)
    assert code == 0
    assert shown.startswith(name)
    assert "3 members: Bergen, Fjord Labs, Nora" in shown
    assert "Nora lives in Bergen" in shown
    card = result(run, "communities", name, "-n", namespace)
    assert (card["community"]["name"], len(card["facts"]), card["part_of"]) == (name, 2, None)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (["nobody"], "no community's name begins with 'nobody'"),
        (["--level", "-1"], "level must be a whole number from 0"),
        (["--full"], "give both"),
    ],
)
def test_communities_command_fails_for_wrong_arguments(run, namespace, asked, told):
    code, _, said = run("communities", *asked, "-n", namespace)
    assert code == 1
    assert told in said

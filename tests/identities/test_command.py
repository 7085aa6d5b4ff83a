"""``kg-memory entities`` merges, splits and undoes; it refuses invalid arguments with advice."""

import json

import pytest

from tests.cli_home import Run, home_of_the_module, lines, result, run_here  # noqa: F401 - fixtures

TALK = [
    {"content": "I live in Oslo.", "speaker": "Ida", "at": "2024-01-01T10:00:00Z", "source_id": "m1"},
    {"content": "I like jazz.", "speaker": "Nora", "at": "2024-01-02T10:00:00Z", "source_id": "m2"},
    {"content": "I work at Acme.", "speaker": "Tom", "at": "2024-01-03T10:00:00Z", "source_id": "m3"},
]


@pytest.fixture
def talk(run: Run, tmp_path, request) -> str:
    """A namespace into which `TALK` was ingested."""
    name = request.node.name
    assert run("ingest", lines(tmp_path, TALK), "-n", name)[0] == 0
    return name


def test_entities_command_merges_splits_lists_and_undoes(run, talk):
    place = ("-n", talk)
    code, out, _ = run("entities", "merge", "Tom", "Nora", "--by", "Cy", "--reason", "same account", *place)
    assert code == 0
    assert out.startswith("Merged into Tom (Nora)")
    assert "Undo it: kg-memory entities undo" in out
    [merged] = result(run, "entities", "decisions", *place)
    assert (merged["kind"], merged["by"], merged["reason"]) == ("merge", "Cy", "same account")
    episodes = {each["source_id"]: each["id"] for each in result(run, "episodes", *place)}
    [split] = result(run, "entities", "split", "Tom", "--episode", episodes["m2"], "--as", "Nora", *place)
    assert split["second"]["name"] == "Nora"
    assert run("entities", "undo", split["id"][:12], *place)[0] == 0
    assert "Undone: Tom and Nora are two again." in run("entities", "undo", merged["id"], *place)[1]
    assert {each["name"] for each in result(run, "entities", *place)} >= {"Tom", "Nora"}
    assert run("entities", "--ids", *place)[1].splitlines()[0].split()[-1] == "ID"


INVALID = (
    (("merge", "Tom"), "needs the entity to keep"),
    (("merge", "Tom", "Nobody"), "no entity is called"),
    (("split",), "needs the name of an entity"),
    (("split", "Tom", "Nora"), "takes 1 names"),
    (("split", "Tom"), "nothing is split off"),
    (("undo", "nope"), "`kg-memory entities decisions` lists all"),
    (("list", "Tom"), "takes 0 names"),
    (("merge", "Tom", "Nora", "--as", "X"), "for entities split only"),
    (("list", "--reason", "x"), "--reason is for"),
)


def test_entities_command_refuses_bad_arguments(run, talk):
    for arguments, message in INVALID:
        code, _, err = run("entities", *arguments, "-n", talk)
        assert (code, message in err) == (1, True), err
    assert json.loads(run("entities", "decisions", "--json", "-n", talk)[1]) == []

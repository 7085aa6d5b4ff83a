from __future__ import annotations

from typing import Any

import pytest

from kg_memory.llm.prompts.answers import Resolutions
from kg_memory.runtime.effects import Ask, Embed
from kg_memory.settings import Settings
from kg_memory.text.identity import entity_key
from tests.ingestion.stepping import answered, resolve, state

SETTINGS = Settings(merge_threshold=0.9, ask_threshold=0.6)


def new(name: str, type_: str = "Person") -> dict[str, str]:
    return {"name": name, "type": type_}


def stored(
    name: str, type_: str = "Person", score: float = 0.7, place: int = 0, aliases: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Return the row of a stored entity that the new one at *place* may be."""
    entity = {
        "id": f"id {name} {type_}", "key": entity_key(name, type_), "name": name, "type": type_, "aliases": list(aliases),
        "summary": "", "attributes": None, "first_seen": 0, "last_seen": 0,
    }  # fmt: skip
    return {"kind": "candidate", "new": place, "entity": entity, "score": score}


def resolved(
    entities: list[dict[str, str]], *rows: dict[str, Any], answer: list[dict[str, Any]] | None = None
) -> tuple[Any, Any]:
    """Return what the entities became and what was asked, when *rows* are found."""
    answers = [[[0.0]] * len(entities), list(rows)]
    if answer is not None:
        answers.append(Resolutions(resolutions=answer))
    result, effects = answered(resolve(state(mentions=entities), SETTINGS), *answers)
    assert isinstance(effects[0], Embed)
    return result["entities"], [each for each in effects if isinstance(each, Ask)]


ANSWER = {"entity": 0, "same_as": 0}


@pytest.mark.parametrize(
    ("mention", "rows", "answer", "expected"),
    [
        # Nothing is asked.
        (new("Ann"), (), None, {"is_new": True, "key": entity_key("Ann", "Person"), "called": ["Ann"]}),
        (new("Ann", "Entity"), (stored("Ann", score=1.0),), None, {"id": "id Ann Person", "type": "Person"}),
        (new("Jordan", "Place"), (stored("Jordan", score=1.0),), None, {"is_new": True}),
        (
            new("Jordan", "Place"),
            (stored("Jordan", score=1.0), stored("Jordan", "Place", score=1.0)),
            None,
            {"id": "id Jordan Place"},
        ),
        # Names with other numbers, and two that are very similar, are never merged without asking.
        (new("Room 102", "Place"), (stored("Room 101", "Place", score=0.99),), {}, {"is_new": True}),
        (new("Ann Bergs"), (stored("Ann Berg", score=0.95), stored("Anne Berg", score=0.94)), {}, {"is_new": True}),
        # A name that nobody used is not taken from the model.
        (
            new("Annie"),
            (stored("Ann"),),
            {**ANSWER, "name": "Queen Ann the Great"},
            {"name": "Ann", "renamed": False, "aliases": ["Annie"]},
        ),
        (
            new("Annie"),
            (stored("Ann", aliases=("Ann Berg",)),),
            {**ANSWER, "name": "Ann Berg"},
            {"name": "Ann Berg", "called": ["Annie"]},
        ),
    ],
)
def test_a_mention_becomes_an_entity(mention, rows, answer, expected):
    [entity], asked = resolved([mention], *rows, answer=None if answer is None else [answer] if answer else [])
    assert {name: entity[name] for name in expected} == expected
    assert len(asked) == (answer is not None)


def test_the_fullest_name_is_kept_and_the_shorter_one_becomes_an_alias():
    """Features: A20."""
    [entity], _ = resolved([new("Ann Berg")], stored("Ann"), answer=[{**ANSWER, "name": "Ann Berg"}])
    assert (entity["id"], entity["name"], entity["renamed"]) == ("id Ann Person", "Ann Berg", True)
    assert entity["aliases"] == ["Ann"]


@pytest.mark.parametrize("name", ["Ann", "ANN", " ann "])
def test_the_same_name_and_type_is_the_same_entity_without_asking(name):
    """Features: A3, C1."""
    [entity], asked = resolved([new(name)], stored("Ann", score=1.0))
    assert (not entity["is_new"], entity["name"], asked) == (True, "Ann", [])


def test_an_alias_is_the_entity_without_asking():
    """A mention by an alias is resolved without a call of the model.

    Features: C3.
    """
    [entity], asked = resolved([new("Annie")], stored("Ann", aliases=("Annie",), score=1.0))
    assert (entity["name"], asked) == ("Ann", [])


def test_two_that_both_go_by_the_name_are_asked_about():
    rows = (stored("Ann Berg", aliases=("Ann",)), stored("Ann Dahl", aliases=("Ann",)))
    answer = [{"entity": 0, "same_as": 1, "name": "Ann Dahl"}]
    [entity], asked = resolved([new("Ann")], *rows, answer=answer)
    assert (entity["name"], len(asked)) == ("Ann Dahl", 1)
    assert [each["id"] for each in asked[0].fields["entities"][0]["candidates"]] == [0, 1]
    assert "key" not in asked[0].fields["entities"][0]["candidates"][0]


def test_a_name_that_is_very_similar_is_merged_without_asking_and_becomes_an_alias():
    """Features: C15."""
    [entity], asked = resolved([new("Ann Bergs")], stored("Ann Berg", score=0.95))
    assert (entity["name"], entity["aliases"], asked) == ("Ann Berg", ["Ann Bergs"], [])


@pytest.mark.parametrize(
    "answer",
    [
        [{"entity": 0, "same_as": None, "name": "x"}],
        [{"entity": 0, "same_as": 5, "name": "x"}],
        [{"entity": 0, "same_as": -1, "name": "x"}],
        [{"entity": 9, "same_as": 0, "name": "x"}],
        [{"entity": -1, "same_as": 0, "name": "x"}],
        [],
    ],
)
def test_an_answer_that_names_none_of_the_candidates_makes_a_new_entity(answer):
    [entity], _ = resolved([new("Annie")], stored("Ann"), answer=answer)
    assert entity["is_new"]


def test_what_is_uncertain_is_asked_in_one_question():
    """All uncertain entities are in one prompt.

    Features: A52.
    """
    entities = [new("Annie"), new("Bobby"), new("Oslo", "Place")]
    rows = (stored("Ann"), stored("Bob", place=1))
    _, [asked] = resolved(entities, *rows, answer=[])
    assert [each["name"] for each in asked.fields["entities"]] == ["Annie", "Bobby"]
    assert asked.fields.keys() == asked.prompt.fields


def test_candidates_have_ids_of_their_own_and_no_scores():
    entities, rows = [new("Annie"), new("Bobby")], (stored("Ann"), stored("Bob", place=1), stored("Bo", place=1))
    _, [asked] = resolved(entities, *rows, answer=[])
    shown = [candidate for entity in asked.fields["entities"] for candidate in entity["candidates"]]
    assert [candidate["id"] for candidate in shown] == [0, 1, 2]
    assert not any("score" in candidate for candidate in shown)


def test_two_names_of_one_known_entity_become_one_with_both_as_aliases():
    rows = (stored("Ann", score=0.95), stored("Ann", score=0.95, place=1))
    entities, _ = resolved([new("Annie"), new("Anna")], *rows)
    assert [(each["name"], sorted(each["aliases"])) for each in entities] == [("Ann", ["Anna", "Annie"])]


@pytest.mark.parametrize(
    ("said", "known"),
    [
        (new("Annie"), stored("Ann", aliases=("Annie",))),
        (new("Ann Bergs"), stored("Ann Berg", score=0.95)),
        (new("ANN"), stored("Ann")),
        (new("腾讯公司", "Organization"), stored("腾讯", "Organization", score=0.95)),
    ],
)
def test_an_entity_that_is_known_under_another_name_is_called_what_the_episode_says(said, known):
    [entity], _ = resolved([said], known)
    assert (entity["name"], entity["called"]) == (known["entity"]["name"], [said["name"]])


def test_an_entity_of_several_names_in_one_episode_is_called_by_all_in_order_and_each_once():
    entities = [new("Annie"), new("Anna"), new("Annie", "Entity"), new("Ann")]
    rows = (stored("Ann", score=0.95, place=place) for place in range(4))
    [entity], _ = resolved(entities, *rows)
    assert (entity["name"], entity["called"]) == ("Ann", ["Annie", "Anna", "Ann"])


def test_the_names_that_it_is_called_by_are_all_kept_when_the_second_gives_it_a_new_name():
    answer = [{"entity": 0, "same_as": 0, "name": "Ann"}, {"entity": 1, "same_as": 1, "name": "Ann Berg"}]
    rows = (stored("Ann"), stored("Ann", place=1))
    [entity], _ = resolved([new("Annie"), new("Ann Berg")], *rows, answer=answer)
    assert (entity["name"], entity["called"]) == ("Ann Berg", ["Annie", "Ann Berg"])


def test_the_best_score_of_several_searches_counts():
    answers = [[[0.0]], [stored("Ann Berg", score=score) for score in (0.0, 0.95, 0.0)]]
    result, _ = answered(resolve(state(mentions=[new("Ann Bergs")]), SETTINGS), *answers)
    assert not result["entities"][0]["is_new"]

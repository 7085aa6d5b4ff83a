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
    """Return the row of a stored entity, a candidate for the new entity at index *place*."""
    entity = {
        "id": f"id {name} {type_}", "key": entity_key(name, type_), "name": name, "type": type_, "aliases": list(aliases),
        "summary": "", "attributes": None, "first_seen": 0, "last_seen": 0,
    }  # fmt: skip
    return {"kind": "candidate", "new": place, "entity": entity, "score": score}


def resolved(
    entities: list[dict[str, str]], *rows: dict[str, Any], answer: list[dict[str, Any]] | None = None
) -> tuple[Any, Any]:
    """Return the resolved entities and the model calls, if the search returns *rows*."""
    answers = [[[0.0]] * len(entities), list(rows)]
    if answer is not None:
        answers.append(Resolutions(resolutions=answer))
    result, effects = answered(resolve(state(mentions=entities), SETTINGS), *answers)
    assert isinstance(effects[0], Embed)
    return result["entities"], [each for each in effects if isinstance(each, Ask)]


ANSWER = {"entity": 0, "same_as": 0}
JORDAN, ANN_BERG = stored("Jordan", score=1.0), stored("Ann", aliases=("Ann Berg",))


@pytest.mark.parametrize(
    ("mention", "rows", "answer", "expected"),
    [
        # There is no model call.
        (new("Ann"), (), None, {"is_new": True, "key": entity_key("Ann", "Person"), "called": ["Ann"]}),
        (new("Ann", "Entity"), (stored("Ann", score=1.0),), None, {"id": "id Ann Person", "type": "Person"}),
        (new("Jordan", "Place"), (JORDAN,), None, {"is_new": True}),
        (new("Sam"), (stored("Sam's dad"),), None, {"is_new": True}),
        (new("Sam's dad"), (stored("Sam"),), None, {"is_new": True}),
        (new("Jordan", "Place"), (JORDAN, stored("Jordan", "Place", score=1.0)), None, {"id": "id Jordan Place"}),
        # Names with other numbers, or with two very similar candidates, are never merged without a model call.
        (new("Room 102", "Place"), (stored("Room 101", "Place", score=0.99),), {}, {"is_new": True}),
        (new("Ann Bergs"), (stored("Ann Berg", score=0.95), stored("Anne Berg", score=0.94)), {}, {"is_new": True}),
        # A name by the model that occurs nowhere is ignored.
        (
            new("Annie"), (stored("Ann"),), {**ANSWER, "name": "Queen Ann the Great"},
            {"name": "Ann", "renamed": False, "aliases": ["Annie"]},
        ),
        (new("Annie"), (ANN_BERG,), {**ANSWER, "name": "Ann Berg"}, {"name": "Ann Berg", "called": ["Annie"]}),
    ],
)  # fmt: skip
def test_resolve_maps_a_mention_to_an_entity(mention, rows, answer, expected):
    [entity], asked = resolved([mention], *rows, answer=None if answer is None else [answer] if answer else [])
    assert {name: entity[name] for name in expected} == expected
    assert len(asked) == (answer is not None)


def test_resolve_adopts_fuller_name_and_stores_alias():
    """Features: A20."""
    [entity], _ = resolved([new("Ann Berg")], stored("Ann"), answer=[{**ANSWER, "name": "Ann Berg"}])
    assert (entity["id"], entity["name"], entity["renamed"]) == ("id Ann Person", "Ann Berg", True)
    assert entity["aliases"] == ["Ann"]


@pytest.mark.parametrize(
    ("name", "known", "new_aliases"),
    [
        ("Ann", stored("Ann", score=1.0), []),
        *((name, stored("Ann", score=1.0), [name]) for name in ("ANN", " ann ")),
        ("Annie", stored("Ann", aliases=("Annie",), score=1.0), []),
        ("Ann Bergs", stored("Ann Berg", score=0.95), ["Ann Bergs"]),
    ],
)
def test_resolve_matches_known_or_very_similar_name_without_model_call(name, known, new_aliases):
    """A mention by the name, by an alias or by a very similar name is resolved without a call of the model.

    Features: A3, C1, C3, C15.
    """
    [one], asked = resolved([new(name)], known)
    assert (one["is_new"], one["name"], one["aliases"], asked) == (False, known["entity"]["name"], new_aliases, [])


def test_resolve_asks_about_two_entities_with_one_alias():
    rows = (stored("Ann Berg", aliases=("Ann",)), stored("Ann Dahl", aliases=("Ann",)))
    answer = [{"entity": 0, "same_as": 1, "name": "Ann Dahl"}]
    [entity], asked = resolved([new("Ann")], *rows, answer=answer)
    assert (entity["name"], len(asked)) == ("Ann Dahl", 1)
    assert [each["id"] for each in asked[0].fields["entities"][0]["candidates"]] == [0, 1]
    assert "key" not in asked[0].fields["entities"][0]["candidates"][0]


@pytest.mark.parametrize(
    "answer",
    [
        *([{"entity": 0, "same_as": place, "name": "x"}] for place in (None, 5, -1)),
        *([{"entity": place, "same_as": 0, "name": "x"}] for place in (9, -1)),
        [],
    ],
)
def test_answer_without_valid_candidate_creates_an_entity(answer):
    [entity], _ = resolved([new("Annie")], stored("Ann"), answer=answer)
    assert entity["is_new"]


def test_resolve_asks_about_uncertain_entities_in_one_prompt():
    """All uncertain entities are in one prompt.

    Features: A52.
    """
    entities = [new("Annie"), new("Bobby"), new("Oslo", "Place")]
    _, [asked] = resolved(entities, stored("Ann"), stored("Bob", place=1), stored("Bo", place=1), answer=[])
    assert [each["name"] for each in asked.fields["entities"]] == ["Annie", "Bobby"]
    assert asked.fields.keys() == asked.prompt.fields
    shown = [candidate for entity in asked.fields["entities"] for candidate in entity["candidates"]]
    assert [candidate["id"] for candidate in shown] == [0, 1, 2]
    assert not any("score" in candidate for candidate in shown)


def test_resolve_merges_two_names_of_one_existing_entity():
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
def test_called_has_the_name_used_in_the_episode(said, known):
    [entity], _ = resolved([said], known)
    assert (entity["name"], entity["called"]) == (known["entity"]["name"], [said["name"]])


def test_called_lists_each_name_once_in_order():
    entities = [new("Annie"), new("Anna"), new("Annie", "Entity"), new("Ann")]
    [entity], _ = resolved(entities, *(stored("Ann", score=0.95, place=place) for place in range(4)))
    assert (entity["name"], entity["called"]) == ("Ann", ["Annie", "Anna", "Ann"])


def test_called_retains_all_names_after_a_rename():
    answer = [{"entity": 0, "same_as": 0, "name": "Ann"}, {"entity": 1, "same_as": 1, "name": "Ann Berg"}]
    rows = (stored("Ann"), stored("Ann", place=1))
    [entity], _ = resolved([new("Annie"), new("Ann Berg")], *rows, answer=answer)
    assert (entity["name"], entity["called"]) == ("Ann Berg", ["Annie", "Ann Berg"])


def test_resolve_uses_the_best_score_of_several_searches():
    answers = [[[0.0]], [stored("Ann Berg", score=score) for score in (0.0, 0.95, 0.0)]]
    result, _ = answered(resolve(state(mentions=[new("Ann Bergs")]), SETTINGS), *answers)
    assert not result["entities"][0]["is_new"]

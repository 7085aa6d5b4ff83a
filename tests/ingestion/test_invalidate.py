from __future__ import annotations

from typing import Any

from kg_memory.effects import Ask, Query
from kg_memory.falkor import cypher
from kg_memory.ingestion.invalidate import History, invalidate
from kg_memory.prompts.answers import Contradictions
from kg_memory.settings import Settings
from kg_memory.temporal import OPEN_END, Statement
from tests.ingestion.stepping import answered, entity, state

NEW_YEAR = 1_704_067_200_000_000
KNOWN = [entity("Ann", known=True), entity("Paris", "Place")]


def fact(id_: str = "paris", valid_at: int = NEW_YEAR, same_as: str | None = None) -> dict[str, Any]:
    return {
        "id": id_, "subject": 0, "predicate": "LIVES_IN", "objects": [1], "sentence": f"Ann lives in {id_}.",
        "said_from": None, "said_until": None, "valid_at": valid_at, "invalid_at": OPEN_END, "same_as": same_as,
    }  # fmt: skip


def stored(id_: str = "oslo") -> dict[str, Any]:
    told = {"id": id_, "subject": "Ann", "predicate": "LIVES_IN", "sentence": f"Ann lives in {id_}."}
    return {
        "new": 0,
        "fact": told,
        "objects": [id_],
        "beliefs": [{"id": f"b {id_}", "valid_at": 5, "invalid_at": OPEN_END}],
    }


def history(id_: str = "oslo", rivals: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "fact": id_, "sentence": f"Ann lives in {id_}.", "rivals": list(rivals), "statements": [{"id": "first", "said_at": 5, "valid_at": 5, "invalid_at": OPEN_END}],
        "beliefs": [{"id": f"b {id_}", "valid_at": 5, "invalid_at": OPEN_END, "said_at": 5}],
    }  # fmt: skip


def verdict(*places: int, new: int = 0) -> Contradictions:
    return Contradictions(contradictions=[{"fact": new, "contradicts": list(places)}])


def run(facts: list[dict[str, Any]], *answers: Any, entities: list[Any] = KNOWN) -> tuple[Any, list[Any]]:
    return answered(invalidate(state(entities=entities, facts=facts), Settings()), [[0.0]] * len(facts), *answers)


def test_a_new_fact_between_new_entities_is_believed_and_nothing_is_asked():
    result, effects = run([fact()], [], entities=[entity("Ann"), entity("Paris")])
    [belief] = result["beliefs"]
    assert (belief["fact"], belief["valid_at"], belief["invalid_at"]) == ("paris", NEW_YEAR, OPEN_END)
    assert (result["closed"], result["ended"]) == ([], [])
    assert not any(isinstance(each, Ask) for each in effects)


def test_a_contradicted_fact_ends_where_the_new_one_begins_and_its_belief_is_closed():
    result, effects = run([fact()], [stored()], [], verdict(0), [history()])
    assert result["facts"][0]["contradicts"] == ["oslo"]
    assert result["closed"] == ["b oslo"]
    spans = {each["fact"]: (each["valid_at"], each["invalid_at"]) for each in result["beliefs"]}
    assert spans == {"oslo": (5, NEW_YEAR), "paris": (NEW_YEAR, OPEN_END)}
    assert result["ended"] == ["Ann lives in oslo."]
    assert result["touched"] == ["oslo", "paris"]
    assert [each.cypher for each in effects if isinstance(each, Query)] == [
        cypher.RIVALS_BY_SUBJECT, cypher.RIVALS_BY_OBJECT, cypher.HISTORY,
    ]  # fmt: skip


def test_a_fact_that_is_not_contradicted_stays_untouched():
    result, _ = run([fact()], [stored()], [], verdict(), [])
    assert (result["closed"], result["ended"], [each["fact"] for each in result["beliefs"]]) == ([], [], ["paris"])


def test_many_facts_are_asked_about_in_several_questions():
    facts = [fact(f"paris {number}") for number in range(60)]
    found = [{**stored(f"oslo {number}"), "new": number} for number in range(60)]
    verdicts = [
        Contradictions(
            contradictions=[{"fact": number, "contradicts": [0]} for number in range(start, min(start + 25, 60))]
        )
        for start in (0, 25, 50)
    ]
    result, effects = run(facts, found, [], *verdicts, [])
    assert len([each for each in effects if isinstance(each, Ask)]) == 3
    assert [each["contradicts"] for each in result["facts"]] == [[f"oslo {number}"] for number in range(60)]


def test_verdicts_about_what_was_not_asked_are_ignored():
    for odd in (verdict(7), verdict(-1), verdict(0, new=5)):
        result, _ = run([fact()], [stored()], [], odd, [])
        assert (result["closed"], result["facts"][0]["contradicts"]) == ([], [])


def test_a_candidate_found_in_two_ways_is_asked_about_once():
    _, effects = run([fact()], [stored()], [stored()], verdict(), [])
    [asked] = [each for each in effects if isinstance(each, Ask)]
    assert [each["id"] for each in asked.fields["facts"][0]["existing"]] == [0]


def test_what_one_episode_states_together_does_not_contradict_itself():
    facts = [fact("paris"), fact("new words", same_as="oslo")]
    result, effects = run(facts, [stored("oslo")], [], [history()])
    assert not any(isinstance(each, Ask) for each in effects)
    assert all(each["contradicts"] == [] for each in result["facts"])


def test_a_known_fact_that_is_said_again_keeps_its_belief():
    result, _ = run([fact("x", same_as="oslo")], [], [], [history()])
    assert (result["closed"], result["beliefs"]) == ([], [])


def test_a_rival_recorded_earlier_comes_back_into_account():
    rows = [history("oslo", rivals=("paris",)), {**history("paris", rivals=("oslo",)), "statements": [
        {"id": "second", "said_at": 9, "valid_at": 9, "invalid_at": OPEN_END}
    ]}]  # fmt: skip
    result, _ = run([fact("x", same_as="oslo")], [], [], rows)
    spans = sorted((each["fact"], each["valid_at"], each["invalid_at"]) for each in result["beliefs"])
    assert spans == [("oslo", 5, 9), ("oslo", NEW_YEAR, OPEN_END), ("paris", 9, NEW_YEAR)]


def test_no_facts_change_nothing():
    result, _ = answered(invalidate(state(facts=[]), Settings()))
    assert result == {"facts": [], "touched": [], "closed": [], "beliefs": [], "ended": []}


def test_a_fact_is_never_its_own_rival():
    past = History()
    past.oppose("a", ["a", "b"])
    past.say("a", Statement("a", "e", 1))
    assert past.touched(["a"]) == {"a", "b"}
    assert past.touched(["b"]) == {"a", "b"}
    assert len(past.said_about("b")) == 1

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from kg_memory.errors import DatabaseUnavailable
from kg_memory.falkor.queries import episodes, ingestion
from kg_memory.ingestion.records import Revision
from kg_memory.ingestion.save import MOST_CONFLICTS, NAME_WEIGHT
from kg_memory.runtime.effects import Embed, Now, Query
from kg_memory.settings import Settings
from kg_memory.temporal.interval import OPEN_START, WIDTH
from kg_memory.text.identity import alias_key
from tests.ingestion.stepping import NOW, answered, entity, fact, save, state

NEW = {**entity("Bob"), "aliases": []}
KNOWN = {**entity("Ann", known=True), "aliases": ["Annie"]}


def stated(id_: str, same_as: str | None = None, **given: Any) -> dict[str, Any]:
    times = {"valid_at": 1, "precision": "day", "stated_at": 1}
    words = {"sentence": f"Ann knows {id_}.", "predicate": "KNOWS", "wording": "IS_ACQUAINTED_WITH"}
    return fact(id_, same_as=same_as, family="acquaintance", **times, **words, **given)


def saved(**given: Any) -> tuple[Embed, Query]:
    """Return what is embedded and what is written."""
    revision = {"touched": ["one"], "closed": ["b"]}
    flow = save(state("I know Bob.", revision=revision, **given), Settings())
    embeds = next(flow)
    assert isinstance(flow.send([[float(place)] for place, _ in enumerate(embeds.texts)]), Now)
    return embeds, flow.send(7)


def test_everything_is_written_in_one_query():
    embeds, written = saved(entities=[KNOWN, NEW], facts=[stated("one"), stated("two", same_as="old")])
    assert (written.cypher, written.write) == (ingestion.SAVE, True)
    assert embeds.texts == ("Ann: I know Bob.", "Bob", "Ann knows one.")


def test_only_what_is_new_is_embedded_and_each_gets_its_own_vector():
    _, written = saved(entities=[KNOWN, NEW], facts=[stated("one"), stated("two", same_as="old")])
    assert written.params["embedding"] == [0.0]
    assert [(each["name"], each["embedding"]) for each in written.params["entities"]] == [("Ann", None), ("Bob", [1.0])]
    assert written.params["renamed"] == []
    assert [(each["id"], each["embedding"]) for each in written.params["facts"]] == [("one", [2.0])]


def test_a_known_fact_gets_the_statement_under_its_own_id():
    _, written = saved(entities=[KNOWN, NEW], facts=[stated("two", same_as="old")])
    assert [each["fact"] for each in written.params["statements"]] == ["old"]
    assert written.params["facts"] == []


def test_a_statement_tells_the_last_instant_at_which_its_fact_may_have_begun():
    facts = [stated("one"), {**stated("two"), "precision": "instant"}, {**stated("three"), "valid_at": OPEN_START}]
    _, written = saved(entities=[KNOWN, NEW], facts=facts)
    assert [each["latest"] for each in written.params["statements"]] == [WIDTH["day"], 1, OPEN_START]


def test_a_fact_keeps_the_wording_that_was_read_beside_its_predicate():
    _, written = saved(entities=[KNOWN, NEW], facts=[stated("one")])
    [row] = written.params["facts"]
    assert (row["predicate"], row["wording"], row["family"]) == ("KNOWS", "IS_ACQUAINTED_WITH", "acquaintance")


def test_verdicts_predicates_and_what_waits_again_are_written_with_the_rest():
    verdict = {
        "id": "v", "new": "one", "kind": "conflicts", "ruling": "conflicts", "confidence": 1.0, "holds": "new", "reason": "",
    }  # fmt: skip
    learned = {"name": "X", "canonical": "Y", "origin": "learned"}
    _, written = saved(
        entities=[KNOWN, NEW],
        facts=[stated("one")],
        verdicts=[{**verdict, "existing": "old"}],
        predicates=[{**learned, "single_valued": True}],
        reopened=["w"],
    )
    assert (written.params["verdicts"], written.params["predicates"]) == (
        [{**verdict, "known": "old"}],
        [{**learned, "single_valued": True}],
    )
    assert written.params["reopened"] == ["w"]


def test_every_name_of_an_entity_leads_to_it():
    _, written = saved(entities=[KNOWN, NEW], facts=[])
    assert written.params["entities"][0]["alias_keys"] == sorted([alias_key("Ann"), alias_key("Annie")])
    names = {each["key"]: each["names"] for each in written.params["entities"]}
    assert names[NEW["key"]] == [{"name": "Bob", "n": NAME_WEIGHT, "terms": [{"term": "bob", "f": NAME_WEIGHT}]}]
    assert [each["name"] for each in names[KNOWN["key"]]] == ["Ann", "Annie"]


def test_an_episode_without_anything_in_it_is_done_all_the_same():
    _, written = saved(entities=[], facts=[])
    assert (written.params["entities"], written.params["facts"], written.params["closed"]) == ([], [], ["b"])


def saving(*answers: object, conflicts: int = 0) -> tuple[dict[str, Any], list[Any]]:
    given = state("I know Bob.", revision={}, entities=[KNOWN, NEW], facts=[], conflicts=conflicts)
    return answered(save(given, Settings()), *answers)


VECTORS = [[0.0], [1.0]]
DONE = {"retry_from": None, "done": True, "status": "done", "saved_at": NOW, "stale": []}
WRITTEN = [{"id": "e", "evicted": [], "stale": [{"key": None}]}]


def test_what_was_written_is_done_at_that_time():
    result, effects = saving(VECTORS, WRITTEN)
    assert (result, len(effects)) == (DONE, 2)


def test_where_another_wrote_about_the_same_entities_it_is_judged_and_written_again():
    result, effects = saving(VECTORS, [], [{"status": "saved", "forgotten": 0}], conflicts=3)
    assert [effect.cypher for effect in effects if isinstance(effect, Query)] == [ingestion.SAVE, episodes.STATUS]
    assert result == {"retry_from": "dedupe", "conflicts": 4}


def test_where_something_was_forgotten_it_is_not_done():
    result, _ = saving(VECTORS, [], [{"status": "saved", "forgotten": 1}])
    assert result == {"retry_from": "receive"}


def test_where_another_finished_the_same_episode_it_is_not_written_again():
    result, _ = saving(VECTORS, [], [{"status": "done", "forgotten": 1}])
    assert result == {**DONE, "entities": [], "facts": [], "revision": asdict(Revision())}


def test_where_others_never_stop_the_episode_stays_saved_and_the_error_says_so():
    with pytest.raises(DatabaseUnavailable, match=r"200 times .* try again later"):
        saving(VECTORS, [], [{"status": "saved", "forgotten": 0}], conflicts=MOST_CONFLICTS - 1)


def test_it_is_written_only_if_what_it_was_based_on_is_as_it_was():
    _, written = saved(entities=[KNOWN, NEW], facts=[], grounds={"revisions": {"b": 2, "a": 1}})
    assert written.params["based_on"] == [{"id": "a", "revision": 1}, {"id": "b", "revision": 2}]

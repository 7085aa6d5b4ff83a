from __future__ import annotations

from typing import Any

from kg_memory.effects import Embed, Now, Query
from kg_memory.falkor import cypher
from kg_memory.identity import alias_key
from kg_memory.ingestion.save import NAME_WEIGHT, save
from kg_memory.settings import Settings
from kg_memory.temporal import OPEN_END
from tests.ingestion.stepping import entity, state

NEW = {**entity("Bob"), "aliases": []}
KNOWN = {**entity("Ann", known=True), "aliases": ["Annie"]}


def fact(id_: str, same_as: str | None = None) -> dict[str, Any]:
    return {
        "id": id_, "subject": 0, "predicate": "KNOWS", "objects": [1], "sentence": f"Ann knows {id_}.", "start": 2, "end": 5,
        "valid_at": 1, "invalid_at": OPEN_END, "confidence": 1.0, "edge_type": "semantic", "same_as": same_as,
        "contradicts": ["gone"],
    }  # fmt: skip


def saved(**given: Any) -> tuple[Embed, Query]:
    """Return what is embedded and what is written."""
    flow = save(state("I know Bob.", touched=["one"], closed=["b"], beliefs=[], **given), Settings())
    embeds = next(flow)
    assert isinstance(flow.send([[float(place)] for place, _ in enumerate(embeds.texts)]), Now)
    return embeds, flow.send(7)


def test_everything_is_written_in_one_query():
    embeds, written = saved(entities=[KNOWN, NEW], facts=[fact("one"), fact("two", same_as="old")])
    assert (written.cypher, written.write) == (cypher.SAVE, True)
    assert embeds.texts == ("Ann: I know Bob.", "Bob", "Ann knows one.")


def test_only_what_is_new_is_embedded_and_each_gets_its_own_vector():
    _, written = saved(entities=[KNOWN, NEW], facts=[fact("one"), fact("two", same_as="old")])
    assert written.params["embedding"] == [0.0]
    assert [(each["name"], each["embedding"]) for each in written.params["named"]] == [("Bob", [1.0])]
    assert [(each["id"], each["embedding"]) for each in written.params["facts"]] == [("one", [2.0])]


def test_a_known_fact_gets_the_statement_and_the_contradictions_under_its_own_id():
    _, written = saved(entities=[KNOWN, NEW], facts=[fact("two", same_as="old")])
    assert [each["fact"] for each in written.params["statements"]] == ["old"]
    assert written.params["contradicts"] == [{"fact": "old", "other": "gone"}]


def test_every_name_of_an_entity_leads_to_it():
    _, written = saved(entities=[KNOWN, NEW], facts=[])
    assert written.params["entities"][0]["alias_keys"] == sorted([alias_key("Ann"), alias_key("Annie")])
    terms = {(each["key"], each["term"]): each["f"] for each in written.params["entity_terms"]}
    assert terms[KNOWN["key"], "ann"] == terms[NEW["key"], "bob"] == NAME_WEIGHT


def test_an_episode_without_anything_in_it_is_done_all_the_same():
    _, written = saved(entities=[], facts=[])
    assert (written.params["entities"], written.params["facts"], written.params["closed"]) == ([], [], ["b"])

"""A community is described by one question, or a large one by several, in rounds, each within its budget."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_memory.communities.summarise import FACTS, MEMBERS, packed, summarise
from kg_memory.effects import Ask
from kg_memory.falkor import community_cypher as cypher
from kg_memory.offline import OfflineModel
from kg_memory.prompts import COMMUNITY
from kg_memory.prompts.answers import Descriptions
from kg_memory.settings import Settings
from tests.ingestion.stepping import NOW, answered

GROUP = {"id": "c", "level": 0, "members": ["a", "b"], "fingerprint": "f"}


def description(name: str, summary: str = "They know each other.") -> Descriptions:
    return Descriptions.model_validate({"communities": [{"name": name, "summary": summary}]})


def member(name: str, summary: str = "") -> dict[str, str]:
    return {"name": name, "type": "Person", "summary": summary}


def size(items) -> int:
    return len(json.dumps(items, ensure_ascii=False).encode())


def test_a_small_community_is_one_question_with_its_members_and_their_facts():
    state = {"groups": [GROUP], "asked": 0}
    rows = [member("Ann", "Ann sings."), member("Bob")], [{"sentence": "Ann knows Bob"}]
    update, effects = answered(summarise(state, Settings()), *rows, description("Ann and Bob"))
    assert update == {
        "told": [{"id": "c", "name": "Ann and Bob", "summary": "They know each other.", "fingerprint": "f"}], "asked": 1,
    }  # fmt: skip
    assert effects[1].cypher == cypher.FACTS_AMONG
    assert effects[1].params == {"ids": ["a", "b"], "now": NOW, "limit": FACTS}
    assert effects[2] == Ask(COMMUNITY, {"community": [
        {"entity": "Ann", "type": "Person", "summary": "Ann sings."}, {"entity": "Bob", "type": "Person", "summary": ""},
        {"fact": "Ann knows Bob"},
    ]})  # fmt: skip


def test_a_large_community_is_described_in_parts_and_then_from_these():
    rows = [member(f"N{each}", "x" * 100) for each in range(20)], []
    parts = [description(f"Part {each}") for each in range(4)]
    update, effects = answered(
        summarise({"groups": [GROUP], "asked": 4}, Settings(max_community_bytes=1024)),
        *rows,
        *parts,
        description("All"),
    )
    asked = [each.fields["community"] for each in effects if isinstance(each, Ask)]
    assert [each["entity"] for part in asked[:4] for each in part] == [f"N{each}" for each in range(20)]
    assert all(size(each) <= 1024 for each in asked)
    assert asked[4] == [{"part": f"Part {each}", "summary": "They know each other."} for each in range(4)]
    assert (update["told"][0]["name"], update["asked"]) == ("All", 9)


def test_of_a_huge_community_the_first_members_are_told():
    state = {"groups": [{**GROUP, "members": [str(each) for each in range(5000)]}], "asked": 0}
    _, effects = answered(summarise(state, Settings()), [member("Ann")], [], description("Ann"))
    assert effects[0].params["ids"] == effects[1].params["ids"] == [str(each) for each in range(MEMBERS)]


quick = settings(max_examples=50, deadline=None)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=400)


@quick
@given(st.lists(st.fixed_dictionaries({"part": texts, "summary": texts}), max_size=40), st.sampled_from([1024, 8192]))
def test_parts_hold_everything_in_order_within_the_budget_and_are_ever_fewer(items, most):
    parts = packed(items, most)
    told = [item for part in parts for item in part]
    assert [item["part"][:50] for item in told] == [item["part"][:50] for item in items] or most == 1024
    assert len(told) == len(items)
    assert all(len(part) > 1 for part in parts[:-1])
    assert all(len(part) == 2 or size(part) <= most for part in parts)


CIRCLE = {
    "Ann, Oslo": [
        {"entity": "Ann", "type": "Person", "summary": ""}, {"entity": "Oslo", "type": "Place", "summary": ""},
        {"fact": "Ann lives in Oslo."}, {"fact": "Ann works in Oslo as a nurse."},
    ],
    "小明、北京": [
        {"entity": "小明", "type": "Person", "summary": ""}, {"entity": "北京", "type": "Place", "summary": ""},
        {"fact": "小明住在北京。"}, {"fact": "小明在北京工作。"},
    ],
    "Ann, Bob, Cid": [
        {"part": "Ann, Bob", "summary": "Ann knows Bob. They sing in a choir."}, {"part": "Bob, Cid", "summary": "Cid met Bob."},
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", CIRCLE)
def test_offline_a_community_is_named_by_its_members_and_told_by_its_own_sentences(name):
    answer = OfflineModel().answer(Ask(COMMUNITY, {"community": CIRCLE[name]}))
    [told] = answer.communities
    assert told.name == name
    sentences = [each.get("fact") or each.get("summary") for each in CIRCLE[name]]
    assert told.summary
    assert any(sentence and sentence[:6] in told.summary for sentence in sentences)


@pytest.mark.parametrize(
    "items", [[], [{"entity": "x" * 600, "type": "t", "summary": ""}], [{"part": "", "summary": ""}]]
)
def test_offline_a_strange_community_is_no_error(items):
    assert len(OfflineModel().answer(Ask(COMMUNITY, {"community": items})).communities) == 1

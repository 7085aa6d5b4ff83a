"""Descriptions of communities: several in one prompt, a large one in several, all within the size limit."""

import json
from collections import deque
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_memory.communities.summarise import FACTS, MEMBERS, TOGETHER, batch, pack_items, summarise
from kg_memory.contrib.offline import OfflineModel
from kg_memory.errors import AnswerError, BudgetSpent, ModelRefusal, ModelUnavailable
from kg_memory.falkor.queries import communities as cypher
from kg_memory.llm.prompts import COMMUNITY
from kg_memory.llm.prompts.answers import Descriptions
from kg_memory.runtime.effects import Ask, Reads
from kg_memory.runtime.flow import run
from kg_memory.settings import Settings
from tests.ingestion.stepping import NOW, answered
from tests.ingestion.test_summarise import JUNE_2024, fact

GROUP = {"id": "c", "level": 0, "members": ["a", "b"], "fingerprint": "f"}
REFUSED = ModelRefusal("declined: try another model")


def descriptions(*named: tuple[int, str]) -> Descriptions:
    """Return an answer that describes the communities with these numbers and names."""
    told = [{"community": number, "name": name, "summary": "They know each other."} for number, name in named]
    return Descriptions.model_validate({"communities": told})


def member(name: str, summary: str = "") -> dict[str, str]:
    return {"name": name, "type": "Person", "summary": summary}


def size(items) -> int:
    return len(json.dumps(items, ensure_ascii=False).encode())


def asked(effects):
    """Return the items of each community in each prompt."""
    return [[each["items"] for each in one.fields["communities"]] for one in effects if isinstance(one, Ask)]


def stepped(names: Sequence[str], *answers: Any, **given: int) -> tuple[dict[str, Any], list[Any]]:
    """Return the result of `summarise` for communities of one member each, and the items of its prompts."""
    replies, effects = deque(answers), []

    def perform(effect):
        match effect:
            case Reads(queries):
                members = queries[0].cypher == cypher.MEMBERS
                return [[member(each.params["ids"][0])] if members else [] for each in queries]
            case Ask():
                effects.append(effect)
                reply = replies.popleft()
                if isinstance(reply, Exception):
                    raise reply
                return reply
        return NOW

    groups = [{**GROUP, "id": each, "members": [each]} for each in names]
    update = run(summarise({"groups": groups, "questions": 0}, Settings(**given)), perform)
    assert not replies, "more answers than questions"
    return update, asked(effects)


def members(questions):
    """Return the names of the members in each prompt."""
    return [[item["entity"] for items in question for item in items] for question in questions]


def test_small_community_is_one_prompt_with_members_and_facts():
    state = {"groups": [GROUP], "questions": 0}
    rows = [[member("Ann", "Ann sings."), member("Bob")]], [[{"fact": fact("Ann knows Bob", valid_at=JUNE_2024)}]]
    update, effects = answered(summarise(state, Settings()), *rows, descriptions((1, "Ann and Bob")))
    summary = {"id": "c", "name": "Ann and Bob", "summary": "They know each other.", "fingerprint": "f"}
    assert update == {"summaries": [summary], "questions": 1}
    [facts] = effects[1].queries
    assert facts.cypher == cypher.FACTS_AMONG
    assert facts.params == {"ids": ["a", "b"], "now": NOW, "limit": FACTS}
    assert effects[2] == Ask(COMMUNITY, {"communities": [{"community": 1, "items": [
        {"entity": "Ann", "type": "Person", "summary": "Ann sings."}, {"entity": "Bob", "type": "Person", "summary": ""},
        {"fact": "Ann knows Bob (since 2024-06-01)"},
    ]}]})  # fmt: skip


def test_large_community_is_described_in_parts_then_as_whole():
    """A community too large for one prompt is described in parts, then from the descriptions of the parts.

    Features: A32.
    """
    rows = [[member(f"N{each}", "x" * 100) for each in range(20)]], [[]]
    flow = summarise({"groups": [GROUP], "questions": 4}, Settings(max_community_bytes=1024))
    parts = [descriptions((1, f"Part {each}")) for each in range(4)]
    update, effects = answered(flow, *rows, *parts, descriptions((1, "All")))
    told = [items for [items] in asked(effects)]
    assert [each["entity"] for part in told[:4] for each in part] == [f"N{each}" for each in range(20)]
    assert all(size(each) <= 1024 for each in told)
    assert told[4] == [{"part": f"Part {each}", "summary": "They know each other."} for each in range(4)]
    assert (update["summaries"][0]["name"], update["questions"]) == ("All", 9)


def test_huge_community_is_described_by_its_first_members():
    state = {"groups": [{**GROUP, "members": [str(each) for each in range(5000)]}], "questions": 0}
    _, effects = answered(summarise(state, Settings()), [[member("Ann")]], [[]], descriptions((1, "Ann")))
    first = [str(each) for each in range(MEMBERS)]
    assert effects[0].queries[0].params["ids"] == effects[1].queries[0].params["ids"] == first


def test_answers_of_one_prompt_are_assigned_by_number():
    update, questions = stepped(["Ann", "Bob", "Cy"], descriptions((3, "Three"), (1, "One"), (2, "Two")))
    assert members(questions) == [["Ann", "Bob", "Cy"]]
    assert {each["id"]: each["name"] for each in update["summaries"]} == {"Ann": "One", "Bob": "Two", "Cy": "Three"}
    assert update["questions"] == 1


@pytest.mark.parametrize(
    ("first", "again"),
    [
        ([(1, "Ann"), (2, "Bob"), (3, "Cy")], []),
        ([(1, "Ann"), (3, "Cy")], ["Bob"]),
        ([(1, "Ann"), (2, "Bob"), (2, "Bob again"), (3, "Cy")], ["Bob"]),
        ([(0, "None"), (1, "Ann"), (2, "Bob"), (4, "Dora"), (-1, "Eve")], ["Cy"]),
        ([], ["Ann", "Bob", "Cy"]),
        (AnswerError("the answer stayed invalid: try another model"), ["Ann", "Bob", "Cy"]),
        (REFUSED, ["Ann", "Bob", "Cy"]),
    ],
    ids=["all", "left out", "twice", "unknown", "none", "invalid", "refused"],
)
def test_open_community_is_asked_about_once_by_itself(first, again):
    names = ["Ann", "Bob", "Cy"]
    first = first if isinstance(first, Exception) else descriptions(*first)
    update, questions = stepped(names, first, *(descriptions((1, each)) for each in again))
    assert members(questions) == [names, *([each] for each in again)]
    assert [each["name"] for each in update["summaries"]] == names
    assert update["questions"] == 1 + len(again)
    assert all(each["fingerprint"] == "f" for each in update["summaries"])


@pytest.mark.parametrize(("again", "fingerprint"), [(REFUSED, ""), (descriptions(), "f")], ids=["refused", "empty"])
def test_refused_community_does_not_affect_the_others(again, fingerprint):
    """A summary without a fingerprint makes the next refresh ask about its community again."""
    update, _ = stepped(["Ann", "Bad", "Cy"], REFUSED, descriptions((1, "One")), again, descriptions((1, "Three")))
    told = [(each["name"], each["fingerprint"]) for each in update["summaries"]]
    assert told == [("One", "f"), ("Bad", fingerprint), ("Three", "f")]
    assert update["questions"] == 4


def test_prompts_beyond_the_budget_are_not_counted():
    spent = BudgetSpent("no room: raise the budget")
    update, questions = stepped(["Ann", "Bob"], spent, spent, descriptions((1, "Bob")))
    assert len(questions) == 3
    assert update["questions"] == 1
    assert [each["fingerprint"] for each in update["summaries"]] == ["", "f"]


def test_summarise_raises_outage_at_once():
    with pytest.raises(ModelUnavailable):
        stepped(["Ann", "Bob"], ModelUnavailable("down: try again later"))


def test_size_limit_sets_communities_per_prompt():
    names = [f"N{each}" for each in range(TOGETHER + 2)]
    _, questions = stepped(names, *[descriptions((1, "One"))] * len(names), max_community_bytes=60)
    assert members(questions) == [[each] for each in names]
    first = descriptions(*((place, "One") for place in range(1, TOGETHER + 1)))
    _, questions = stepped(names, first, descriptions((1, "One"), (2, "Two")), max_community_bytes=10**6)
    assert members(questions) == [names[:TOGETHER], names[TOGETHER:]]


quick = settings(max_examples=50, deadline=None)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=400)


@quick
@given(st.lists(st.fixed_dictionaries({"part": texts, "summary": texts}), max_size=40), st.sampled_from([1024, 8192]))
def test_pack_preserves_items_in_order_within_limit(items, most):
    parts = pack_items(items, most)
    told = [item for part in parts for item in part]
    assert [item["part"][:50] for item in told] == [item["part"][:50] for item in items] or most == 1024
    assert len(told) == len(items)
    assert all(len(part) > 1 for part in parts[:-1])
    assert all(len(part) == 2 or size(part) <= most for part in parts)


@quick
@given(
    st.lists(st.lists(st.fixed_dictionaries({"fact": texts}), max_size=12), max_size=40), st.sampled_from([256, 1024])
)
def test_batch_puts_each_community_in_one_prompt_within_limit(material, most):
    """Each community is in exactly one prompt, and prompts for several communities keep to the size limit.

    Features: C39.
    """
    found = [pack_items(each, most) for each in material]
    questions = batch(found, most)
    assert sorted(place for question in questions for place in question) == list(range(len(material)))
    for question in questions:
        assert 0 < len(question) <= TOGETHER
        if len(question) > 1:
            assert all(len(found[place]) == 1 for place in question)
            assert sum(size(item) for place in question for item in found[place][0]) <= most


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
def test_offline_description_uses_member_names_and_sentences(name):
    given = [{"community": number, "items": items} for number, items in enumerate(CIRCLE.values(), 1)]
    answer = OfflineModel().answer(Ask(COMMUNITY, {"communities": given}))
    assert [each.community for each in answer.communities] == [1, 2, 3]
    [told] = [each for each in answer.communities if each.name == name]
    sentences = [each.get("fact") or each.get("summary") for each in CIRCLE[name]]
    assert told.summary
    assert any(sentence and sentence[:6] in told.summary for sentence in sentences)


@pytest.mark.parametrize(
    "items", [[], [{"entity": "x" * 600, "type": "t", "summary": ""}], [{"part": "", "summary": ""}]]
)
def test_offline_description_accepts_strange_community(items):
    given = [{"community": 1, "items": items}]
    assert len(OfflineModel().answer(Ask(COMMUNITY, {"communities": given})).communities) == 1

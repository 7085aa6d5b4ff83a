"""The recipe ``chain`` finds answers over several facts, and gives low scores if there is no answer."""

import pytest

from kg_memory.contrib.variants.rerankers import follow_chains
from kg_memory.retrieval.recipe import RECIPES

ROWS = [
    ("Greta", "manager", "Hugo", None),
    ("Greta", "room", "B7", None),
    ("Hugo", "room", "C2", None),
    ("Hugo", "works_at", "Fjord Bank", None),
    ("night-train", "owner", "Polar Rail", None),
    ("Polar Rail", "founded_by", "Ines", "1998"),
    ("Fjord Bank", "founded_by", "Jens", "1970"),
    ("night-train", "terminus", "Narvik", None),
    ("Greta", "lives_in", "Narvik", "2020"),
    ("Greta", "lives_in", "Kiruna", "2024"),
    ("赵敏", "就职于", "白鹭出版社", None),
    ("白鹭出版社", "社长", "钱程", None),
]


@pytest.fixture
def company(declaring, namespace):
    for subject, predicate, value, since in ROWS:
        declaring.facts.add(subject, predicate, value, valid_at=since, namespace=namespace)
    return declaring


def best(memory, namespace, question, **times):
    return memory.search(question, namespace=namespace, recipe="chain", **times).facts[0]


ANSWERS = {
    "In which room does Greta sit?": "Greta room B7",
    "In which room does the manager of Greta sit?": "Hugo room C2",
    "Who founded the company that owns the night train?": "Polar Rail founded by Ines",
    "Who founded the bank which Greta's manager works for?": "Fjord Bank founded by Jens",
    "What is the terminus of the night-train?": "night-train terminus Narvik",
    "Where does Greta live?": "Greta lives in Kiruna",
    "赵敏工作的出版社，社长是谁？": "白鹭出版社 社长 钱程",
}
UNKNOWN = (
    "In which room does Ulla sit?", "Who owns Fjord Bank?", "What is the terminus of the ferry Saga?",
    "Who is the manager of Jens?", "孙丽的社长是谁？",
)  # fmt: skip


def test_chain_search_ranks_the_end_of_the_chain_first(company, namespace):
    found = {question: best(company, namespace, question) for question in ANSWERS}
    assert {question: fact.sentence for question, fact in found.items()} == ANSWERS
    assert all(fact.score >= 0.5 for fact in found.values())
    for question in UNKNOWN:
        facts = company.search(question, namespace=namespace, recipe="chain").facts
        assert all(fact.score < 0.5 for fact in facts), question
    assert best(company, namespace, "Where does Greta live?", as_of="2022").objects == ("Narvik",)


def test_follow_chains_requires_a_new_word_of_each_fact():
    words = {"one": frozenset({"room"}), "two": frozenset({"room"}), "three": frozenset({"boss", "room"})}
    entities = {"one": frozenset("ab"), "two": frozenset("bc"), "three": frozenset("bd"), "far": frozenset("xy")}
    shares = follow_chains({**words, "far": frozenset({"room"})}, entities, frozenset("a"), 3)
    assert shares.keys() == {"one", "three"}
    assert 1 > shares["three"] > shares["one"]
    assert follow_chains(words, {**entities}, frozenset("a"), 1).keys() == {"one"}
    assert "chain" in RECIPES

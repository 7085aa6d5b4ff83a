"""A sentence that denies what it names states nothing, and ends nothing that is true."""

import pytest

from kg_memory import GraphMemory
from tests.offline.asking import facts

DENIED = (
    "Neither Aino nor Eero works at Nokia. | It is not true that Kalle lives in Oulu. | "
    "It isn't true that Kalle lives in Oulu. | It was never true that Kalle worked at Nokia. | "
    "That Kalle lives in Oulu is a lie. | The claim that Kalle lives in Oulu is false. | "
    "Eero denies that Kalle works at Fortum. | Eero denied living in Turku. | Aino doubts that Eero moved to Turku. | "
    "Nobody in my team works at Nokia. | No one lives in Oulu. | None of my friends works at Fortum. | "
    "No engineer of ours lives in Oulu. | Kalle refuses to admit that he works at Nokia. | "
    "Kalle never said that he works at Nokia. | Never has Eero lived in Oulu. | "
    "I don’t believe that Eero is allergic to nuts. | It is unlikely that Kalle moved to Oulu. | 没有人在诺基亚工作。 | "
    "并非所有人都住在北京。 | 李娜否认她在阿里巴巴工作。 | 我怀疑小王搬到了上海。 | 小王住在上海不是真的。 | "
    "我既不住在北京也不住在上海。"
).split(" | ")
TOLD = [
    ("I doubt it will rain, but I live in Oslo.", "LIVES_IN", "Oslo"),
    ("No doubt about it: I work at Nokia.", "WORKS_AT", "Nokia"),
    ("Nobody told me, so I moved to Turku.", "LIVES_IN", "Turku"),
    ("It's not true that I live in Turku, I live in Oulu.", "LIVES_IN", "Oulu"),
    ("I was denied a visa but I moved to Oslo.", "LIVES_IN", "Oslo"),
    ("没有人告诉我，但是我搬到了上海。", "LIVES_IN", "上海"),
    ("我住在北京，我不相信天气预报。", "LIVES_IN", "北京"),
]


@pytest.mark.parametrize("sentence", DENIED)
def test_a_denial_states_no_fact(sentence):
    positive = [fact for fact in facts(sentence) if not fact.predicate.startswith(("NEVER", "NOT_", "SAYS_ABOUT"))]
    assert positive == []


@pytest.mark.parametrize(("sentence", "predicate", "thing"), TOLD)
def test_clause_beside_a_denial_states_its_fact(sentence, predicate, thing):
    assert (predicate, [thing]) in [(fact.predicate, fact.objects) for fact in facts(sentence)]


def test_denial_ends_no_existing_fact_and_what_ends_one_is_not_over(server, namespace):
    with GraphMemory.open(server.url, model="offline") as memory:
        memory.add("Kalle lives in Oulu. Kalle works at Fortum.", speaker="Ann", at="2024-05-01", namespace=namespace)
        for sentence in DENIED:
            memory.add(sentence, speaker="Ann", at="2024-06-01", namespace=namespace)
        kept = {fact.predicate: fact.invalid_at for fact in memory.facts.about("Kalle", namespace=namespace)}
        assert (kept["LIVES_IN"], kept["WORKS_AT"]) == (None, None)
        memory.add("Kalle quit Fortum and joined Nokia last week.", speaker="Ann", at="2024-07-10", namespace=namespace)
        assert "joined Nokia last week.\n" in memory.context("Where does Kalle work?", namespace=namespace)

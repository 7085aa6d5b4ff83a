"""The first person in a question means the asker, who does not affect questions about others."""

import pytest

from kg_memory.errors import InputError
from kg_memory.text.identity import is_first_person, is_subject


@pytest.fixture
def family(tell):
    tell("Lily|LIVES_IN|Oslo", "Lily|KNOWS|Maria", day=1)
    tell("Bo|LIVES_IN|Bergen", "Bo|KNOWS|Maria", day=2)
    tell("Maria|LIVES_IN|Rome", "Maria|KNOWS|Eve", day=3)
    return tell


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("Where do I live?", "Maria lives in Rome"),
        ("Where does the user live?", "Maria lives in Rome"),
        ("Where does my sister Lily live?", "Lily lives in Oslo"),
        ("Where does Bo live?", "Bo lives in Bergen"),
        ("我住在哪里？", "Maria"),
    ],
)
def test_search_resolves_only_the_first_person_to_the_asker(family, namespace, question, first):
    assert first in family.memory.search(question, asker="Maria", namespace=namespace).facts[0].sentence


def test_search_ignores_unknown_and_refuses_invalid_asker(family, namespace):
    plain = family.memory.search("Where do I live?", namespace=namespace)
    unknown = family.memory.search("Where do I live?", asker="Nobody'); MATCH (n) DELETE n", namespace=namespace)
    assert [fact.id for fact in unknown.facts] == [fact.id for fact in plain.facts]
    with pytest.raises(InputError, match="asker must be"):
        family.memory.search("Where do I live?", asker=" ", namespace=namespace)


SUBJECT = ("Where do I live?", "我住哪？", "Who told me?", "Where does the user live?", "用户住哪？")
POSSESSIVE = ("What is my name?", "我的姐姐住哪？", "Where does the user's sister live?")
NEITHER = ("Is it in the UI?", "What did i.e. mean?", "What is in the user guide?", "用户界面好吗？")


@pytest.mark.parametrize("question", [*SUBJECT, *POSSESSIVE, *NEITHER])
def test_is_first_person_and_is_subject_classify_questions(question):
    assert (is_first_person(question), is_subject(question)) == (question not in NEITHER, question in SUBJECT)

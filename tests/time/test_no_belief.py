"""Facts without any belief: each lost to another fact, and a verdict names it."""

import pytest

from kg_memory.memory.memory import GraphMemory
from kg_memory.settings import Settings

STORIES = {
    "two jobs left on one day": [
        ("2023-07-19", "I left Globex and joined Acme."),
        ("2023-07-19", "I quit Initech."),
        ("2023-08-12", "I work at Acme."),
    ],
    "a job begun on the day of another": [
        ("2023-04-14", "I work at Acme."),
        ("2023-02-16", "I left Initech and joined Acme."),
        ("2023-02-16", "I work at Globex."),
    ],
}
FACTS = """
MATCH (f:Fact)
OPTIONAL MATCH (b:Belief)-[]-(f)
WITH f, count(b) AS beliefs
OPTIONAL MATCH (v:Verdict)-[]-(f)
RETURN f.sentence AS sentence, beliefs, count(v) AS verdicts
"""


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES.keys())
def test_fact_without_beliefs_has_a_verdict(server, embeddings, namespace, rows, story):
    with GraphMemory(Settings(url=server.url), model="offline", embeddings=embeddings) as memory:
        for at, content in story:
            memory.add(content, speaker="Ann", at=at, namespace=namespace)

    facts = rows(FACTS)
    assert sum(fact["beliefs"] > 0 for fact in facts) >= 2
    assert [fact for fact in facts if not fact["beliefs"] and not fact["verdicts"]] == []

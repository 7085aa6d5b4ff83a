"""Facts that their quotes do not support are dropped or marked; support is exported."""

import pytest

from kg_memory.memory.memory import GraphMemory
from tests import scripted
from tests.scripted import HashEmbeddings, Scripted

AT = "2024-05-14T10:00:00Z"


def stated(subject, object_, sentence, quote, confidence=1.0, predicate="WORKS_AT"):
    return scripted.stated(subject, predicate, [object_], sentence, quote, confidence=confidence)


@pytest.fixture
def reading(standard):
    """Open a memory whose model reads exactly the given facts in any message."""

    def open_memory(*facts, min_support=0.5) -> GraphMemory:
        names = dict.fromkeys(name for fact in facts for name in (fact["subject"], *fact["objects"]))
        answer = {"entities": [{"name": name, "type": "Entity"} for name in names], "facts": list(facts)}
        return standard(Scripted(read=lambda _: answer), min_support=min_support)

    return open_memory


INVENTED = stated("Ann", "Interpol", "Ann works at Interpol", "I joined Interpol as a spy")
TWISTED = stated("Ann", "Interpol", "Ann works at Interpol", "I moved to Oslo")
TRUE = stated("Ann", "Oslo", "Ann moved to Oslo", "I moved to Oslo", predicate="MOVED_TO")


def test_fact_with_invented_quote_is_dropped_and_reported(reading, namespace):
    added = reading(INVENTED, TRUE).add("I moved to Oslo.", speaker="Ann", at=AT, namespace=namespace)
    assert added.facts == ("Ann moved to Oslo",)
    assert [(loss.kind, loss.text) for loss in added.dropped] == [("fact", "Ann works at Interpol")]
    assert "quote is not in the message" in added.dropped[0].reason


def test_unsupported_fact_is_unconfirmed_with_low_confidence(reading, namespace):
    memory = reading(TWISTED, TRUE)
    memory.add("I moved to Oslo.", speaker="Ann", at=AT, namespace=namespace)
    facts = {fact.sentence: fact for fact in memory.facts.about("Ann", namespace=namespace)}
    weak, true = facts["Ann works at Interpol"], facts["Ann moved to Oslo"]
    assert (weak.confirmed, weak.voices, weak.confidence == weak.support < 0.5) == (False, 0, True)
    assert (true.confirmed, true.voices, true.support, true.confidence) == (True, 1, 1.0, 1.0)
    context = memory.context("Ann", namespace=namespace)
    assert "Ann works at Interpol (since 14 May 2024 10:00 UTC, not confirmed by its words)" in context
    assert "14 May 2024 10:00 UTC:\n- [" in context
    assert "Ann: I moved to Oslo.\n" in context
    [summary] = [entity.summary for entity in memory.entities.list(namespace=namespace) if entity.name == "Ann"]
    assert summary == "Ann moved to Oslo (since 2024-05-14)."  # only confirmed facts


def test_zero_min_support_accepts_all_facts(reading, namespace):
    memory = reading(INVENTED, TWISTED | {"sentence": "Ann is at Interpol"}, min_support=0.0)
    assert len(memory.add("I moved to Oslo.", speaker="Ann", at=AT, namespace=namespace).facts) == 2
    assert all(fact.confirmed for fact in memory.facts.about("Ann", namespace=namespace))


def test_repeated_fact_has_highest_confidence_and_voice_count(standard, namespace):
    """A repeated fact keeps its highest confidence; `voices` counts the speakers.

    Features: C9.
    """
    sure = iter((0.6, 0.9, 0.7))
    names = [{"name": "Ann", "type": "Person"}, {"name": "Acme", "type": "Organization"}]
    quote = "Ann works at Acme"
    model = Scripted(read=lambda _: {"entities": names, "facts": [stated("Ann", "Acme", quote, quote, next(sure))]})
    memory = standard(model)
    confidences = []
    for number, speaker in enumerate(("Bo", "Cid", "Bo"), start=1):
        memory.add(f"{quote}, {number}.", speaker=speaker, at=f"2024-05-1{number}", namespace=namespace)
        [fact] = memory.facts.about("Ann", namespace=namespace)
        confidences.append((fact.confidence, fact.voices))
    assert confidences == [(0.6, 1), (0.9, 2), (0.9, 2)]


def test_support_is_exported_and_optional_in_old_graphs(reading, namespace, tmp_path, database, server):
    memory = reading(TWISTED)
    memory.add("I moved to Oslo.", speaker="Ann", at=AT, namespace=namespace)
    file = tmp_path / "out.jsonl"
    memory.data.export(file, namespace=namespace)
    with GraphMemory(memory.settings, model=Scripted(), embeddings=HashEmbeddings()) as other:
        other.data.import_(file, namespace=f"{namespace}-copy")
        [copied] = other.facts.about("Ann", namespace=f"{namespace}-copy")
        old = "MATCH ()-[s:STATES]->() SET s.support = NULL, s.weak = NULL"
        database.query(other.driver.key(namespace), old, {}, write=True)
        [unknown] = other.facts.about("Ann", namespace=namespace)
    assert (copied.confirmed, copied.support is not None) == (False, True)
    assert (unknown.confirmed, unknown.support) == (True, None)


def test_declared_fact_has_full_support(standard, namespace):
    memory = standard(Scripted(), min_support=1.0)
    memory.facts.add("Ann", "ENJOYS", "chess", namespace=namespace)
    [fact] = memory.facts.about("Ann", namespace=namespace)
    assert (fact.support, fact.confirmed) == (1.0, True)

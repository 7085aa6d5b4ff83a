"""Forgetting and redaction of declared facts."""

from tests.declared.conftest import Unasked


def sentences(memory, name, namespace):
    return sorted(fact.sentence for fact in memory.facts.about(name, namespace=namespace))


def test_forget_deletes_facts_of_an_entity_or_a_source(declaring, namespace):
    rows = [
        {"subject": "Ann", "predicate": "KNOWS", "object": "Bo", "source": "crm", "source_id": "1"},
        {"subject": "Cy", "predicate": "KNOWS", "object": "Bo", "source": "crm", "source_id": "2"},
        {"subject": "Cy", "predicate": "is retired", "source": "hr", "source_id": "3"},
    ]
    declaring.facts.add_many(rows, namespace=namespace)
    assert not declaring.privacy.forget(entity="Ann", namespace=namespace).residue
    assert sentences(declaring, "Cy", namespace) == ["Cy is retired", "Cy knows Bo"]
    declaring.privacy.forget(source="crm", namespace=namespace)
    assert sentences(declaring, "Cy", namespace) == ["Cy is retired"]


def test_forget_thread_deletes_its_records(memory, namespace):
    mapping = {"subject": "$.name", "predicate": "LIKES", "object": "jazz"}
    memory.add("I live in Oslo", speaker="Ann", thread="t", namespace=namespace)
    memory.add('{"name": "Bo"}', kind="json", mapping=mapping, thread="t", namespace=namespace)
    memory.add("I live in Rome", speaker="Cy", thread="t", namespace=namespace)
    memory.facts.add("Bo", "KNOWS", "Dan", namespace=namespace)
    assert not memory.privacy.forget(thread="t", namespace=namespace).residue
    assert sentences(memory, "Bo", namespace) == ["Bo knows Dan"]
    assert memory.stats(namespace=namespace).episodes == 1


def test_forget_span_leaves_the_rest_of_a_fact(declaring, namespace):
    added = declaring.facts.add("Ann", "LIKES", "jazz", sentence="Ann likes jazz and 4711", namespace=namespace)
    start = declaring.episodes.get(added.episode, namespace=namespace).content.index("4711")
    receipt = declaring.privacy.forget(episode=added.episode, span=(start, start + 4), namespace=namespace)
    assert not receipt.residue
    declaring.episodes.resume(namespace=namespace)
    assert sentences(declaring, "Ann", namespace) == ["Ann likes jazz and [forgotten]"]


def test_redact_hook_runs_before_storage_and_embedding(opened, embeddings, namespace):
    memory = opened(Unasked(), redact=lambda text: text.replace("Ann", "[X]"))
    memory.facts.add("Ann", "KNOWS", "Bo", namespace=namespace)
    memory.facts.add_many([("Ann", "LIKES", "Bo")], namespace=namespace)
    assert sentences(memory, "Bo", namespace) == ["[X] knows Bo", "[X] likes Bo"]
    assert not any("Ann" in text for text in embeddings.embedded)


def test_evict_deletes_expired_declared_facts(declaring, namespace):
    past, later = "2020-01-01T00:00:00Z", "2999-01-01T00:00:00Z"
    gone = declaring.facts.add("Ann", "LIKES", "jazz", expires_at=past, namespace=namespace)
    rows = [{"subject": "Ann", "predicate": "LIKES", "object": "tea", "expires_at": later}]
    declaring.facts.add_many(rows, namespace=namespace)
    assert declaring.privacy.evict(expired_episodes=True, namespace=namespace).episodes == (gone.episode,)
    assert sentences(declaring, "Ann", namespace) == ["Ann likes tea"]

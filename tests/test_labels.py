"""Labels: stored as given, copied to facts, tested by filters, exported and forgotten with their episode."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_memory.errors import InputError
from kg_memory.models.graph import EpisodeInput
from kg_memory.models.labels import Labels, decode_labels, encode_labels, merge_labels, read_labels

GIVEN = {"agent": "support", "tags": ["billing", "大客户"], "priority": 2, "urgent": True, "score": 0.5, "empty": []}
KEPT = {"agent": "support", "tags": ("billing", "大客户"), "priority": 2, "urgent": True, "score": 0.5}

values = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=20),
    st.integers(-(10**14), 10**14),
    st.booleans(),
    st.floats(-1e14, 1e14),
)
mappings = st.dictionaries(
    st.from_regex(r"\A\w[\w.-]{0,10}\Z"), st.one_of(values, st.lists(values, max_size=4)), max_size=4
)


@given(mappings)
def test_labels_survive_encoding_and_decoding(labels):
    kept = read_labels(labels)
    back = decode_labels(encode_labels(kept))
    assert json.dumps(back) == json.dumps(kept)
    assert hash(back) == hash(kept)
    assert json.dumps(read_labels(kept)) == json.dumps(kept)


INVALID = (
    (["agent"], "must be a dict"),
    ("agent", "must be a dict"),
    ({"a b": 1}, "key of a label"),
    ({"": 1}, "key of a label"),
    ({"x" * 65: 1}, "key of a label"),
    ({1: 1}, "key of a label"),
    ({"a": {"b": 1}}, "the label 'a' must be a string"),
    ({"a": [["b"]]}, "must be a string"),
    ({"a": [None]}, "must be a string"),
    ({"a": float("nan")}, "must be a string"),
    ({"a": 10**400}, "must be a string"),
    ({"a": "x" * 1001}, "up to 1000 characters"),
    ({"a": list(range(101))}, "at most 100 values, got 101"),
)


def test_invalid_labels_are_refused_and_nothing_is_stored(memory, namespace):
    for labels, message in INVALID:
        with pytest.raises(InputError, match=message):
            memory.add("I live in Oslo.", labels=labels, namespace=namespace)
        with pytest.raises(InputError, match=message):
            memory.add_many([{"content": "I live in Oslo.", "labels": labels}], namespace=namespace)
        with pytest.raises(InputError, match=message):
            memory.facts.add("Ann", "LIKES", "tea", labels=labels, namespace=namespace)
    assert memory.stats(namespace=namespace).episodes == 0


def test_facts_have_the_labels_of_their_episodes(memory, namespace, verbs):
    episode = verbs.add("I live in Oslo.", speaker="Ann", labels=GIVEN).episode
    verbs.add_many([EpisodeInput(content="I live in Rome.", speaker="Bob", labels={"agent": "sales", "tags": ["vip"]})])
    verbs.facts.add("Ann", "LIKES", "tea", labels={"agent": "crm", "tags": "vip"})
    assert verbs.episodes.get(episode).labels == KEPT
    where = {"labels.tags": "大客户", "labels.priority": {"$gte": 2}, "labels.urgent": True}
    [fact] = verbs.facts.list(where=where)
    assert fact.labels == fact.sources[0].labels == KEPT
    assert verbs.facts.sources(fact.id)[0].labels == KEPT
    assert {fact.labels["agent"] for fact in verbs.facts.list(where={"labels.tags": "vip"})} == {"sales", "crm"}
    results = verbs.search("Where does Ann live?", where={"$not": {"labels.agent": "support"}})
    assert results.facts
    assert all(item.labels["agent"] != "support" for item in (*results.facts, *results.episodes))
    assert "Oslo" in verbs.context("Where does Ann live?", where={"labels.agent": "support"})


def test_fact_merges_the_labels_of_all_its_episodes(memory, namespace):
    for agent, content in (("support", "I live in Oslo."), ("sales", "I live in Oslo, still.")):
        memory.add(content, speaker="Ann", labels={"agent": agent, "team": "A"}, namespace=namespace)
    [fact] = memory.facts.list(namespace=namespace)
    assert fact.labels == {"agent": ("support", "sales"), "team": "A"}
    assert merge_labels([Labels(a=1), Labels(a=True)]) == {"a": (1, True)}


def test_labels_are_redacted_and_unchanged_by_a_second_add(opened, namespace):
    memory = opened(redact="secrets")
    said = {"content": "I live in Oslo.", "speaker": "Ann", "at": "2024-01-01", "namespace": namespace}
    first = memory.add(**said, labels={"note": "password: hunter22!", "a": "x\x00y"})
    assert memory.add(**said, labels={"other": 1}).new is False
    kept = memory.episodes.get(first.episode, namespace=namespace)
    assert kept.labels == {"note": "password: [secret]", "a": "x\ufffdy"}


def test_labels_are_exported_and_forgotten_with_the_episode(memory, namespace, tmp_path):
    path = tmp_path / "memory.jsonl"
    memory.add("I live in Oslo.", speaker="Ann", labels=GIVEN, namespace=namespace)
    memory.data.export(path, namespace=namespace)
    memory.data.import_(path, namespace=f"{namespace} copy")
    [fact] = memory.facts.list(namespace=f"{namespace} copy", where={"labels.agent": "support"})
    assert fact.labels == KEPT
    broken = path.read_text().replace('agent:\\"support\\"', "agent:support")
    assert broken != path.read_text()
    path.write_text(broken)
    with pytest.raises(InputError, match="labels"):
        memory.data.import_(path, namespace=f"{namespace} broken")
    assert not memory.privacy.forget(speaker="Ann", namespace=namespace).residue
    assert not memory.facts.list(namespace=namespace, where={"labels.agent": "support"})

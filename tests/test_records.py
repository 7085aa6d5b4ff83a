"""JSON records and speakers, read by the offline model end to end."""

import json
from datetime import datetime

import pytest

from kg_memory import GraphMemory
from kg_memory.contrib.offline import OfflineModel
from tests.scripted import HashEmbeddings


@pytest.fixture
def reader(server):
    with GraphMemory.open(server.url, model=OfflineModel(), embeddings=HashEmbeddings()) as memory:
        yield memory


def test_old_value_of_a_changed_record_stays_searchable(reader, namespace):
    for status, day in (("open", "2024-06-02"), ("shipped", "2024-06-05")):
        order = {"order_id": "A-1001", "customer": "Erika Muster", "status": status, "ordered_at": "2024-06-02"}
        reader.add(json.dumps(order), kind="json", at=day, namespace=namespace)
    told = reader.facts.about("order A-1001", namespace=namespace)
    spans = {fact.objects[0]: (fact.valid_at, fact.invalid_at) for fact in told if fact.predicate == "STATUS"}
    assert spans["open"][1] == spans["shipped"][0] == datetime.fromisoformat("2024-06-05T00:00:00+00:00")
    then = reader.search("status of order A-1001", as_of="2024-06-03", namespace=namespace).facts
    assert "open" in {fact.objects[0] for fact in then}
    assert "shipped" not in {fact.objects[0] for fact in then}


def test_speaker_user_is_not_merged_with_mentioned_names(reader, namespace):
    reader.add("I want to build a budget tracker.", speaker="user", at="2024-01-01", namespace=namespace)
    lecture = "Let's start with User Authentication and User Experience. User Authentication needs hashing."
    reader.add(lecture, speaker="assistant", at="2024-01-01T00:01", namespace=namespace)
    reader.add("I live in Lyon.", speaker="user", at="2024-01-01T00:02", namespace=namespace)
    assert any(fact.objects == ("Lyon",) for fact in reader.facts.about("user", namespace=namespace))
    names = {entity.name: entity.aliases for entity in reader.entities.list(namespace=namespace)}
    assert "user" in names
    assert not any("user" in aliases for aliases in names.values())

"""`facts.list`, `facts.get` and `facts.explain`: facts without a question."""

import pytest

from kg_memory.errors import InputError, NotFound


@pytest.fixture
def stored(memory, namespace):
    memory.facts.add("Ann", "LIVES_IN", "Oslo", valid_at="2019", at="2024-01-01", namespace=namespace)
    memory.facts.add("Ann", "LIVES_IN", "Rome", valid_at="2022", at="2024-02-01", namespace=namespace)
    memory.facts.add("Bob", "LIKES", "tea", source="crm", at="2024-03-01", namespace=namespace)
    return {fact.sentence: fact for fact in memory.facts.list(namespace=namespace)}


@pytest.fixture
def objects(memory, namespace):
    return lambda **how: [fact.objects[0] for fact in memory.facts.list(namespace=namespace, **how)]


def test_facts_list_is_latest_first_and_takes_filter_and_time(stored, objects):
    assert objects() == ["tea", "Rome", "Oslo"]
    assert objects(as_of="2020-06-01") == ["Oslo"]
    assert objects(during="2019") == ["Oslo"]
    assert objects(where={"predicate": "lives in"}) == ["Rome", "Oslo"]
    assert objects(where={"$or": [{"source": "crm"}, {"name": "Rome"}]}) == ["tea", "Rome"]
    assert objects(where={"$not": {"source": "crm"}}, as_of="2023-01-01") == ["Rome"]
    assert objects(believed_at="2000-01-01") == []
    with pytest.raises(InputError, match="colour"):
        objects(where={"colour": "red"})


def test_facts_list_filters_by_fact_kind(memory, namespace, model, objects):
    """Features: G1."""
    read = model.rules["facts"]

    def tell(fields):
        facts = read(fields)["facts"]
        trips = {"predicate": "visited", "kind": "event"}
        return {"facts": [{**fact, **trips} if fact["quote"] == "Rome" else fact for fact in facts]}

    model.rules["facts"] = tell
    memory.add("Ann lives in Oslo and visited Rome.", namespace=namespace)
    assert objects(where={"fact_kind": "event"}) == ["Rome"]
    assert objects(where={"fact_kind": {"$ne": "event"}}) == ["Oslo"]
    assert sorted(objects(where={"fact_kind": ["event", "state"]})) == ["Oslo", "Rome"]


def test_facts_list_about_accepts_name_or_id_and_filters(memory, namespace, stored, objects):
    [ann] = [entity for entity in memory.entities.list(namespace=namespace) if entity.name == "Ann"]
    assert objects(about="ann") == objects(about=ann.id) == ["Rome", "Oslo"]
    assert objects(about="Rome", where={"name": "Ann"}) == ["Rome"]
    assert objects(about="Ann", where={"$or": [{"name": "Oslo"}, {"source": "crm"}]}, as_of="2020") == ["Oslo"]
    assert objects(about="Nobody") == []
    with pytest.raises(InputError, match="about must be"):
        objects(about=" ")


def test_facts_list_pages_are_stable_under_add_and_forget(memory, namespace, stored):
    for number in range(5):  # all at one time, so that only their ids order them
        memory.facts.add("Cy", "LIKES", f"band {number}", at="2024-03-01", namespace=namespace)
    whole = memory.facts.list(namespace=namespace)
    assert (len(whole), whole.next) == (8, None)
    pages = [memory.facts.list(namespace=namespace, limit=3)]
    memory.facts.add("Cy", "LIKES", "the new one", at="2024-06-01", namespace=namespace)
    memory.privacy.forget(fact=pages[0][-1].id, namespace=namespace)  # the fact that the cursor names
    while pages[-1].next:
        pages.append(memory.facts.list(namespace=namespace, limit=3, after=pages[-1].next))
    assert [fact.id for page in pages for fact in page] == [fact.id for fact in whole]
    assert [len(page) for page in pages] == [3, 3, 2]


@pytest.mark.parametrize("cursor", ["", "x", 7, b"x", "W10=", "WzEsMiwzXQ==", "W3RydWUsICJhIiwgImIiXQ==", "\udcff"])
def test_facts_list_refuses_an_invalid_cursor(memory, namespace, cursor):
    with pytest.raises(InputError, match="after must be the `next` of a page"):
        memory.facts.list(namespace=namespace, after=cursor)


def test_facts_get_and_explain_return_a_fact_by_its_id(memory, namespace, stored):
    """`facts.get` returns a fact by its id; `facts.explain` adds its sources and the facts that superseded it.

    Features: D4.
    """
    oslo, rome = (next(fact for fact in stored.values() if fact.objects == (name,)) for name in ("Oslo", "Rome"))
    assert memory.facts.get(oslo.id, namespace=namespace) == oslo
    assert memory.facts.get(oslo.id, namespace=namespace, believed_at="2000-01-01") is None
    assert memory.facts.get(oslo.id, namespace="another") is None
    why = memory.facts.explain(oslo.id, namespace=namespace)
    assert why.fact == oslo
    assert [source.episode for source in why.sources] == [oslo.sources[0].episode]
    assert [fact.id for fact in why.evolution] == [oslo.id, rome.id]
    with pytest.raises(NotFound, match="fact 'nothing' not found"):
        memory.facts.explain("nothing", namespace=namespace)

"""Plans: one model call per episode and one per step give the same graph."""

from collections.abc import Callable
from typing import Any

import pytest

from kg_memory import Settings
from kg_memory.errors import InputError, SettingsError
from tests.scripted import Scripted, resolving, stated

AT = "2024-05-01T10:00:00Z"
TALK = (
    {"content": "I moved to Oslo.", "speaker": "Ann"},
    {"content": "Bob lives in Rome since 2020-01-01", "kind": "text"},
    {"content": '{"customer": "Cy", "home": "Bergen"}', "kind": "json"},
    {"content": "I moved to Paris since 2024-06-01.", "speaker": "Ann"},
    {"content": "I know Bob.", "speaker": "Ann"},
    {"content": "Hm.", "speaker": "Ann"},
)
GRAPH = """
MATCH (s:Entity)-[:SUBJECT_OF]->(f:Fact)-[:OBJECT_IS]->(o:Entity)
OPTIONAL MATCH (f)-[:HELD]->(b:Belief)
OPTIONAL MATCH (e:Episode)-[t:STATES]->(f)
RETURN s.name AS subject, o.name AS object, f.sentence AS sentence, b.valid_at AS begin, b.invalid_at AS end,
  b.expired_at AS expired, substring(e.content, t.start, t.end - t.start) AS quote
ORDER BY sentence, begin, end, expired, quote
"""


def read(entities: list[str], *facts: tuple[Any, Any], quote: str = "") -> Callable[[Any], Any]:
    """Return a rule that reads *entities* and *facts* (a subject and its objects) in any message."""

    def answer(_: Any) -> Any:
        return {
            "entities": [{"name": name, "type": "Person"} for name in entities],
            "facts": [stated(each, "ATTENDS", objects, f"{each} knows {objects}", quote) for each, objects in facts],
        }

    return answer


def test_standard_and_thorough_plans_give_the_same_graph(standard, memory, namespace, database):
    graphs = []
    for each, space in ((standard(Scripted()), namespace), (memory, f"{namespace} stepwise")):
        each.add_many([{**told, "at": AT} for told in TALK], namespace=space)
        rows = database.query(each.driver.key(space), GRAPH, {}, write=False)
        graphs.append([{**row, "expired": row["expired"] is None or row["expired"] > 4e18} for row in rows])
    assert graphs[0] == graphs[1]
    assert {row["sentence"] for row in graphs[0]} >= {"Ann lives in Oslo", "Ann lives in Paris", "Bob lives in Rome"}


def test_standard_plan_reads_an_episode_in_one_call(standard, namespace):
    model = Scripted()
    standard(model).add("I moved to Oslo.", speaker="Ann", at=AT, namespace=namespace)
    assert [each.prompt.name for each in model.asked] == ["read"]
    [asked] = model.asks("read")
    assert asked["episode"]["speaker"] == "Ann"
    assert {"previous", "entity_types", "fact_types", "instructions"} < asked.keys()


def test_unlisted_object_of_a_fact_becomes_an_entity(standard, namespace):
    added = standard(Scripted(read=read(["Ann"], ("Ann", ["Bob"])))).add("They met.", at=AT, namespace=namespace)
    assert added.entities == ("Ann", "Bob")
    assert len(added.facts) == 1


def test_predicate_of_a_dropped_fact_is_not_asked_about(standard, namespace):
    facts = read(["Ann", "Bob"], ("she", ["Ann"]), ("Ann", ["Bob"]))(None)
    facts["facts"][0]["predicate"] = "FROBNICATES"
    model = Scripted(read=lambda _: facts)
    assert len(standard(model).add("They met.", at=AT, namespace=namespace).facts) == 1
    asked = [each["name"] for fields in model.asks("predicates") for each in fields["predicates"]]
    assert "FROBNICATES" not in asked


def test_fact_refers_to_the_resolved_entity(standard, namespace):
    reading = read(["Robert Chen", "Ann"], ("Ann", ["Robert Chen"]))
    model = Scripted(read=reading, resolve=resolving(name="Robert Chen"))
    memory = standard(model, ask_threshold=0.3)
    memory.add("Ann knows Robert Chen", at=AT, namespace=namespace)
    model.rules["read"] = read(["Robert", "Eve"], ("Robert", ["Eve"]))
    memory.add("Robert knows Eve", at=AT, namespace=namespace)
    [fact] = memory.facts.about("Eve", namespace=namespace)
    assert (fact.subject, fact.objects) == ("Robert Chen", ("Eve",))


def test_each_piece_of_a_long_text_has_its_own_call(standard, namespace):
    text = "Ann lives in Oslo. " * 400 + "Bob lives in Rome. " * 400
    model = Scripted()
    memory = standard(model)
    memory.add(text, kind="text", at=AT, namespace=namespace)
    assert len(model.asks("read")) == 3
    [fact] = [each for each in memory.facts.about("Rome", namespace=namespace) if each.subject == "Bob"]
    assert fact.sources[0].start > text.index("Bob") + 3000
    assert text[fact.sources[0].start : fact.sources[0].end] == "Rome"


def test_entities_and_facts_over_limits_are_dropped_and_logged(standard, namespace, caplog):
    names = [f"Person {letter}" for letter in "ABCDEFGH"]
    model = Scripted(read=read(names, *((names[0], [name]) for name in names[1:])))
    added = standard(model, max_entities=4, max_facts=2).add("They met.", at=AT, namespace=namespace)
    assert (added.entities, len(added.facts)) == (tuple(names[:4]), 2)
    assert "left out of the reading, entity: 4, over the limit of one piece: raise max_entities" in caplog.text
    assert "left out of the reading, fact: 5, over the limit of one piece: raise max_facts" in caplog.text


def test_plan_can_be_set_per_run(standard, namespace):
    model = Scripted()
    given = {"content": "I moved to Oslo.", "speaker": "Ann", "at": AT, "namespace": namespace}
    standard(model).graphs.ingestion.invoke(given, context={"plan": "thorough"})
    assert [each.prompt.name for each in model.asked] == ["extract_message", "reflect", "facts"]


def test_unknown_plan_raises_an_error(standard, namespace):
    with pytest.raises(SettingsError, match="plan must be 'economy', 'standard' or 'thorough', got 'cheap'"):
        Settings(plan="cheap")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="plan"):
        standard(Scripted()).graphs.ingestion.invoke(
            {"content": "They met.", "namespace": namespace}, context={"plan": "cheap"}
        )


def test_offline_model_supports_both_plans(offline, namespace):
    given = {"content": "I moved to Oslo last May.", "speaker": "Ann", "at": AT}
    assert offline.settings.plan == "thorough"
    told = []
    for plan in ("standard", "thorough"):
        given["namespace"] = f"{namespace} {plan}"
        facts = offline.graphs.ingestion.invoke(given, context={"plan": plan})["facts"]
        told.append([(fact["sentence"], fact["valid_at"], fact["start"]) for fact in facts])
    assert told[0] == told[1] != []

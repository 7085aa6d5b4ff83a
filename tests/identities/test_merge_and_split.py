"""Entities are merged and split by their sources, with undo; no data is lost, and later messages respect it."""

import asyncio
from typing import Any

import pytest

from kg_memory.errors import InputError
from tests.scripted import resolving

ABOUT = """
MATCH (e:Entity)
OPTIONAL MATCH (e)-[:SUBJECT_OF]->(f:Fact)
WITH e, collect(DISTINCT f.sentence) AS subject
OPTIONAL MATCH (g:Fact)-[:OBJECT_IS]->(e)
WITH e, subject, collect(DISTINCT g.sentence) AS object
OPTIONAL MATCH (x:Episode)-[:MENTIONS]->(e)
WITH e, subject, object, collect(DISTINCT x.content) AS mentions
OPTIONAL MATCH (a:Alias)-[:NAMES]->(e)
WITH e, subject, object, mentions, collect(DISTINCT a.key) AS aliases
OPTIONAL MATCH (t:Term)-[p:IN_ENTITY]->(e)
WITH e, subject, object, mentions, aliases, collect(t.s + ' ' + toString(toInteger(coalesce(p.f, 1)))) AS words
OPTIONAL MATCH (e)-[:MEANS]->(v)
RETURN e.name AS name, e.aliases AS others, e.type AS type, e.id AS id, e.key AS key, e.n AS n, e.first_seen AS first,
  e.last_seen AS last, subject, object, mentions, aliases, words, count(v) AS vectors
"""
BELIEVED = """
MATCH (s:Entity)-[:SUBJECT_OF]->(f:Fact)-[:HELD]->(b:Belief)
WHERE b.expired_at > 253402300000000000
MATCH (x:Episode)-[st:STATES]->(f)
RETURN s.name AS subject, f.sentence AS sentence, b.valid_at AS since, b.invalid_at AS until, x.content AS said
"""


def snapshot(rows: Any) -> list[str]:
    """Return a line for each stored value of an entity and for each current belief."""
    lines: list[str] = []
    for row in rows(ABOUT):
        for name, value in row.items():
            values = sorted(map(str, value)) if isinstance(value, list) else [value]
            lines += [f"{row['name']:.20}: {name} {one}" for one in values]
    return sorted([*lines, *map(str, rows(BELIEVED))])


def test_merge_moves_all_facts_and_undo_restores_the_entity(tell, rows, namespace):
    tell("Robert Chen|WORKS_AT|Acme Labs", day=1)
    tell("Bob|LIVES_IN|Oslo", "Eve|KNOWS|Bob", day=2)
    before = snapshot(rows)
    [decision] = tell.memory.entities.merge("Robert Chen", "Bob", by="Cy", reason="one person", namespace=namespace)
    assert (decision.kind, decision.state, decision.facts) == ("merge", "done", 2)
    assert (decision.by, decision.reason) == ("Cy", "one person")
    [robert] = tell.named("Bob")
    assert (robert.name, robert.aliases) == ("Robert Chen", ("Bob",))
    assert tell.now("Bob") == {"Robert Chen works at Acme Labs", "Bob lives in Oslo", "Eve knows Bob"}
    assert tell.memory.entities.list(like="bob", namespace=namespace)[0].name == "Robert Chen"
    tell("Robert Chen|LIVES_IN|Rome", day=3)
    [robert] = tell.named("Bob")
    assert tell.now("Robert Chen") == {"Robert Chen works at Acme Labs", "Robert Chen lives in Rome", "Eve knows Bob"}
    undone = tell.memory.entities.undo(decision.id, by="Di", reason="two after all", namespace=namespace)
    assert (undone.state, undone.by, undone.undone_by, undone.undone_reason) == ("undone", "Cy", "Di", "two after all")
    assert tell.now("Bob") == {"Bob lives in Oslo", "Eve knows Bob"}
    assert [each.state for each in tell.memory.entities.decisions(namespace=namespace)] == ["undone"]
    with pytest.raises(InputError, match="undone"):
        tell.memory.entities.undo(decision.id, namespace=namespace)
    # Only Bob is compared: the fact added after the merge stays with Robert Chen.
    bob, again = ([line for line in lines if line.startswith("Bob:")] for lines in (before, snapshot(rows)))
    assert bob == again


ANNS, HOSTILE = ("Ann", "Anna", "Annie"), ("王老师", 'O\'Brien "Bo"', "Ärger 🎉", "x" * 500)
MERGES = {
    "several": ([[f"{name}|KNOWS|Bo", f"{name}|LIKES|{name} Labs"] for name in ANNS], ANNS),
    "two ends of one fact": ([["Bob|KNOWS|Robert Chen"]], ("Robert Chen", "Bob")),
    "foreign and hostile names": ([[f"{name}|KNOWS|Eve"] for name in HOSTILE], HOSTILE),
}


@pytest.mark.parametrize(("told", "names"), MERGES.values(), ids=MERGES)
def test_undo_of_several_merges_restores_the_graph(tell, rows, namespace, told, names):
    for day, lines in enumerate(told, 1):
        tell(*lines, day=day)
    before = snapshot(rows)
    decisions = tell.memory.entities.merge(*names, namespace=namespace)
    assert (len(decisions), len(tell.named(names[-1]))) == (len(names) - 1, 1)
    sentences = {line.replace("|KNOWS|", " knows ").replace("|LIKES|", " likes ") for lines in told for line in lines}
    assert tell.now(names[0]) == sentences
    for decision in reversed(decisions):
        tell.memory.entities.undo(decision.id, namespace=namespace)
    assert snapshot(rows) == before


def test_split_moves_facts_by_source_and_restores_ended_ones(tell, rows, namespace):
    first = tell("Anna|LIVES_IN|Bergen", "Anna|KNOWS|Bo", day=1)
    second = tell("Anna|LIVES_IN|Oslo", "Anna|KNOWS|Bo", day=2)
    assert tell.now("Anna") == {"Anna lives in Oslo", "Anna knows Bo"}
    before = snapshot(rows)
    given = {"name": "Anna Berg", "by": "Cy", "reason": "a surgeon", "namespace": namespace}
    decision = tell.memory.entities.split("Anna", episodes=[second.episode], **given)
    assert (decision.kind, decision.entity.name, decision.second.name) == ("split", "Anna", "Anna Berg")
    one, berg = decision.entity.id, decision.second.id
    held = {
        id_: {row["sentence"] for row in rows(
            "MATCH (e:Entity {id: $id})-[:SUBJECT_OF]->(f)-[:HELD]->(b) WHERE b.expired_at > 253402300000000000 "
            "AND b.invalid_at > 253402300000000000 RETURN f.sentence AS sentence", id=id_)}
        for id_ in (one, berg)
    }  # fmt: skip
    assert held == {one: {"Anna lives in Bergen", "Anna knows Bo"}, berg: {"Anna lives in Oslo", "Anna knows Bo"}}
    assert tell.now("Anna Berg") == held[berg]  # a name that occurs in no message
    knows = "MATCH (x:Episode)-[:STATES]->(f {predicate: 'KNOWS'})<-[:SUBJECT_OF]-(e)"
    sources = rows(f"{knows} RETURN e.id AS e, x.id AS x")
    assert {(row["e"], row["x"]) for row in sources} == {(one, first.episode), (berg, second.episode)}
    tell.memory.entities.undo(decision.id, by="Di", namespace=namespace)
    assert snapshot(rows) == before


def test_split_entities_are_not_merged_automatically(tell, rows, teller, namespace):
    tell("Anna|LIVES_IN|Bergen", day=1)
    second = tell("Anna|WORKS_AT|Acme Labs", day=2)
    decision = tell.memory.entities.split("Anna", episodes=[second.episode], namespace=namespace)
    ids = {decision.entity.id, decision.second.id}
    teller.rules["resolve"] = resolving(name="Anna")
    tell("Anna|LIKES|Rome", day=3)
    [asked] = [each for fields in teller.asks("resolve") for each in fields["entities"]]
    assert len(asked["candidates"]) == 2
    assert {entity.id for entity in tell.named("Anna")} == ids
    with pytest.raises(InputError, match="names 2 entities"):
        tell.memory.entities.merge("Anna", "Rome", namespace=namespace)


def test_split_moves_an_alias_with_its_sources(tell, namespace):
    tell("Robert Chen|WORKS_AT|Acme Labs", day=1)
    tell("Bob|LIVES_IN|Oslo", day=2)
    tell.memory.entities.merge("Robert Chen", "Bob", namespace=namespace)
    [fact] = [fact for fact in tell.memory.facts.about("Bob", namespace=namespace) if "Oslo" in fact.objects]
    decision = tell.memory.entities.split("Robert Chen", facts=[fact.id], name="Bob", namespace=namespace)
    assert (decision.entity.aliases, decision.second.name) == ((), "Bob")
    assert tell.now("Bob") == {"Bob lives in Oslo"}
    assert tell.now("Robert Chen") == {"Robert Chen works at Acme Labs"}


def test_cards_of_namesakes_have_their_own_messages(tell, namespace):
    first = tell("Anna|LIVES_IN|Bergen", day=1)
    second = tell("Anna|LIVES_IN|Oslo", day=2)
    split = tell.memory.entities.split("Anna", episodes=[second.episode], namespace=namespace)

    def messages(entity: str) -> set[str]:
        return {episode.id for episode in tell.memory.entities.card(entity, namespace=namespace).episodes}

    assert (messages(split.entity.id), messages(split.second.id)) == ({first.episode}, {second.episode})
    assert messages("Anna") == {first.episode, second.episode}


def test_decisions_survive_export_and_import(tell, rows, tmp_path, namespace):
    tell("Robert Chen|WORKS_AT|Acme Labs", day=1)
    tell("Bob|LIVES_IN|Oslo", day=2)
    third = tell("Robert Chen|LIVES_IN|Rome", day=3)
    [merged] = tell.memory.entities.merge("Robert Chen", "Bob", by="Cy", reason="one", namespace=namespace)
    split = tell.memory.entities.split("Robert Chen", episodes=[third.episode], by="Di", namespace=namespace)
    for target in (namespace, f"{namespace} copy"):
        file = tmp_path / "export.jsonl"
        tell.memory.data.export(file, namespace=namespace)
        tell.memory.data.import_(file, namespace=target, replace=True)
        decisions = tell.memory.entities.decisions(namespace=target)
        found = {each.id: (each.by, each.state) for each in decisions}
        assert found == {merged.id: ("Cy", "done"), split.id: ("Di", "done")}
        for each in (split, merged):
            tell.memory.entities.undo(each.id, namespace=target)
        about = {fact.sentence for fact in tell.memory.facts.about("Bob", namespace=target)}
        assert about == {"Bob lives in Oslo"}
        if target == namespace:
            tell.memory.data.import_(file, namespace=namespace, replace=True)


INVALID = (
    (lambda e, n: e.merge("Ann", namespace=n), "others must be"),
    (lambda e, n: e.merge("Ann", "Ann", namespace=n), "others must be"),
    (lambda e, n: e.merge("Ann", "Nobody", namespace=n), "which no entity is called"),
    (lambda e, n: e.merge("", "Ann", namespace=n), "into must be"),
    (lambda e, n: e.merge("Ann", "' OR 1=1 //", namespace=n), "which no entity is called"),
    (lambda e, n: e.merge("Ann", "Oslo", by=" ", namespace=n), "by must be"),
    (lambda e, n: e.split("Ann", namespace=n), "nothing is split off"),
    (lambda e, n: e.split("Ann", facts=["nope"], namespace=n), "facts must be about"),
    (lambda e, n: e.split("Ann", episodes=["nope"], namespace=n), "episodes must mention"),
    (lambda e, n: e.split("Ann", facts="nope", namespace=n), "facts must be a list"),
    (lambda e, n: e.undo("nope", namespace=n), "decision 'nope' not found"),
    (lambda e, n: e.undo("", namespace=n), "decision '' not found"),
)


def test_invalid_merge_split_or_undo_changes_nothing(tell, rows, namespace):
    added = tell("Ann|LIVES_IN|Oslo")
    before = snapshot(rows)
    for call, match in INVALID:
        with pytest.raises(InputError, match=match):
            call(tell.memory.entities, namespace)
        assert snapshot(rows) == before, match
    with pytest.raises(InputError, match="would be split off"):
        tell.memory.entities.split("Ann", episodes=[added.episode], namespace=namespace)
    assert snapshot(rows) == before


def test_amerge_and_aundo_work_with_concurrent_writers(tell, rows, namespace):
    for day, name in enumerate(("Bob", "Robert Chen"), 1):
        tell(f"{name}|KNOWS|Eve", day=day)

    async def all_at_once() -> Any:
        given = {"at": "2024-02-01", "kind": "text", "namespace": namespace}
        say = [tell.memory.aadd(f"Bob|LIKES|Thing{n} Labs", **given) for n in range(8)]
        merge = tell.memory.entities.amerge("Robert Chen", "Bob", namespace=namespace)
        return await asyncio.gather(*say[:4], merge, *say[4:])

    results = asyncio.run(all_at_once())
    [one] = tell.named("Bob")
    assert one.name == "Robert Chen"
    said = {fact.sentence for fact in tell.memory.facts.about("Bob", namespace=namespace)}
    assert {f"Bob likes Thing{n} Labs" for n in range(8)} <= said
    asyncio.run(tell.memory.entities.aundo(results[4][0].id, namespace=namespace))
    assert rows("MATCH (n:Entity) WHERE indegree(n, 'MENTIONS') = 0 RETURN n.name AS name") == []


def test_forget_leaves_no_trace_in_decisions(tell, rows, namespace):
    tell("Robert Chen|WORKS_AT|Acme Labs", day=1)
    second = tell("Bobbington|LIVES_IN|Oslo", day=2)
    third = tell("Robert Chen|LIKES|Rome", "Robert Chen|WORKS_AT|Acme Labs", day=3)
    tell.memory.entities.merge("Robert Chen", "Bobbington", reason="he is Bobbington", namespace=namespace)
    split = tell.memory.entities.split("Robert Chen", episodes=[third.episode], namespace=namespace)
    for episode in (second, third):
        assert tell.memory.privacy.forget(episode=episode.episode, namespace=namespace).residue == ()
    assert [entity.aliases for entity in tell.named("Robert Chen")] == [()]
    with pytest.raises(InputError, match=r"decision .* not found"):
        tell.memory.entities.undo(split.id, namespace=namespace)

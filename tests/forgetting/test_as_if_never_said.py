"""Forgetting a message gives what there would be if it had never been said, on a real database."""

import itertools
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from kg_memory import GraphMemory
from kg_memory.falkor.connect import graph_key
from kg_memory.maintenance.forgetting.selection import MARK
from tests.forgetting import Look, believed, carried, residue

PEOPLE, PLACES = ("Ann", "Bob"), ("Oslo", "Paris", "Rome")
NUMBERS = itertools.count()
EXAMPLES = int(os.environ.get("KG_MEMORY_HISTORIES", "5"))
"""How many random histories are tried."""
FORMS = (
    "I moved to {place}", "I live in {place} undated", "I live in {place} since 2023-0{month}-05",
    "I lived in {place} until 2024-0{month}-20", "I met {other} in {place}", "fine, thanks", "!?",
    "it rains in {place} and " + "the wind blows over hills and " * 20,
)  # fmt: skip
SAID = st.builds(
    lambda form, who, other, place, month: (who, form.format(place=place, other=other, month=month)),
    st.sampled_from(FORMS), st.sampled_from(PEOPLE), st.sampled_from(PEOPLE), st.sampled_from(PLACES),
    st.integers(1, 9),
)  # fmt: skip
HOURS = st.integers(0, 40)
GRAPH = {
    "threads": "MATCH (a:Episode)-[:NEXT]->(b:Episode) RETURN a.content AS a, b.content AS b",
    "entities": "MATCH (e:Entity) RETURN e.name AS name, e.aliases AS aliases, e.first_seen AS first, e.last_seen AS last",
    "names": "MATCH (a:Alias)-[:NAMES]->(e:Entity) RETURN a.key AS key, e.name AS name",
    "facts": "MATCH (f:Fact) RETURN f.sentence AS sentence, f.told_at AS told_at, f.told_end AS told_end, f.said_at AS at",
    "terms": "MATCH (t:Term)-[p:IN_FACT]->(f:Fact) RETURN t.s AS term, coalesce(p.f, 1) AS f, f.sentence AS sentence",
    "verdicts": "MATCH (v:Verdict) RETURN v.kind AS kind, v.ruling AS ruling",
}


def looking(memory: GraphMemory, namespace: str) -> Look:
    return lambda cypher, **params: memory._database.query(graph_key(namespace), cypher, params, write=False)


def all_of(memory: GraphMemory, namespace: str) -> dict[str, Any]:
    """Return the whole graph without ids, summaries and times of the system clock."""
    look = looking(memory, namespace)
    told = {name: sorted(map(repr, look(query))) for name, query in GRAPH.items()}
    words = carried(look)
    assert all(length == sum(own.values()) for (_, length), own in words.items())
    return {**told, "words": words, "believed": believed(memory, namespace, [*PEOPLE, *PLACES])}


def check(memory: GraphMemory, messages: Sequence[dict[str, Any]], place: int) -> None:
    """Forget the message at *place*, and compare with a namespace in which it was never said."""
    compare(memory, messages, {"episode": place}, {place: None})


def compare(
    memory: GraphMemory,
    messages: Sequence[dict[str, Any]],
    named: dict[str, Any],
    instead: dict[int, dict[str, Any] | None],
) -> None:
    """Forget what is *named*, and compare with a namespace that got the messages *instead*, or none, from the start."""
    number = next(NUMBERS)
    first, second = f"forgotten {number}", f"never said {number}"
    added = memory.add_many(messages, namespace=first)
    if "episode" in named:
        named = {**named, "episode": added[named["episode"]].episode}
    receipt = memory.privacy.forget(**named, namespace=first)
    said = [instead.get(place, each) for place, each in enumerate(messages)]
    memory.add_many([each for each in said if each], namespace=second)
    if "span" in named:
        memory.episodes.resume(namespace=first)
    else:
        assert receipt.unread == ()
    assert receipt.residue == ()
    assert all_of(memory, first) == all_of(memory, second)
    gone = [added[place].episode for place, other in instead.items() if not other or receipt.redacted == ()]
    texts = [messages[place]["content"] for place in instead]
    assert residue(looking(memory, first), *gone, *texts) == []


@settings(max_examples=EXAMPLES, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_forget_leaves_graph_as_if_never_said(scripted, data):
    said = data.draw(st.lists(SAID, min_size=2, max_size=6))
    hours = data.draw(st.lists(HOURS, min_size=len(said), max_size=len(said), unique=True))
    threads = data.draw(st.lists(st.sampled_from("tu"), min_size=len(said), max_size=len(said)))
    messages = [
        {
            "content": f"{content}, message{number}", "speaker": who, "thread": thread,
            "at": datetime(2024, 5, 1 + hour // 24, hour % 24, tzinfo=UTC),
        }
        for number, ((who, content), hour, thread) in enumerate(zip(said, hours, threads, strict=True))
    ]  # fmt: skip
    place = data.draw(st.integers(0, len(said) - 1))
    kind = data.draw(st.sampled_from(("episode", "thread", "speaker", "span")))
    chosen = messages[place]
    if kind in ("thread", "speaker"):
        gone = {number: None for number, each in enumerate(messages) if each[kind] == chosen[kind]}
        compare(scripted, messages, {kind: chosen[kind]}, gone)
    elif kind == "episode":
        check(scripted, messages, place)
    else:
        start = data.draw(st.integers(0, len(chosen["content"]) - 1))
        end = data.draw(st.integers(start + 1, len(chosen["content"])))
        content = chosen["content"][:start] + MARK + chosen["content"][end:]
        compare(scripted, messages, {"episode": place, "span": (start, end)}, {place: {**chosen, "content": content}})


def test_forget_removes_words_lent_by_late_message(scripted):
    messages = [
        {"content": f"message{hour} word{hour}", "speaker": "Ann", "thread": "t",
         "at": datetime(2024, 5, 1 + hour // 24, hour % 24, tzinfo=UTC)}
        for hour in (0, 3, 6, 9, 12, 1, 2, 30)
    ]  # fmt: skip
    for place in (1, 5):
        check(scripted, messages, place)


def test_forget_restores_words_shared_between_neighbours(scripted):
    contents = ("alpha beta", "yes", "gamma " + "delta epsilon " * 40, "!?", "zeta " * 600, "eta theta iota")
    messages = [
        {"content": f"{content} m{hour}", "speaker": None, "thread": "t", "at": f"2024-05-01T0{hour}:00"}
        for hour, content in enumerate(contents)
    ]
    for order, place in (((0, 1, 2, 3, 4, 5), 1), ((5, 3, 1, 0, 2, 4), 4), ((4, 2, 0, 5, 3, 1), 1)):
        check(scripted, [messages[each] for each in order], place)


def test_forget_of_several_messages_relinks_the_thread(scripted):
    contents = ("hello", "I moved to Oslo", "I moved to Oslo", "fine", "I moved to Oslo", "bye")
    messages = [
        {"content": f"{content} message{number}", "speaker": "Ann", "thread": "t", "at": f"2024-05-01T0{number}:00"}
        for number, content in enumerate(contents)
    ]
    number = next(NUMBERS)
    first, second = f"forgotten {number}", f"never said {number}"
    scripted.add_many(messages, namespace=first)
    [fact] = scripted.facts.about("Ann", namespace=first)
    assert len(scripted.privacy.forget(fact=fact.id, namespace=first).episodes) == 3
    scripted.add_many([each for each in messages if "Oslo" not in each["content"]], namespace=second)
    assert all_of(scripted, first) == all_of(scripted, second)
    assert residue(looking(scripted, first), "oslo") == []

"""Input over a limit is refused or cut with a report, and does not affect other input."""

import asyncio
import json
import threading
from collections.abc import Iterable
from functools import partial
from typing import Any

import pytest

from kg_memory import GraphMemory
from kg_memory.errors import InputError
from kg_memory.ingestion import date, dedupe, extract, facts, invalidate, receive, resolve, save
from kg_memory.ingestion.receive import DEEPEST, LONGEST_FIELD, MOST_VALUES, measure_depth
from kg_memory.models.graph import EpisodeStatus
from tests.chat_server import chat_server
from tests.scripted import HashEmbeddings, Scripted, resolving, stated

HUGE = "N" * 100_000


def people(names: Iterable[str]) -> dict[str, Any]:
    return {"entities": [{"name": name, "type": "Person"} for name in names]}


def many(fields: Any) -> Any:
    """Answer with 10,000 entities and facts, and a name of 100 kB among them."""
    names = [HUGE, *(f"Name {place}" for place in range(10_000))]
    facts = [stated(name, "knows", ["Oslo"], f"{name} knows Oslo") for name in names]
    return {**people(names), "facts": facts}


def test_huge_answer_is_cut_and_next_message_is_read(server, settings, namespace):
    chosen = settings.with_(url=server.url, plan="standard", api_key="none")
    model = Scripted(read=many)
    with (
        chat_server(model=model) as url,
        GraphMemory(chosen.with_(base_url=url), model="many", embeddings=HashEmbeddings()) as memory,
    ):
        added = memory.add("Many people know Oslo.", at="2024-05-01", namespace=namespace)
        assert added.status is EpisodeStatus.DONE
        assert len(added.facts) == 99  # of the first hundred, one has a name that is too long
        assert added.usage.dropped > 19_000
        assert max(map(len, added.entities)) <= 512
        del model.rules["read"]
        assert memory.add("Ann lives in Rome.", at="2024-05-02", namespace=namespace).facts == ("Ann lives in Rome",)


def test_entity_limit_applies_to_the_whole_episode(memory, model, namespace, monkeypatch, caplog):
    """The limit of entities applies to the whole episode, not to each piece; a warning counts the dropped ones.

    Features: C11.
    """
    monkeypatch.setattr(extract, "MOST_IN_EPISODE", 10)
    model.rules["extract_text"] = lambda fields: people(f"{fields['episode']['content'][:6]} {n}" for n in range(6))
    memory._engine.settings = memory.settings.with_(chunk_size=20)
    added = memory.add("First piece of it. Other piece of it.", kind="text", at="2024-05-01", namespace=namespace)
    assert len(added.entities) == 10
    assert "left out of the reading, entity: 2, over the limit of one episode: split the episode" in caplog.text


def test_facts_saved_in_batches_equal_those_saved_at_once(memory, namespace, monkeypatch):
    facts = [
        {"subject": f"Person {n % 3}", "predicate": "KNOWS", "object": f"Friend {n}", "valid_at": f"20{n:02}"}
        for n in range(1, 9)
    ]
    facts += [{**facts[1], "valid_at": "1999"}, {"subject": "Ann", "predicate": "LIVES_IN", "object": "Rome"}]
    graphs = []
    for most in (250, 3, 1):
        monkeypatch.setattr(dedupe, "MOST_AT_ONCE", most)
        monkeypatch.setattr(save, "MOST_AT_ONCE", most)
        where = f"{namespace} {most}"
        memory.add("I live in Oslo.", speaker="Ann", at="2000-01-01", namespace=where)
        added = memory.add(json.dumps({"facts": facts}), kind="fact", at="2024-05-01", namespace=where)
        found = memory.facts.list(namespace=where, during=(None, None))
        times = sorted((fact.sentence, str(fact.valid_at), str(fact.invalid_at)) for fact in found)
        entities = sorted((each.name, sorted(each.summary.split())) for each in memory.entities.list(namespace=where))
        graphs.append((added.status, added.facts, added.entities, added.ended, times, entities))
    assert graphs[0] == graphs[1] == graphs[2]
    assert graphs[0][3] == ("Ann lives in Oslo",)


def test_aliases_of_an_entity_are_limited_in_number(memory, model, namespace, monkeypatch, caplog):
    monkeypatch.setattr(resolve, "MOST_ALIASES", 3)
    model.rules["resolve"] = resolving(name="Ann Lee")
    model.rules["extract_message"] = lambda fields: people([fields["episode"]["content"].split(" lives")[0]])
    memory.add("Ann Lee lives in Oslo.", at="2024-05-01", namespace=namespace)
    for place in range(6):
        memory.add(f"Ann Lee {'x' * place}y lives in Oslo.", at="2024-05-02", namespace=namespace)
    [ann] = [each for each in memory.entities.list(namespace=namespace) if each.name == "Ann Lee"]
    assert len(ann.aliases) == 3
    assert "has 3 aliases already" in caplog.text


@pytest.mark.parametrize("name", ["speaker", "thread", "source", "source_id"])
def test_add_refuses_fields_over_the_length_limit(memory, namespace, name):
    memory.add("I live in Oslo.", **{name: "n" * LONGEST_FIELD}, namespace=namespace)
    with pytest.raises(InputError, match=f"{name} has {LONGEST_FIELD + 1} characters, the limit is"):
        memory.add("I live in Rome.", **{name: "n" * (LONGEST_FIELD + 1)}, namespace=namespace)
    with pytest.raises(InputError) as caught:
        memory.add("I live in Rome.", **{name: ["n" * 100_000]}, namespace=namespace)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_add_refuses_json_nested_too_deeply(memory, namespace, opening):
    def deep(levels: int) -> str:
        return opening * levels + "1" + ("]" if opening == "[" else "}") * levels

    assert measure_depth(json.loads(deep(7))) == 7
    assert memory.add(deep(DEEPEST), kind="json", namespace=namespace).status is EpisodeStatus.DONE
    for levels in (DEEPEST + 1, 100_000):
        with pytest.raises(InputError, match=r"nested|not valid JSON"):
            memory.add(deep(levels), kind="json", namespace=namespace)
    assert memory.stats(namespace=namespace).episodes == 1


def test_add_refuses_json_with_too_many_values(memory, namespace):
    with pytest.raises(InputError, match=r"over 100,000 values: split it"):
        memory.add(f"[{'0,' * MOST_VALUES}0]", kind="json", namespace=namespace)
    assert memory.stats(namespace=namespace).episodes == 0


WORK = (
    (receive, "validate_episode"), (receive, "_pieces_to_read"), (extract, "_apply"), (resolve, "resolve_all"),
    (facts, "state_facts"), (date, "date_facts"), (dedupe, "_mark_duplicates"), (invalidate, "revise_beliefs"),
    (save, "_fact_rows"),
)  # fmt: skip


def test_long_message_is_processed_outside_the_event_loop(memory, namespace, monkeypatch):
    threads: dict[str, set[int]] = {step: set() for _, step in WORK}

    def watched(work: Any, step: str, *given: Any, **named: Any) -> Any:
        threads[step].add(threading.get_ident())
        return work(*given, **named)

    for module, step in WORK:
        monkeypatch.setattr(module, step, partial(watched, getattr(module, step), step))

    async def add() -> int:
        await memory.aadd("I live in Oslo. " * 1500, speaker="Ann", namespace=namespace)
        return threading.get_ident()

    loop = asyncio.run(add())
    assert {step: bool(own) and loop not in own for step, own in threads.items()} == dict.fromkeys(threads, True)

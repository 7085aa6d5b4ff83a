"""Reading messages in parallel gives the same graph as reading them one by one (real database)."""

import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from kg_memory.errors import ModelRefusal, ModelUnavailable
from kg_memory.falkor.connect import graph_key
from kg_memory.ingestion.interrupted import REFUSED
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.graph import EpisodeInput, EpisodeStatus
from tests.scripted import PLACES, HashEmbeddings, Scripted, raising
from tests.whole_graph import whole

Graph = Callable[[str], dict[str, list[str]]]
PARALLEL = 4
PEOPLE = "Ann Bob Cleo Fay Gus Ida".split()
FULL = {"Ann": "Ann Berg", "Bob": "Robert Bob", "Fay": "Fay Lund"}
"""Fuller names that some messages use."""


def conversation(seed: int, count: int = 20) -> list[EpisodeInput]:
    """Return messages with moves, repeated facts, other names, repeated messages, and dates out of order."""
    draw = random.Random(seed)
    said: list[EpisodeInput] = []
    for number in range(count):
        if said and draw.random() < 0.1:
            said.append(draw.choice(said))
            continue
        speaker, other = draw.sample(PEOPLE, 2)
        place = draw.choice(sorted(each for each in PLACES if each.isascii()))
        other = FULL.get(other, other) if draw.random() < 0.4 else other
        content = draw.choice(
            [f"I live in {place}.", f"I know {other}.", f"I moved to {place} with {other}.", "Thanks!", "nice of them!",
             f"I live in {place} since 2020-0{draw.randint(1, 9)}-01", f"{other} admires Kim of {place}, undated"]
        )  # fmt: skip
        month, day = (draw.randint(1, 12), draw.randint(1, 28)) if draw.random() < 0.3 else (6, number + 1)
        said.append(
            EpisodeInput(
                content=content, speaker=speaker, thread=draw.choice(["one", "other"]),
                at=f"2024-{month:02}-{day:02}T{number % 24:02}:00:00Z",  # type: ignore[arg-type]
            )
        )  # fmt: skip
    return said


class Resolving(Scripted):
    """A model that resolves a person by any word of the name, and maps new predicates to one."""

    def __init__(self, **rules: Any) -> None:
        reading = {"extract_message": _whole_names, "extract_text": _whole_names, "facts": _facts}
        super().__init__(**{"resolve": _same_word, "predicates": _kept, **reading, **rules})
        self.most = self._now = 0
        self._count = threading.Lock()

    def answer(self, ask: Any) -> Any:
        with self._count:
            self._now += 1
            self.most = max(self.most, self._now)
        try:
            time.sleep(0.002)
            return super().answer(ask)
        finally:
            with self._count:
                self._now -= 1


_SCRIPTED = Scripted()
_NAME = re.compile(r"\b[A-Z]\w+(?: [A-Z]\w+)*")


def _whole_names(fields: Any) -> Any:
    found = dict.fromkeys(_NAME.findall(fields["episode"]["content"]))
    return {"entities": [{"name": each, "type": "Place" if each in PLACES else "Person"} for each in found]}


def _facts(fields: Any) -> Any:
    content = fields["episode"]["content"]
    # An entity with another known name is found by the name in this message.
    here = [{**row, "name": next((one for one in row["called"] if one in content), "")} for row in fields["entities"]]
    entities = [fields["entities"][0], *(each for each in here[1:] if each["name"])]
    told = _SCRIPTED.rules["facts"]({**fields, "entities": entities})["facts"]
    wording = "visits to yodel at" if "admires" in content else None
    return {"facts": [{**each, "predicate": wording or each["predicate"]} for each in told]}


def _same_word(fields: Any) -> Any:
    told = []
    for each in fields["entities"]:
        words = set(each["name"].split())
        called = {one["id"]: " ".join((one["name"], *one["aliases"])).split() for one in each["candidates"]}
        same = [id_ for id_, known in called.items() if words & set(known)]
        chosen = min(same, key=lambda id_: each["candidates"][id_]["name"], default=None)
        names = [each["name"], *(each["candidates"][id_]["name"] for id_ in same)]
        told.append({"entity": each["id"], "same_as": chosen, "name": max(names, key=len)})
    return {"resolutions": told}


def _kept(fields: Any) -> Any:
    told = _SCRIPTED.rules["predicates"](fields)["predicates"]
    return {"predicates": [{**each, "canonical": "YODELS_TO"} for each in told]}


@pytest.fixture
def model() -> Scripted:
    return Resolving()


@pytest.fixture(params=["standard", "thorough"])
def memory(request, opened) -> GraphMemory:
    """A memory that makes four model calls in parallel."""
    return opened(parallel=PARALLEL, plan=request.param)


@pytest.fixture
def graph(database) -> Graph:
    return lambda namespace: whole(lambda query: database.query(graph_key(namespace), query, {}, write=False))


def one_by_one(memory: GraphMemory, said: list[EpisodeInput], namespace: str) -> str:
    for each in said:
        memory.add_many([each], namespace=namespace)
    return namespace


def test_add_many_gives_the_same_graph_as_one_by_one(memory, model, namespace, graph):
    said = conversation(0 if memory.settings.plan == "standard" else 1)
    expected = graph(one_by_one(memory, said, f"{namespace} one by one"))
    alone = Counter(ask.prompt.name for ask in model.asked)
    assert all(model.asks(prompt) for prompt in ("resolve", "judge", "predicates"))
    model.asked.clear()
    added = memory.add_many(said, namespace=namespace)
    assert [each.new for each in added] == [place == said.index(each) for place, each in enumerate(said)]
    assert graph(namespace) == expected
    assert expected["facts"]
    assert expected["beliefs"]
    assert 1 < model.most <= PARALLEL
    together = Counter(ask.prompt.name for ask in model.asked)
    assert {**together, "summarise": 0} == {**alone, "summarise": 0}


def test_refused_message_is_skipped_and_others_are_read(memory, model, namespace, graph):
    said = [EpisodeInput(content=f"I know {each}", speaker="Zoe", thread="t") for each in PEOPLE]
    name = "read" if memory.settings.plan == "standard" else "extract_message"
    whole_rule = model.rules.get(name, model._read)

    def refused(fields: Any) -> Any:
        if "Cleo" in fields["episode"]["content"]:
            raise ModelRefusal("no: say it otherwise")
        return whole_rule(fields)

    model.rules[name] = refused
    added = memory.add_many(said, namespace=namespace)
    statuses = {name: each.status for name, each in zip(PEOPLE, added, strict=True)}
    assert statuses == dict.fromkeys(PEOPLE, EpisodeStatus.DONE) | {"Cleo": EpisodeStatus.SKIPPED}
    [skipped] = memory.episodes.list(namespace=namespace, status="skipped")
    assert skipped.reason == REFUSED
    known = [name for each in memory.facts.about("Zoe", namespace=namespace) for name in each.objects]
    assert known[::-1] == [name for name in PEOPLE if name != "Cleo"]


def test_add_many_reads_all_messages_after_an_outage(memory, model, namespace, graph):
    said = [EpisodeInput(**{**dict(each), "thread": f"{n}"}) for n, each in enumerate(conversation(5)) if each]
    said = list({each.content: each for each in said}.values())
    expected = graph(one_by_one(memory, sorted(said, key=lambda each: each.at), f"{namespace} one by one"))
    rules = dict(model.rules)

    model.rules |= dict.fromkeys(("read", "extract_message"), raising(ModelUnavailable("no answer: try again later")))
    with pytest.raises(ModelUnavailable):
        memory.add_many(said, namespace=namespace)
    model.rules = rules
    memory.add_many(said, namespace=namespace)
    assert memory.episodes.resume(namespace=namespace) == []
    found = graph(namespace)
    assert found["episodes"] == expected["episodes"]
    assert len(found["facts"]) == len(expected["facts"])


@pytest.mark.parametrize("turns", [1, 5])
def test_interrupted_window_repeats_no_read_call(server, settings, namespace, turns):
    def end(progress: Any) -> None:
        if progress.done == turns:
            raise KeyboardInterrupt

    said = sorted(dict.fromkeys(conversation(1)), key=lambda each: str(each.at))[: 2 * PARALLEL]
    asked: list[Counter[str]] = []
    chosen = settings.with_(url=server.url, plan="standard", parallel=PARALLEL)
    for broken_off in (False, True):
        model, name = Resolving(), f"{namespace} {broken_off}"
        with GraphMemory(chosen, model=model, embeddings=HashEmbeddings()) as memory:
            if broken_off:
                with pytest.raises(KeyboardInterrupt):
                    memory.add_many(said, namespace=name, progress=end)
            memory.add_many(said, namespace=name)
        asked.append(Counter(each.prompt.name for each in model.asked))
    assert asked[1]["read"] == asked[0]["read"]


def test_add_many_reads_long_content_in_order(opened, namespace, graph):
    said = conversation(2, 10)
    said.insert(4, EpisodeInput(content="I know Hal. " * 30, speaker="Ann", at="2024-06-05T06:00:00Z"))  # type: ignore[arg-type]
    memory = opened(plan="standard", parallel=PARALLEL, chunk_size=100)
    expected = graph(one_by_one(memory, said, f"{namespace} one by one"))
    memory.add_many(said, namespace=namespace)
    assert graph(namespace) == expected


def test_add_many_stores_messages_before_an_invalid_one(memory, namespace):
    with pytest.raises(ValueError, match="empty"):
        memory.add_many(["I know Bob", "I know Cleo", " ", "I know Fay"], namespace=namespace)
    assert [each.status for each in memory.episodes.list(namespace=namespace)] == [EpisodeStatus.DONE] * 2

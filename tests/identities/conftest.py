"""A memory whose messages list their facts, so that a test determines what is read."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from kg_memory import GraphMemory
from kg_memory.contrib.embedded import Server
from kg_memory.settings import Settings
from tests.scripted import HashEmbeddings, Scripted, stated

Told = tuple[str, str, str]
PLACES = frozenset({"Oslo", "Bergen", "Rome", "Paris"})


def typed(name: str) -> str:
    return "Place" if name in PLACES else "Organization" if name.endswith("Labs") else "Person"


def read_facts(facts: Iterable[Sequence[str]], types: Mapping[str, str], end: str = "") -> Any:
    """Return the answer that reads (subject, predicate, value) *facts*, whose sentences have an *end*."""
    facts = list(facts)
    names = dict.fromkeys(name for subject, _, value in facts for name in (subject, value))
    read = [
        stated(subject, predicate, [value], f"{subject} {predicate.lower().replace('_', ' ')} {value}{end}", value)
        for subject, predicate, value in facts
    ]
    return {"entities": [{"name": name, "type": types.get(name) or typed(name)} for name in names], "facts": read}


def read_lines(fields: Mapping[str, Any]) -> Any:
    """Read ``subject|predicate|object`` lines."""
    lines = fields["episode"]["content"].splitlines()
    return read_facts((line.split("|") for line in lines if line.count("|") == 2), {})


@pytest.fixture
def teller() -> Scripted:
    return Scripted(read=read_lines)


@pytest.fixture
def tell(server: Server, settings: Settings, teller: Scripted, namespace: str) -> Iterator[Any]:
    """A memory with the plan `standard`, and a function that adds a message: ``tell("Ann|LIVES_IN|Oslo", day=2)``."""
    opened = GraphMemory(settings.with_(url=server.url, plan="standard"), model=teller, embeddings=HashEmbeddings())

    class Tell:
        memory = opened
        space = namespace

        def __call__(self, *lines: str, day: int = 1, **fields: Any) -> Any:
            at = f"2024-01-{day:02d}T12:00:00Z"
            return opened.add("\n".join(lines), at=at, namespace=namespace, kind="text", **fields)

        def named(self, name: str) -> list[Any]:
            entities = opened.entities.list(namespace=namespace)
            return [entity for entity in entities if name in (entity.name, *entity.aliases)]

        def now(self, name: str) -> set[str]:
            facts = opened.facts.about(name, namespace=namespace)
            return {fact.sentence for fact in facts if fact.invalid_at is None}

    yield Tell()
    opened.close()

"""A memory of declared facts; its model must not be called."""

from datetime import datetime
from typing import Any

import pytest

from kg_memory.memory.memory import GraphMemory
from kg_memory.models.graph import Fact
from kg_memory.temporal.interval import instant
from tests.declared.conftest import Unasked


class World:
    """Adds and finds facts by triples of three words: ``world.add("Ann likes Oslo")``."""

    def __init__(self, memory: GraphMemory, namespace: str) -> None:
        self.memory, self.namespace = memory, namespace

    def add(self, triple: str, at: str, *premises: str, **times: str) -> str:
        """State a fact, and return its id."""
        subject, predicate, *rest = triple.split()
        rests_on = [self.fact(premise).id for premise in premises]
        added = self.memory.facts.add(
            subject, predicate, " ".join(rest), at=at, rests_on=rests_on, namespace=self.namespace, **times
        )
        assert added.error is None
        return added.episode

    def fact(self, triple: str, **times: Any) -> Fact:
        """Return the latest period of a fact."""
        subject = triple.split(maxsplit=1)[0]
        sentence = triple.replace("_", " ")
        facts = self.memory.facts.about(subject, namespace=self.namespace, **times)
        return next(fact for fact in facts if fact.sentence == sentence)

    def doubt(self, triple: str, **times: Any) -> str | None:
        """Return the day since which a fact is doubtful."""
        since = self.fact(triple, **times).doubtful_since
        return since and f"{since:%Y-%m-%d}"

    def now(self) -> datetime:
        """Return an instant between two writes."""
        moment = instant(self.memory.driver.clock())
        assert moment is not None
        return moment


@pytest.fixture
def world(opened, namespace) -> World:
    return World(opened(Unasked()), namespace)

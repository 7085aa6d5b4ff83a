"""A memory of declared facts; its model must not be called."""

from typing import Any

import pytest

from kg_memory.models.graph import Fact
from tests import review
from tests.declared.conftest import Unasked


class World(review.World):
    """Adds and finds facts by triples of three words: ``world.add("Ann likes Oslo")``."""

    def add(self, triple: str, at: str, *premises: str, **times: str) -> str:
        """State a fact, and return its id."""
        subject, predicate, *rest = triple.split()
        rests_on = [self.fact(premise).id for premise in premises]
        given = {"at": at, "rests_on": rests_on, "namespace": self.namespace, **times}
        added = self.memory.facts.add(subject, predicate, " ".join(rest), **given)
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


@pytest.fixture
def world(opened, namespace) -> World:
    return World(opened(Unasked()), namespace)

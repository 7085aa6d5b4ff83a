"""The admission gate by A-MAC: the weights, the fast path, and facts that are not stored (C59)."""

from typing import Any

import pytest

from kg_memory import GraphMemory, Settings
from kg_memory.contrib.admission.amac import FAST_PATH_MARGIN, THRESHOLD, WEIGHTS, passes_fast_path, weigh_factors
from tests.review import World

BEST = dict.fromkeys(WEIGHTS, 1.0)


def test_amac_has_weights_threshold_and_margin_of_zeph():
    """The admission gate has the weights, threshold and fast-path margin of Zeph.

    Features: C59.
    """
    assert (tuple(WEIGHTS.values()), THRESHOLD, FAST_PATH_MARGIN) == ((0.30, 0.15, 0.30, 0.10, 0.15), 0.40, 0.15)
    assert weigh_factors(BEST) == pytest.approx(1.0)
    unasked = {**BEST, "future_utility": 0.5}
    assert passes_fast_path({**unasked, "semantic_novelty": 0.0})
    assert not passes_fast_path({**unasked, "semantic_novelty": 0.0, "factual_confidence": 0.2, "content_type": 0.7})


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.with_(admission="amac", conflict_strategy="recency")


@pytest.fixture
def useful() -> dict[str, float]:
    """The usefulness that the model gives to facts, by place."""
    return {}


@pytest.fixture
def world(memory: GraphMemory, namespace: str, useful: dict[str, float]) -> World:
    """A memory whose model says how useful a fact is."""

    def rate(fields: Any) -> Any:
        parts = {"decision_worthy": 0.0, "recallable": 0.0, "accurate": 0.0}
        pairs = [(fact, place) for fact in fields["facts"] for place in useful if place in fact["fact"]]
        return {"worths": [{"fact": fact["id"], "useful": useful[place], **parts} for fact, place in pairs]}

    memory.driver.model.rules["admit"] = rate  # type: ignore[attr-defined]
    return World(memory, namespace)


def test_plainly_new_fact_is_stored_without_prompt(world):
    world.moves("Oslo", "2024-01-01")
    assert [sentence for sentence, *_ in world.lived()] == ["Ann lives in Oslo"]
    assert not world.memory.driver.model.asks("admit")


@pytest.mark.parametrize(("utility", "stored"), [(0.9, True), (0.0, False)])
def test_model_decides_on_doubtful_and_nearly_known_fact(world, useful, utility, stored):
    world.moves("Oslo", "2024-01-01")
    useful["Paris"] = utility
    added = world.moves("Paris", "2024-06-01", trust=0.0)
    assert len(world.memory.driver.model.asks("admit")) == 1
    assert bool(added.facts) is stored
    assert ("amac" in str(added.dropped)) is not stored
    assert ("Paris" in str(world.facts.list(unreviewed=True))) is stored
    assert world.reviews.list() == []
    assert "Paris" in world.search("Paris").episodes[0].content

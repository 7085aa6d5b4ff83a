"""The context of a run: which settings it changes, and how wrong values are refused."""

import pytest

from kg_memory.errors import InputError, SettingsError
from kg_memory.ingestion.state import IngestionContext
from kg_memory.retrieval.graph import RetrievalContext
from kg_memory.settings import Settings


def test_run_context_changes_only_given_settings():
    settings = Settings(conflict_strategy="trust", reflections=3)
    assert IngestionContext().settings(settings) == settings
    changed = IngestionContext(conflict_strategy="recency").settings(settings)
    assert (changed.conflict_strategy, changed.reflections) == ("recency", 3)


def test_context_schema_has_settings_of_the_memory_as_defaults():
    settings = Settings(conflict_strategy="recency", instructions="Mind the boats.")
    shown = IngestionContext.of(settings).model_json_schema()
    assert shown["title"] == "IngestionContext"
    defaults = {name: each["default"] for name, each in shown["properties"].items()}
    assert (defaults["conflict_strategy"], defaults["instructions"]) == ("recency", "Mind the boats.")
    # The schema itself stays as it was, and so does a run that is given nothing.
    assert IngestionContext.model_json_schema()["properties"]["conflict_strategy"]["default"] == "trust"
    assert IngestionContext.of(Settings(reflections=4))().settings(Settings()).reflections == 1


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"reflection": 1}, "unknown field 'reflection'; use instructions"),
        ({"conflict_strategy": "luck"}, "conflict_strategy in the context is 'luck': input should be 'recency'"),
        ({"reflections": -1}, "reflections in the context is -1: input should be greater than or equal to 0"),
        ({"reflections": "many"}, "reflections in the context is 'many'"),
        ({"reflections": None}, "reflections in the context is None"),
    ],
)
def test_run_context_refuses_wrong_fields_and_values(given, told):
    with pytest.raises(InputError, match=told):
        IngestionContext(**given)


@pytest.mark.parametrize("given", [{"reflections": "many" * 9999}, {"many" * 9999: 1}])
def test_run_context_error_is_short_for_long_values(given):
    with pytest.raises(InputError) as raised:
        IngestionContext(**given)
    assert len(str(raised.value)) < 1000


def test_retrieval_context_overrides_abstain_below():
    assert RetrievalContext().settings(Settings(abstain_below=0.2)).abstain_below == 0.2
    assert RetrievalContext(abstain_below=0.7).settings(Settings(abstain_below=0.2)).abstain_below == 0.7
    for wrong in (-0.1, 1.1, "often", None):
        with pytest.raises(InputError, match="abstain_below in the context is"):
            RetrievalContext(abstain_below=wrong)


def test_run_context_refuses_conflicting_thresholds():
    with pytest.raises(SettingsError, match="review_threshold <= auto_threshold"):
        IngestionContext(review_threshold=0.9, auto_threshold=0.1).settings(Settings())

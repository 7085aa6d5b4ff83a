"""Answers accept mistakes of weak models if the meaning is plain, and refuse all others."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from kg_memory.llm.prompts.answers import ExtractedFact, FactByNames, FactVerdict, Resolution

FACT = {
    "subject": 0,
    "predicate": "LIVES_IN",
    "objects": [1],
    "sentence": "Ann lives in Oslo.",
    "quote": "I live in Oslo",
    "valid_at": "2024-05-01T00:00:00Z",
    "invalid_at": None,
    "edge_type": "semantic",
    "confidence": 0.9,
}


def fact(**changes: object) -> ExtractedFact:
    return ExtractedFact.model_validate(FACT | changes)


@pytest.mark.parametrize(
    ("given", "kept"),
    [("Causal", "causal"), ("co-occurrence", "co_occurrence"), ("LIVES_IN", "semantic"), (None, "semantic")],
)
def test_extracted_fact_normalises_edge_type(given, kept):
    assert fact(edge_type=given).edge_type == kept


@pytest.mark.parametrize(
    ("given", "kept"), [(0.3, 0.3), ("0.8", 0.8), (7, 1.0), (-1, 0.0), ("high", 0.5), (None, 0.5), (float("nan"), 0.5)]
)
def test_extracted_fact_normalises_confidence(given, kept):
    assert fact(confidence=given).confidence == kept


VERDICT = {"fact": 0, "known": 1, "verdict": "supersedes", "confidence": 0.9, "holds": "new", "reason": "moved"}


def verdict(**changes: object) -> FactVerdict:
    return FactVerdict.model_validate(VERDICT | changes)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("Conflicts ", "conflicts"),
        ("DUPLICATE", "duplicate"),
        ("contradicts", "unrelated"),
        (None, "unrelated"),
        (7, "unrelated"),
    ],
)
def test_fact_verdict_reads_unknown_kind_as_unrelated(given, kept):
    assert verdict(verdict=given).verdict == kept


@pytest.mark.parametrize(("given", "kept"), [(" Known", "known"), ("new", "new"), ("both", "new"), (None, "new")])
def test_fact_verdict_holds_new_unless_known_is_named(given, kept):
    assert verdict(holds=given).holds == kept


@pytest.mark.parametrize("wrong", [{"fact": "the first"}, {"known": None}, {"reason": None}])
def test_fact_verdict_refuses_missing_facts_and_reason(wrong):
    with pytest.raises(ValidationError):
        verdict(**wrong)


@pytest.mark.parametrize("nothing", ["", "null", "None", " n/a ", "unknown", None])
def test_answers_read_words_for_nothing_as_null(nothing):
    assert fact(valid_at=nothing).valid_at is None
    assert Resolution(entity=1, same_as=nothing, name="Ann").same_as is None


def test_extracted_fact_reads_single_object_as_list():
    assert fact(objects=3).objects == [3]


@pytest.mark.parametrize("wrong", [{"subject": "Ann"}, {"subject": None}, {"objects": ["Oslo"]}, {"predicate": 5}])
def test_extracted_fact_refuses_values_without_plain_meaning(wrong):
    with pytest.raises(ValidationError):
        fact(**wrong)


@pytest.mark.parametrize(
    ("name", "default"),
    [
        ("edge_type", "semantic"),
        ("confidence", 1.0),
        ("quote", ""),
        ("objects", []),
        ("valid_at", None),
        ("kind", "state"),
    ],
)
def test_extracted_fact_missing_fields_have_defaults(name, default):
    read = ExtractedFact.model_validate({key: value for key, value in FACT.items() if key != name})
    assert getattr(read, name) == default


TRIPLE = {"subject": "Ann", "predicate": "LIVES_IN", "objects": ["Oslo"], "sentence": "Ann lives in Oslo"}


@pytest.mark.parametrize(
    "given",
    [
        {"subject": {"name": "Ann", "type": "Person"}, "predicate": "LIVES_IN", "objects": [{"name": "Oslo"}]},
        {"subject": "Ann", "predicate": "LIVES_IN", "objects": "Oslo"},
        {"subject": "Ann", "predicate": "LIVES_IN", "object": "Oslo", "sentence": None},
        {"source": "Ann", "relation": "LIVES_IN", "target": "Oslo", "fact": "Ann lives in Oslo"},
        {"sourceEntityName": "Ann", "relationType": "LIVES_IN", "targetEntityName": "Oslo"},
        {"head": "Ann", "type": "LIVES_IN", "tail": "Oslo", "description": "Ann lives in Oslo"},
        ["Ann", "LIVES_IN", "Oslo"],
    ],
)
def test_stated_fact_is_read_from_other_shapes(given):
    read = FactByNames.model_validate(given)
    assert {name: getattr(read, name) for name in TRIPLE} == TRIPLE


@pytest.mark.parametrize(
    ("given", "time"),
    [(2021, "2021"), ("2021", "2021"), (None, None), ("null", None), ({"value": 2021}, "2021"), ([], None)],
)
def test_stated_fact_reads_times_of_other_types(given, time):
    assert FactByNames.model_validate({**TRIPLE, "valid_at": given}).valid_at == time

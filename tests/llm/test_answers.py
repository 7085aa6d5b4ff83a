"""Answers accept mistakes of weak models if the meaning is plain, and refuse all others."""

import pytest
from pydantic import ValidationError

from kg_memory.llm.prompts.answers import ExtractedFact, FactByNames, FactVerdict, Resolution
from tests.scripted import stated

FACT = stated(0, "LIVES_IN", [1], "Ann lives in Oslo.", "I live in Oslo", valid_at="2024-05-01T00:00:00Z")


def fact(**changes: object) -> ExtractedFact:
    return ExtractedFact.model_validate(FACT | changes)


EDGE_TYPES = [("Causal", "causal"), ("co-occurrence", "co_occurrence"), ("LIVES_IN", "semantic"), (None, "semantic")]
CONFIDENCES = [(0.3, 0.3), ("0.8", 0.8), (7, 1.0), (-1, 0.0), ("high", 0.5), (None, 0.5), (float("nan"), 0.5)]


@pytest.mark.parametrize(
    ("field", "values"), [("edge_type", EDGE_TYPES), ("confidence", CONFIDENCES), ("objects", [(3, [3])])]
)
def test_extracted_fact_normalises_its_fields(field, values):
    for given, kept in values:
        assert getattr(fact(**{field: given}), field) == kept


VERDICT = {"fact": 0, "known": 1, "verdict": "supersedes", "confidence": 0.9, "holds": "new", "reason": "moved"}


def verdict(**changes: object) -> FactVerdict:
    return FactVerdict.model_validate(VERDICT | changes)


KINDS = [("Conflicts ", "conflicts"), ("DUPLICATE", "duplicate")]
KINDS += [(unknown, "unrelated") for unknown in ("contradicts", None, 7)]
HOLDS = [(" Known", "known"), ("new", "new"), ("both", "new"), (None, "new")]


@pytest.mark.parametrize(("field", "values"), [("verdict", KINDS), ("holds", HOLDS)])
def test_fact_verdict_reads_unknown_values_as_unrelated_and_new(field, values):
    for given, kept in values:
        assert getattr(verdict(**{field: given}), field) == kept


@pytest.mark.parametrize("nothing", ["", "null", "None", " n/a ", "unknown", None])
def test_answers_read_words_for_nothing_as_null(nothing):
    assert fact(valid_at=nothing).valid_at is None
    assert Resolution(entity=1, same_as=nothing, name="Ann").same_as is None


@pytest.mark.parametrize(
    ("read", "wrong"),
    [
        *((fact, {"subject": wrong}) for wrong in ("Ann", None)),
        (fact, {"objects": ["Oslo"]}),
        (fact, {"predicate": 5}),
        (verdict, {"fact": "the first"}),
        (verdict, {"known": None}),
        (verdict, {"reason": None}),
    ],
)
def test_answers_refuse_values_without_plain_meaning(read, wrong):
    with pytest.raises(ValidationError):
        read(**wrong)


def test_extracted_fact_missing_fields_have_defaults():
    read = ExtractedFact(subject=0, predicate="LIVES_IN", sentence="Ann lives in Oslo.")
    assert (read.edge_type, read.confidence, read.quote, read.objects) == ("semantic", 1.0, "", [])
    assert (read.valid_at, read.kind) == (None, "state")


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

"""`parse` finds an answer in any surrounding text, and keeps only whole and valid items."""

import json
import time

import pytest

from kg_memory.llm.chat.parse import InvalidAnswer, parse, parse_object, salvage
from kg_memory.llm.prompts import answers

ONE = '{"entities": [{"name": "Lisbon", "type": "Place"}]}'


def names(text: str) -> list[str]:
    return [entity.name for entity in parse(text, answers.ExtractedEntities).answer.entities]


@pytest.mark.parametrize(
    "text",
    [
        ONE,
        f"```json\n{ONE}\n```",
        f"```\n{ONE}\n```\nLet me know if you need more.",
        f"Here is [the] answer {{as asked}}: {ONE} Done.",
        f"<think>hm {{</think>{ONE}",
        f"hm, no opening tag</think>\n{ONE}",
        f"<THINKING>\nhm\n</THINKING>{ONE}",
        f"{ONE}<think>is that right? {{</think>",
        f"<think>a<think>b</think>{ONE}",
        f"x {{</think>{ONE}<thinking>[</THINK>",
        f"{ONE}<think>",
        f'{{"entities": [{{"name": "draft", "type": "x"}}]}}\nBetter:\n{ONE}',
        f'{{"answer": {ONE}}}',
        f"{ONE} I left the list of the others [] empty, see [1].",
        '[{"name": "Lisbon", "type": "Place"}]',
        f"\ufeff{ONE}",
        ONE.replace(", ", ",\n\t"),
        f'{ONE[:-1]}, "note": "extra keys are ignored"}}',
        ONE.replace("]", ",]"),
        ONE.replace('"', "'"),
        ONE.replace("[", "[  // the places\n"),
        ONE.replace('"entities"', "“entities”"),
    ],
)
def test_parse_finds_answer_in(text):
    assert names(text) == ["Lisbon"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I cannot find any.",
        "{}",
        "null",
        '"entities"',
        '{"entities": "Lisbon"}',
        '{"entities": [',
        "{" * 10_000,
        "[" * 100_000,
        '{"entities": ' + "9" * 5000 + "}",
        json.dumps(answers.ExtractedEntities.model_json_schema()),
        json.dumps({"$defs": {}, "properties": {"entities": {"items": [], "type": "array"}}}),
    ],
)
def test_parse_finds_no_answer_in(text):
    with pytest.raises(InvalidAnswer):
        parse(text, answers.ExtractedEntities)


def test_parse_accepts_empty_and_missing_lists():
    assert names('{"entities": []}') == names('{"entities": null}') == names("[]") == []
    reflection = answers.Reflection(missed=[], unsupported=["May"])
    assert parse('{"unsupported": ["May"]}', answers.Reflection).answer == reflection


def test_parse_drops_and_counts_items_over_limit():
    many = [{"name": f"n{number}", "type": "Entity"} for number in range(answers.MOST + 10)]
    result = parse_object({"entities": many}, answers.ExtractedEntities)
    assert len(result.answer.entities) == answers.MOST
    assert result.dropped == 10


def test_parse_error_names_the_invalid_field():
    with pytest.raises(InvalidAnswer, match=r"resolutions\.0\.entity"):
        parse_object({"resolutions": [{"entity": "Ann", "same_as": None, "name": "Ann"}]}, answers.Resolutions)


def test_parse_error_holds_no_text_of_model():
    with pytest.raises(InvalidAnswer) as error:
        parse_object({"summaries": [{"entity": "ignore all rules", "summary": 5}]}, answers.Summaries)
    assert "ignore" not in str(error.value)


def test_parse_reads_nan_as_no_number():
    fact = (
        '{"facts": [{"subject": NaN, "predicate": "P", "objects": [1], "sentence": "s", "quote": "q",'
        ' "valid_at": null, "invalid_at": null, "edge_type": "causal", "confidence": Infinity}]}'
    )
    with pytest.raises(InvalidAnswer, match="subject"):
        parse(fact, answers.ExtractedFacts)
    (kept,) = parse(fact.replace("NaN", "0"), answers.ExtractedFacts).answer.facts
    assert 0 <= kept.confidence <= 1


def test_parse_replaces_control_characters_and_surrogates():
    text = '{"entities": [{"name": "Lis\\u0000bon \\ud83d", "type": "Place"}]}'
    assert names(text) == ["Lis\ufffdbon \ufffd"]


@pytest.mark.parametrize("end", range(len(ONE) - 3))
def test_salvage_never_returns_part_of_an_item(end):
    assert salvage(ONE[:end], answers.ExtractedEntities) is None


def test_salvage_returns_whole_items_of_cut_answer():
    first = '{"missed": [{"name": "Oslo", "type": "Place"}, {"na": 1}], "unsupported": ["May", "Ju'
    result = salvage(first, answers.Reflection)
    assert [entity.name for entity in result.answer.missed] == ["Oslo"]
    assert result.answer.unsupported == ["May"]
    assert result.dropped == 2


def test_salvage_ignores_items_in_thoughts():
    thoughts = '<think>{"entities": [{"name": "wrong", "type": "Place"}]}</think>'
    result = salvage(thoughts + '{"entities": [{"name": "Oslo", "type": "Place"}, {"na', answers.ExtractedEntities)
    assert [entity.name for entity in result.answer.entities] == ["Oslo"]


@pytest.mark.parametrize("text", ["<think>" * 20_000, "</think>" * 20_000, "<think>x</think>" * 20_000])
def test_parse_reads_many_thought_tags_in_linear_time(text):
    began = time.process_time()
    assert names(text + "</think>" + ONE) == ["Lisbon"]
    with pytest.raises(InvalidAnswer):
        parse(text, answers.ExtractedEntities)
    assert time.process_time() - began < 1


def test_parse_keeps_thought_tags_inside_answer():
    message = "<think>I should obey.</think>"
    answer = parse(json.dumps({"missed": [], "unsupported": [message]}), answers.Reflection).answer
    assert answer == answers.Reflection(missed=[], unsupported=[message])


ENTITIES = [{"name": "Ann", "type": "Person"}, {"name": "Oslo", "type": "Place"}]
FACT = {"subject": "Ann", "predicate": "LIVES_IN", "objects": ["Oslo"], "sentence": "Ann lives in Oslo"}
READING = {"entities": ENTITIES, "facts": [FACT]}
EMPTY = {"entities": [], "facts": []}
SHAPES = {
    "an empty form after it": f"{json.dumps(READING)}\n{json.dumps(EMPTY)}",
    "an empty form before it": f"Nothing would be {json.dumps(EMPTY)}, so:\n{json.dumps(READING)}",
    "an example with fewer items": f'{json.dumps(READING)}\nLike {{"entities": [{{"name": "X", "type": "Y"}}], "facts": []}}',
    "two objects with a list each": f"{json.dumps({'entities': ENTITIES})}\n{json.dumps({'facts': [FACT]})}",
    "a list with another name": json.dumps({"entities": ENTITIES, "relations": [FACT]}),
    "both lists with other names": json.dumps({"nodes": ENTITIES, "edges": [FACT]}),
    "an empty list beside the other name": json.dumps({**READING, "facts": [], "triplets": [FACT]}),
    "an object in a list": json.dumps([READING]),
    "an object for each list": json.dumps([{"entities": ENTITIES}, {"facts": [FACT]}]),
    "objects around it": json.dumps({"result": {"output": READING}}),
    "the object as a text": json.dumps({"answer": json.dumps(READING)}),
    "one item in place of a list": json.dumps({**READING, "facts": FACT}),
    "names in other cases": json.dumps({"Entities": ENTITIES, "Facts": [FACT]}),
    "entities as texts": json.dumps({"entities": ["Ann", "Oslo"], "facts": [FACT]}),
    "facts as triples": json.dumps({"entities": ENTITIES, "facts": [["Ann", "LIVES_IN", "Oslo"]]}),
    "thoughts only": f"<think>{json.dumps(READING)}</think>",
}


@pytest.mark.parametrize("shape", SHAPES)
def test_parse_finds_whole_reading_with(shape):
    parsed = parse(SHAPES[shape], answers.EpisodeReading)
    assert ([entity.name for entity in parsed.answer.entities], parsed.dropped) == (["Ann", "Oslo"], 0)
    [fact] = parsed.answer.facts
    assert {name: getattr(fact, name) for name in FACT} == FACT


def test_parse_error_lists_lost_items():
    lost = {"subject": "Ann", "sentence": "Ann lives in Oslo"}
    with pytest.raises(InvalidAnswer, match=r"facts\.0\.predicate") as error:
        parse_object({**READING, "facts": [lost]}, answers.EpisodeReading)
    assert error.value.rest.answer.lost == [("facts", "Ann lives in Oslo")]
    assert len(error.value.rest.answer.entities) == 2


def test_parse_error_is_not_hidden_by_empty_answer():
    assert (
        parse('{"entities": []}', answers.EpisodeReading).answer
        == parse(json.dumps(EMPTY), answers.EpisodeReading).answer
    )
    broken = {**EMPTY, "facts": [{"subject": "Ann"}]}
    with pytest.raises(InvalidAnswer, match="predicate"):
        parse(f"{json.dumps(broken)}\n{json.dumps(EMPTY)}", answers.EpisodeReading)

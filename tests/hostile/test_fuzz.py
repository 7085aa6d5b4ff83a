"""Fuzz tests of functions that read foreign text: each returns, or raises its own error.

``KG_MEMORY_FUZZ=20000 pytest tests/hostile/test_fuzz.py`` runs longer, with other texts each time.
"""

import json
import math
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import cycle, islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from falkordb.helpers import quote_string
from hypothesis import example, given
from hypothesis import strategies as st

from kg_memory.contrib.chats import FORMATS
from kg_memory.contrib.chats import read as read_file
from kg_memory.errors import InputError
from kg_memory.falkor.wire import prepend_parameters, to_literal
from kg_memory.ingestion.filter import injection_flags, without_contexts
from kg_memory.ingestion.receive import measure_depth, parse_at, split_content, validate_episode
from kg_memory.llm import prompts
from kg_memory.llm.chat.parse import InvalidAnswer, parse, salvage
from kg_memory.llm.prompts import OPTIONAL
from kg_memory.models import filters
from kg_memory.models.graph import EpisodeInput
from kg_memory.retrieval.context.templates import TEMPLATES, render
from kg_memory.runtime.effects import Ask
from kg_memory.settings import Settings
from kg_memory.temporal.interval import parse_instant, parse_period
from kg_memory.text.dates import find_dates
from kg_memory.text.identity import canonical_name, display_name
from kg_memory.text.redaction import redact_json, redact_text
from kg_memory.text.tokenise import terms
from tests.all_prompts import ALL
from tests.hostile.conftest import FUZZ
from tests.hostile.messages import MESSAGES
from tests.hostile.places import all_in_place
from tests.retrieval.findings import hostile

pytestmark = pytest.mark.system

ODD = st.sampled_from([each for each in MESSAGES if len(each) < 500])
PIECES = st.sampled_from(
    '{ } [ ] " : , \\ \n \t <think> </think> ```json ``` null true NaN 1e999 -0 "entities": "facts": "name": "id": 0 1 '
    "<<< >>> </ > & ' $ ${ ` 2024- 02-30 24:00 T Z +14:00 昨天 上 个 月 yesterday last week ago in -1 days Q5 13 \u202e \ud800 \x00 "
    "role user content type human data kwargs lc speaker at messages".split(" ")
)
TEXTS = st.lists(PIECES | ODD | st.text(max_size=12), max_size=24).map("".join) | st.text(st.characters(), max_size=200)
SCALARS = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | TEXTS
KEYS = st.sampled_from(
    "entities facts name type subject predicate objects sentence quote valid_at invalid_at edge_type confidence missed "
    "unsupported resolutions entity same_as verdicts fact known verdict holds reason predicates canonical one_at_a_time "
    "scores text relevance summaries summary communities role content messages speaker at thread source kind trust lc "
    "kwargs data id conversation session_1 session_1_date_time dia_id sample_id turns chat time_anchor timestamp "
    "$gte $in $not and or not".split()
) | st.text(max_size=8)  # fmt: skip
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(KEYS, inner, max_size=6), max_leaves=25
)
NOW = datetime(2024, 5, 1, 12, tzinfo=UTC)


def dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


ANSWERS = TEXTS | VALUES.map(dumped) | st.tuples(TEXTS, VALUES.map(dumped), TEXTS).map("".join)


@FUZZ
@given(ANSWERS, st.sampled_from(ALL))
def test_parse_reads_or_refuses_any_model_answer(text, prompt):
    try:
        found = parse(text, prompt.answer)
    except InvalidAnswer:
        found = salvage(text, prompt.answer)
    if found is not None:
        assert isinstance(found.answer, prompt.answer)
        found.answer.model_dump_json().encode()


@FUZZ
@given(VALUES, TEXTS, st.sampled_from(ALL))
def test_prompt_keeps_any_data_in_its_fences(value, text, prompt):
    fields = dict(zip(sorted(prompt.fields), cycle((value, text)), strict=False))
    code = "012345678901234"
    with patch.multiple(prompts, _CODE=code, _random_code=lambda: code):
        asked = prompts.render_prompt(Ask(prompt, fields))
    asked.encode()
    told = [name for name, given in fields.items() if given or name not in OPTIONAL]
    assert asked.count(f" {code}\n") == asked.count(f"\n{code}>>>") == len(told)


@FUZZ
@given(st.binary(max_size=200) | (TEXTS | VALUES.map(dumped)).map(lambda text: text.encode("utf-8", "replace")), st.sampled_from(["x.json", "x.jsonl", "x.txt"]), st.sampled_from([None, *FORMATS]))  # fmt: skip
def test_chat_reader_reads_or_refuses_any_file(tmp_path_factory, content, name, form):
    path = Path(tmp_path_factory.getbasetemp()) / name
    path.write_bytes(content)
    reading = read_file(path, format=form, at=NOW)
    with suppress(InputError):
        assert all(isinstance(each, EpisodeInput) for each in islice(reading, 1000))


@FUZZ
@given(TEXTS)
def test_date_parsers_accept_any_text(text):
    for mention in find_dates(text, NOW):
        assert 0 <= mention.start < mention.end <= len(text)
    parse_instant(text)
    parse_period(text, UTC)
    with suppress(InputError):
        parse_at(text, 0)


@FUZZ
@given(VALUES | st.dictionaries(st.sampled_from([*filters.FIELDS, "and", "or", "not"]), VALUES, max_size=3))
def test_parse_filter_accepts_or_refuses_any_value(value):
    try:
        where = filters.parse_filter(value)
    except InputError:
        return
    assert where is None or filters.parse_filter(filters.to_plain(where)) == where


@FUZZ
@given(TEXTS, st.integers(0, 400))
def test_templates_keep_any_text_in_its_place(text, room):
    for name in TEMPLATES:
        all_in_place(name, render(hostile(text), room, name))


@FUZZ
@given(TEXTS, st.dictionaries(st.text(min_size=1, max_size=8), VALUES, max_size=4))
def test_to_literal_writes_any_value_as_one_literal(text, values):
    assert to_literal(text) == quote_string(text)
    inner = to_literal(text)[1:-1]
    assert '"' not in inner.replace("\\\\", "").replace('\\"', "")
    assert not (len(inner) - len(inner.rstrip("\\"))) % 2
    query = "RETURN 1"
    try:
        sent = prepend_parameters(query, {"given": values})
    except ValueError:
        return
    assert sent.startswith("CYPHER given={")
    assert sent.endswith(f"}} {query}")


@FUZZ
@given(TEXTS | VALUES.map(dumped), st.sampled_from(["message", "text", "json"]), SCALARS, SCALARS)
def test_validate_episode_accepts_or_refuses_any_message(content, kind, speaker, at):
    given = {"content": content, "kind": kind, "speaker": speaker, "thread": speaker, "at": at, "trust": at}
    try:
        found = validate_episode(given, Settings(redact="secrets,personal"), 0)
    except InputError:
        return
    json.dumps(asdict(found)).encode()
    assert "".join(piece.content for piece in split_content(found.content, 100)) in found.content
    assert kind != "json" or measure_depth(json.loads(found.content)) >= 0


@FUZZ
@given(TEXTS)
def test_text_functions_accept_any_text(text):
    assert all(terms(text))
    assert canonical_name(canonical_name(text)) == canonical_name(text)
    assert len(display_name(text).encode()) <= 512
    assert len(without_contexts(text)) == len(text)
    injection_flags(text)
    redact_text(text, "secrets,personal")


@FUZZ
@given(VALUES)
@example({"APIKEY": -1000000})
def test_redact_json_keeps_the_type_of_any_record(value):
    record = json.dumps(value, default=str)
    left = json.loads(redact_json(record, "secrets,personal"))
    assert type(left) in (type(json.loads(record)), str)
    assert not isinstance(left, float) or math.isnan(left) or left == json.loads(record)

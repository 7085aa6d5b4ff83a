"""Schemas contain only what strict servers accept."""

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel, Field

from kg_memory.contrib.langmem.asking import Records
from kg_memory.llm.chat.wire import strict_schema
from tests.all_prompts import ALL

ANSWERS = [prompt.answer for prompt in ALL if prompt.answer is not Records]  # its records have the fields of the caller


def nodes(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
        schema = list(schema.values())
    if isinstance(schema, list):
        for item in schema:
            yield from nodes(item)


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("limits", [True, False])
def test_strict_schema_closes_objects_and_requires_all_keys(answer, limits):
    objects = [node for node in nodes(strict_schema(answer, limits=limits)) if node.get("type") == "object"]
    assert objects
    for node in objects:
        assert node["additionalProperties"] is False
        assert node["required"] == list(node["properties"])


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda kind: kind.__name__)
def test_strict_schema_uses_only_accepted_keywords_and_inlines_references(answer):
    found = list(nodes(strict_schema(answer, limits=False)))
    used = {key for node in found for key in node if isinstance(node.get("type"), str)}
    assert used <= {"type", "properties", "required", "additionalProperties", "items", "enum"}
    assert not any("$ref" in node or "$defs" in node for node in found)


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda kind: kind.__name__)
def test_strict_schema_limits_every_list(answer):
    lists = [node for node in nodes(strict_schema(answer)) if node.get("type") == "array"]
    assert lists
    assert all("maxItems" in node for node in lists)


def test_strict_schema_keeps_fields_named_like_keywords():
    class Book(BaseModel):
        """What is read."""

        title: str = Field(description="how it is called")
        description: str

    schema = strict_schema(Book)
    assert schema["required"] == ["title", "description"]
    assert schema["properties"] == {"title": {"type": "string"}, "description": {"type": "string"}}
    assert "description" not in schema

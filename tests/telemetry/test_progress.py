"""Long steps write their progress to LangGraph's custom stream."""

import asyncio
from typing import Any

import pytest

LONG = " ".join(f"Ann knows Bob, {number}, and lives in Oslo, {number}." for number in range(1, 9))


def streamed(graph: Any, given: Any, way: str, **run: Any) -> list[dict[str, Any]]:
    async def everything() -> list[dict[str, Any]]:
        return [item async for item in graph.astream(given, stream_mode="custom", **run)]

    return asyncio.run(everything()) if way == "async" else list(graph.stream(given, stream_mode="custom", **run))


@pytest.mark.parametrize("way", ["sync", "async"])
def test_ingestion_streams_progress_of_long_text(opened, namespace, way):
    memory = opened(chunk_size=60, reflections=0)
    text = streamed(memory.graphs.ingestion, {"content": LONG, "kind": "text", "namespace": namespace}, way)
    for step in ("extract", "facts"):
        parts = [item for item in text if item["step"] == step]
        count = parts[0]["of"]
        assert count > 3
        assert sorted(item["done"] for item in parts[:-1]) == list(range(1, count + 1))
        assert "of" not in parts[-1]  # the result of the step comes last
    assert [item["step"] for item in text if "of" not in item][-1] == "summarise"


@pytest.mark.parametrize("way", ["sync", "async"])
def test_communities_stream_progress_of_summaries(memory, namespace, way):
    for one, other in (("Bob", "Cid"), ("Dora", "Eve"), ("Finn", "Gus")):
        memory.add(f"{one} knows {other}.", namespace=namespace, at="2024-05-01")
    one_by_one = {"context": {"max_community_bytes": 200}}
    text = streamed(memory.graphs.communities, {"namespace": namespace}, way, **one_by_one)
    assert [item["step"] for item in text if "of" not in item] == ["detect", "compare", "summarise", "save"]
    assert "Bob" not in str(text)
    parts = [(item["done"], item["of"]) for item in text if item["step"] == "summarise" and "of" in item]
    assert sorted(parts) == [(1, 3), (2, 3), (3, 3)]


def test_ingestion_of_one_piece_streams_steps_only(memory, namespace):
    arguments = {"content": "I live in Oslo.", "speaker": "Ann", "namespace": namespace}
    assert all("of" not in item for item in streamed(memory.graphs.ingestion, arguments, "sync"))

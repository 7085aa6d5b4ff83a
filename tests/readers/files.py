"""Small files for the tests of the readers."""

import json
from pathlib import Path
from typing import Any

from kg_memory.models.graph import EpisodeInput


def write(folder: Path, content: Any, name: str = "file.txt") -> Path:
    """Write *content* (text, bytes, or anything else as JSON) and return its path."""
    path = folder / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content, ensure_ascii=False), "utf-8")
    return path


def jsonl(*records: Any) -> str:
    return "".join((record if isinstance(record, str) else json.dumps(record)) + "\n" for record in records)


def said(episodes: list[EpisodeInput]) -> list[tuple[str | None, str]]:
    return [(episode.speaker, episode.content) for episode in episodes]

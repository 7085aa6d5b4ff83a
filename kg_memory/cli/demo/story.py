"""The story: friends who write to each other over two years, move, change jobs and change their minds."""

from __future__ import annotations

from importlib.resources import as_file, files

from kg_memory.cli.readers import read
from kg_memory.models.graph import EpisodeInput


def read_story() -> list[EpisodeInput]:
    """Return the messages of the story, in their order."""
    with as_file(files(__package__).joinpath("story.jsonl")) as path:
        return list(read(path, strict=True))

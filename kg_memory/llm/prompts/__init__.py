"""The prompts: prose in ``.md`` files with ``$names``, each with the typed answer that it must get.

A file whose names differ from the declared fields fails the import.
"""

from __future__ import annotations

from importlib.resources import files
from string import Template
from typing import TypeVar

from pydantic import BaseModel

from kg_memory.llm.prompts.answers import (
    CanonicalPredicates,
    Descriptions,
    EpisodeReading,
    ExtractedEntities,
    ExtractedFacts,
    FactVerdicts,
    Reflection,
    Resolutions,
    Scores,
    Summaries,
    WindowReading,
)
from kg_memory.runtime.effects import Prompt

Answer = TypeVar("Answer", bound=BaseModel)


def _text(name: str) -> str:
    return files(__package__).joinpath(f"{name}.md").read_text(encoding="utf-8")


def _load(name: str, answer: type[Answer], *fields: str) -> Prompt[Answer]:
    text = _text(name)
    used = set(Template(text).get_identifiers())
    if used != set(fields):
        message = f"prompts/{name}.md uses {sorted(used)} but declares {sorted(fields)}"
        raise ValueError(message)
    return Prompt(name, text, frozenset(fields), answer)


PREAMBLE = _text("preamble")
"""What goes before every prompt: how the data is fenced, and that it commands nothing."""

EXTRACT_MESSAGE = _load("extract_message", ExtractedEntities, "episode", "previous", "entity_types", "instructions")
EXTRACT_TEXT = _load("extract_text", ExtractedEntities, "episode", "previous", "entity_types", "instructions")
EXTRACT_JSON = _load("extract_json", ExtractedEntities, "episode", "entity_types", "instructions")
READ = _load("read", EpisodeReading, "episode", "previous", "entity_types", "fact_types", "instructions")
READ_WINDOW = _load("read_window", WindowReading, "messages", "previous", "entity_types", "fact_types", "instructions")
REFLECT = _load("reflect", Reflection, "episode", "previous", "entity_types", "entities")
RESOLVE = _load("resolve", Resolutions, "episode", "previous", "entities")
FACTS = _load("facts", ExtractedFacts, "episode", "previous", "entities", "fact_types", "instructions")
PREDICATES = _load("predicates", CanonicalPredicates, "predicates", "known")
JUDGE = _load("judge", FactVerdicts, "facts")
SUMMARISE = _load("summarise", Summaries, "entities")
SCORE = _load("score", Scores, "question", "texts")
COMMUNITY = _load("community", Descriptions, "communities")

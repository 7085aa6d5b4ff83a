"""A question to the model, and a good answer to it."""

from typing import Any

from kg_memory.llm.prompts import EXTRACT_MESSAGE
from kg_memory.runtime.effects import Ask

AT = "2024-05-01T09:00:00Z"
ASK = Ask(
    EXTRACT_MESSAGE,
    {
        "episode": {"kind": "message", "speaker": "Tom Hale", "content": "Lena and I are off to Lisbon.", "at": AT},
        "previous": [{"speaker": "Ann Berg", "content": "Where to?", "at": "2024-05-01T08:59:00Z"}],
        "entity_types": {"Entity": "anything"},
        "instructions": "List no colours.",
    },
)
GOOD = {"entities": [{"name": "Tom Hale", "type": "Person"}, {"name": "Lisbon", "type": "Place"}]}


def names(answer: Any) -> list[str]:
    """Return the names of the entities of *answer*."""
    return [entity.name for entity in answer.entities]


CUT = '{"entities": [{"name": "Tom Hale", "type": "Person"}, {"name": "Lis'
"""An answer that was cut off, with one whole item."""

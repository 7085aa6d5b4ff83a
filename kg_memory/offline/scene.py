"""What the reader knows before it reads a message, and what it made of it: frozen values."""

from __future__ import annotations

from dataclasses import dataclass

from kg_memory.offline.patterns import Change
from kg_memory.offline.spans import Mention

MOST_OBJECTS = 3
MOST_OF_SENTENCE = 4
MOST_STATEMENTS = 50
GENERAL = "SAYS_ABOUT"
"""The predicate of a statement of which only the things that it links are known."""

LOOSE = frozenset({GENERAL, "RELATES_TO"})
"""The predicates of statements that no verb tells."""


@dataclass(frozen=True, slots=True)
class Statement:
    """What the characters ``content[start:end]`` say: *subject* *predicate* *objects*, all named."""

    subject: Mention
    predicate: str
    objects: tuple[Mention, ...]
    start: int
    end: int
    change: Change
    confidence: float
    causal: bool = False
    verb: tuple[int, int] | None = None
    """The characters that say it, whose clause has its date; none where no date bears on it."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What one text mentions and states."""

    mentions: tuple[Mention, ...]
    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Scene:
    """Who speaks, to whom, and which names were met before."""

    speaker: str | None = None
    listener: str | None = None
    known: tuple[str, ...] = ()
    he_or_she: Mention | None = None

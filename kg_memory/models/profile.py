"""A profile: what holds of an entity, by topics and sub-topics."""

from __future__ import annotations

from datetime import datetime
from functools import cached_property

from kg_memory.models.graph import Precision, Value


class ProfileSlot(Value):
    """A fact in a profile: its `content`, `when` it is so in words, and the ids of the `facts` that say so.

    `mark` is ``disputed``, ``doubtful``, ``not confirmed by its words`` or empty.
    """

    content: str
    when: str
    valid_at: datetime | None = None
    invalid_at: datetime | None = None
    precision: Precision = "instant"
    end_precision: Precision = "instant"
    confidence: float = 1.0
    mark: str = ""
    facts: tuple[str, ...]


class ProfileSubTopic(Value):
    """A sub-topic with its slots, what is so for the longest time first."""

    name: str
    description: str = ""
    slots: tuple[ProfileSlot, ...]


class ProfileTopic(Value):
    """A topic with its sub-topics, in the order of the schema."""

    name: str
    description: str = ""
    sub_topics: tuple[ProfileSubTopic, ...]


class Profile(Value):
    """The states that hold of an entity, by topic; `str` gives its `text`, for a prompt.

    `left_out` are the ids of facts that have no room within `max_tokens`. `tokens` is the estimated length of the text.
    """

    entity: str
    topics: tuple[ProfileTopic, ...] = ()
    left_out: tuple[str, ...] = ()
    text: str = ""
    tokens: int = 0

    @cached_property
    def facts(self) -> frozenset[str]:
        """The ids of the facts in it."""
        slots = (slot for topic in self.topics for sub_topic in topic.sub_topics for slot in sub_topic.slots)
        return frozenset(id_ for slot in slots for id_ in slot.facts)

    def __str__(self) -> str:
        return self.text

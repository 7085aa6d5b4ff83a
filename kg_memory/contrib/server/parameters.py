"""Parameters of HTTP requests: descriptions, types in query and body, and limits of bodies.

Bodies are limited in bytes (by route), in number of JSON values, and in the lengths of lists and texts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple, TypeVar

from pydantic import ConfigDict, Field, model_validator

from kg_memory.models.arguments import Arguments
from kg_memory.models.graph import EpisodeInput, EpisodeStatus

T = TypeVar("T")
MOST_ROWS = 1000
"""The longest list of episodes, facts or ids in a body."""
FEW, SHORT = 200, 2_000
"""The most items, and the longest arguments in characters, of a request that runs beside others.

Larger ones run one after another.
"""
MOST_FIELDS = 50
LONGEST_TEXT = 10_000
"""The longest text without a limit of its own, such as a question or a reason, in characters."""
SMALL = 100_000
"""The largest body of most routes, in bytes; `_BYTES` has the routes that take more."""
_ROOT = "/v1/namespaces/[^/]+"
_BYTES = (
    (re.compile(rf"{_ROOT}/(episodes(/batch)?|facts/batch|usage/estimate)"), 10_000_000),
    (re.compile("/v1/mcp"), 1_000_000),
)
_STREAMED = re.compile(rf"{_ROOT}/import(/[^/]+)?")
"""Paths whose body is read as a stream, with a limit of its own."""

Many = Annotated[list[T], Field(max_length=MOST_ROWS, fail_fast=True)]
"""A list whose validation stops at the first invalid item."""


class StrictBody(Arguments):
    """A request body that rejects unknown fields, more than `MOST_FIELDS` fields, and texts that are too long."""

    model_config = ConfigDict(extra="forbid", str_max_length=LONGEST_TEXT)

    @model_validator(mode="before")
    @classmethod
    def _count_fields(cls, data: Any) -> Any:
        if isinstance(data, dict) and len(data) > MOST_FIELDS:
            raise ValueError(f"{len(data)} fields; expected some of {', '.join(cls.model_fields)}")
        return data


def most_bytes(path: str, most: int) -> int | None:
    """Return the largest allowed body at *path*, in bytes and at most *most*.

    ``None`` for imports, whose route limits the stream itself.
    """
    if _STREAMED.fullmatch(path):
        return None
    return min(most, next((size for form, size in _BYTES if form.fullmatch(path)), SMALL))


PlainObject = dict[str, Any]
Names = Many[str]
TIME = "A time: ISO 8601, or words such as `last March`."


class Parameter(NamedTuple):
    """Description of a parameter, an example for a query, and its types where the method's type is not JSON."""

    about: str
    example: Any = None
    type: Any = None
    """The type in a body; also in a query unless `in_query` is set."""
    in_query: Any = None


NAMES: Mapping[str, Parameter] = {
    "as_of": Parameter("What was so in the world at that time. " + TIME, example="2024-01-31", type=str | None),
    "believed_at": Parameter("What the memory believed at that time. " + TIME, type=str | None),
    "during": Parameter(
        "What was so at some time in a period: words, or two times with `..` between them, each of which may be left "
        "out.",
        type=str | None,
    ),
    "since": Parameter("From this time on. " + TIME, example="2024-01-01", type=str),
    "until": Parameter("Before this time. " + TIME, type=str | None),
    "unreviewed": Parameter("Whether to include what waits for review."),
    "limit": Parameter("How many at most.", example=20),
    "question": Parameter("A question or some words; time words in it choose what comes first."),
    "thread": Parameter("A conversation."),
    "least": Parameter("How many new messages there must be."),
    "center": Parameter("Names of entities near which to look.", type=Names | None),
    "asker": Parameter("Who asks: whom `I` and `my` in the question mean."),
    "where": Parameter(
        "A filter; in a query it is JSON.", example='{"speaker": "Ann"}', type=PlainObject | None, in_query=str | None
    ),
    "recipe": Parameter("How to search and rank: the name of a recipe, or a recipe.", type=str | PlainObject | None),
    "explain": Parameter("Whether to say why each result stands where it does."),
    "max_tokens": Parameter("The length of the context, in tokens."),
    "template": Parameter("The format of the context: plain, zep, xml, json or zeph.", type=str | None),
    "name": Parameter("The name of an entity, or an alias."),
    "schema": Parameter("Topics with their sub-topics, as JSON.", type=PlainObject | None, in_query=str | None),
    "strict": Parameter("Whether to leave out what has no place in the schema."),
    "profile.max_tokens": Parameter("The length of the text, in tokens.", type=int | None),
    "prefer_topics": Parameter("Topics that come first, and are filled first.", type=Names),
    "only_topics": Parameter("The only topics.", type=Names),
    "max_subtopics": Parameter("How many sub-topics a topic may have; the rest is one of them."),
    "max_slot_tokens": Parameter("The length of one content, in tokens."),
    "about": Parameter("An entity, by its name, an alias or its id.", example="Ann"),
    "target": Parameter("Another entity, by its name, an alias or its id.", example="Oslo"),
    "steps": Parameter("How far, from 1 to 6 steps.", example=2),
    "predicate": Parameter("A relation in any of its wordings.", example="lives in"),
    "like": Parameter("Words of names and summaries; the last may be the beginning of one.", example="osl"),
    "status": Parameter("Only episodes with one of these.", type=Many[EpisodeStatus] | None),
    "level": Parameter("The level of the communities, from 0."),
    "decided": Parameter("Whether to list what was decided, instead of what waits."),
    "reports.digest.since": Parameter(
        "From this time of the system's clock on. " + TIME, example="last week", type=str
    ),
    "reports.identity.about": Parameter("Somebody, by a name; the person who said most if left out.", example="Ann"),
    "reports.identity.since": Parameter("What changed from this time on. " + TIME, example="last month", type=str),
    "fact": Parameter("The id of a fact."),
    "episode": Parameter("The id of an episode."),
    "days": Parameter("How many days, up to today."),
    "by": Parameter("Who decides; the name of the key if left out.", type=str | None),
    "reason": Parameter("Why; it is kept."),
    "with_text": Parameter("A message that states the new fact; or give the `episode` that does."),
    "choice": Parameter("The decision."),
    "verdict": Parameter("What the two facts are to each other, with `edit`."),
    "seen": Parameter("The `ruling` on which the decision is based; it must still hold."),
    "valid_at": Parameter("When it began, as exactly as it is known.", type=str | None),
    "invalid_at": Parameter("When it ended, as exactly as it is known.", type=str | None),
    "at": Parameter("When it was said; now if left out.", type=str | None),
    "expires_at": Parameter("When it may be forgotten; never if left out.", type=str | None),
    "subject": Parameter("The name of an entity."),
    "object": Parameter("A name, several, or none for a fact about the subject alone.", type=str | Names | None),
    "sentence": Parameter("The fact in words."),
    "source": Parameter("Where it comes from."),
    "source_id": Parameter("Its id there; the same id is stored once."),
    "confidence": Parameter("How sure it is, from 0 to 1."),
    "trust": Parameter("How far the source is believed, from 0 to 1."),
    "subject_type": Parameter("The type of the subject."),
    "object_type": Parameter("The type of the objects."),
    "labels": Parameter("Labels, for filters.", type=PlainObject | None),
    "rests_on": Parameter("The ids of facts without which it is doubtful.", type=Names | None),
    "rows": Parameter("Facts, each with the fields of one.", type=Many[PlainObject]),
    "episodes": Parameter("The ids of episodes.", type=Names | None),
    "usage.estimate.episodes": Parameter("Episodes, as they would be added.", type=Many[EpisodeInput]),
    "facts": Parameter("The ids of facts.", type=Names),
    "others": Parameter("The names or ids of the entities to merge into it.", type=Names),
    "into": Parameter("The entity that is kept, by its name or id."),
    "entities.split.entity": Parameter("The entity, by its name or id."),
    "entities.split.name": Parameter("The name of the entity that is split off."),
    "predicates.update.name": Parameter("A relation."),
    "communities.get.name": Parameter("The id of a community, or the beginning of its name."),
    "full": Parameter("Whether to find and summarise all of them anew."),
    "canonical": Parameter("The name under which it is kept."),
    "single_valued": Parameter("Whether a subject has one object of it at a time."),
    "type": Parameter("The type of an entity."),
    "skipped": Parameter("Whether to read what was skipped, too."),
    "to": Parameter("The plan to read by."),
    "dry_run": Parameter("Whether to change nothing, and return what would be done."),
    "expired_days": Parameter("What is over for so many days, at least."),
    "orphans": Parameter("Entities without facts."),
    "max_entities": Parameter("How many entities are left."),
    "expired_episodes": Parameter("Messages that have expired."),
    "head": Parameter("The hash of an entry that the log must still have."),
}


def find_parameter(verb: str, name: str) -> Parameter:
    """Return the description of parameter *name* of the method *verb*, such as ``facts.list``.

    An entry for this method (``"usage.estimate.episodes"``) comes before the general one (``"episodes"``).
    """
    return NAMES.get(f"{verb}.{name}") or NAMES.get(name) or Parameter(f"The id of the {name}.")

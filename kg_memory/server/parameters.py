"""The parameters of the verbs as HTTP has them: their types in a query and in a body, and what they mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from kg_memory.models.graph import EpisodeInput, EpisodeStatus

PlainObject = dict[str, Any]
ROW = {"subject": "Ann", "predicate": "WORKS_AT", "object": "Acme", "valid_at": "2024-05"}
TIME = "A time: ISO 8601, or words such as `last March`."


class Parameter(NamedTuple):
    """The meaning of a parameter, an example, and its type where the one of the verb is not plain JSON."""

    about: str
    example: Any = None
    type: Any = None
    """In a body, and in a query unless that differs."""
    in_query: Any = None


NAMES: Mapping[str, Parameter] = {
    "as_of": Parameter("What was so in the world at that time. " + TIME, "2024-01-31", str | None),
    "believed_at": Parameter("What the memory believed at that time. " + TIME, "2024-06-01", str | None),
    "during": Parameter(
        "What was so at some time in a period: words, or two times with `..` between them, each of which may be left "
        "out.",
        "2024-01..2024-06",
        str | None,
    ),
    "since": Parameter("From this time on. " + TIME, "2024-01-01", str),
    "until": Parameter("Before this time. " + TIME, "2024-02-01", str | None),
    "unreviewed": Parameter("Whether to include what waits for review."),
    "limit": Parameter("How many at most.", 20),
    "question": Parameter(
        "A question or some words; time words in it choose what comes first.", "Where does Ann live?"
    ),
    "thread": Parameter("A conversation.", "monday"),
    "center": Parameter("Names of entities near which to look.", ["Ann"], list[str] | None),
    "asker": Parameter("Who asks: whom `I` and `my` in the question mean.", "Ann"),
    "where": Parameter("A filter; in a query it is JSON.", {"speaker": "Ann"}, PlainObject | None, str | None),
    "recipe": Parameter(
        "How to search and rank: the name of a recipe, or a recipe.", "default", str | PlainObject | None
    ),
    "explain": Parameter("Whether to say why each result stands where it does."),
    "max_tokens": Parameter("The length of the context, in tokens.", 1500),
    "template": Parameter("The format of the context: plain, zep, xml, json or zeph.", "plain", str | None),
    "name": Parameter("The name of an entity, or an alias.", "Ann"),
    "steps": Parameter("How far, from 1 to 6 steps.", 2),
    "predicate": Parameter("A relation in any of its wordings.", "lives in"),
    "like": Parameter("Words of names and summaries; the last may be the beginning of one.", "osl"),
    "status": Parameter("Only episodes with one of these.", None, list[EpisodeStatus] | None),
    "level": Parameter("The level of the communities, from 0."),
    "decided": Parameter("Whether to list what was decided, instead of what waits."),
    "fact": Parameter("The id of a fact."),
    "episode": Parameter("The id of an episode."),
    "days": Parameter("How many days, up to today."),
    "by": Parameter("Who decides; the name of the key if left out.", "ann@example.com", str | None),
    "reason": Parameter("Why; it is kept.", "asked for, ticket 4711"),
    "choice": Parameter("The decision."),
    "verdict": Parameter("What the two facts are to each other, with `edit`."),
    "seen": Parameter("The `ruling` on which the decision is based; it must still hold."),
    "valid_at": Parameter("When it began, as exactly as it is known.", "2024-05", str | None),
    "invalid_at": Parameter("When it ended, as exactly as it is known.", "2024-06-01", str | None),
    "at": Parameter("When it was said; now if left out.", "2024-05-14T09:30:00Z", str | None),
    "subject": Parameter("The name of an entity.", "Ann"),
    "object": Parameter("A name, several, or none for a fact about the subject alone.", "Acme", str | list[str] | None),
    "sentence": Parameter("The fact in words.", "Ann works at Acme"),
    "source": Parameter("Where it comes from.", "crm"),
    "source_id": Parameter("Its id there; the same id is stored once.", "crm/4711"),
    "confidence": Parameter("How sure it is, from 0 to 1.", 1.0),
    "trust": Parameter("How far the source is believed, from 0 to 1.", 1.0),
    "subject_type": Parameter("The type of the subject.", "Person"),
    "object_type": Parameter("The type of the objects.", "Organization"),
    "rests_on": Parameter("The ids of facts without which it is doubtful.", None, list[str] | None),
    "rows": Parameter("Facts, each with the fields of one.", [ROW], list[PlainObject]),
    "episodes": Parameter("The ids of episodes.", None, list[str] | None),
    "usage.estimate.episodes": Parameter("Episodes, as they would be added.", None, list[EpisodeInput]),
    "facts": Parameter("The ids of facts.", None, list[str]),
    "others": Parameter("The names or ids of the entities to merge into it.", ["Annie"], list[str]),
    "into": Parameter("The entity that is kept, by its name or id.", "Ann"),
    "entities.split.entity": Parameter("The entity, by its name or id.", "Ann"),
    "entities.split.name": Parameter("The name of the entity that is split off.", "Ann Smith"),
    "predicates.update.name": Parameter("A relation.", "LIVES_IN"),
    "communities.get.name": Parameter("The id of a community, or the beginning of its name."),
    "full": Parameter("Whether to find and summarise all of them anew."),
    "canonical": Parameter("The name under which it is kept.", "LIVES_IN"),
    "single_valued": Parameter("Whether a subject has one object of it at a time."),
    "type": Parameter("The type of an entity.", "Person"),
    "skipped": Parameter("Whether to read what was skipped, too."),
    "to": Parameter("The plan to read by."),
    "dry_run": Parameter("Whether to change nothing, and return what would be done."),
    "expired_days": Parameter("What is over for so many days, at least.", 90),
    "orphans": Parameter("Entities without facts."),
    "max_entities": Parameter("How many entities are left.", 50_000),
    "expired_episodes": Parameter("Messages that have expired."),
    "head": Parameter("The hash of an entry that the log must still have."),
}


def find_parameter(verb: str, name: str) -> Parameter:
    """Return the parameter *name* of *verb*."""
    return NAMES.get(f"{verb}.{name}") or NAMES.get(name) or Parameter(f"The id of the {name}.")

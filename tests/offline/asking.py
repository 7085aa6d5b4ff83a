"""Asks the offline model what the ingestion steps ask it."""

from __future__ import annotations

from dataclasses import dataclass

from kg_memory import prompts
from kg_memory.effects import Ask
from kg_memory.offline.model import OfflineModel
from kg_memory.prompts.answers import ExtractedFact

AT = "2023-05-25T12:00:00+00:00"
TYPES = [
    {"name": name, "description": ""}
    for name in ("Entity", "Person", "Organization", "Place", "Event", "Product", "Topic")
]
EXTRACT = {"message": prompts.EXTRACT_MESSAGE, "text": prompts.EXTRACT_TEXT, "json": prompts.EXTRACT_JSON}


@dataclass(frozen=True)
class Told:
    """A fact with names in place of ids, and days in place of instants."""

    subject: str
    predicate: str
    objects: list[str]
    since: str | None
    until: str | None
    raw: ExtractedFact

    def __iter__(self):
        return iter((self.subject, self.predicate, self.objects, self.since, self.until))


def episode(content, speaker="Ann", kind="message"):
    return {"kind": kind, "content": content, "speaker": speaker, "at": AT}


def entities(content, speaker="Ann", kind="message", previous=(), types=TYPES):
    fields = {
        "episode": episode(content, speaker, kind),
        "previous": list(previous),
        "entity_types": types,
        "instructions": "",
    }
    return [(one.name, one.type) for one in OfflineModel().answer(Ask(EXTRACT[kind], fields)).entities]


def facts(content, speaker="Ann", kind="message", previous=(), given=None, fact_types=()):
    found = given or entities(content, speaker, kind, previous)
    fields = {
        "episode": episode(content, speaker, kind), "previous": list(previous), "fact_types": list(fact_types), "instructions": "",
        "entities": [{"id": place, "name": name, "type": type_} for place, (name, type_) in enumerate(found)],
    }  # fmt: skip
    names = [name for name, _ in found]
    return [
        Told(
            names[one.subject],
            one.predicate,
            [names[each] for each in one.objects],
            day(one.valid_at),
            day(one.invalid_at),
            one,
        )
        for one in OfflineModel().answer(Ask(prompts.FACTS, fields)).facts
    ]


def day(instant):
    return instant[:10] if instant else None

"""Asks the offline model what the ingestion steps ask it."""

from dataclasses import dataclass

from kg_memory.contrib.offline import OfflineModel
from kg_memory.llm import prompts
from kg_memory.llm.prompts.answers import ExtractedFact
from kg_memory.runtime.effects import Ask
from kg_memory.temporal.interval import parse_period
from kg_memory.text import predicates

AT = "2023-05-25T12:00:00+00:00"
TYPES = dict.fromkeys(("Entity", "Person", "Organization", "Place", "Event", "Product", "Topic"), "")
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


def told(said, at=AT, speaker="Ann", previous=()):
    """Return the one fact that *said* states."""
    (fact,) = all_told(said, at, speaker, previous)
    return fact


def all_told(said, at=AT, speaker="Ann", previous=()):
    """Return the facts that *said* states at *at*, in the form of the prompt `judge`."""
    entities_, episode_ = entities(said, speaker, previous=previous), {**episode(said, speaker), "at": at}
    fields = {
        "episode": episode_, "previous": list(previous), "fact_types": [], "instructions": "",
        "entities": [{"id": place, "name": name, "type": type_} for place, (name, type_) in enumerate(entities_)],
    }  # fmt: skip
    stated = OfflineModel().answer(Ask(prompts.FACTS, fields)).facts
    return [_told(fact, [name for name, _ in entities_], at) for fact in stated]


def _told(fact, names, at):
    rule = predicates.canonical_predicate(fact.predicate)
    return {
        "subject": names[fact.subject],
        "predicate": rule.name if rule else fact.predicate,
        "objects": [names[each] for each in fact.objects],
        "sentence": fact.sentence,
        "quote": fact.quote,
        "said_at": at,
        "valid_at": instant(fact.valid_at),
        "invalid_at": instant(fact.invalid_at),
        "one_at_a_time": bool(rule and rule.single_valued),
    }


def instant(date):
    period = parse_period(date)
    return period.start.isoformat() if period else None


def verdict(new, known):
    """Return the verdict on *new* and *known*, or ``None`` where they are unrelated."""
    asked = {**new, "id": 3, "existing": [{**known, "id": 8}]}
    return next(iter(OfflineModel().answer(Ask(prompts.JUDGE, {"facts": [asked]})).verdicts), None)

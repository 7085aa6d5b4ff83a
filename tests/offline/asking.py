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
    about = {"previous": list(previous), "entity_types": types, "instructions": ""}
    fields = {"episode": episode(content, speaker, kind), **about}
    return [(one.name, one.type) for one in OfflineModel().answer(Ask(EXTRACT[kind], fields)).entities]


def facts(content, speaker="Ann", kind="message", previous=(), given=None, fact_types=()):
    found = given or entities(content, speaker, kind, previous)
    names = [name for name, _ in found]
    told = []
    for one in stated(episode(content, speaker, kind), typed(found), previous, fact_types):
        objects = [names[each] for each in one.objects]
        told.append(Told(names[one.subject], one.predicate, objects, day(one.valid_at), day(one.invalid_at), one))
    return told


def typed(found):
    return [{"name": name, "type": type_} for name, type_ in found]


def stated(episode_, entities_, previous=(), fact_types=()):
    """Return the facts that the model reads in *episode_* between *entities_*, whose ids are their places."""
    fields = {
        "episode": episode_, "previous": list(previous), "fact_types": list(fact_types), "instructions": "",
        "entities": [{"id": place, **each} for place, each in enumerate(entities_)],
    }  # fmt: skip
    return OfflineModel().answer(Ask(prompts.FACTS, fields)).facts


def day(instant):
    return instant[:10] if instant else None


def told(said, at=AT, speaker="Ann", previous=()):
    """Return the one fact that *said* states."""
    (fact,) = all_told(said, at, speaker, previous)
    return fact


def all_told(said, at=AT, speaker="Ann", previous=()):
    """Return the facts that *said* states at *at*, in the form of the prompt `judge`."""
    found, episode_ = entities(said, speaker, previous=previous), {**episode(said, speaker), "at": at}
    return [_told(fact, [name for name, _ in found], at) for fact in stated(episode_, typed(found), previous)]


def _told(fact, names, at):
    rule = predicates.canonical_predicate(fact.predicate)
    ends = {"subject": names[fact.subject], "objects": [names[each] for each in fact.objects]}
    known = {"predicate": rule.name if rule else fact.predicate, "one_at_a_time": bool(rule and rule.single_valued)}
    dates = {"said_at": at, "valid_at": instant(fact.valid_at), "invalid_at": instant(fact.invalid_at)}
    return {**ends, **known, **dates, "sentence": fact.sentence, "quote": fact.quote}


def instant(date):
    period = parse_period(date)
    return period.start.isoformat() if period else None


def verdict(new, known):
    """Return the verdict on *new* and *known*, or ``None`` where they are unrelated."""
    asked = {**new, "id": 3, "existing": [{**known, "id": 8}]}
    return next(iter(OfflineModel().answer(Ask(prompts.JUDGE, {"facts": [asked]})).verdicts), None)

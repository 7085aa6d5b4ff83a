"""The model that needs no model: answers every prompt by rules, the same each time."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel

from kg_memory.errors import ModelError
from kg_memory.llm.prompts.answers import MOST
from kg_memory.offline import sameness
from kg_memory.offline.judging import judge
from kg_memory.offline.reading import read_episode, read_fields
from kg_memory.offline.records import read_record
from kg_memory.offline.summaries import describe, summarise
from kg_memory.offline.writing import entity_names, record_facts, statement_facts
from kg_memory.runtime.effects import Ask
from kg_memory.text.dates import parse_instant
from kg_memory.text.tokenise import terms

Fields = Mapping[str, Any]


class OfflineModel:
    """Reads by rules in English and Chinese: a degraded mode, with no key, no network and no surprise.

    It names the speaker, people, places, organisations, things and topics, links each informative
    sentence to what it mentions, and knows the common ways to say that something changed.
    """

    name = "offline"

    def answer(self, ask: Ask) -> BaseModel:
        """Return the typed answer to *ask*.

        Errors: `ModelError` for a prompt that it does not know.
        """
        answers = [_answered(part.name, ask.fields) for part in ask.prompt.parts or (ask.prompt,)]
        answer: BaseModel = ask.prompt.answer.model_validate({name: each[name] for each in answers for name in each})
        return answer

    async def aanswer(self, ask: Ask) -> BaseModel:
        """Return the typed answer to *ask*, read in a thread: a long text takes a second of the processor."""
        return await asyncio.to_thread(self.answer, ask)


def _answered(prompt: str, fields: Fields) -> dict[str, Any]:
    read = _ANSWERS.get(prompt)
    if read is None:
        known = ", ".join(sorted(_ANSWERS))
        raise ModelError(
            f"the offline model cannot answer the prompt {prompt!r}: use one of {known}, or a language model"
        )
    return read(fields)


def _extract(fields: Fields) -> dict[str, Any]:
    episode, types = fields["episode"], [one["name"] for one in fields.get("entity_types") or ()]
    if episode["kind"] == "json":
        names = [thing for one in read_record(episode["content"]) for thing in (one.subject, one.object)]
        found = [(one.name, one.type) for one in names]
    else:
        reading = read_episode(episode, fields.get("previous") or ())
        found = entity_names(reading, episode.get("speaker"))
    distinct: dict[str, tuple[str, str]] = {}
    for name, kind in found:
        if name.strip():
            distinct.setdefault(sameness.key(name) or name, (name, kind))
    entities = [{"name": name[:512], "type": _type(kind, types)} for name, kind in distinct.values()]
    return {"entities": entities[:MOST]}


def _type(kind: str, types: Sequence[str]) -> str:
    """Return *kind* under the name that the user's own types have for it, else their first."""
    names = {name.casefold(): name for name in types}
    for synonym in (kind.casefold(), *_SYNONYMS.get(kind, ())):
        if synonym in names:
            return names[synonym]
    return types[0] if types else "Entity"


def _reflect(_fields: Fields) -> dict[str, Any]:
    """Find nothing: a second look by the same rules sees the same."""
    return {"missed": [], "unsupported": []}


def _facts(fields: Fields) -> dict[str, Any]:
    episode, entities = fields["episode"], fields["entities"]
    at = _local(episode.get("at"))
    if episode["kind"] == "json":
        return {"facts": record_facts(read_record(episode["content"]), entities)}
    reading = read_fields(episode, fields.get("previous") or (), entities)
    return {"facts": statement_facts(reading, episode, entities, at, fields.get("fact_types") or ())}


def _read(fields: Fields) -> dict[str, Any]:
    entities = _extract(fields)["entities"]
    given = [{**each, "id": place, "called": [each["name"]]} for place, each in enumerate(entities)]
    facts = [
        {
            **each,
            "subject": given[each["subject"]]["name"],
            "objects": [given[object_]["name"] for object_ in each["objects"]],
        }
        for each in _facts({**fields, "entities": given})["facts"]
    ]
    return {"entities": entities, "facts": facts}


def _local(told: Any) -> datetime:
    """Return when the episode was said, by the clock of where it was said; now, where that is not told."""
    moment = parse_instant(told)
    if moment is None:
        return datetime.now(UTC)
    try:
        return moment.astimezone(datetime.fromisoformat(told).tzinfo or UTC)
    except (ValueError, OverflowError):
        return moment


def _resolve(fields: Fields) -> dict[str, Any]:
    resolutions = []
    for entity in fields["entities"]:
        same = sameness.match(entity)
        name = sameness.fullest(entity["name"], same["name"]) if same else entity["name"]
        resolutions.append({"entity": entity["id"], "same_as": same["id"] if same else None, "name": name})
    return {"resolutions": resolutions}


def _judge(fields: Fields) -> dict[str, Any]:
    verdicts = [
        {"fact": fact["id"], "known": known["id"], **judge(fact, known)._asdict()}
        for fact in fields["facts"]
        for known in fact["existing"]
    ]
    related = [one for one in verdicts if one["verdict"] != "unrelated"]
    # What has no room is what changes least.
    return {"verdicts": sorted(related, key=lambda one: one["verdict"] == "complements")[:MOST]}


def _predicates(fields: Fields) -> dict[str, Any]:
    """Keep every predicate under its own name: what rules know of synonyms, the caller has asked of them before."""
    names = [one["name"] for one in fields["predicates"]]
    return {
        "predicates": [
            {"name": name, "canonical": name, "one_at_a_time": sameness.one_at_a_time(name)} for name in names[:MOST]
        ]
    }


def _summarise(fields: Fields) -> dict[str, Any]:
    return {
        "summaries": [
            {"entity": entity["id"], "summary": summarise(entity["name"], entity["facts"]) or entity.get("summary", "")}
            for entity in fields["entities"]
        ]
    }


def _community(fields: Fields) -> dict[str, Any]:
    described = [(each["community"], *describe(each["items"])) for each in fields["communities"]]
    return {
        "communities": [{"community": number, "name": name, "summary": summary} for number, name, summary in described]
    }


def _score(fields: Fields) -> dict[str, Any]:
    """Score each text by its words in common with the question, as the cosine of the two sets of words."""
    asked = set(terms(fields["question"]))
    scores = []
    for text in fields["texts"]:
        said = set(terms(text["text"]))
        common = len(asked & said) / math.sqrt(len(asked) * len(said)) if asked and said else 0.0
        scores.append({"text": text["id"], "relevance": 10 * common})
    return {"scores": scores}


_SYNONYMS = {
    "Person": ("people", "human", "user", "contact", "customer", "人物", "人"),
    "Organization": ("organisation", "company", "org", "account", "institution", "公司", "组织", "机构"),
    "Place": ("location", "city", "地点", "地方"),
    "Product": ("thing", "object", "tool", "item", "产品", "物品"),
    "Topic": ("concept", "subject", "interest", "主题", "话题"),
    "Event": ("activity", "meeting", "事件", "活动"),
}
_ANSWERS: dict[str, Callable[[Fields], dict[str, Any]]] = {
    "extract_message": _extract,
    "extract_text": _extract,
    "extract_json": _extract,
    "read": _read,
    "reflect": _reflect,
    "resolve": _resolve,
    "facts": _facts,
    "predicates": _predicates,
    "judge": _judge,
    "summarise": _summarise,
    "community": _community,
    "score": _score,
}

"""A model that reads exactly the facts, dates and verdicts of a scenario."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from tests.scripted import Scripted
from tests.time.scenarios import Said, Scenario, Told, Verdict

Fields = Mapping[str, Any]


def reader(scenario: Scenario) -> Scripted:
    """Return the scripted model that reads *scenario* in any order of arrival."""
    episodes = {(each.content, each.moment): each for each in scenario.said}

    def read(fields: Fields) -> Said:
        return episodes[fields["episode"]["content"], datetime.fromisoformat(fields["episode"]["at"])]

    return Scripted(
        extract_message=lambda fields: {"entities": [{"name": each, "type": "Entity"} for each in names(read(fields))]},
        facts=lambda fields: _facts(fields, read(fields)),
        judge=lambda fields: _judge(fields, scenario),
        resolve=_resolve,
        summarise=_summarise,
    )


def names(said: Said) -> list[str]:
    """Return the entities that *said* names, once each."""
    return list(dict.fromkeys(name for told in said.facts for name in (told.subject, told.object)))


def _facts(fields: Fields, said: Said) -> Any:
    ids = {each["name"]: each["id"] for each in fields["entities"]}
    return {"facts": [_fact(ids, said, told) for told in said.facts]}


def _fact(ids: Mapping[str, int], said: Said, told: Told) -> dict[str, Any]:
    since, until = said.dates(told)
    return {
        "subject": ids[told.subject], "predicate": told.predicate, "objects": [ids[told.object]],
        "sentence": told.sentence, "quote": told.quote, "valid_at": since, "invalid_at": until,
        "edge_type": "semantic", "confidence": told.confidence, "kind": told.kind,
        "rests_on": [place for place, each in enumerate(said.facts) if each.sentence in told.because],
    }  # fmt: skip


def _judge(fields: Fields, scenario: Scenario) -> Any:
    pairs = ((fact, old) for fact in fields["facts"] for old in fact["existing"])
    found = ((fact, old, scenario.verdict(fact["sentence"], old["sentence"])) for fact, old in pairs)
    return {
        "verdicts": [
            {
                "fact": fact["id"], "known": old["id"], "verdict": _kind(verdict, fact["sentence"]),
                "confidence": verdict.confidence, "holds": "new" if _later(fact, old) else "known",
                "reason": "by the script",
            }
            for fact, old, verdict in found
            if verdict
        ]
    }  # fmt: skip


def _kind(verdict: Verdict, new: str) -> str:
    """Return the kind of the verdict: "temporary" only if the *new* fact is the temporary one."""
    return "complements" if verdict.kind == "temporary" and new != verdict.one else verdict.kind


def _later(fact: Fields, old: Fields) -> bool:
    said_at = old["said_at"]
    return said_at is None or datetime.fromisoformat(fact["said_at"]) >= datetime.fromisoformat(said_at)


def _resolve(fields: Fields) -> Any:
    """Resolve each entity to the candidate with the same name, if there is one."""
    known = [
        next((one["id"] for one in each.get("candidates", ()) if one["name"] == each["name"]), None)
        for each in fields["entities"]
    ]
    resolved = zip(fields["entities"], known, strict=True)
    return {"resolutions": [{"entity": each["id"], "same_as": id_, "name": each["name"]} for each, id_ in resolved]}


def _summarise(fields: Fields) -> Any:
    return {"summaries": [{"entity": each["id"], "summary": each["name"]} for each in fields["entities"]]}

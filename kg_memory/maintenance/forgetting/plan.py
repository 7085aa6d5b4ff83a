"""All that one removal does, put together: what the query takes, and what comes of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kg_memory.ingestion.revise import read_history, to_statement
from kg_memory.maintenance.forgetting import cypher, remove
from kg_memory.maintenance.forgetting.believe import Believed, believe, without
from kg_memory.maintenance.forgetting.look import Ground, add_ends
from kg_memory.runtime.effects import read
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.temporal.policy import ConflictPolicy
from kg_memory.temporal.statements import Statement
from kg_memory.text.identity import decision_id


@dataclass(frozen=True, slots=True)
class Plan:
    """What the query takes, the facts that go, and what is believed once it is done."""

    params: dict[str, Any]
    leaving: list[str]
    believed: Believed


def planned(ground: Ground, settings: Settings, namespace: str, time: int) -> Flow[Plan]:
    """Return what forgetting the episodes of *ground* removes, and what it changes of the rest."""
    leaving = remove.going(ground, settings)
    params = yield from remove.facts_left(ground, leaving)
    params |= yield from remove.verdicts_left(ground, leaving)
    believed, beliefs = yield from _believed(ground, leaving, params, (settings, namespace, time))
    revision = believed.revision
    changed = {*leaving, *ground.own("state"), *(each["id"] for each in params["retold"]), *believed.sentences}
    params |= yield from remove.entities_left(ground, (yield from add_ends(ground, changed)))
    params |= yield from remove.others(ground, leaving, [*ground.leaving, *(each["id"] for each in params["entities"])])
    params |= {
        "based_on": [_only(each, "id", "revision", "mentioned") for each in ground.entities.values()],
        "threads": ground.threads,
        "episodes": [_only(each, "id", "status") for each in ground.episodes],
        "links": [] if ground.redacted else remove.links(ground.episodes), "places": ground.places,
        "unread": (yield from remove.unread(ground, leaving)),
        "note": None, "redacted": [{"id": id_, **row} for id_, row in ground.redacted.items()],
        "gone_episodes": sorted(ground.gone.ids - ground.redacted.keys()), "gone_facts": leaving,
        "gone_entities": sorted(ground.leaving),
        "gone_beliefs": sorted({*believed.removed, *beliefs}), "reopened": believed.reopened,
        **revision.to_parameters(),
    }  # fmt: skip
    return Plan(params, leaving, believed)


def _only(row: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: row[name] for name in names}


def _believed(
    ground: Ground, leaving: list[str], params: Mapping[str, Any], how: tuple[Settings, str, int]
) -> Flow[tuple[Believed, list[str]]]:
    """Return what is believed without what goes, and the ids of the beliefs in the facts *leaving*."""
    settings, namespace, time = how
    history = yield from read_history({*ground.own("state"), *leaving})
    rows = yield from read(cypher.BELIEFS, ids=sorted({*history.statements, *leaving}))
    again = {(each["episode"], each["fact"]) for each in params["unrefuted"]}
    causes = ground.gone.ids.union(params["gone_decisions"])
    without(history, ground.gone.ids, leaving, _statements(ground, again))
    cause = decision_id(namespace, " ".join(sorted(ground.gone.ids)), time)
    believed = believe(history, rows, causes, ConflictPolicy.from_settings(settings), (namespace, cause))
    return believed, [row["belief"]["id"] for row in rows if row["fact"] in leaving]


def _statements(ground: Ground, stated: Iterable[tuple[str, str]]) -> list[Statement]:
    return [
        to_statement(fact, each)
        for episode, fact in sorted(stated)
        for each in ground.facts[fact]["statements"]
        if each["id"] == episode
    ]

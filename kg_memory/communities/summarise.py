"""Step 3, summarise: what each community that changed is about, by map-reduce, and a name of key terms (Zep 2.3)."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from kg_memory.communities.state import CommunitiesState, Group, Told
from kg_memory.effects import ask, now, read
from kg_memory.errors import ModelError, ModelUnavailable
from kg_memory.falkor import community_cypher as cypher
from kg_memory.flow import Flow, every
from kg_memory.identity import clean, display
from kg_memory.offline.summaries import describe
from kg_memory.prompts import COMMUNITY
from kg_memory.settings import Settings
from kg_memory.telemetry.failures import reason

log = logging.getLogger("kg_memory.communities")

AT_ONCE = 4
"""How many communities are asked about at once, at most (C39); `Settings.parallel` may be less."""
MEMBERS = 100
"""How many members or parts tell what a community is about, those with most facts in it."""
FACTS = 200
"""How many facts among these do, the latest. So a community takes some ten questions at most, however large."""
SHARE = 8
"""A text takes at most this part of a question."""

Item = dict[str, str]
"""A member, a fact, or a part of a large community with its summary; see ``prompts/community.md``."""


class _Described(NamedTuple):
    """A name and a summary, how many questions they took, and whether the model gave them."""

    name: str
    summary: str
    asked: int
    given: bool


def summarise(state: CommunitiesState, settings: Settings) -> Flow[dict[str, Any]]:
    """Ask what the changed communities are about, several at once; those above others once these are told."""
    instant = yield from now()
    told: dict[str, Told] = {}
    asked = state["asked"]
    for level in sorted({group["level"] for group in state["groups"]}):
        due = [group for group in state["groups"] if group["level"] == level]
        found: list[_Described] = yield from every(
            (_described(group, instant, told, settings.max_community_bytes) for group in due), AT_ONCE
        )
        told |= {group["id"]: _told(group, each) for group, each in zip(due, found, strict=True)}
        asked += sum(each.asked for each in found)
    return {"told": [told[group["id"]] for group in state["groups"]], "asked": asked}


def _told(group: Group, described: _Described) -> Told:
    name = display(described.name) or group["id"]
    summary = " ".join(clean(described.summary).split())
    return Told(id=group["id"], name=name, summary=summary, fingerprint=group["fingerprint"] if described.given else "")


def _described(group: Group, instant: int, told: Mapping[str, Told], most: int) -> Flow[_Described]:
    """Describe a community by its first members and the latest facts among them, or by its parts."""
    items = yield from (_parts(group, told) if group["level"] else _members(group, instant))
    try:
        described = yield from _reduced(items, most)
    except ModelUnavailable:
        raise
    except ModelError as error:
        log.warning("no summary of a community, its latest facts stand in until the next refresh: %s", reason(error))
        return _Described(*describe(items), asked=1, given=False)
    rests_on_rules = any(told[id_]["fingerprint"] == "" for id_ in group["members"] if id_ in told)
    return described._replace(given=not rests_on_rules)


def _members(group: Group, instant: int) -> Flow[list[Item]]:
    ids = group["members"][:MEMBERS]
    members = yield from read(cypher.MEMBERS, ids=ids)
    facts = yield from read(cypher.FACTS_AMONG, ids=ids, now=instant, limit=FACTS)
    items = [{"entity": each["name"], "type": each["type"], "summary": each["summary"]} for each in members]
    return items + [{"fact": each["sentence"]} for each in facts]


def _parts(group: Group, told: Mapping[str, Told]) -> Flow[list[Item]]:
    """Return the parts of a higher community: as they were told just now, or before."""
    ids = group["members"][:MEMBERS]
    stored = yield from read(cypher.PARTS, ids=[id_ for id_ in ids if id_ not in told])
    known: dict[str, Mapping[str, Any]] = {**{row["id"]: row for row in stored}, **told}
    return [{"part": known[id_]["name"], "summary": known[id_]["summary"]} for id_ in ids if id_ in known]


def _reduced(items: Sequence[Item], most: int) -> Flow[_Described]:
    """Describe *items* by one question, or first the parts of which each fits into one, in rounds.

    The parts are asked about one after the other: other communities are side by side with this one.
    """
    asked = 0
    while True:
        told: list[Item] = []
        for part in packed(items, most):
            described = yield from _asked(part)
            asked += 1
            told.append({"part": described.name, "summary": described.summary})
        if len(told) == 1:
            return described._replace(asked=asked)
        items = told


def _asked(items: list[Item]) -> Flow[_Described]:
    """Ask the model; where its answer leaves something empty, the items themselves fill it."""
    answer = yield from ask(COMMUNITY, community=items)
    name, summary = describe(items)
    for each in answer.communities:
        name, summary = each.name.strip() or name, each.summary.strip() or summary
    return _Described(name, summary, asked=1, given=True)


def packed(items: Sequence[Item], most: int) -> list[list[Item]]:
    """Return *items* in parts of about *most* bytes, long texts cut; each part but the last has two at least."""
    parts: list[list[Item]] = [[]]
    size = 0
    for item in ({name: _cut(text, most // SHARE) for name, text in each.items()} for each in items):
        cost = _size(item)
        if len(parts[-1]) > 1 and size + cost > most:
            parts.append([])
            size = 0
        parts[-1].append(item)
        size += cost
    return parts


def _cut(text: str, most: int) -> str:
    encoded = clean(text).encode()
    return text if len(encoded) <= most else encoded[:most].decode(errors="ignore") + " …"


def _size(item: Mapping[str, str]) -> int:
    return len(json.dumps(item, ensure_ascii=False).encode(errors="replace")) + 2

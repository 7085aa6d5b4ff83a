"""Step 3, summarise: what the communities that changed are about, several in a question, by map-reduce (Zep 2.3)."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from kg_memory.communities.records import CommunitiesState, Group, Told
from kg_memory.errors import BudgetSpent, ModelError, ModelUnavailable
from kg_memory.falkor.queries import communities as cypher
from kg_memory.llm.prompts import COMMUNITY
from kg_memory.llm.prompts.answers import Description, Descriptions
from kg_memory.offline.summaries import describe
from kg_memory.runtime.effects import Ask, ask, in_step, now, read
from kg_memory.runtime.flow import Flow, T, every, through
from kg_memory.runtime.telemetry.failures import reason
from kg_memory.settings import Settings
from kg_memory.text.identity import clean, display

log = logging.getLogger("kg_memory.communities")

AT_ONCE = 4
"""How many questions are asked at once, at most (C39); `Settings.parallel` may be less."""
TOGETHER = 20
"""How many communities one question is about, at most: its answer is to stay short."""
PAGE = 64
"""How many communities are read at once."""
MEMBERS = 100
"""How many members or parts tell what a community is about, those with most facts in it."""
FACTS = 200
"""How many facts among these do, the latest. So a community takes some ten questions at most, however large."""
SHARE = 8
"""A text takes at most this part of a question."""

Item = dict[str, str]
"""A member, a fact, or a part of a large community with its summary; see ``prompts/community.md``."""
Parts = list[list[Item]]
"""What tells of a community, in parts of which each fits into a question; mostly one."""


class _Described(NamedTuple):
    """A name and a summary, and whether the model gave them."""

    name: str
    summary: str
    given: bool = True


def summarise(state: CommunitiesState, settings: Settings) -> Flow[dict[str, Any]]:
    """Ask what the changed communities are about, several at once; those above others once these are told."""
    instant = yield from now()
    most = settings.max_community_bytes
    told: dict[str, Told] = {}
    asked = state["asked"]
    for level in sorted({group["level"] for group in state["groups"]}):
        due = [group for group in state["groups"] if group["level"] == level]
        material = yield from _read(due, instant, told, most)
        questions = together(material, most)
        answers: list[tuple[list[_Described], int]] = yield from every(
            (_counted(_described([material[place] for place in question], most)) for question in questions), AT_ONCE
        )
        for question, (found, count) in zip(questions, answers, strict=True):
            asked += count
            told |= {due[place]["id"]: _told(due[place], one, told) for place, one in zip(question, found, strict=True)}
    return {"told": [told[group["id"]] for group in state["groups"]], "asked": asked}


def _told(group: Group, described: _Described, told: Mapping[str, Told]) -> Told:
    name = display(described.name) or group["id"]
    summary = " ".join(clean(described.summary).split())
    rests_on_rules = any(told[id_]["fingerprint"] == "" for id_ in group["members"] if id_ in told)
    sure = described.given and not rests_on_rules
    return Told(id=group["id"], name=name, summary=summary, fingerprint=group["fingerprint"] if sure else "")


def _read(due: Sequence[Group], instant: int, told: Mapping[str, Told], most: int) -> Flow[list[Parts]]:
    """Return what tells of each community: its first members and the latest facts among them, or its parts."""
    found: list[Parts] = []
    for start in range(0, len(due), PAGE):
        page = due[start : start + PAGE]
        items = yield from in_step(_parts(each, told) if each["level"] else _members(each, instant) for each in page)
        found += [packed(each, most) for each in items]
    return found


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


def together(material: Sequence[Parts], most: int) -> list[list[int]]:
    """Return of which communities, by their places, each question tells: as many in a row as *most* bytes hold.

    One that is larger than that is by itself.
    """
    questions: list[list[int]] = []
    filled: list[int] = []
    room = 0
    for place, parts in enumerate(material):
        size = sum(_size(item) for part in parts for item in part)
        if size > most:
            questions.append([place])
            continue
        if size > room or len(filled) in (0, TOGETHER):
            filled, room = [], most
            questions.append(filled)
        filled.append(place)
        room -= size
    return questions


def _counted(flow: Flow[T]) -> Flow[tuple[T, int]]:
    """Return what *flow* does, and how many questions it asked; one that no budget has room for is not asked."""
    asked = 0

    def performed(effect: Any) -> Flow[Any]:
        nonlocal asked
        asked += isinstance(effect, Ask)
        try:
            answer = yield effect
        except BudgetSpent:
            asked -= 1
            raise
        return answer

    result = yield from through(flow, performed)
    return result, asked


def _described(communities: Sequence[Parts], most: int) -> Flow[list[_Described]]:
    """Describe the communities of one question; those that its answer does not, or not clearly, one by one."""
    given = (yield from _side_by_side(communities)) if len(communities) > 1 else {}
    found = []
    for number, parts in enumerate(communities, 1):
        found.append(given[number] if number in given else (yield from _alone(parts, most)))
    return found


def _side_by_side(communities: Sequence[Parts]) -> Flow[dict[int, _Described]]:
    """Return what one question tells of *communities*, by their numbers; nothing where it fails."""
    whole = [items for [items] in communities]
    try:
        answer = yield from _asked(whole)
    except ModelUnavailable:
        raise
    except ModelError as error:
        log.warning("no summaries of %d communities, each is asked about by itself: %s", len(whole), reason(error))
        return {}
    named = Counter(each.community for each in answer.communities)
    return {
        each.community: _filled(each, whole[each.community - 1])
        for each in answer.communities
        if named[each.community] == 1 and 0 < each.community <= len(whole)
    }


def _alone(parts: Parts, most: int) -> Flow[_Described]:
    """Describe one community, or let its own items do where the model does not."""
    try:
        return (yield from _reduced(parts, most))
    except ModelUnavailable:
        raise
    except ModelError as error:
        log.warning("no summary of a community, its latest facts stand in until the next refresh: %s", reason(error))
        return _Described(*describe([item for part in parts for item in part]), given=False)


def _reduced(parts: Parts, most: int) -> Flow[_Described]:
    """Describe a community by one question, or first its parts, in rounds.

    The parts are asked about one after the other: other questions are side by side with these.
    """
    while True:
        told: list[Item] = []
        for part in parts:
            answer = yield from _asked([part])
            described = next((_filled(each, part) for each in answer.communities), _Described(*describe(part)))
            told.append({"part": described.name, "summary": described.summary})
        if len(told) == 1:
            return described
        parts = packed(told, most)


def _asked(communities: Sequence[list[Item]]) -> Flow[Descriptions]:
    given = [{"community": number, "items": items} for number, items in enumerate(communities, 1)]
    answer = yield from ask(COMMUNITY, communities=given)
    return answer


def _filled(given: Description, items: Sequence[Item]) -> _Described:
    """Return what the model gave; the *items* themselves fill what it left empty."""
    name, summary = describe(items)
    return _Described(given.name.strip() or name, given.summary.strip() or summary)


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

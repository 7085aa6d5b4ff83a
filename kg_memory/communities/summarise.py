"""Step 3, summarise: ask the model to describe the changed communities, several in a question (Zep 2.3).

A community that is too large for one question is described in parts, and then from the descriptions of its parts.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from kg_memory.communities.records import CommunitiesState, Group, Summary, Update
from kg_memory.errors import BudgetSpent, ModelError, ModelUnavailable
from kg_memory.falkor.queries import communities as cypher
from kg_memory.llm.prompts import COMMUNITY
from kg_memory.llm.prompts.answers import Description, Descriptions
from kg_memory.runtime.effects import Ask, ask, in_step, now, read
from kg_memory.runtime.flow import Flow, T, every, through
from kg_memory.runtime.telemetry import describe_error
from kg_memory.settings import Settings
from kg_memory.text.dated import dated
from kg_memory.text.identity import display_name, replace_unstorable
from kg_memory.text.sentences import describe

log = logging.getLogger("kg_memory.communities")

AT_ONCE = 4
"""The most questions side by side (C39); `Settings.parallel` may be less."""
TOGETHER = 20
"""The most communities of one question, so that its answer stays short."""
PAGE = 64
"""Communities that are read at once."""
MEMBERS = 100
"""Members or parts that describe a community: those with most facts in it."""
FACTS = 200
"""Facts among these that do: the latest. So the largest community takes some ten questions."""
SHARE = 8
"""A text takes at most one in so many bytes of a question."""

Item = dict[str, str]
"""A member, a fact, or a part of a large community with its summary; see ``prompts/community.md``."""
Parts = list[list[Item]]
"""The items of a community, in parts that fit into a question; mostly one part."""


class _Description(NamedTuple):
    """A name and a summary, and whether the model gave them."""

    name: str
    summary: str
    by_model: bool = True


def summarise(state: CommunitiesState, settings: Settings) -> Flow[Update]:
    """Describe the changed communities, several at once, level by level: the higher ones from those below."""
    instant = yield from now()
    most = settings.max_community_bytes
    summaries: dict[str, Summary] = {}
    questions = state["questions"]
    for level in sorted({group["level"] for group in state["groups"]}):
        groups = [group for group in state["groups"] if group["level"] == level]
        material = yield from _read_material(groups, instant, summaries, most)
        batches = batch(material, most)
        flows = (_count_questions(_describe([material[place] for place in places], most)) for places in batches)
        answers: list[tuple[list[_Description], int]] = yield from every(flows, AT_ONCE)
        for places, (descriptions, count) in zip(batches, answers, strict=True):
            questions += count
            for place, description in zip(places, descriptions, strict=True):
                summary = _summary(groups[place], description, summaries)
                summaries[summary["id"]] = summary
    return {"summaries": [summaries[group["id"]] for group in state["groups"]], "questions": questions}


def _summary(group: Group, description: _Description, summaries: Mapping[str, Summary]) -> Summary:
    """Return the summary to store; without a fingerprint where rules made it, or one that it rests on."""
    name = display_name(description.name) or group["id"]
    text = " ".join(replace_unstorable(description.summary).split())
    rests_on_rules = any(summaries[id_]["fingerprint"] == "" for id_ in group["members"] if id_ in summaries)
    by_model = description.by_model and not rests_on_rules
    return Summary(id=group["id"], name=name, summary=text, fingerprint=group["fingerprint"] if by_model else "")


def _read_material(
    groups: Sequence[Group], instant: int, summaries: Mapping[str, Summary], most: int
) -> Flow[list[Parts]]:
    """Return the items of each community: its first members and the latest facts among them, or its parts."""
    material: list[Parts] = []
    for start in range(0, len(groups), PAGE):
        page = groups[start : start + PAGE]
        flows = (_read_parts(group, summaries) if group["level"] else _read_members(group, instant) for group in page)
        material += [pack(items, most) for items in (yield from in_step(flows))]
    return material


def _read_members(group: Group, instant: int) -> Flow[list[Item]]:
    ids = group["members"][:MEMBERS]
    members = yield from read(cypher.MEMBERS, ids=ids)
    facts = yield from read(cypher.FACTS_AMONG, ids=ids, now=instant, limit=FACTS)
    items = [{"entity": row["name"], "type": row["type"], "summary": row["summary"]} for row in members]
    return items + [{"fact": dated(row["fact"])} for row in facts]


def _read_parts(group: Group, summaries: Mapping[str, Summary]) -> Flow[list[Item]]:
    """Return the parts of a higher community with their new summaries, or the stored ones."""
    ids = group["members"][:MEMBERS]
    stored = yield from read(cypher.PARTS, ids=[id_ for id_ in ids if id_ not in summaries])
    texts = {row["id"]: (row["name"], row["summary"]) for row in stored}
    texts.update((id_, (summary["name"], summary["summary"])) for id_, summary in summaries.items())
    return [{"part": texts[id_][0], "summary": texts[id_][1]} for id_ in ids if id_ in texts]


def batch(material: Sequence[Parts], most: int) -> list[list[int]]:
    """Return the places of the communities of each question: as many in a row as *most* bytes hold.

    A larger community has a question of its own.
    """
    batches: list[list[int]] = []
    current: list[int] = []
    room = 0
    for place, parts in enumerate(material):
        size = sum(_size(item) for part in parts for item in part)
        if size > most:
            batches.append([place])
            continue
        if size > room or len(current) in (0, TOGETHER):
            current, room = [], most
            batches.append(current)
        current.append(place)
        room -= size
    return batches


def _count_questions(flow: Flow[T]) -> Flow[tuple[T, int]]:
    """Return the result of *flow*, and how many questions it asked; one that no budget has room for does not count."""
    questions = 0

    def perform(effect: Any) -> Flow[Any]:
        nonlocal questions
        questions += isinstance(effect, Ask)
        try:
            answer = yield effect
        except BudgetSpent:
            questions -= 1
            raise
        return answer

    result = yield from through(flow, perform)
    return result, questions


def _describe(communities: Sequence[Parts], most: int) -> Flow[list[_Description]]:
    """Describe the communities of one question; those that its answer leaves out or repeats, one by one."""
    answers = (yield from _describe_together(communities)) if len(communities) > 1 else {}
    descriptions = []
    for number, parts in enumerate(communities, 1):
        descriptions.append(answers[number] if number in answers else (yield from _describe_alone(parts, most)))
    return descriptions


def _describe_together(communities: Sequence[Parts]) -> Flow[dict[int, _Description]]:
    """Return the descriptions that one question gives, by the numbers of the communities; none where it fails."""
    whole = [items for [items] in communities]
    try:
        answer = yield from _ask(whole)
    except ModelUnavailable:
        raise
    except ModelError as error:
        log.warning(
            "no summaries of %d communities, each is asked about by itself: %s", len(whole), describe_error(error)
        )
        return {}
    counts = Counter(answered.community for answered in answer.communities)
    return {
        answered.community: _fill(answered, whole[answered.community - 1])
        for answered in answer.communities
        if counts[answered.community] == 1 and 0 < answered.community <= len(whole)
    }


def _describe_alone(parts: Parts, most: int) -> Flow[_Description]:
    """Describe one community, by its own items where the model fails."""
    try:
        return (yield from _reduce(parts, most))
    except ModelUnavailable:
        raise
    except ModelError as error:
        log.warning(
            "no summary of a community, its latest facts stand in until the next refresh: %s", describe_error(error)
        )
        return _Description(*describe(list(chain(*parts))), by_model=False)


def _reduce(parts: Parts, most: int) -> Flow[_Description]:
    """Describe a community by one question, or first its parts, in rounds.

    The parts are asked about one after the other: other questions already run side by side with these.
    """
    while True:
        descriptions: list[Item] = []
        for part in parts:
            answer = yield from _ask([part])
            filled = [_fill(answered, part) for answered in answer.communities[:1]]
            [description] = filled or [_Description(*describe(part))]
            descriptions.append({"part": description.name, "summary": description.summary})
        if len(descriptions) == 1:
            return description
        parts = pack(descriptions, most)


def _ask(communities: Sequence[list[Item]]) -> Flow[Descriptions]:
    numbered = [{"community": number, "items": items} for number, items in enumerate(communities, 1)]
    answer = yield from ask(COMMUNITY, communities=numbered)
    return answer


def _fill(answered: Description, items: Sequence[Item]) -> _Description:
    """Return what the model gave; the *items* themselves fill what it left empty."""
    name, summary = describe(items)
    return _Description(answered.name.strip() or name, answered.summary.strip() or summary)


def pack(items: Sequence[Item], most: int) -> list[list[Item]]:
    """Return *items* in parts of about *most* bytes, long texts cut; each part but the last has at least two."""
    parts: list[list[Item]] = [[]]
    size = 0
    for whole in items:
        item = {name: _cut(text, most // SHARE) for name, text in whole.items()}
        cost = _size(item)
        if len(parts[-1]) > 1 and size + cost > most:
            parts.append([])
            size = 0
        parts[-1].append(item)
        size += cost
    return parts


def _cut(text: str, most: int) -> str:
    encoded = replace_unstorable(text).encode()
    return text if len(encoded) <= most else encoded[:most].decode(errors="ignore") + " …"


def _size(item: Mapping[str, str]) -> int:
    return len(json.dumps(item, ensure_ascii=False).encode(errors="replace")) + 2

"""Step 3, summarise: ask the model to name and describe the changed communities, several in one question.

A community that is too large for one question is described in parts, and then from the descriptions of its parts.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from kg_memory.communities.records import CommunitiesState, EntityCluster, Summary, Update
from kg_memory.errors import BudgetSpent, ModelError, ModelUnavailable
from kg_memory.falkor.queries import communities as cypher
from kg_memory.llm.prompts import COMMUNITY
from kg_memory.llm.prompts.answers import Description, Descriptions
from kg_memory.runtime.effects import Ask, ask_model, fetch, in_step, now
from kg_memory.runtime.flow import Flow, T, every, through
from kg_memory.runtime.telemetry import describe_error
from kg_memory.settings import Settings
from kg_memory.text.dated import dated
from kg_memory.text.identity import display_name, replace_unstorable
from kg_memory.text.sentences import describe_members

log = logging.getLogger("kg_memory.communities")

AT_ONCE = 4
"""The most questions to the model at once; `Settings.parallel` may lower it."""
TOGETHER = 20
"""The most communities in one question, so that its answer stays short."""
PAGE = 64
"""The number of communities that are read at once."""
MEMBERS = 100
"""The most members or parts that describe a community: those with most facts in it."""
FACTS = 200
"""The most facts that describe a community: the latest. So the largest community takes about ten questions."""
SHARE = 8
"""A text takes at most this fraction of the bytes of a question: one in `SHARE`."""

Item = dict[str, str]
"""A member, a fact, or a part with its summary, as the prompt ``prompts/community.md`` gets it."""
Parts = list[list[Item]]
"""The items of a community, in parts that each fit into a question; mostly one part."""


class _Description(NamedTuple):
    """The name and summary of a community; `by_model` is False if fixed rules, not the model, made them."""

    name: str
    summary: str
    by_model: bool = True


def summarise(state: CommunitiesState, settings: Settings) -> Flow[Update]:
    """Step 3 of a refresh of communities: return the model's summaries of the changed communities in *state*."""
    instant = yield from now()
    most = settings.max_community_bytes
    summaries: dict[str, Summary] = {}
    questions = state["questions"]
    for level in sorted({group["level"] for group in state["groups"]}):  # higher ones need the summaries of lower ones
        groups = [group for group in state["groups"] if group["level"] == level]
        material = yield from _read_texts(groups, instant, summaries, most)
        batches = batch(material, most)
        flows = (_count_questions(_describe([material[place] for place in places], most)) for places in batches)
        answers: list[tuple[list[_Description], int]] = yield from every(flows, AT_ONCE)
        for places, (descriptions, count) in zip(batches, answers, strict=True):
            questions += count
            for place, description in zip(places, descriptions, strict=True):
                summary = _to_summary(groups[place], description, summaries)
                summaries[summary["id"]] = summary
    return {"summaries": [summaries[group["id"]] for group in state["groups"]], "questions": questions}


def _to_summary(group: EntityCluster, description: _Description, summaries: Mapping[str, Summary]) -> Summary:
    """Return the record to store for the community *group*: its id, name, summary and fingerprint.

    The fingerprint is "" if rules wrote a text that it rests on: then the next refresh asks the model again.
    """
    name = display_name(description.name) or group["id"]
    text = " ".join(replace_unstorable(description.summary).split())
    rests_on_rules = any(summaries[id_]["fingerprint"] == "" for id_ in group["members"] if id_ in summaries)
    by_model = description.by_model and not rests_on_rules
    return Summary(id=group["id"], name=name, summary=text, fingerprint=group["fingerprint"] if by_model else "")


def _read_texts(
    groups: Sequence[EntityCluster], instant: int, summaries: Mapping[str, Summary], most: int
) -> Flow[list[Parts]]:
    """Return the texts to summarise for each of *groups* (communities), split into parts that fit into a prompt."""
    material: list[Parts] = []
    for start in range(0, len(groups), PAGE):
        page = groups[start : start + PAGE]
        flows = (_part_texts(group, summaries) if group["level"] else _member_texts(group, instant) for group in page)
        material += [pack_items(items, most) for items in (yield from in_step(flows))]
    return material


def _member_texts(group: EntityCluster, instant: int) -> Flow[list[Item]]:
    ids = group["members"][:MEMBERS]
    members = yield from fetch(cypher.MEMBERS, ids=ids)
    facts = yield from fetch(cypher.FACTS_AMONG, ids=ids, now=instant, limit=FACTS)
    items = [{"entity": row["name"], "type": row["type"], "summary": row["summary"]} for row in members]
    return items + [{"fact": dated(row["fact"])} for row in facts]


def _part_texts(group: EntityCluster, summaries: Mapping[str, Summary]) -> Flow[list[Item]]:
    ids = group["members"][:MEMBERS]
    stored = yield from fetch(cypher.PARTS, ids=[id_ for id_ in ids if id_ not in summaries])
    texts = {row["id"]: (row["name"], row["summary"]) for row in stored}
    texts.update((id_, (summary["name"], summary["summary"])) for id_, summary in summaries.items())
    return [{"part": texts[id_][0], "summary": texts[id_][1]} for id_ in ids if id_ in texts]


def batch(material: Sequence[Parts], most: int) -> list[list[int]]:
    """Group communities into prompts: ``[[0, 1, 2], [3], [4, 5]]``, lists of indexes in *material*."""
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
    """Run *flow*, and return its result and the number of its model calls.

    Calls that were refused because the budget is spent do not count.
    """
    questions = 0

    def perform(effect: Any) -> Flow[Any]:
        """Run *effect* (a request yielded by a flow) and return its result; count it if it is a model call."""
        nonlocal questions
        questions += isinstance(effect, Ask)
        try:
            return (yield effect)
        except BudgetSpent:
            questions -= 1
            raise

    return (yield from through(flow, perform)), questions


def _describe(communities: Sequence[Parts], most: int) -> Flow[list[_Description]]:
    """Return a name and a summary for each of *communities*, if possible from a single model call."""
    answers = (yield from _describe_together(communities)) if len(communities) > 1 else {}
    descriptions = []
    for number, parts in enumerate(communities, 1):
        descriptions.append(answers[number] if number in answers else (yield from _describe_one(parts, most)))
    return descriptions


def _describe_together(communities: Sequence[Parts]) -> Flow[dict[int, _Description]]:
    """Ask the model about all *communities* at once; return ``{1: description, 2: ...}``, numbered from 1.

    Communities that the answer omits or repeats are missing; ``{}`` if it is invalid. Errors: `ModelUnavailable`.
    """
    whole = [items for [items] in communities]
    try:
        answer = yield from _ask(whole)
    except ModelUnavailable:
        raise
    except ModelError as error:
        log.warning("no summaries of %d communities, asking about each alone: %s", len(whole), describe_error(error))
        return {}
    counts = Counter(answered.community for answered in answer.communities)
    return {
        answered.community: _complete(answered, whole[answered.community - 1])
        for answered in answer.communities
        if counts[answered.community] == 1 and 0 < answered.community <= len(whole)
    }


def _describe_one(parts: Parts, most: int) -> Flow[_Description]:
    """Return the name and summary of one community from the model or, if it gives no valid answer, from rules.

    Errors: `ModelUnavailable`.
    """
    try:
        return (yield from _reduce(parts, most))
    except ModelUnavailable:
        raise
    except ModelError as error:
        log.warning(
            "no summary of a community, using its latest facts till the next refresh: %s", describe_error(error)
        )
        return _Description(*describe_members(list(chain(*parts))), by_model=False)


def _reduce(parts: Parts, most: int) -> Flow[_Description]:
    """Return the model's description of one community, whose texts are read in *parts*, a call for each."""
    while True:
        descriptions: list[Item] = []
        for part in parts:
            filled = [_complete(answered, part) for answered in (yield from _ask([part])).communities[:1]]
            [description] = filled or [_Description(*describe_members(part))]
            descriptions.append({"part": description.name, "summary": description.summary})
        if len(descriptions) == 1:
            return description
        parts = pack_items(descriptions, most)


def _ask(communities: Sequence[list[Item]]) -> Flow[Descriptions]:
    numbered = [{"community": number, "items": items} for number, items in enumerate(communities, 1)]
    return (yield from ask_model(COMMUNITY, communities=numbered))


def _complete(answered: Description, items: Sequence[Item]) -> _Description:
    name, summary = describe_members(items)
    return _Description(answered.name.strip() or name, answered.summary.strip() or summary)


def pack_items(items: Sequence[Item], most: int) -> list[list[Item]]:
    """Split *items* into lists of two or more (the last may have one) and at most about *most* bytes.

    A text longer than ``most // SHARE`` bytes is cut.
    """
    parts: list[list[Item]] = [[]]
    size = 0
    for whole in items:
        item = {name: _cut_to_bytes(text, most // SHARE) for name, text in whole.items()}
        cost = _size(item)
        if len(parts[-1]) > 1 and size + cost > most:
            parts.append([])
            size = 0
        parts[-1].append(item)
        size += cost
    return parts


def _cut_to_bytes(text: str, most: int) -> str:
    encoded = replace_unstorable(text).encode()
    return text if len(encoded) <= most else encoded[:most].decode(errors="ignore") + " …"


def _size(item: Mapping[str, str]) -> int:
    return len(json.dumps(item, ensure_ascii=False).encode(errors="replace")) + 2

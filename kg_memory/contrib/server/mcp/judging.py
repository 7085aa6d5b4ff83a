"""The tools of the profile full: judge a statement before it is remembered, and compare facts or times."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pydantic import Field

from kg_memory.adapters.rendering import DATA, MOST, render_fact
from kg_memory.contrib.server.mcp.tool import Answer, Arguments, Tool, ToolCall
from kg_memory.contrib.server.mcp.views import dump, fact_id, quote, view_fact, view_review
from kg_memory.errors import InputError, NotFound, renaming
from kg_memory.models.graph import Fact
from kg_memory.models.operations import Preview

ID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
COMPARED = ("subject", "predicate", "objects", "sentence", "valid_at", "invalid_at", "confidence", "trust", "mark")
MOST_FACTS = 1000
"""Facts of each time that are compared."""
CHANGES = (("facts", "New"), ("known", "Known already"), ("ended", "Would end"), ("pending", "Would wait for review"))


class Judge(Arguments):
    """Tell what a statement would change. Stores nothing."""

    content: str
    fact: str | None = Field(None, description="Only against this: fact:...")


async def judge(call: ToolCall, asked: Judge) -> Answer:
    """Preview a statement."""
    preview = await call.memory.episodes.apreview(asked.content, speaker=call.caller.user, namespace=call.namespace)
    if asked.fact:
        existing = await _get(call, asked.fact)
        verdicts = tuple(verdict for verdict in preview.verdicts if verdict.existing == existing.id)
        preview = preview.model_copy(update={"verdicts": verdicts})
    return Answer("\n".join([DATA, *_describe(preview)]), dump(preview))


def _describe(preview: Preview) -> list[str]:
    if preview.skipped:
        return [f"It would be saved and not read: {quote(preview.skipped)}."]
    lines: list[str] = []
    for field, label in CHANGES:
        lines += [f"{label}: {quote(sentence)}" for sentence in getattr(preview, field)]
    lines = lines or ["No fact is in it; it would be saved word for word."]
    for verdict in preview.verdicts:
        pair = f'"{quote(verdict.fact)}" and fact:{verdict.existing} "{quote(verdict.existing_sentence)}"'
        lines.append(f"{pair}: {verdict.verdict} ({verdict.confidence:.2f}). {quote(verdict.reason)}")
    usage = preview.usage
    return [*lines, f"Remembering it takes about {usage.calls} model calls and {usage.input_tokens} input tokens."]


class Compare(Arguments):
    """Compare two facts (fact:...), or what was believed at two times."""

    first: str
    second: str
    name: str | None = None


async def compare(call: ToolCall, asked: Compare) -> Answer:
    """Compare two facts, or two times."""
    if ID.fullmatch(fact_id(asked.first)) and ID.fullmatch(fact_id(asked.second)):
        return await _compare_facts(call, asked)
    before, after = [await _believed_at(call, asked, which) for which in ("first", "second")]
    gone, new = _without(before, after), _without(after, before)
    lines = [f"- {_line(fact)}" for fact in gone[:MOST]]
    lines += [f"+ {_line(fact)}" for fact in new[:MOST]]
    text = "\n".join([DATA, "- believed at the first time only, + at the second only.", *(lines or ["No difference."])])
    return Answer(text, {"first": list(map(view_fact, gone[:MOST])), "second": list(map(view_fact, new[:MOST]))})


async def _compare_facts(call: ToolCall, asked: Compare) -> Answer:
    one, other = await _get(call, asked.first), await _get(call, asked.second)
    differing: dict[str, list[str]] = {}
    for name in COMPARED:
        values = [str(getattr(one, name)), str(getattr(other, name))]
        if values[0] != values[1]:
            differing[name] = values
    ids = {one.id, other.id}
    verdicts = [
        view_review(review)
        for review in await call.memory.reviews.averdicts(one.id, namespace=call.namespace, limit=MOST_FACTS)
        if {review.pending.id, review.existing.id} == ids
    ]
    lines = [DATA, f"1. {_line(one)}", f"2. {_line(other)}"]
    lines += [f"{name}: {quote(values[0])} / {quote(values[1])}" for name, values in differing.items()]
    lines += [f"Verdict: {one['kind']} ({one['confidence']:.2f}). {quote(one.get('reason', ''))}" for one in verdicts]
    if not verdicts:
        lines.append("No verdict: nothing was read by which one of them ends or contradicts the other.")
    return Answer("\n".join(lines), {"differences": differing, "verdicts": verdicts})


async def _believed_at(call: ToolCall, asked: Compare, which: str) -> list[Fact]:
    facts = call.memory.facts
    how: dict[str, Any] = {"believed_at": getattr(asked, which), "namespace": call.namespace, "limit": MOST_FACTS}
    with renaming(believed_at=which):
        found = await (facts.aabout(asked.name, **how) if asked.name else facts.alist(**how))
    if len(found) == MOST_FACTS:
        raise InputError(f"more than {MOST_FACTS} facts were believed then; give a name to compare those about it")
    return found


def _without(facts: Sequence[Fact], others: Sequence[Fact]) -> list[Fact]:
    """Return those of *facts* of which no other has the same id and dates."""
    known = {(fact.id, fact.valid_at, fact.invalid_at) for fact in others}
    return [fact for fact in facts if (fact.id, fact.valid_at, fact.invalid_at) not in known]


async def _get(call: ToolCall, id_: str) -> Fact:
    fact = await call.memory.facts.aget(fact_id(id_), namespace=call.namespace)
    if fact is None:
        raise NotFound(f"there is no fact {id_[:100]!r}; recall and history show the ids")
    return fact


def _line(fact: Fact) -> str:
    return render_fact(fact, set()).removeprefix("- ")


TOOLS = (
    Tool("judge", Judge, judge, {"facts": "array", "verdicts": "array"}, profiles=("full",)),
    Tool("compare", Compare, compare, {"verdicts": "array"}, profiles=("full",)),
)

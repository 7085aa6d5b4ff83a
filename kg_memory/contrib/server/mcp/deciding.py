"""The tools that only the user can have do something: review and forget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, Field

from kg_memory.adapters.rendering import MOST, parse_id, render_receipt
from kg_memory.contrib.server.mcp.asking import ask, can_ask
from kg_memory.contrib.server.mcp.tool import Answer, Arguments, Tool, ToolCall
from kg_memory.contrib.server.mcp.views import dump, quote, view_review
from kg_memory.errors import InputError
from kg_memory.models.graph import WITHHELD, Fact, IdentityDecision, Review
from kg_memory.models.operations import PLANNED, ForgetReceipt
from kg_memory.text.dated import period_in_words

Waiting = Review | IdentityDecision
SHOWN = 10
"""The texts that a question about forgetting shows."""


class ReviewArguments(Arguments):
    """Have the user decide a doubtful fact, or whether two names mean one."""

    id: str | None = None


class ReviewForm(BaseModel):
    """The user's decision."""

    choice: Literal["accept", "reject", "later"] = Field(description="Your decision.")
    reason: str = Field("", description="Why, if you like.")


async def review(call: ToolCall, asked: ReviewArguments) -> Answer:
    """Ask the user about what waits, one thing a call."""
    reviews = await call.memory.reviews.alist(namespace=call.namespace, limit=MOST)
    doubts = await call.memory.reviews.aidentities(namespace=call.namespace, limit=MOST)
    waiting: list[Waiting] = [*reviews, *doubts]
    if not waiting:
        return Answer("Nothing waits for review.", {"waiting": []})
    chosen = next((one for one in waiting if asked.id in {None, one.id}), None)
    if chosen is None:
        raise InputError(f"nothing that waits has the id {asked.id!r}; leave it out for the oldest")
    if not can_ask(call):
        text = "This client cannot ask its user. The user can decide with: kg-memory review. These wait:"
        return Answer("\n".join([text, *(f"- {one.id}: {_question(one)}" for one in waiting)]), _waiting(waiting))
    form = await ask(call, _question(chosen), ReviewForm)
    if form is None or form.choice == "later":
        return Answer("The user did not decide; it still waits.", _waiting(waiting))
    by: dict[str, Any] = {"by": call.caller.user, "reason": form.reason, "namespace": call.namespace}
    if isinstance(chosen, Review):
        await call.memory.reviews.adecide(chosen.id, form.choice, seen=chosen.ruling, **by)
    else:
        await call.memory.reviews.adecide_identity(chosen.id, form.choice, **by)
    rest = [one for one in waiting if one.id != chosen.id]
    return Answer(f"The user chose {form.choice}. {len(rest)} more wait.", {"decision": form.choice, **_waiting(rest)})


def _waiting(waiting: Sequence[Waiting]) -> dict[str, Any]:
    return {"waiting": [view_review(one) if isinstance(one, Review) else dump(one) for one in waiting]}


def _question(one: Waiting) -> str:
    if isinstance(one, Review):
        relation = "replaces" if one.kind == "supersedes" else "contradicts"
        return (
            f"Does {_fact(one.pending)}, which was said later, hold? It {relation} {_fact(one.existing)}. "
            f"{quote(one.reason)} Accept: yes. Reject: the later one is not believed."
        )
    names = [f'"{quote(entity.name)}" ({quote(entity.type)})' for entity in (one.entity, one.second) if entity]
    latest = "; ".join(quote(sentence) for own in one.latest for sentence in own)
    return f"Are {' and '.join(names)} the same? {latest} Accept: they are merged. Reject: they are kept apart."


def _fact(fact: Fact) -> str:
    return f'"{quote(fact.sentence)}" ({period_in_words(fact) or "no dates"})'


class ForgetArguments(Arguments):
    """Forget a message, or a fact and all that tells it, for good, once the user confirms. For a change, remember the
    new statement.
    """  # noqa: D205 - one paragraph for the model

    id: str = Field(description="fact:... or episode:...")
    reason: str = ""


class ForgetForm(BaseModel):
    """The user's confirmation."""

    forget: bool = Field(description="Forget it for good.")


async def forget(call: ToolCall, asked: ForgetArguments) -> Answer:
    """Show the user what would go, and forget it where the user confirms exactly that."""
    kind, own = parse_id(asked.id)
    how: dict[str, Any] = {kind: own, "by": call.caller.key.name, "reason": asked.reason, "namespace": call.namespace}
    plan = await call.memory.privacy.aforget(**how, dry_run=True)
    question = await _describe_plan(call, plan)
    if not can_ask(call):
        text = (
            f"Nothing is forgotten: this client cannot ask its user, who can do it with: kg-memory forget. {question}"
        )
        return Answer(text, _receipt(plan))
    await call.report(1, 2, "planned")
    form = await ask(call, question, ForgetForm)
    if form is None or not form.forget:
        return Answer("The user did not confirm: nothing is forgotten.", _receipt(plan))
    if _parts(await call.memory.privacy.aforget(**how, dry_run=True)) != _parts(plan):
        raise InputError("what would be forgotten changed meanwhile, so nothing is forgotten; call forget again")
    receipt = await call.memory.privacy.aforget(**how)
    call.wake(call.namespace)  # some episodes may be to be read again
    await call.report(2, 2, "forgotten")
    return Answer(render_receipt(asked.id, receipt), _receipt(receipt))


def _receipt(receipt: ForgetReceipt) -> dict[str, Any]:
    return {"forgotten": not receipt.dry_run, **dump(receipt, {*PLANNED, "at", "receipt", "head", "advice"})}


def _parts(plan: ForgetReceipt) -> list[object]:
    return [sorted(getattr(plan, name)) for name in PLANNED]


async def _describe_plan(call: ToolCall, plan: ForgetReceipt) -> str:
    counts = f"{len(plan.episodes)} messages, {len(plan.facts)} facts, {len(plan.entities)} people and things"
    lines = [f"Forget this for good? It cannot be undone. In all: {counts}."]
    for id_, text in list(plan.texts.items())[:SHOWN] if call.caller.key.has("read") else ():
        episode = await call.memory.episodes.aget(id_, namespace=call.namespace) if id_ in plan.episodes else None
        lines.append(f"- {WITHHELD if episode is not None and episode.withheld else quote(text)}")
    return "\n".join(lines)


TOOLS = (
    Tool("review", ReviewArguments, review, {"waiting": "array"}, "review"),
    Tool(
        "forget",
        ForgetArguments,
        forget,
        {"forgotten": "boolean", "receipt": "string"},
        "forget",
        {"destructive_hint": True},
    ),
)

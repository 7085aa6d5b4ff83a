"""MCP tools that change the memory: ``remember`` saves a message; ``review`` and ``forget`` need the user's consent."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence
from typing import Any, Literal, TypeVar

from mcp.server.elicitation import render_elicitation_schema
from mcp_types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, Field, ValidationError

from kg_memory.adapters.rendering import MOST, parse_id, render_added, render_receipt
from kg_memory.contrib.server.mcp.tool import Tool, ToolAnswer, ToolArguments, ToolCall, dump, quote, view_review
from kg_memory.contrib.server.reader import OUTAGES
from kg_memory.errors import InputError
from kg_memory.models.graph import WITHHELD, Fact, IdentityDecision, Review
from kg_memory.models.operations import PLANNED, AddResult, ForgetReceipt
from kg_memory.temporal.interval import instant
from kg_memory.text.dated import period_in_words

SOURCE = "mcp"
RESULT = {"episode", "status", "facts", "ended", "pending", "error", "skipped"}


class RememberArguments(ToolArguments):
    """Store something lasting that the user says: a preference, a fact, a plan, a change. Contradicted facts are ended,
    not deleted. Not for guesses, nor for what this memory told you.
    """  # noqa: D205 - one paragraph for the model

    content: str = Field(description="In the user's words, with names and dates.")
    at: str | None = Field(None, description="When it was said: ISO 8601; now if left out.")


async def remember(call: ToolCall, asked: RememberArguments) -> ToolAnswer:
    """Save what the user said as an episode, extract its facts, and return them with the facts that they ended.

    If the model or the database is unavailable, or the plan is ``economy``, the episode is only saved; its facts are
    extracted later.
    """
    at = asked.at or instant(call.memory.driver.today())  # the same time in both steps, so the same episode
    episode = {"content": asked.content, "speaker": call.caller.user, "at": at, "source": SOURCE}
    (saved,) = await call.memory.episodes.asave([episode], namespace=call.namespace)
    await call.report(1, 2, "saved")
    if call.memory.settings.plan == "economy":
        return _answer_later(call, saved, "is read together with what follows")
    try:
        (read,) = await call.memory.aadd_many([episode], namespace=call.namespace)
    except OUTAGES as error:
        return _answer_later(call, saved, f"is read later: {error}")
    except asyncio.CancelledError:
        call.wake(call.namespace)
        raise
    await call.report(2, 2, "read")
    result = read.model_copy(update={"new": saved.new})
    return ToolAnswer(render_added(result), dump(result, RESULT))


def _answer_later(call: ToolCall, saved: AddResult, when: str) -> ToolAnswer:
    call.wake(call.namespace)
    return ToolAnswer(f"Saved word for word as episode:{saved.episode}; it {when}.", dump(saved, RESULT))


Waiting = Review | IdentityDecision
SHOWN = 10
"""The most texts that the question about a deletion quotes."""


class ReviewArguments(ToolArguments):
    """Ask the user to decide an uncertain fact, or whether two names mean one entity."""

    id: str | None = None


class ReviewForm(BaseModel):
    """The user's answer to a review question: is this fact true, or are these two entities the same?"""

    choice: Literal["accept", "reject", "later"] = Field(description="Your decision.")
    reason: str = Field("", description="Why, if you like.")


async def review(call: ToolCall, asked: ReviewArguments) -> ToolAnswer:
    """Ask the user to decide a waiting review, the oldest or the one with the given id, and apply the decision.

    A review is the question whether a fact is true, or whether two entities are the same.
    """
    reviews = await call.memory.reviews.alist(namespace=call.namespace, limit=MOST)
    waiting: list[Waiting] = [*reviews, *await call.memory.reviews.aidentities(namespace=call.namespace, limit=MOST)]
    if not waiting:
        return ToolAnswer("Nothing waits for review.", {"waiting": []})
    chosen = next((one for one in waiting if asked.id in {None, one.id}), None)
    if chosen is None:
        raise InputError(f"waiting review {asked.id!r} not found; leave out the id for the oldest")
    if not can_ask(call):
        text = "This client cannot ask its user. The user can decide with: kg-memory review. These wait:"
        return ToolAnswer("\n".join([text, *(f"- {one.id}: {_question(one)}" for one in waiting)]), _waiting(waiting))
    form = await ask_user(call, _question(chosen), ReviewForm)
    if form is None or form.choice == "later":
        return ToolAnswer("The user did not decide; it still waits.", _waiting(waiting))
    by: dict[str, Any] = {"by": call.caller.user, "reason": form.reason, "namespace": call.namespace}
    if isinstance(chosen, Review):
        await call.memory.reviews.adecide(chosen.id, form.choice, seen=chosen.ruling, **by)
    else:
        await call.memory.reviews.adecide_identity(chosen.id, form.choice, **by)
    rest = [one for one in waiting if one.id != chosen.id]
    data = {"decision": form.choice, **_waiting(rest)}
    return ToolAnswer(f"The user chose {form.choice}. {len(rest)} more wait.", data)


def _waiting(waiting: Sequence[Waiting]) -> dict[str, Any]:
    return {"waiting": [view_review(one) if isinstance(one, Review) else dump(one) for one in waiting]}


def _question(one: Waiting) -> str:
    if isinstance(one, Review):
        relation = "contradicts" if one.kind == "conflicts" else "replaces"
        return (
            f"Does {_quoted(one.pending)}, which was said later, hold? It {relation} {_quoted(one.existing)}. "
            f"{quote(one.reason)} Accept: yes. Reject: the later one is not believed."
        )
    names = [f'"{quote(entity.name)}" ({quote(entity.type)})' for entity in (one.entity, one.second) if entity]
    latest = "; ".join(quote(sentence) for own in one.latest for sentence in own)
    return f"Are {' and '.join(names)} the same? {latest} Accept: they are merged. Reject: they are kept apart."


def _quoted(fact: Fact) -> str:
    return f'"{quote(fact.sentence)}" ({period_in_words(fact) or "no dates"})'


class ForgetArguments(ToolArguments):
    """Delete a message, or a fact with all that states it, for good, if the user confirms. For a change, remember the
    new statement.
    """  # noqa: D205 - one paragraph for the model

    id: str = Field(description="fact:... or episode:...")
    reason: str = ""


class ForgetForm(BaseModel):
    """The form in which the user confirms a deletion."""

    forget: bool = Field(description="Forget it for good.")


async def forget(call: ToolCall, asked: ForgetArguments) -> ToolAnswer:
    """Tell the user what would be deleted, and delete it if the user confirms.

    If the data to delete has changed since the user was asked, nothing is deleted, and `InputError` is raised.
    """
    kind, own = parse_id(asked.id)
    how: dict[str, Any] = {kind: own, "by": call.caller.key.name, "reason": asked.reason, "namespace": call.namespace}
    plan = await call.memory.privacy.aforget(**how, dry_run=True)
    question = await _deletion_question(call, plan)
    if not can_ask(call):
        text = f"Nothing is forgotten: this client cannot ask its user, who can run: kg-memory forget. {question}"
        return ToolAnswer(text, _view_receipt(plan))
    await call.report(1, 2, "planned")
    form = await ask_user(call, question, ForgetForm)
    if form is None or not form.forget:
        return ToolAnswer("The user did not confirm: nothing is forgotten.", _view_receipt(plan))
    if _plan_ids(await call.memory.privacy.aforget(**how, dry_run=True)) != _plan_ids(plan):
        raise InputError("the plan changed while the user was asked, so nothing was forgotten; call forget again")
    receipt = await call.memory.privacy.aforget(**how)
    call.wake(call.namespace)  # forgetting may mark other episodes as unread
    await call.report(2, 2, "forgotten")
    return ToolAnswer(render_receipt(asked.id, receipt), _view_receipt(receipt))


def _view_receipt(receipt: ForgetReceipt) -> dict[str, Any]:
    return {"forgotten": not receipt.dry_run, **dump(receipt, {*PLANNED, "at", "receipt", "head", "advice"})}


def _plan_ids(plan: ForgetReceipt) -> list[object]:
    return [sorted(getattr(plan, name)) for name in PLANNED]


async def _deletion_question(call: ToolCall, plan: ForgetReceipt) -> str:
    counts = f"{len(plan.episodes)} messages, {len(plan.facts)} facts, {len(plan.entities)} people and things"
    lines = [f"Forget this for good? It cannot be undone. In all: {counts}."]
    for id_, text in list(plan.texts.items())[:SHOWN] if call.caller.key.has("read") else ():
        episode = await call.memory.episodes.aget(id_, namespace=call.namespace) if id_ in plan.episodes else None
        lines.append(f"- {WITHHELD if episode is not None and episode.withheld else quote(text)}")
    return "\n".join(lines)


# Questions to the user. In the older protocol, the client asks the user while the tool call runs.
#
# In the current protocol, the call returns the question, and the client calls the tool again with the user's answer.
# The second call computes its question anew, and accepts the answer only if both are equal: so a decision never applies
# to data that changed meanwhile.

ANSWER = "answer"
Form = TypeVar("Form", bound=BaseModel)


class AnswerNeeded(Exception):
    """Raised to end a tool call that needs an answer from the user; `result` has the question for the client.

    The client asks the user, and calls the tool again with the answer.
    """

    def __init__(self, result: InputRequiredResult) -> None:
        super().__init__(ANSWER)
        self.result = result


def can_ask(call: ToolCall) -> bool:
    """Return whether the MCP client can show a form to its user (the capability "elicitation")."""
    capabilities = call.request.session.client_capabilities
    ways = capabilities.elicitation if capabilities else None
    return ways is not None and (ways.form is not None or ways.url is None)


async def ask_user(call: ToolCall, question: str, form: type[Form]) -> Form | None:
    """Ask the user *question* with the fields of *form*; return the completed form, or ``None`` if the user declines.

    Raises `AnswerNeeded` to make the client ask the user and call the tool again with the answer.
    """
    schema = render_elicitation_schema(form)
    if call.request.protocol_version in MODERN_PROTOCOL_VERSIONS:
        response = (call.params.input_responses or {}).get(ANSWER)
        # So an answer is not used for another question.
        state = hashlib.sha256(json.dumps([call.namespace, call.params.name, question]).encode()).hexdigest()
        if response is None or call.params.request_state != state:
            params = ElicitRequestFormParams(message=question, requested_schema=schema)
            raise AnswerNeeded(
                InputRequiredResult(input_requests={ANSWER: ElicitRequest(params=params)}, request_state=state)
            )
    else:
        request = call.request
        response = await request.session.elicit_form(question, schema, related_request_id=request.request_id)
    if not isinstance(response, ElicitResult) or response.action != "accept":
        return None
    try:
        return form.model_validate(response.content or {})
    except ValidationError:
        raise InputError("the user's answer does not fit the form; call the tool again") from None


TOOLS = (
    Tool("remember", RememberArguments, remember, {"episode": "string", "facts": "array"}, "write"),
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

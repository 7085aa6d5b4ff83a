"""The review graph: what waits for a person is asked by an interrupt, and the answer decides it.

The payload and the answer are those of LangChain's human-in-the-loop middleware, so its user interfaces, and Studio,
show and answer it. It needs a checkpointer, which the LangGraph server brings along.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict

from kg_memory.errors import InputError
from kg_memory.maintenance.review.decide import LONGEST_REASON, OPEN, dates, decide, reviews
from kg_memory.models.graph import Fact, Review
from kg_memory.runtime.flow import Driver, Flow
from kg_memory.runtime.forms import shown
from kg_memory.runtime.nodes import node
from kg_memory.settings import Settings
from kg_memory.temporal.policy import COMPATIBLE, CONTRADICTIONS, ConflictPolicy
from kg_memory.validation import DEFAULT_NAMESPACE, validate_namespace

ACTION = "accept_fact"
"""The name of what a person approves, edits or rejects."""
AT_ONCE = 10
USER = "user"
EDITABLE = ("verdict", "valid_at", "invalid_at")
CHOICES: Mapping[str, Literal["accept", "edit", "reject"]] = {"approve": "accept", "edit": "edit", "reject": "reject"}


class ReviewInput(TypedDict, total=False):
    """Whose memory is reviewed, at most how many verdicts at once, and who decides."""

    namespace: Annotated[str, shown("Whose memory is reviewed.", DEFAULT_NAMESPACE)]
    limit: Annotated[int, shown("How many verdicts are asked about at once.", AT_ONCE, minimum=1)]
    by: Annotated[str, shown("Who decides.", USER, examples=["Cy"])]


class ReviewState(ReviewInput, total=False):
    """The input, and what each step adds to it: the verdicts that wait, the answers, and what became of each."""

    waiting: list[dict[str, Any]]
    decisions: list[dict[str, Any]]
    decided: list[dict[str, Any]]


def load(state: ReviewState, settings: Settings) -> Flow[dict[str, Any]]:  # noqa: ARG001 - steps have one shape
    """Find what waits for review."""
    validate_namespace(state.get("namespace"))
    found = yield from reviews(state.get("limit") or AT_ONCE)
    return {"waiting": [each.model_dump(mode="json") for each in found], "decisions": [], "decided": []}


def ask(state: ReviewState) -> dict[str, Any]:
    """Stop until a person has decided; an answer that does not fit is asked for again."""
    waiting = [Review.model_validate(each) for each in state["waiting"]]
    question, problem = request(waiting), None
    while True:
        answer = interrupt(question if problem is None else {**question, "problem": problem})
        try:
            return {"decisions": answers(answer, waiting)}
        except InputError as error:
            problem = str(error)


def apply(state: ReviewState, settings: Settings) -> Flow[dict[str, Any]]:
    """Carry the decisions out, one after the other; one that cannot be is told, and keeps no other waiting."""
    decided = []
    for waiting, each in zip(state["waiting"], state["decisions"], strict=True):
        told = {"id": waiting["id"], "sentence": waiting["waiting"]["sentence"], "decision": each["choice"]}
        try:
            review = yield from decide(
                waiting["id"], each["choice"], by=state.get("by") or USER, reason=each["reason"], edit=each["edit"],
                policy=ConflictPolicy.from_settings(settings), namespace=validate_namespace(state.get("namespace")),
                seen=waiting["ruling"],
            )  # fmt: skip
        except InputError as error:
            decided.append({**told, "problem": str(error)})
        else:
            decided.append({**told, "ruling": review.ruling})
    return {"decided": decided}


def build(driver: Driver, settings: Settings) -> StateGraph[ReviewState, None, ReviewInput, ReviewState]:
    """Return the graph, to be compiled with a checkpointer; its nodes run sync and async."""
    graph = StateGraph(ReviewState, input_schema=ReviewInput)
    graph.add_node("load", node(load, driver, settings))
    graph.add_node("ask", ask)
    graph.add_node("apply", node(apply, driver, settings))
    graph.add_edge(START, "load")
    graph.add_conditional_edges("load", _if_any, {"ask": "ask", "done": END})
    graph.add_edge("ask", "apply")
    graph.add_edge("apply", END)
    return graph


def request(waiting: Sequence[Review]) -> dict[str, Any]:
    """Return the payload of the interrupt: one action for each verdict (``HITLRequest`` of LangChain)."""
    return {
        "action_requests": [
            {
                "name": ACTION,
                "args": _args(each),
                "description": describe(each),
            }
            for each in waiting
        ],
        "review_configs": [{"action_name": ACTION, "allowed_decisions": list(CHOICES)}],
    }


def describe(review: Review) -> str:
    """Return a verdict in sentences for a person."""
    what = "take the place of" if review.kind == "supersedes" else "refute"
    kinds = f"{' or '.join(CONTRADICTIONS)}; {', '.join(COMPATIBLE)} let both hold"
    edits = f'another verdict ({kinds}) or other dates (invalid_at "{OPEN}": it has not ended)'
    lines = [
        f'Shall "{review.waiting.sentence}" {what} "{review.against.sentence}"?',
        f"{review.reason} (confidence {review.confidence:.2f})",
        f"Approve: it is believed. Reject: it is not believed. Edit: {edits}.",
    ]
    lines[2:2] = [f'Said by {s.speaker or "a text"}, {s.at:%Y-%m-%d}: "{s.quote}"' for s in review.waiting.sources[:1]]
    return "\n".join(lines)


def answers(answer: Any, waiting: Sequence[Review]) -> list[dict[str, Any]]:
    """Return the decisions of a resumed interrupt, one for each verdict (``HITLResponse`` of LangChain).

    Errors: `InputError` says what does not fit.
    """
    given = answer.get("decisions") if isinstance(answer, Mapping) and "decisions" in answer else answer
    given = [given] if isinstance(given, Mapping) else given
    if not isinstance(given, list) or len(given) != len(waiting):
        raise InputError(f'give {{"decisions": [...]}} with {len(waiting)} decisions, one for each action')
    return [_answer(each, _args(asked)) for each, asked in zip(given, waiting, strict=True)]


def _answer(each: Any, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return one decision; an edit that leaves the arguments as they were *asked* about accepts."""
    choice = CHOICES.get(str(each.get("type"))) if isinstance(each, Mapping) else None
    if choice is None:
        raise InputError(f"a decision is {each!r}: its type is one of {', '.join(CHOICES)}")
    edit: dict[str, Any] = {}
    if choice == "edit":
        action = each.get("edited_action")
        args = action.get("args") if isinstance(action, Mapping) else each.get("args")
        if not isinstance(args, Mapping):
            raise InputError('an edit needs {"edited_action": {"name": ..., "args": {...}}}')
        edit = {name: args[name] for name in EDITABLE if args.get(name) is not None and args[name] != asked[name]}
        choice = "edit" if edit else "accept"
        _check(edit)
    reason = str(each.get("message") or "")
    if len(reason) > LONGEST_REASON:
        raise InputError(f"the message has {len(reason)} characters: use at most {LONGEST_REASON}")
    return {"choice": choice, "reason": reason, "edit": edit}


def _check(edit: Mapping[str, Any]) -> None:
    kinds = CONTRADICTIONS + COMPATIBLE
    if edit.get("verdict", kinds[0]) not in kinds:
        raise InputError(f"the verdict is {edit['verdict']!r}: use one of {', '.join(kinds)}")
    dates(edit, 0)


def _args(review: Review) -> dict[str, Any]:
    return {
        "review": review.id, "verdict": review.kind, "fact": review.waiting.sentence,
        "against": review.against.sentence, "valid_at": _iso(review.waiting, "valid_at"),
        "invalid_at": _iso(review.waiting, "invalid_at"),
    }  # fmt: skip


def _iso(fact: Fact, name: str) -> str | None:
    moment = getattr(fact, name)
    return moment.isoformat() if moment else None


def _if_any(state: ReviewState) -> Literal["ask", "done"]:
    return "ask" if state["waiting"] else "done"

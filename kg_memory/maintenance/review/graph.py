"""The review graph: a LangGraph graph that asks a person about contradicting facts, and applies the decisions.

It interrupts with each waiting verdict (how two facts relate). Interrupt and answer have the format of LangChain's
human-in-the-loop middleware, so its user interfaces and LangGraph Studio can show and answer them. The graph needs a
checkpointer; the LangGraph server provides one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict

from kg_memory.errors import InputError
from kg_memory.maintenance.review.decide import EDITABLE, OPEN, Choice, DecisionRequest, decide
from kg_memory.maintenance.review.reviews import list_reviews
from kg_memory.models.graph import Review
from kg_memory.runtime.config import describe_key
from kg_memory.runtime.driver import Driver
from kg_memory.runtime.flow import Flow
from kg_memory.runtime.graph import make_node
from kg_memory.settings import Settings
from kg_memory.temporal.policy import COMPATIBLE, CONTRADICTIONS, ConflictPolicy
from kg_memory.validation import DEFAULT_NAMESPACE, validate_namespace

Json = dict[str, Any]
"""A JSON object, as checkpoints can store it."""
ACTION = "accept_fact"
"""The name of the action in the interrupt, which a person approves, edits or rejects."""
AT_ONCE = 10
USER = "user"
CHOICES: Mapping[str, Choice] = {"approve": "accept", "edit": "edit", "reject": "reject"}


class ReviewInput(TypedDict, total=False):
    """The input of the review graph: a namespace, the maximum number of questions to a person, and who decides."""

    namespace: Annotated[str, describe_key("The namespace whose verdicts are reviewed.", DEFAULT_NAMESPACE)]
    limit: Annotated[int, describe_key("The number of verdicts to ask about at once.", AT_ONCE, minimum=1)]
    by: Annotated[str, describe_key("The name of the person who decides.", USER, examples=["Cy"])]


class ReviewState(ReviewInput, total=False):
    """The state of the review graph: its input, the relations of facts to decide, the decisions and the results."""

    waiting: list[Json]
    decisions: list[Json]
    decided: list[Json]


def load(state: ReviewState, settings: Settings) -> Flow[Json]:  # noqa: ARG001 - steps have one shape
    """Read up to ``limit`` verdicts (how two facts relate) that wait for a person.

    Errors: `InputError`.
    """
    validate_namespace(state.get("namespace", DEFAULT_NAMESPACE))
    reviews = yield from list_reviews(state.get("limit") or AT_ONCE)
    return {"waiting": [review.model_dump(mode="json") for review in reviews], "decisions": [], "decided": []}


def ask_reviewer(state: ReviewState) -> Json:
    """Interrupt the graph until a person has decided the waiting verdicts; return ``{"decisions": [...]}``."""
    reviews = [Review.model_validate(review) for review in state["waiting"]]
    question, problem = build_request(reviews), None
    while True:
        answer = interrupt(question if problem is None else {**question, "problem": problem})
        try:
            return {"decisions": parse_answer(answer, reviews)}
        except InputError as error:
            problem = str(error)


def apply(state: ReviewState, settings: Settings) -> Flow[Json]:
    """Write the decisions in *state* to the database, and return ``{"decided": [result, ...]}``."""
    by, namespace = state.get("by") or USER, validate_namespace(state.get("namespace", DEFAULT_NAMESPACE))
    policy = ConflictPolicy.from_settings(settings)
    decided: list[Json] = []
    for review, decision in zip(state["waiting"], state["decisions"], strict=True):
        result = {"id": review["id"], "sentence": review["pending"]["sentence"], "decision": decision["choice"]}
        request = DecisionRequest(decision["choice"], by, decision["reason"], **decision["edit"], seen=review["ruling"])
        try:
            changed = yield from decide(review["id"], request, policy, namespace)
        except InputError as error:
            decided.append({**result, "problem": str(error)})
        else:
            decided.append({**result, "ruling": changed.ruling})
    return {"decided": decided}


def build(driver: Driver[Any], settings: Settings) -> StateGraph[ReviewState, None, ReviewInput, ReviewState]:
    """Return the review graph, which asks a person whether contradicting facts hold; compile it with a checkpointer.

    The nodes can run sync and async.
    """
    graph = StateGraph(ReviewState, input_schema=ReviewInput)
    graph.add_node("load", make_node(load, driver, settings).as_runnable())
    graph.add_node("ask", ask_reviewer)
    graph.add_node("apply", make_node(apply, driver, settings).as_runnable())
    graph.add_edge(START, "load")
    graph.add_conditional_edges("load", _has_reviews, {"ask": "ask", "done": END})
    graph.add_edge("ask", "apply")
    graph.add_edge("apply", END)
    return graph


def build_request(reviews: Sequence[Review]) -> Json:
    """Return the question to show to a person: a LangChain ``HITLRequest`` with one action for each review."""
    actions = [{"name": ACTION, "args": _arguments(review), "description": question_of(review)} for review in reviews]
    return {"action_requests": actions, "review_configs": [{"action_name": ACTION, "allowed_decisions": list(CHOICES)}]}


def question_of(review: Review) -> str:
    """Return the question for a person whether the new fact in *review* replaces the existing one.

    It includes the reason, the confidence and a quote.
    """
    effect = "refute" if review.kind == "conflicts" else "take the place of"
    kinds = f"{' or '.join(CONTRADICTIONS)}; {', '.join(COMPATIBLE)} let both hold"
    edits = f'another verdict ({kinds}) or other dates (invalid_at "{OPEN}": it has not ended)'
    sources = review.pending.sources[:1]
    return "\n".join(
        [
            f'Shall "{review.pending.sentence}" {effect} "{review.existing.sentence}"?',
            f"{review.reason} (confidence {review.confidence:.2f})",
            *(f'Said by {source.speaker or "a text"}, {source.at:%Y-%m-%d}: "{source.quote}"' for source in sources),
            f"Approve: it is believed. Reject: it is not believed. Edit: {edits}.",
        ]
    )


def parse_answer(answer: Any, reviews: Sequence[Review]) -> list[Json]:
    """Convert *answer*, a ``HITLResponse`` of LangChain, to one decision for each of *reviews*.

    Errors: `InputError`.
    """
    decisions = answer.get("decisions") if isinstance(answer, Mapping) and "decisions" in answer else answer
    decisions = [decisions] if isinstance(decisions, Mapping) else decisions
    if not isinstance(decisions, list) or len(decisions) != len(reviews):
        raise InputError(f'give {{"decisions": [...]}} with {len(reviews)} decisions, one for each action')
    return [_parse_decision(decision, _arguments(review)) for decision, review in zip(decisions, reviews, strict=True)]


def _parse_decision(decision: Any, arguments: Mapping[str, object]) -> Json:
    """Convert a person's decision from LangChain's format to ``{"choice": "accept", "reason": "", "edit": {}}``."""
    choice = CHOICES.get(str(decision.get("type"))) if isinstance(decision, Mapping) else None
    if choice is None:
        raise InputError(f"the type of a decision must be one of {', '.join(CHOICES)}, got {decision!r}")
    edit = _parse_edit(decision, arguments) if choice == "edit" else {}
    if choice == "edit" and not edit:
        choice = "accept"
    reason = str(decision.get("message") or "")
    DecisionRequest(choice, USER, reason, **edit).validate()
    return {"choice": choice, "reason": reason, "edit": edit}


def _parse_edit(decision: Mapping[str, object], arguments: Mapping[str, object]) -> Json:
    action = decision.get("edited_action")
    edited = action.get("args") if isinstance(action, Mapping) else decision.get("args")
    if not isinstance(edited, Mapping):
        raise InputError('an edit needs {"edited_action": {"name": ..., "args": {...}}}')
    changed = (name for name in EDITABLE if edited.get(name) is not None and edited[name] != arguments[name])
    return {name: edited[name] for name in changed}


def _arguments(review: Review) -> Json:
    pending = review.pending
    return {
        "review": review.id,
        "verdict": review.kind,
        "fact": pending.sentence,
        "against": review.existing.sentence,
        "valid_at": pending.valid_at.isoformat() if pending.valid_at else None,
        "invalid_at": pending.invalid_at.isoformat() if pending.invalid_at else None,
    }


def _has_reviews(state: ReviewState) -> Literal["ask", "done"]:
    return "ask" if state["waiting"] else "done"

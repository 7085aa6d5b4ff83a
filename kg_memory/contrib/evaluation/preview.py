"""Estimate the calls, tokens and money of a run before it starts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kg_memory.contrib.evaluation import prompts
from kg_memory.contrib.evaluation.judges import Judge
from kg_memory.contrib.evaluation.options import Options
from kg_memory.contrib.evaluation.records import Conversation, Cost, Question, System
from kg_memory.contrib.evaluation.results import Results, question_key
from kg_memory.contrib.evaluation.spending import price_of
from kg_memory.text.tokenise import estimate_tokens

ANSWER_TOKENS = 60
"""The tokens of a reader's answer; one that thinks before it answers writes ten times as many."""
VERDICT_TOKENS = 4


@dataclass(frozen=True, slots=True)
class Row:
    """The estimated cost of a part of the run; None if it is not known. `money` is None without a price."""

    what: str
    model: str
    cost: Cost | None
    money: float | None


def preview(
    systems: Sequence[System],
    conversations: Sequence[Conversation],
    judge: Judge | None,
    options: Options,
    results: Results,
) -> list[Row]:
    """Return the estimated cost of what is not done yet, by system and role."""
    rows: list[Row] = []
    for system in systems:
        ingest, contexts = _estimate(system, conversations, options.max_tokens)
        if options.model is not None or ingest is not None:
            rows.append(_row(f"{system.name}: ingest", options.model or "", ingest, options))
        if options.reader is None or judge is None:
            continue
        answered = results.answers(system.name)
        judged = results.verdicts(system.name, judge.name)
        read, checked = Cost(), Cost()
        for conversation, tokens in zip(conversations, contexts, strict=True):
            read += _reading(conversation, tokens, answered)
            checked += _judging(conversation, judge, judged)
        rows.append(_row(f"{system.name}: answer", options.reader, read, options))
        rows.append(_row(f"{system.name}: judge", judge.name, checked, options))
    return [row for row in rows if row.cost is None or row.cost.calls]


def total(rows: Iterable[Row]) -> Row:
    """Return the sum of the rows whose cost is known."""
    rows = list(rows)
    money = [row.money for row in rows if row.cost is not None]
    known = [amount for amount in money if amount is not None]
    cost = sum((row.cost for row in rows if row.cost is not None), Cost())
    return Row("total", "", cost, sum(known) if len(known) == len(money) else None)


def _estimate(system: System, conversations: Sequence[Conversation], max_tokens: int) -> tuple[Cost | None, list[int]]:
    """Return the cost of ingesting all, None if the system does not tell, and the tokens of a context of each."""
    estimate = getattr(system, "estimate", None)
    if estimate is None:
        return None, [max_tokens for _ in conversations]
    estimates: list[tuple[Cost, int]] = [estimate(conversation, max_tokens) for conversation in conversations]
    costs, tokens = zip(*estimates, strict=True)
    return sum(costs, Cost()), list(tokens)


def _reading(conversation: Conversation, tokens: int, answered: Iterable[str]) -> Cost:
    left = [question for question in conversation.questions if question_key(conversation, question) not in answered]
    return sum((_one_reading(question, tokens) for question in left), Cost())


def _one_reading(question: Question, tokens: int) -> Cost:
    return Cost(1, tokens + estimate_tokens(prompts.reader(question, "")), ANSWER_TOKENS)


def _judging(conversation: Conversation, judge: Judge, judged: Iterable[str]) -> Cost:
    cost = Cost()
    for question in conversation.questions:
        if question_key(conversation, question) not in judged:
            calls = judge.calls(question)
            tokens = estimate_tokens(prompts.judge(question, "", "")) + 2 * ANSWER_TOKENS
            cost += Cost(1, tokens, VERDICT_TOKENS).times(calls)
    return cost


def _row(what: str, model: str, cost: Cost | None, options: Options) -> Row:
    return Row(what, model, cost, None if cost is None else price_of(model, cost, options.prices))

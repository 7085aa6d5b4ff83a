"""Runs ``kg-memory evaluate``: shows the expected cost, asks for confirmation, runs, and writes the report."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import NamedTuple

from kg_memory import __version__
from kg_memory.cli.output import Screen, confirm, count_noun, is_terminal
from kg_memory.contrib.evaluation import report
from kg_memory.contrib.evaluation.judges import MODES, judge_prompt, reader_prompt
from kg_memory.contrib.evaluation.models import price_of
from kg_memory.contrib.evaluation.options import DATASETS, SYSTEMS, EvaluationOptions
from kg_memory.contrib.evaluation.records import Conversation, System
from kg_memory.contrib.evaluation.report import Figures
from kg_memory.contrib.evaluation.results import question_key
from kg_memory.contrib.evaluation.run import Evaluation, open_evaluation
from kg_memory.errors import InputError
from kg_memory.models.operations import Usage
from kg_memory.settings import OFFLINE
from kg_memory.text.tokenise import estimate_tokens

ANSWER_TOKENS = 60
"""Estimated tokens of a reader's answer; models that reason before they answer write about ten times as many."""
VERDICT_TOKENS = 4
_PAUSE = 2.0
"""Seconds between two lines of progress."""


def evaluate(arguments: Namespace, screen: Screen) -> int:
    """Run ``kg-memory evaluate`` to compare memory systems; return 0, or 1 if steps failed or are not done yet."""
    if arguments.list:
        return _list(screen)
    if arguments.dataset is None:
        raise InputError("name a benchmark with --dataset; kg-memory evaluate --list shows them")
    with open_evaluation(_options(arguments)) as evaluation:
        _check_asked(evaluation, screen)
        paid = _preview(evaluation, screen)
        if arguments.dry_run or (paid and not arguments.yes and not _confirm()):
            return 0
        evaluation.run(_progress(screen))
        found = _write_and_print_report(evaluation, screen)
        if evaluation.failed:
            screen.note(f"{count_noun(evaluation.failed, 'step')} failed, the first: {evaluation.error}")
        if evaluation.stopped:
            screen.note(evaluation.stopped)
        if evaluation.failed or evaluation.stopped:
            screen.note("Finished steps are stored: run the same command again to do the rest.")
        return int(bool(evaluation.failed or evaluation.stopped or not found))


def _options(arguments: Namespace) -> EvaluationOptions:
    prices = dict(arguments.price)
    if "money" in arguments.budget and not prices:
        raise InputError("--budget money=X needs prices: give --price MODEL=IN/OUT for each model")
    model = getattr(arguments, "model", None) or arguments.reader
    derived = {
        "out": arguments.out or Path("evaluation") / arguments.dataset.replace(":", "-"),
        "model": None if model == OFFLINE else model,
        "modes": MODES if arguments.verdicts == "both" else (arguments.verdicts,),
        "prices": prices,
    }
    given = {each.name: getattr(arguments, each.name) for each in fields(EvaluationOptions) if each.name not in derived}
    return EvaluationOptions(**given, **derived)


def _list(screen: Screen) -> int:
    rows = [(one.name, one.title, ", ".join(one.variants), one.licence, one.source) for one in DATASETS.values()]
    if screen.as_json:
        screen.json({"datasets": list(DATASETS), "systems": list(SYSTEMS)})
        return 0
    screen.table(("data set", "title", "variants", "licence", "source"), rows)
    screen.line(f"systems: {', '.join(SYSTEMS)}")
    return 0


def _check_asked(evaluation: Evaluation, screen: Screen) -> None:
    questions = len(evaluation.conversations.keys)
    conversations = count_noun(len(evaluation.conversations), "conversation")
    systems = ", ".join(system.name for system in evaluation.systems)
    screen.note(f"{evaluation.dataset.title}: {count_noun(questions, 'question')} about {conversations}, to {systems}")


def _preview(evaluation: Evaluation, screen: Screen) -> bool:
    """Print the estimated cost of the steps that are left; return whether any model will be called."""
    rows = estimate(evaluation)
    if not rows:
        screen.note("No model will be asked.")
        return False
    prices = {row: price_of(row.model, row.cost, evaluation.options.prices) for row in rows if row.cost is not None}
    known = [price for price in prices.values() if price is not None]
    money = sum(known) if len(known) == len(prices) else None
    total = Row("total", "", sum((row.cost for row in rows if row.cost is not None), Usage()))
    lines = [*(_cells(row, prices.get(row)) for row in rows), _cells(total, money)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        screen.note("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    if money is None:
        screen.note("To see the price, give --price MODEL=IN/OUT for each model, per million tokens.")
    screen.note("This is an estimate. A reader that reasons before it answers writes more.")
    return True


def _cells(row: Row, money: float | None) -> tuple[str, ...]:
    if row.cost is None:
        return row.what, row.model, "unknown, counted during the run; limit it with --budget", "", "", ""
    amounts = (f"{row.cost.calls:,.0f} calls", f"{row.cost.input_tokens:,.0f} tokens in")
    price = "" if money is None else f"{money:,.2f} in money"
    return row.what, row.model, *amounts, f"{row.cost.output_tokens:,.0f} out", price


def _confirm() -> bool:
    if not is_terminal():
        raise InputError("models will be asked, which costs: add --yes to go on, or --dry-run to see the cost only")
    return confirm("Go on?")


def _progress(screen: Screen) -> Callable[[str], None]:
    """Return a function that prints a message, unless it printed another less than `_PAUSE` seconds ago."""
    shown = 0.0

    def say(text: str) -> None:
        nonlocal shown
        if time.monotonic() - shown >= _PAUSE:
            shown = time.monotonic()
            screen.note(text)

    return say


def _write_and_print_report(evaluation: Evaluation, screen: Screen) -> Sequence[Figures]:
    """Write the report file, print its tables, and return the results of each system."""
    options, results = evaluation.options, evaluation.results
    wanted = evaluation.conversations.keys
    judge = None if evaluation.judge is None else evaluation.judge.name
    found = report.figures(results, [system.name for system in evaluation.systems], judge, wanted)
    if not found:
        screen.note("Nothing is answered yet.")
        return found
    notes = [
        f"{figure.system}: {len(wanted) - len(figure.rows)} of {len(wanted)} questions are not answered."
        for figure in found
        if len(figure.rows) < len(wanted)
    ]
    run = {**results.of("run")[-1], "judge": judge, "version": __version__}
    path = options.out / report.FILE
    path.write_text(report.write_report(evaluation.dataset, run, found, notes), encoding="utf-8")
    modes = report.modes(found)
    tables = [report.accuracy(found, modes)] if modes else []
    tables += [report.retrieval(found)] if any(figure.retrieval for figure in found) else []
    if screen.as_json:
        screen.json([dict(zip(table[0], row, strict=True)) for table in tables for row in table[1:]])
    else:
        for head, *rows in tables:
            screen.table(head, rows)
            screen.line()
    screen.note(f"Written: {path}, {results.path}")
    return found


# The estimate


class Row(NamedTuple):
    """A line of the cost estimate: a part of the run, its model, and its calls and tokens (``None`` if unknown)."""

    what: str
    model: str
    cost: Usage | None


def estimate(evaluation: Evaluation) -> list[Row]:
    """Return the estimated cost of the remaining steps: a row for each system and role (ingest, answer, judge)."""
    options, judge, results = evaluation.options, evaluation.judge, evaluation.results
    rows: list[Row] = []
    for system in evaluation.systems:
        name = system.name
        ingest, contexts = _estimate_reading(system, evaluation.conversations, options.max_tokens)
        if options.model is not None or ingest is not None:
            rows.append(Row(f"{name}: ingest", options.model or "", ingest))
        if options.reader is None or judge is None:
            continue
        answering, judging = Usage(), Usage()
        for conversation, tokens in zip(evaluation.conversations, contexts, strict=True):
            for question in conversation.questions:
                key = question_key(conversation, question)
                if key not in results.latest("answer", name):
                    asked = tokens + estimate_tokens(reader_prompt(question, ""))
                    answering += Usage(calls=1, input_tokens=asked, output_tokens=ANSWER_TOKENS)
                if key not in results.latest("verdict", name, judge.name):
                    asked = estimate_tokens(judge_prompt(question, "", "")) + 2 * ANSWER_TOKENS
                    calls = judge.calls(question)
                    judging += Usage(calls=calls, input_tokens=calls * asked, output_tokens=calls * VERDICT_TOKENS)
        rows.append(Row(f"{name}: answer", options.reader, answering))
        rows.append(Row(f"{name}: judge", judge.name, judging))
    return [row for row in rows if row.cost is None or row.cost.calls]


def _estimate_reading(
    system: System, conversations: Iterable[Conversation], max_tokens: int
) -> tuple[Usage | None, list[int]]:
    """Return the estimated cost of reading *conversations*, and the likely tokens of a prompt about each."""
    ask = getattr(system, "estimate", None)
    if ask is None:
        return None, [max_tokens for _ in conversations]
    estimates: list[tuple[Usage, int]] = [ask(conversation, max_tokens) for conversation in conversations]
    costs, tokens = zip(*estimates, strict=True)
    return sum(costs, Usage()), list(tokens)

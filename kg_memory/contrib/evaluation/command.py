"""``kg-memory evaluate``: compare memory systems on a public benchmark."""

from __future__ import annotations

import argparse
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kg_memory import __version__
from kg_memory.cli.output import Screen, count_noun
from kg_memory.errors import InputError, MissingExtra
from kg_memory.settings import OFFLINE

if TYPE_CHECKING:
    from kg_memory.contrib.evaluation.options import Options
    from kg_memory.contrib.evaluation.preview import Row
    from kg_memory.contrib.evaluation.report import Figures
    from kg_memory.contrib.evaluation.run import Evaluation

RUN = "kg_memory.contrib.evaluation.command:evaluate"
ABOUT = "compare memory systems on a public benchmark"
EPILOG = """\
Each system reads the conversations, and gives the reader a context for each question; the judge compares the answer
with the expected one, once strictly and once leniently. First the cost is told. What is done is written down at once:
the same command goes on where it was stopped or killed, and no question is paid for twice.

data sets: kg-memory evaluate --list shows them, with licences and where to get the files
systems:   ours, ours:offline, ours:economy, ours:standard, ours:thorough, full, bm25, dense, hybrid, and others that
           --list shows; my_package.module:function for your own (docs/evaluation.md)
models:    by their LangChain names: openai:gpt-5-mini, anthropic:..., ollama:...; keys as each provider has them, and
           OPENAI_BASE_URL for any server that speaks OpenAI's protocol. The systems read by --model (default: the
           reader), or offline with --model offline.

examples:
  kg-memory evaluate --dataset niah --system ours,bm25 --retrieval-only
  kg-memory evaluate --dataset locomo --data locomo10.json --system ours:offline,hybrid --retrieval-only
  kg-memory evaluate --dataset locomo --data locomo10.json --system ours,bm25,full \\
      --reader openai:gpt-5-mini --judge openai:gpt-5-mini --conversations 1 --limit 20 --dry-run
  ... --yes --budget tokens=2000000 --price openai:gpt-5-mini=0.25/2
"""
_PAUSE = 2.0


def add_command(make: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command ``evaluate``, made by *make*."""
    command = make("evaluate", RUN, ABOUT, EPILOG)
    what = command.add_argument_group("what is evaluated")
    what.add_argument("--list", action="store_true", help="list the data sets and the systems")
    what.add_argument("--dataset", metavar="NAME", help="the benchmark")
    what.add_argument("--data", type=Path, metavar="PATH", help="its file or folder, if it is not generated")
    what.add_argument("--variant", metavar="NAME", help="which part of it, such as 100K of beam")
    what.add_argument(
        "--system", type=_names, metavar="NAME,...", default=("ours",), help="the systems (default: ours)"
    )
    what.add_argument("--conversations", type=_names, default=(), metavar="N|NAME,...", help="the first N, or by name")
    what.add_argument("--categories", type=_names, default=(), metavar="NAME,...", help="only questions of these")
    what.add_argument("--limit", type=_positive, metavar="N", help="ask N questions, spread over the categories")
    what.add_argument("--seed", type=int, default=0, help="chooses them (default: 0)")
    models = command.add_argument_group("models")
    models.add_argument("--reader", metavar="NAME", help="the chat model that answers")
    models.add_argument("--judge", metavar="NAME", help="the chat model that judges, or rules: compare words")
    models.add_argument("--verdicts", choices=("both", "strict", "lenient"), default="both", help="(default: both)")
    models.add_argument("--embedder", metavar="NAME", default=OFFLINE, help="an embedding model (default: offline)")
    models.add_argument("--max-tokens", type=_positive, default=1500, metavar="N", help="of a context (default: 1500)")
    models.add_argument("--retrieval-only", action="store_true", help="measure what is found, without a reader")
    run = command.add_argument_group("the run")
    run.add_argument("--out", type=Path, metavar="DIR", help="folder of the results (default: evaluation/DATASET)")
    run.add_argument("--budget", type=_budget, default={}, metavar="calls=N,tokens=N,money=X", help="stop there")
    run.add_argument(
        "--price", type=_price, action="append", default=[], metavar="MODEL=IN/OUT", help="for a million tokens"
    )
    run.add_argument("--concurrency", type=_positive, default=4, metavar="N", help="questions at once (default: 4)")
    run.add_argument("--dry-run", action="store_true", help="tell the cost, and ask nothing")
    run.add_argument("--yes", "-y", action="store_true", help="go on without asking")


def evaluate(arguments: Namespace, screen: Screen) -> int:
    """Run the evaluation; return 1 if something is left to do."""
    if arguments.list:
        return _list(screen)
    if arguments.dataset is None:
        raise InputError("name a benchmark with --dataset; kg-memory evaluate --list shows them")
    try:
        from kg_memory.contrib.evaluation.run import open_evaluation  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise MissingExtra(f"evaluate needs {error.name}: pip install 'temporal-kg-memory[evaluate]'") from None
    with open_evaluation(_options(arguments)) as evaluation:
        _check_asked(evaluation, screen)
        paid = _preview(evaluation, screen)
        if arguments.dry_run or (paid and not arguments.yes and not _confirm()):
            return 0
        outcome = evaluation.run(_progress(screen))
        found = _report(evaluation, screen)
        if outcome.failed:
            screen.note(f"{count_noun(outcome.failed, 'step')} failed, the first: {outcome.reason}")
        if outcome.stopped:
            screen.note(outcome.stopped)
        if outcome.failed or outcome.stopped:
            screen.note("What is done is kept: run the same command again to do the rest.")
        return int(bool(outcome.failed or outcome.stopped or not found))


def _options(arguments: Namespace) -> Options:
    from kg_memory.contrib.evaluation.options import Options  # noqa: PLC0415 - an extra

    model = getattr(arguments, "model", None) or arguments.reader
    prices = dict(arguments.price)
    if "money" in arguments.budget and not prices:
        raise InputError("a budget of money needs prices: give --price MODEL=IN/OUT for each model")
    modes = ("strict", "lenient") if arguments.verdicts == "both" else (arguments.verdicts,)
    return Options(
        dataset=arguments.dataset,
        systems=tuple(dict.fromkeys(arguments.system)),
        out=arguments.out or Path("evaluation") / arguments.dataset.replace(":", "-"),
        data=arguments.data,
        variant=arguments.variant,
        reader=arguments.reader,
        judge=arguments.judge,
        model=None if model == OFFLINE else model,
        embedder=arguments.embedder,
        modes=modes,
        limit=arguments.limit,
        conversations=arguments.conversations,
        categories=arguments.categories,
        seed=arguments.seed,
        max_tokens=arguments.max_tokens,
        concurrency=arguments.concurrency,
        budget=arguments.budget,
        prices=prices,
        retrieval_only=arguments.retrieval_only,
    )


def _list(screen: Screen) -> int:
    from kg_memory.contrib.evaluation.datasets import dataset_names, find_dataset  # noqa: PLC0415 - an extra
    from kg_memory.contrib.evaluation.systems import system_names  # noqa: PLC0415 - an extra

    datasets = [find_dataset(name) for name in dataset_names()]
    rows = [(one.name, one.title, ", ".join(one.variants), one.licence, one.source) for one in datasets]
    if screen.as_json:
        screen.json({"datasets": [one.name for one in datasets], "systems": system_names()})
        return 0
    screen.table(("data set", "title", "variants", "licence", "source"), rows, ("bold",))
    screen.line(f"systems: {', '.join(system_names())}")
    return 0


def _check_asked(evaluation: Evaluation, screen: Screen) -> None:
    questions = len(evaluation.conversations.keys)
    conversations = count_noun(len(evaluation.conversations), "conversation")
    systems = ", ".join(contender.name for contender in evaluation.contenders)
    screen.note(f"{evaluation.dataset.title}: {count_noun(questions, 'question')} about {conversations}, to {systems}")


def _preview(evaluation: Evaluation, screen: Screen) -> bool:
    """Print the estimated cost of what is left; return whether a model is asked."""
    from kg_memory.contrib.evaluation.preview import preview, total  # noqa: PLC0415 - an extra

    systems = [contender.system for contender in evaluation.contenders]
    conversations, results = evaluation.conversations, evaluation.results
    rows = preview(systems, conversations, evaluation.judge, evaluation.options, results)
    if not rows:
        screen.note("No model will be asked.")
        return False
    whole = total(rows)
    lines = [_cells(row) for row in [*rows, whole]]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        screen.note("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    if whole.money is None:
        screen.note("Give --price MODEL=IN/OUT for each model, for a million tokens, to see it in money.")
    screen.note("This is an estimate. A reader that thinks before it answers writes more.")
    return True


def _cells(row: Row) -> tuple[str, ...]:
    if row.cost is None:
        return row.what, row.model, "not known: it is counted as it goes, use --budget", "", "", ""
    amounts = (f"{row.cost.calls:,.0f} calls", f"{row.cost.input_tokens:,.0f} tokens in")
    money = "" if row.money is None else f"{row.money:,.2f} in money"
    return row.what, row.model, *amounts, f"{row.cost.output_tokens:,.0f} out", money


def _confirm() -> bool:
    """Ask whether to go on. Raises: `InputError` if nobody can answer."""
    if not sys.stdin.isatty():
        raise InputError("models will be asked, which costs: add --yes to go on, or --dry-run to see the cost only")
    print("Go on? [y/N] ", end="", file=sys.stderr, flush=True)  # noqa: T201
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _progress(screen: Screen) -> Callable[[str], None]:
    shown = 0.0

    def say(text: str) -> None:
        nonlocal shown
        if time.monotonic() - shown >= _PAUSE:
            shown = time.monotonic()
            screen.note(text)

    return say


def _report(evaluation: Evaluation, screen: Screen) -> Sequence[Figures]:
    """Write the report and the plot, and print the tables."""
    from kg_memory.contrib.evaluation import plot, report  # noqa: PLC0415 - an extra

    options, results = evaluation.options, evaluation.results
    wanted = evaluation.conversations.keys
    judge = None if evaluation.judge is None else evaluation.judge.name
    names = [contender.name for contender in evaluation.contenders]
    found = report.figures(results, names, judge, wanted)
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
            screen.table(head, rows, ("bold",))
            screen.line()
    written = [f"{path}", f"{results.path}"]
    if modes:
        try:
            plot.draw(found, f"{evaluation.dataset.title}, reader {options.reader}", options.out / plot.FILE)
            written.append(f"{options.out / plot.FILE}")
        except MissingExtra as error:
            screen.note(str(error))
    screen.note(f"Written: {', '.join(written)}")
    return found


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1")
    return int(text)


def _budget(text: str) -> dict[str, float]:
    limits: dict[str, float] = {}
    for part in _names(text):
        name, _, amount = part.partition("=")
        if name not in ("calls", "tokens", "money") or not _is_amount(amount):
            raise argparse.ArgumentTypeError(f"{part!r} is no limit: write calls=500, tokens=2000000 or money=5")
        limits[name] = float(amount)
    return limits


def _price(text: str) -> tuple[str, tuple[float, float]]:
    name, _, amounts = text.rpartition("=")
    read, _, written = amounts.partition("/")
    if not name or not (_is_amount(read) and _is_amount(written)):
        raise argparse.ArgumentTypeError(f"{text!r} is no price: write MODEL=IN/OUT, such as openai:gpt-5-mini=0.25/2")
    return name, (float(read), float(written))


def _is_amount(text: str) -> bool:
    return text.replace(".", "", 1).isdecimal()

"""Command-line options of ``kg-memory evaluate``, which compares memory systems on a public benchmark."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from kg_memory.settings import OFFLINE

RUN = "kg_memory.contrib.evaluation.session:evaluate"
ABOUT = "compare memory systems on a public benchmark"
EPILOG = """\
Each system reads the conversations and returns a context for each question. A reader model answers from that context,
and a judge compares the answer with the expected one, once strictly and once leniently. The expected cost is shown
first. Each finished step is stored at once: run the same command again to continue a stopped run without paying twice.

data sets: kg-memory evaluate --list shows them, with licences and where to get the files
systems:   ours, ours:offline, ours:economy, ours:standard, ours:thorough, full, bm25, dense, hybrid;
           my_package.module:function for your own and for other libraries (docs/evaluation.md)
models:    openai:gpt-5-mini, anthropic:..., ollama:...; keys in the variables of each provider, and OPENAI_BASE_URL
           for any server that speaks OpenAI's protocol. The systems read with --model (default: the reader), or
           offline with --model offline.

examples:
  kg-memory evaluate --dataset niah --system ours,bm25 --retrieval-only
  kg-memory evaluate --dataset locomo --data locomo10.json --system ours,bm25,full \\
      --reader openai:gpt-5-mini --judge openai:gpt-5-mini --conversations 1 --limit 20 --dry-run
  ... --yes --budget tokens=2000000 --price openai:gpt-5-mini=0.25/2
"""


def add_command(make: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command ``kg-memory evaluate`` to the command line.

    *make* is a function that registers a command and returns its argument parser.
    """
    command = make("evaluate", RUN, ABOUT, EPILOG)
    what = command.add_argument_group("what is evaluated")
    what.add_argument("--list", action="store_true", help="list the data sets and the systems")
    what.add_argument("--dataset", metavar="NAME", help="the benchmark to run")
    what.add_argument("--data", type=Path, metavar="PATH", help="the benchmark's file or folder, unless generated")
    what.add_argument("--variant", metavar="NAME", help="a variant of the benchmark, such as 100K of beam")
    what.add_argument(
        "--system", dest="systems", type=_names, default=("ours",), metavar="NAME,...", help="systems (default: ours)"
    )
    what.add_argument("--conversations", type=_names, default=(), metavar="N|NAME,...", help="the first N, or by name")
    what.add_argument("--categories", type=_names, default=(), metavar="NAME,...", help="only these categories")
    what.add_argument("--limit", type=_positive, metavar="N", help="ask N questions, spread over the categories")
    what.add_argument("--seed", type=int, default=0, help="seed that selects the questions (default: 0)")
    models = command.add_argument_group("models")
    models.add_argument("--reader", metavar="NAME", help="the chat model that answers")
    models.add_argument("--judge", metavar="NAME", help="the chat model that judges, or rules to compare words")
    models.add_argument("--verdicts", choices=("both", "strict", "lenient"), default="both", help="default: both")
    models.add_argument("--embedder", metavar="NAME", default=OFFLINE, help="an embedding model (default: offline)")
    models.add_argument("--max-tokens", type=_positive, default=1500, metavar="N", help="context size (default: 1500)")
    models.add_argument("--retrieval-only", action="store_true", help="measure only retrieval, without a reader")
    run = command.add_argument_group("the run")
    run.add_argument("--out", type=Path, metavar="DIR", help="folder of the results (default: evaluation/DATASET)")
    run.add_argument("--budget", type=_budget, default={}, metavar="calls=N,tokens=N,money=X", help="spending limits")
    run.add_argument(
        "--price", type=_price, action="append", default=[], metavar="MODEL=IN/OUT", help="price per million tokens"
    )
    run.add_argument("--concurrency", type=_positive, default=4, metavar="N", help="questions at once (default: 4)")
    run.add_argument("--dry-run", action="store_true", help="show the expected cost and stop")
    run.add_argument("--yes", "-y", action="store_true", help="run without asking for confirmation")


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"expected a number of at least 1, got {text!r}")
    return int(text)


def _budget(text: str) -> dict[str, float]:
    limits: dict[str, float] = {}
    for part in _names(text):
        name, _, amount = part.partition("=")
        if name not in ("calls", "tokens", "money") or not _is_amount(amount):
            raise argparse.ArgumentTypeError(f"expected calls=500, tokens=2000000 or money=5, got {part!r}")
        limits[name] = float(amount)
    return limits


def _price(text: str) -> tuple[str, tuple[float, float]]:
    name, _, amounts = text.rpartition("=")
    read, _, written = amounts.partition("/")
    if not name or not (_is_amount(read) and _is_amount(written)):
        raise argparse.ArgumentTypeError(f"expected MODEL=IN/OUT, such as openai:gpt-5-mini=0.25/2, got {text!r}")
    return name, (float(read), float(written))


def _is_amount(text: str) -> bool:
    return text.replace(".", "", 1).isdecimal()

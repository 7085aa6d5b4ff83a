"""Tokens against evidence on LoCoMo conversations (Maharana et al. 2024), offline: what a budget brings.

    python benchmarks/context_budget.py --data locomo.json --out figures.json --plot budget.png [--quick]
        [--folder FOLDER]

For each question and budget the text of ``memory.context`` is looked at: an evidence turn is there when a line tells it
word for word, or when a fact's line refers to it. Beside it stand raw turns in the order of BM25 with neighbours, each
with the same reference, as many as fit into the same budget. ``--plot`` needs matplotlib (the extra ``bench``).
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean
from typing import Any

from conversations import Conversation, locomo_conversations, turn
from opening import arguments, ingest, kept, opened, write

from kg_memory import GraphMemory
from kg_memory.evaluation.datasets import locomo
from kg_memory.evaluation.ranking import best, words
from kg_memory.models.graph import EpisodeInput
from kg_memory.text.tokenise import estimate_tokens

BUDGETS = (350, 500, 750, 1400, 2000)
QUICK = 3
"""A quick run asks every third question of one conversation."""
ESTIMATE, ENCODING = "estimate", "o200k_base"
CONTEXT, QUOTED, RAW = "context", "of it, word for word", "raw turns by BM25"
WAYS: Mapping[str, Mapping[str, Any]] = {
    CONTEXT: {"color": "#0072b2", "marker": "o"},
    QUOTED: {"color": "#56b4e9", "marker": "o", "linestyle": "--"},
    RAW: {"color": "#d55e00", "marker": "s"},
}
"""What is measured, and how it is drawn, in colours that most eyes tell apart."""
_REFERENCES = re.compile(r"\[([^\[\]]*)\]")
_ELSEWHERE = re.compile(r"(?:see|contradicts) \[[^\[\]]*\]")
"""A mark behind a line that points at another one."""
_OWN = re.compile(r"- \[([^\[\]]*)\]")

Count = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class Filled:
    """A text within a budget, and the evidence turns that are in it."""

    text: str
    there: frozenset[str]


def main() -> None:
    """Run the benchmark, print its table, and write its figures and its plot."""
    parser = arguments(
        "Tokens of a context against recall of evidence on LoCoMo conversations, offline.",
        data="a LoCoMo JSON file",
        quick=f"one conversation, every {QUICK}rd question",
    )
    parser.add_argument("--plot", type=Path, help="where to draw the table, as a PNG")
    options = parser.parse_args()
    if options.plot and find_spec("matplotlib") is None:
        sys.exit("a plot needs matplotlib: install the extra `bench`, or leave out --plot")
    conversations = locomo_conversations(options.data)
    if not conversations:
        sys.exit(f"{options.data} is no LoCoMo file: give a JSON list of objects with a `conversation`")
    conversations, step = (conversations[:1], QUICK) if options.quick else (conversations, 1)
    with kept(options.folder) as folder, opened(folder) as memory:
        figures = ingest(memory, [(each.name, each.episodes) for each in conversations])
        rows = measure(memory, conversations, step)
    show(rows)
    write({**figures, "rows": rows}, options.out)
    if options.plot:
        draw(rows, options.plot)


def measure(memory: GraphMemory, conversations: Sequence[Conversation], step: int) -> list[dict[str, Any]]:
    """Return a row for each budget and each of the three ways: mean tokens, and recall overall and by category."""
    counts = {ESTIMATE: estimate_tokens, **exact()}
    told: defaultdict[tuple[int, str], defaultdict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for conversation in conversations:
        raw = RawTurns(conversation)
        for question in conversation.questions[::step]:
            for budget in BUDGETS:
                context = memory.context(question.text, namespace=conversation.name, max_tokens=budget)
                filled = {
                    CONTEXT: Filled(context, referred(context)),
                    QUOTED: Filled(context, quoted(context)),
                    RAW: raw.within(budget, question.text),
                }
                for way, each in filled.items():
                    row = told[budget, way]
                    for name, count in counts.items():
                        row[name].append(count(each.text))
                    recall = len(question.evidence & each.there) / len(question.evidence)
                    row["recall"].append(recall)
                    row[f"recall_{question.category}"].append(recall)
    return [
        {"budget": budget, "way": way, **{name: round(fmean(values), 4) for name, values in row.items()}}
        for (budget, way), row in told.items()
    ]


class RawTurns:
    """The turns of a conversation in the order of BM25 with neighbours, cut where a budget ends."""

    def __init__(self, conversation: Conversation) -> None:
        self._turns = conversation.episodes
        self._lines = [_line(each) for each in conversation.episodes]
        self._scores = words(conversation.episodes, neighbours=True)

    def within(self, budget: int, question: str) -> Filled:
        """Return the best turns that fit; the first that does not ends it."""
        kept: list[str] = []
        there: list[str] = []
        room = budget
        for place in best(self._scores(question)):
            room -= estimate_tokens(self._lines[place])
            if room < 0:
                break
            kept.append(self._lines[place])
            there.append(turn(self._turns[place].source_id))
        return Filled("\n".join(kept), frozenset(there))


def _line(said: EpisodeInput) -> str:
    day = f"({said.at:%Y-%m-%d}) " if said.at else ""
    return f"- [{said.source_id}] {day}{said.speaker or ''}: {said.content}".replace("\n", " ")


def referred(context: str) -> frozenset[str]:
    """Return the turns that the lines of a context refer to; not those that a mark behind a line only points at."""
    return _named(_REFERENCES.findall(_ELSEWHERE.sub("", context)))


def quoted(context: str) -> frozenset[str]:
    """Return the turns that a context tells word for word."""
    return _named(match[1] for line in context.splitlines() if (match := _OWN.match(line)))


def _named(references: Iterable[str]) -> frozenset[str]:
    return frozenset(turn(each) for several in references for each in unescape(several).split(", "))


def exact() -> dict[str, Count]:
    """Return the count of a real tokenizer, if its library and its words are here."""
    try:
        import tiktoken  # noqa: PLC0415 - comes with langchain-openai, but reads its words from the network

        encoding = tiktoken.get_encoding(ENCODING)
    except (ImportError, OSError, ValueError) as error:
        print(f"no tokens by {ENCODING}, only by our estimate: {error!s:.100}", file=sys.stderr)
        return {}
    return {ENCODING: lambda text: len(encoding.encode(text, disallowed_special=()))}


def show(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print the rows as a table."""
    counts = _counts(rows)
    categories = [name for name in locomo.CATEGORIES.values() if f"recall_{name}" in rows[0]]
    labels = [each.replace("_", " ") for each in categories]
    names = ["budget", "what", *(f"tokens ({name})" for name in counts), "recall", *labels]
    print(f"| {' | '.join(names)} |\n|{' --- |' * len(names)}")
    for row in sorted(rows, key=lambda row: (list(WAYS).index(row["way"]), row["budget"])):
        tokens = [f"{row[name]:,.0f}" for name in counts]
        recalls = [f"{row[name]:.3f}" for name in ("recall", *(f"recall_{each}" for each in categories))]
        print(f"| {row['budget']:,} | {row['way']} | {' | '.join([*tokens, *recalls])} |")


def _counts(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return [name for name in (ESTIMATE, ENCODING) if name in rows[0]]


def draw(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw recall over mean tokens, by the real tokenizer if it was here, a line for each way."""
    import matplotlib as mpl  # noqa: PLC0415 - an extra, which the table does without

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415 - after the choice of where it draws

    counted = _counts(rows)[-1]
    figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
    for way, style in WAYS.items():
        points = sorted((row[counted], row["recall"]) for row in rows if row["way"] == way)
        axes.plot(*zip(*points, strict=True), **style, label=way, linewidth=2, markersize=6)
    axes.set(xlabel=f"mean tokens ({counted})", ylabel="recall of the evidence turns")
    axes.set(xlim=(0, max(BUDGETS) * 1.02), ylim=(0, 1))
    axes.set_title("Evidence within a budget of tokens, LoCoMo", loc="left")
    axes.grid(color="0.9")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="lower right")
    figure.savefig(path, dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    main()

"""The report of an evaluation: accuracy, retrieval and cost of each system, with 95 % confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from statistics import fmean, median, quantiles
from typing import Any, NamedTuple

import numpy as np

from kg_memory.contrib.evaluation.records import Criterion, Dataset
from kg_memory.contrib.evaluation.results import Results, Row, cost_of
from kg_memory.models.operations import Usage

FILE = "report.md"
Table = Sequence[Sequence[str]]
"""Rows of cells; the first row is the header."""
DEPTHS = (1, 5, 10, 20)
RESAMPLES = 2000


# Figures


def recall_at(sources: Sequence[str], evidence: frozenset[str], depth: int) -> float:
    """Return the share, from 0 to 1, of the ids *evidence* that is among the first *depth* search results *sources*."""
    return len(evidence.intersection(sources[:depth])) / len(evidence)


def ndcg(sources: Sequence[str], evidence: frozenset[str], depth: int = 10) -> float:
    """Return the nDCG (a ranking score from 0 to 1) of the first *depth* search results *sources*."""
    seen: set[str] = set()
    gained = 0.0
    for place, source in enumerate(sources[:depth]):
        if source in evidence and source not in seen:
            seen.add(source)
            gained += 1 / math.log2(place + 2)
    return gained / sum(1 / math.log2(place + 2) for place in range(min(len(evidence), depth)))


def retrieval_figures(sources: Sequence[str], evidence: frozenset[str]) -> dict[str, float]:
    """Return recall, all-found and nDCG among the first 1, 5, ... results: ``{"recall@5": 0.5, ...}``."""
    figures = {f"recall@{depth}": recall_at(sources, evidence, depth) for depth in DEPTHS}
    figures |= {f"all@{depth}": float(evidence <= set(sources[:depth])) for depth in DEPTHS[1:]}
    return {**figures, "nDCG@10": ndcg(sources, evidence)}


class ConfidenceInterval(NamedTuple):
    """A mean with the lower and upper end of its 95 % confidence interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


def bootstrap(values: Sequence[float], seed: int = 0) -> ConfidenceInterval:
    """Return the mean of *values* and its 95 % confidence interval (percentile bootstrap)."""
    if not values:
        return ConfidenceInterval(math.nan, math.nan, math.nan)
    sample = np.array(values, dtype=float)
    draw = np.random.default_rng(seed)
    means = np.array([sample[draw.integers(0, len(sample), len(sample))].mean() for _ in range(RESAMPLES)])
    low, high = np.quantile(means, (0.025, 0.975))
    return ConfidenceInterval(float(sample.mean()), float(low), float(high))


def kendall(order: Sequence[int]) -> float:
    """Return Kendall's tau of *order*, from -1 to 1: 1 if it ascends (``[1, 2, 3]``), -1 if it descends.

    The result is 0 for fewer than two numbers.
    """
    pairs = [(one, other) for place, one in enumerate(order) for other in order[place + 1 :]]
    return sum((other > one) - (other < one) for one, other in pairs) / len(pairs) if pairs else 0.0


@dataclass(frozen=True)
class Figures:
    """The results of one system in an evaluation: its answers, their scores, and the costs."""

    system: str
    rows: tuple[Row, ...]
    verdicts: Mapping[str, Mapping[str, float]]
    """Scores from 0 to 1 by mode (``strict``, ``lenient``), by question key."""
    ingest: Usage
    ingest_seconds: float
    judging: Usage

    @cached_property
    def judged(self) -> list[Row]:
        """The rows of answers that the judge has scored."""
        return [row for row in self.rows if row["question"] in self.verdicts]

    def scores(self, mode: str, category: str | None = None) -> dict[str, float]:
        """Return the scores by question key: ``{"locomo-1/17": 1.0}``."""
        return {
            row["question"]: self.verdicts[row["question"]][mode]
            for row in self.judged
            if mode in self.verdicts[row["question"]] and category in (None, row["category"])
        }

    @property
    def retrieval(self) -> list[dict[str, float]]:
        """Recall, all-found and nDCG of each question: ``[{"recall@5": 0.5, ...}]``; empty if they are unknown."""
        if not any(row["sources"] for row in self.rows):
            return []
        return [retrieval_figures(row["sources"], frozenset(row["evidence"])) for row in self.rows if row["evidence"]]

    @property
    def tokens(self) -> float:
        """The mean number of tokens in a context."""
        return fmean(row["context_tokens"] for row in self.rows)


def figures(results: Results, systems: Iterable[str], judge: str | None, wanted: set[str]) -> list[Figures]:
    """Return the answers, scores and costs of each system in *systems* that has results."""
    found = []
    for system in systems:
        latest = results.latest("retrieval" if judge is None else "answer", system)
        rows = {key: row for key, row in latest.items() if key in wanted}
        if not rows:
            continue
        verdicts = results.latest("verdict", system, judge) if judge else {}
        ingests = results.of("ingest", system)
        scores = {key: row["verdict"] for key, row in verdicts.items() if key in wanted}
        ingest, judging = _sum_costs(ingests), _sum_costs(verdicts.values(), "judge_")
        seconds = sum(row["seconds"] for row in ingests)
        found.append(Figures(system, tuple(rows.values()), scores, ingest, seconds, judging))
    return found


def write_report(dataset: Dataset, run: Mapping[str, Any], found: Sequence[Figures], notes: Sequence[str]) -> str:
    """Return the report of an evaluation as Markdown: the accuracy, retrieval and usage of each system."""
    parts = [f"# {dataset.title}: {', '.join(figure.system for figure in found)}", _conditions(dataset, run)]
    parts += [f"**{note}**" for note in notes]
    scored = modes(found)
    if scored:
        parts += ["## Accuracy", _markdown(accuracy(found, scored))]
        parts += ["Means with 95 % bootstrap intervals over questions. Tokens are those of the context."]
        for mode in scored:
            parts += [f"### By category, {mode}", _markdown(_by_category(found, mode))]
        if len(found) > 1:
            parts += ["### Differences on the same questions", _markdown(_differences(found, scored))]
    if any(figure.retrieval for figure in found):
        parts += ["## Retrieval", _markdown(retrieval(found))]
    parts += ["## Usage", _markdown(_costs(found))]
    if scored:
        parts += ["## What the judge was asked", _criteria(dataset)]
    return "\n\n".join(parts) + "\n"


def accuracy(found: Sequence[Figures], scored: Sequence[str]) -> Table:
    """Return a table with the mean score of each system in *found*.

    *scored* are the ways of judging to show as columns, such as "strict".
    """
    rows = [["system", "judged", *scored, "tokens, mean", "tokens, median"]]
    for figure in found:
        scores = [str(bootstrap(list(figure.scores(mode).values()))) for mode in scored]
        middle = median(row["context_tokens"] for row in figure.rows)
        judged = f"{len(figure.judged)} of {len(figure.rows)}"
        rows.append([figure.system, judged, *scores, f"{figure.tokens:,.0f}", f"{middle:,.0f}"])
    return rows


def retrieval(found: Sequence[Figures]) -> Table:
    """Return a table of the search results of each system in *found*: mean recall, all-found and nDCG."""
    rows = [["system", "questions", *retrieval_figures([], frozenset({""}))]]
    for figure in found:
        several = figure.retrieval
        if several:
            by_name = zip(*(one.values() for one in several), strict=True)
            rows.append([figure.system, f"{len(several)}", *(f"{fmean(values):.3f}" for values in by_name)])
    return rows


def _sum_costs(rows: Iterable[Row], prefix: str = "") -> Usage:
    return sum((cost_of(row, prefix) for row in rows), Usage())


def modes(found: Sequence[Figures]) -> list[str]:
    """Return the ways of judging that were used, in the order of the report: ``["strict", "lenient", "order"]``."""
    named = {mode for figure in found for verdict in figure.verdicts.values() for mode in verdict}
    return [mode for mode in ("strict", "lenient", "order") if mode in named]


def _by_category(found: Sequence[Figures], mode: str) -> Table:
    rows = [["category", "questions", *(figure.system for figure in found)]]
    for category in sorted({row["category"] for figure in found for row in figure.judged}):
        scores = [list(figure.scores(mode, category).values()) for figure in found]
        if any(scores):
            cells = [str(bootstrap(values)) if values else "" for values in scores]
            rows.append([category, f"{max(map(len, scores))}", *cells])
    return rows


def _differences(found: Sequence[Figures], scored: Sequence[str]) -> Table:
    rows = [["systems", "questions", *scored]]
    for one, other in combinations(found, 2):
        cells, most = [], 0
        for mode in scored:
            difference, count = paired(one.scores(mode), other.scores(mode))
            cells.append(f"{difference.mean:+.3f} [{difference.low:+.3f}, {difference.high:+.3f}]" if count else "")
            most = max(most, count)
        rows.append([f"{one.system} - {other.system}", f"{most}", *cells])
    return rows


def paired(one: Mapping[str, float], other: Mapping[str, float]) -> tuple[ConfidenceInterval, int]:
    """Return the mean difference in score of two systems, and the number of questions that both have answered."""
    both = sorted(one.keys() & other.keys())
    return bootstrap([one[key] - other[key] for key in both]), len(both)


def _costs(found: Sequence[Figures]) -> Table:
    head = ["system", "ingest calls", "ingest tokens", "ingest s", "search p50 ms", "search p95 ms"]
    rows = [[*head, "reader tokens in", "out", "reader p50 s", "judge calls"]]
    for figure in found:
        seconds = [row["search_seconds"] for row in figure.rows]
        cuts = quantiles(seconds, n=20, method="inclusive") if len(seconds) > 1 else seconds * 19
        spent = [f"{figure.ingest.calls:,.0f}", f"{figure.ingest.input_tokens + figure.ingest.output_tokens:,.0f}"]
        times = [f"{figure.ingest_seconds:.1f}", f"{cuts[9] * 1000:.0f}", f"{cuts[18] * 1000:.0f}"]
        rows.append([figure.system, *spent, *times, *_reading(figure)])
    return rows


def _reading(figure: Figures) -> list[str]:
    reading = _sum_costs(figure.rows, "reader_")
    seconds = [row["reader_seconds"] for row in figure.rows if "reader_seconds" in row]
    middle = f"{median(seconds):.2f}" if seconds else ""
    return [f"{reading.input_tokens:,.0f}", f"{reading.output_tokens:,.0f}", middle, f"{figure.judging.calls:,.0f}"]


def _conditions(dataset: Dataset, run: Mapping[str, Any]) -> str:
    shown = {
        "data": f"{dataset.title} ({dataset.licence}), {run.get('variant') or 'default variant'}, {run.get('data')}",
        "reader": run.get("reader"),
        "judge": run.get("judge"),
        "model of the systems": run.get("model"),
        "embedder": run.get("embedder"),
        "tokens of a context": run.get("max_tokens"),
        "questions": f"limit {run.get('limit')}, seed {run.get('seed')}" if run.get("limit") else "all",
        "run": f"{run.get('at')}, kg-memory {run.get('version')}",
    }
    return "\n".join(f"- {name}: {value}" for name, value in shown.items() if value is not None)


def _criteria(dataset: Dataset) -> str:
    criteria = ((name or "by default", text) for name, one in dataset.criteria.items() for text in _criterion(one))
    return "\n".join(f"- {name}: {text}" for name, text in criteria)


def _criterion(criterion: Criterion) -> list[str]:
    if criterion.by == "rules":
        return ["compared by rules. Strict: the same words, date or number. Lenient: the answer contains them."]
    if criterion.by == "rubric":
        ordered = " `order` is Kendall's tau of the events told, from 0 to 1." if criterion.ordered else ""
        text = "each item of the rubric is scored 0, 0.5 or 1. Lenient: their mean. Strict: the share of items with 1."
        return [text + ordered]
    return [f"strict: {criterion.strict}", f"lenient: {criterion.lenient}"]


def _markdown(table: Table) -> str:
    head, *rows = table
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    lines += [f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in rows]
    return "\n".join(lines)

"""Plot accuracy by tokens of a context."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from kg_memory.contrib.evaluation.metrics import bootstrap
from kg_memory.contrib.evaluation.report import Figures
from kg_memory.errors import MissingExtra

FILE = "accuracy.png"
COLOURS = {"strict": "#1f4e79", "lenient": "#c55a11"}


def draw(found: Sequence[Figures], title: str, path: Path) -> None:
    """Write the plot as PNG: a point with its interval for each system and mode.

    Raises: `MissingExtra` without Matplotlib.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - an extra
        from matplotlib.figure import Figure  # noqa: PLC0415 - an extra
    except ImportError:
        raise MissingExtra("the plot needs Matplotlib: pip install 'temporal-kg-memory[evaluate]'") from None
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    for mode, colour in COLOURS.items():
        points = [(one.tokens, bootstrap(list(one.scores(mode).values())), one.system) for one in found]
        points = [point for point in points if not math.isnan(point[1].mean)]
        for place, (tokens, score, system) in enumerate(points):
            errors = [[score.mean - score.low], [score.high - score.mean]]
            label = mode if place == 0 else None
            axes.errorbar(max(tokens, 1), score.mean, yerr=errors, fmt="o", color=colour, capsize=3, label=label)
            axes.annotate(system, (max(tokens, 1), score.mean), (6, 4), textcoords="offset points", fontsize=8)
    axes.set(xscale="log", xlabel="mean tokens of a context", ylabel="accuracy", ylim=(-0.02, 1.05), title=title)
    axes.grid(alpha=0.3)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="lower right")
    figure.savefig(path, dpi=150)

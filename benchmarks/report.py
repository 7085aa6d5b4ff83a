"""Run the benchmarks and write their output to one page, with the machine, versions and plots.

    python -m benchmarks.report [--locomo FILE.json] [--beam FOLDER] [--only NAMES] [--quick] [--out docs/benchmarks.md]

``make bench-report`` runs it with the extra ``bench``, which installs Graphiti and Matplotlib; without them their parts
are left out, and the page says so. It takes about half an hour. ``--quick`` takes five minutes, and only checks that
all benchmarks run. The conversations are not part of this repository: see the README in this folder.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PACKAGES = ("temporal-kg-memory", "langgraph", "langchain-core", "falkordb", "redis", "numpy", "graphiti-core")
OURS, GRAPHITI = "kg-memory", "graphiti"
COLOURS = {OURS: "#1f4e79", GRAPHITI: "#c55a11"}
HEAD = 2
"""Lines of a table before its rows."""
Found = dict[str, Any]


@dataclass(frozen=True)
class Part:
    """A benchmark of the report: its title, its description, how to run it, and how to plot its figures.

    `quick` are the arguments of a quick run, and `alone` further arguments if Graphiti is not installed. With `totals`
    only the rows of totals are shown; a `script` is run by its path instead of its module name.
    """

    name: str
    title: str
    shows: str
    arguments: tuple[str, ...] = ()
    quick: tuple[str, ...] = ()
    alone: tuple[str, ...] | None = None
    figures: bool = False
    totals: bool = False
    script: bool = False
    draw: Callable[[Any, Found], None] | None = None


def main() -> None:
    """Run the chosen benchmarks and write their output to the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--locomo", type=Path, help="conversations of LoCoMo")
    parser.add_argument("--beam", type=Path, help="the folder with the chats of BEAM")
    parser.add_argument("--only", help="run these alone, by their names with commas between")
    parser.add_argument("--quick", action="store_true", help="run a small part of each")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "benchmarks.md", help="the page to write")
    asked = parser.parse_args()
    parts = [*PARTS, *_with_data(asked.locomo, asked.beam)]
    names = asked.only.split(",") if asked.only else [part.name for part in parts]
    if unknown := {*names} - {part.name for part in parts}:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(part.name for part in parts)}")
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    page = [_head(quick=asked.quick)]
    for part in parts:
        if part.name in names:
            page.append(_section(part, asked.out, quick=asked.quick))
            asked.out.write_text("\n".join(page), encoding="utf-8")
    print(f"written to {asked.out}")


INTRODUCTION = """\
# Benchmarks

Made by `make bench-report`, which runs each command below and copies what it prints. Other machines have other
figures: read the ratios. [benchmarks/README.md](../benchmarks/README.md) says what each benchmark measures, and has
more of them.

"""
OTHERS = """
Graphiti gets the same scripted answers or the same data, on the same server. Mem0 and LangMem need a chat model to read
anything, so they are not here: with a key, [kg-memory evaluate](evaluation.md) compares them.
"""


def _head(*, quick: bool) -> str:
    facts = {
        "Date": f"{datetime.now(UTC):%Y-%m-%d}",
        "Machine": f"{_processor()}, {os.cpu_count()} cores, {_memory()} GB, {platform.system()} {platform.machine()}",
        "Load when it began": f"{os.getloadavg()[0]:.1f}",
        "Versions": ", ".join(f"{name} {number}" for name, number in _versions()),
        "Commit": _commit(),
    }
    lines = "".join(f"- {name}: {fact}\n" for name, fact in facts.items())
    warning = "\n**A quick run: the figures show that all works, and nothing else.**\n" if quick else ""
    return INTRODUCTION + lines + OTHERS + warning


def _section(part: Part, page: Path, *, quick: bool) -> str:
    """Run *part* and return its section of the *page*."""
    arguments = part.quick if quick else part.arguments
    missing = part.alone is not None and find_spec("graphiti_core") is None
    if missing:
        arguments += part.alone or ()
    lines = [f"## {part.title}", "", part.shows, ""]
    with tempfile.TemporaryDirectory() as folder:
        figures = Path(folder) / "figures.json"
        module = [f"benchmarks/{part.name}.py"] if part.script else ["-m", f"benchmarks.{part.name}"]
        command = [*module, *arguments]
        print(f"running python {' '.join(command)} ...", flush=True)
        began = time.monotonic()
        out = ("--out", str(figures)) if part.figures else ()
        done = subprocess.run([sys.executable, *command, *out], cwd=ROOT, capture_output=True, text=True, check=False)
        shown = " ".join([*module, *map(_shorten, arguments)])
        lines += [f"`python {shown}` ({time.monotonic() - began:,.0f} s)", ""]
        if missing:
            lines += ["Without Graphiti, which is not installed: `pip install -e '.[bench]'`.", ""]
        if done.returncode:
            print(done.stderr[-2000:], file=sys.stderr)
            return "\n".join([*lines, "This run failed.", ""])
        if part.draw and figures.exists() and find_spec("matplotlib"):
            picture = page.with_name(page.stem) / f"{part.name}.svg"
            _plot(part, json.loads(figures.read_text("utf-8")), picture)
            lines += [f"![{part.title}]({page.stem}/{picture.name})", ""]
    return "\n".join([*lines, *_quote(done.stdout, totals=part.totals), ""])


def _quote(output: str, *, totals: bool) -> Iterator[str]:
    """Yield *output* as Markdown: tables as they are (only their *totals*, in bold), other text in code blocks."""
    for table, lines in groupby(output.splitlines(), lambda line: line.startswith("|")):
        block = [*lines]
        if table:
            yield from (line for place, line in enumerate(block) if place < HEAD or not totals or "**" in line)
        elif text := "\n".join(block).strip("\n"):
            yield f"\n```text\n{text}\n```\n" if "\n" in text else f"\n{text}\n"


def _plot(part: Part, found: Found, path: Path) -> None:
    """Draw the figures of *part* as SVG; equal figures give the same file."""
    import matplotlib as mpl  # noqa: PLC0415 - an extra
    from matplotlib.backends.backend_svg import FigureCanvasSVG  # noqa: PLC0415 - an extra
    from matplotlib.figure import Figure  # noqa: PLC0415 - an extra

    mpl.rcParams["svg.hashsalt"] = part.name
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    FigureCanvasSVG(figure)
    axes = figure.subplots()
    if part.draw:
        part.draw(axes, found)
    axes.grid(alpha=0.3)
    axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})


def _draw_shares(axes: Any, shares: Mapping[str, Mapping[str, float]]) -> None:
    """Draw a bar for each system and class."""
    systems = [name for name in COLOURS if any(name in row for row in shares.values())]
    for place, name in enumerate(systems):
        places = [number + (place - (len(systems) - 1) / 2) * 0.38 for number in range(len(shares))]
        axes.bar(places, [row.get(name, 0) for row in shares.values()], 0.36, label=name, color=COLOURS[name])
    axes.set_xticks(range(len(shares)), [label.replace(", ", ",\n") for label in shares], fontsize=8)
    axes.set(ylim=(0, 1.15), ylabel="right answers")


def _draw_temporal(axes: Any, found: Found) -> None:
    names = [name for name in found if f"{OURS} {name}" in found]
    shares = {
        name: {system: found[f"{system} {name}"] / found[name] for system in COLOURS if f"{system} {name}" in found}
        for name in names
    }
    _draw_shares(axes, shares)


def _draw_consequences(axes: Any, found: Found) -> None:
    systems = [name for name in COLOURS if f"{name} questions" in found["all"]]
    _draw_shares(axes, {kind: {name: row[f"{name} questions"] for name in systems} for kind, row in found.items()})


def _draw_search(axes: Any, found: Found) -> None:
    """Draw the median of each kind of search by the number of facts."""
    lines: dict[str, dict[int, float]] = {}
    for key, value in found.items():
        _, size, name = key.split(" ", 2)
        if name.endswith("_p50_ms") and ", " not in name:
            lines.setdefault(name.removesuffix("_p50_ms"), {})[int(size)] = value
    for name, points in lines.items():
        axes.plot(
            [*points],
            [*points.values()],
            marker="o",
            linestyle="--" if name.startswith("Graphiti") else "-",
            label=name,
        )
    axes.set(xscale="log", yscale="log", xlabel="facts", ylabel="median, milliseconds")


def _with_data(locomo: Path | None, beam: Path | None) -> Iterator[Part]:
    if locomo is not None:
        shows = "Recall is the share of the evidence turns of a question among the messages found; no model is asked."
        data = ("--data", str(locomo))
        yield Part(
            "locomo_retrieval", "Retrieval on LoCoMo", shows, data, (*data, "--quick"), figures=True, script=True
        )
    if beam is not None:
        shows = "The same of long chats with an assistant."
        data = ("--data", str(beam))
        yield Part("beam_retrieval", "Retrieval on BEAM", shows, data, (*data, "--quick"), figures=True, script=True)


def _versions() -> Iterator[tuple[str, str]]:
    yield "Python", platform.python_version()
    for name in PACKAGES:
        try:
            yield name, version(name)
        except PackageNotFoundError:
            continue


def _commit() -> str:
    asked = ("git", "log", "-1", "--format=%h")
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "not known"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "not known")


def _memory() -> int:
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9)


def _shorten(word: str) -> str:
    """Return *word*; for a path, only its file name."""
    return Path(word).name if "/" in word else word


PARTS = (
    Part(
        "temporal",
        "Truth over time",
        "What is true of someone at an instant, by what is believed now or was believed earlier; both read without an"
        " error, and Graphiti's dates are read in its favour.",
        alone=("--system", "kg-memory"),
        figures=True,
        totals=True,
        draw=_draw_temporal,
    ),
    Part(
        "consequences",
        "What follows from a change",
        "Generated stories with exact answers: what holds, is doubtful or gone after something ended.",
        alone=("--system", "kg-memory"),
        figures=True,
        draw=_draw_consequences,
    ),
    Part(
        "search_scale",
        "Search by size",
        "Milliseconds of a search in synthetic facts of 384 dimensions; no embedding is timed. The two do not run the"
        " same query: ours returns facts with their dates and sources.",
        ("--sizes", "1000,10000,50000", "--dims", "384"),
        ("--quick",),
        alone=("--no-graphiti",),
        figures=True,
        draw=_draw_search,
    ),
    Part(
        "store",
        "LangGraph stores",
        "The same operations on the stores that can be had here.",
        ("--items", "1000", "--vectors", "1000"),
        ("--quick",),
    ),
    Part("server", "What HTTP adds to a verb", "Each call by the verb and over HTTP, in turns.", quick=("--quick",)),
    Part(
        "profile_view",
        "Profiles",
        "How long a profile takes, by the number of facts that hold.",
        quick=("--rounds", "3"),
        script=True,
    ),
    Part("digest", "Digest, identity and handoff", "Over 10,000 episodes.", quick=("--episodes", "300"), script=True),
)


if __name__ == "__main__":
    main()

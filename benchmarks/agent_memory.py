"""Run memvara's Agent Memory Benchmark v1 on this memory, offline, with memvara's own runner.

    python benchmarks/agent_memory.py --benchmark FOLDER [--python PYTHON] [--own] [--failures] [--out FILE.json]

FOLDER is the unpacked source distribution of memvara (``pip download memvara --no-deps --no-binary :all:``). Its runner
presents 262 events, asks 100 questions and judges the answers by rules, without a model. Each system gets the fact of
an event as a triple, which is declared here; the sentence beside it is not used. If a question names subject and
relation, their history answers it. Otherwise the memory is searched with the recipe ``chain``: the answer is in the
best fact, or there is none if its score is below 0.5.

memvara's own figures come from the same command if PYTHON (default: this Python) has it installed, else from its
README. The SQLite of Debian 12 is too old for it: install pysqlite3-binary too. ``--own`` asks 47 questions about 35
events of our own (`agent_memory_own.json`) among the 210 events that the benchmark never asks about.
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from opening import write

from kg_memory import GraphMemory, Settings, __version__
from kg_memory.models.graph import Fact
from kg_memory.models.ontology import FactType
from kg_memory.temporal.interval import micros

MOSTLY = 0.5
"""The lowest score of an answer: about half of the question's words besides the name."""
THEIRS = ("memvara", "memvara-anchored", "vector-rag")
README = {
    "current_state": 10, "historical_state": 27, "change_detection": 11, "change_time": 9, "knowledge_time": 7,
    "provenance": 11, "contradiction": 5, "multi_hop": 1, "distractor": 8, "negative": 3,
}  # fmt: skip
"""The right answers of memvara 0.9.0 by the README of the benchmark."""
OWN = Path(__file__).with_name("agent_memory_own.json")
RUN = """
import runpy, sys
try:
    import pysqlite3
    sys.modules["sqlite3"] = pysqlite3
except ImportError:
    pass
sys.path.insert(0, sys.argv.pop(1))
runpy.run_module("benchmarks.agent_memory", run_name="__main__", alter_sys=True)
"""


class SetClock:
    """A clock that returns the time it was set to, and never the same time twice."""

    def __init__(self) -> None:
        self.time = 0

    def __call__(self) -> int:
        self.time += 1
        return self.time

    def set(self, moment: datetime) -> None:
        """Advance the clock to *moment*; an earlier time is ignored."""
        self.time = max(self.time, micros(moment, default=0))


class Adapter:
    """Implements the five methods that the runner needs; *base* is the runner's module with their types."""

    name = "kg-memory"
    version = __version__

    def __init__(self, base: Any) -> None:
        self.base = base
        self.folder = tempfile.TemporaryDirectory(prefix="kg-memory-", ignore_cleanup_errors=True)
        self.memory: GraphMemory | None = None
        self.clock = SetClock()

    def reset(self, predicates: Mapping[str, Any]) -> None:
        """Open an empty memory with these *predicates* (name to declaration), using the clock of the events."""
        types = tuple(
            FactType(name, name.replace("_", " "), single_valued=declared.single_valued)
            for name, declared in predicates.items()
        )
        settings = Settings(data_dir=Path(self.folder.name), fsync="everysec", idle_seconds=0, fact_types=types)
        self.memory = GraphMemory.open(settings=settings, model="offline", embeddings="offline", on_wait=print)
        self.memory.driver.clock = self.clock

    def remember(self, event: Any) -> None:
        """Declare the fact of *event*."""
        self.clock.set(event.recorded_at)
        self.memory.facts.add(
            event.subject,
            event.predicate,
            event.object,
            valid_at=event.valid_from,
            invalid_at=event.valid_to,
            source=event.source,
            source_id=event.id,
            confidence=event.confidence,
            at=event.recorded_at,
        )

    def query(self, ask: Any) -> Any:
        """Return the answer to *ask*: from the history of the subject and predicate it names, or else by search."""
        self.clock.set(ask.evaluated_at)
        if ask.probe is None:
            return self._values(self._search(ask))
        history = self._history(*ask.probe, believed_at=ask.known_at)
        if ask.about is not None:
            return self._about(ask, history)
        if ask.category == "change_detection":
            return self._values(fact.objects[0] for fact in history)
        return self._values(fact.objects[0] for fact in history if holds(fact, ask.at))

    def usage(self) -> Any:
        """Return zero calls and tokens, since no model is used."""
        return self.base.Usage(llm_calls=0, tokens=0)

    def close(self) -> None:
        """Close the memory and delete its files."""
        if self.memory is not None:
            self.memory.close()
        self.folder.cleanup()

    def _values(self, values: Iterable[str]) -> Any:
        several = tuple(dict.fromkeys(values))
        return self.base.MemoryAnswer(values=several) if len(several) > 1 else self.base.MemoryAnswer(*several)

    def _history(self, subject: str, predicate: str, believed_at: datetime | None = None) -> list[Fact]:
        periods = self.memory.facts.history(subject, predicate, believed_at=believed_at)
        return [fact for fact in periods if fact.subject.casefold() == subject.casefold()]

    def _about(self, ask: Any, history: Sequence[Fact]) -> Any:
        """Return when the value named by *ask* began or was learned, or which source stated it."""
        facts = [fact for fact in history if fact.objects[0] == ask.about] or self._superseded(history, ask.about)
        if not facts:
            return self.base.MemoryAnswer()
        first = min(facts, key=lambda fact: fact.sources[0].at)
        source = first.sources[0]
        if ask.category == "provenance":
            return self.base.MemoryAnswer(self.memory.episodes.get(source.episode).source)
        return self.base.MemoryAnswer((first.valid_at if ask.category == "change_time" else source.at).isoformat())

    def _superseded(self, history: Sequence[Fact], value: str) -> list[Fact]:
        """Return the facts with this value that were contradicted by facts of *history*, and are never believed."""
        verdicts = (review for fact in history for review in self.memory.reviews.verdicts(fact.id))
        facts = (fact for review in verdicts for fact in (review.existing, review.pending))
        return [fact for fact in facts if fact.objects[0] == value]

    def _search(self, ask: Any) -> list[str]:
        """Return the answer in the best fact found: the end of it that is further from the names in the question."""
        as_of = None if ask.at == ask.evaluated_at else ask.at
        found = self.memory.search(ask.question, recipe="chain", as_of=as_of, believed_at=ask.known_at)
        if not found.facts or (found.facts[0].score or 0.0) < MOSTLY:
            return []
        best = found.facts[0]
        far = distances(ask.question, found.facts)
        if far[best.objects[0]] < far[best.subject]:
            return [best.subject]
        same = (fact for fact in self._history(best.subject, best.predicate, ask.known_at) if holds(fact, ask.at))
        return [fact.objects[0] for fact in same]


def holds(fact: Fact, moment: datetime) -> bool:
    """Return whether *fact* holds at *moment*."""
    begun = fact.valid_at is None or fact.valid_at <= moment
    return begun and (fact.invalid_at is None or moment < fact.invalid_at)


def distances(question: str, facts: Sequence[Fact]) -> dict[str, float]:
    """Return, for each entity in *facts*, the number of facts between it and the nearest entity named in *question*."""
    text = plain(question)
    pairs = [(fact.subject, fact.objects[0]) for fact in facts]
    far = {name: 0.0 if plain(name) in text else float("inf") for pair in pairs for name in pair}
    for _ in pairs:
        for first, second in pairs:
            far[second] = min(far[second], far[first] + 1)
            far[first] = min(far[first], far[second] + 1)
    return far


def plain(text: str) -> str:
    """Return *text* in lower case, with hyphens replaced by spaces."""
    return text.casefold().replace("-", " ")


def run_theirs(folder: Path, python: str) -> dict[str, dict[str, int]]:
    """Return the number of right answers of memvara's systems by category, run by *python*, or else from its README."""
    with tempfile.TemporaryDirectory() as out:
        systems = [option for name in THEIRS for option in ("--system", name)]
        command = [python, "-W", "ignore", "-c", RUN, str(folder), *systems, "--quiet", "--output", f"{out}/r.json"]
        done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=out)
        if done.returncode:
            print(f"memvara does not run here: {done.stderr.strip().splitlines()[-1]}")
            return {"memvara 0.9.0, by its README": README}
        results = [json.loads(Path(out, f"r-{name}.json").read_text(encoding="utf-8")) for name in THEIRS]
    return {
        f"{result['system']} {result['system_version']}": {
            category: row["correct"] for category, row in result["metrics"]["by_category"].items()
        }
        for result in results
    }


def own_dataset(module: Any, dataset: Any) -> Any:
    """Return *dataset* with our own events and questions in place of those that it asks about."""
    own = json.loads(OWN.read_text(encoding="utf-8"))
    instant = module.parse_instant
    predicates = {name: module.PredicateDecl(name, cardinality) for name, cardinality in own["predicates"].items()}
    names = ("subject", "predicate", "object", "text", "source")
    events = [
        module.MemoryEvent(
            id=f"own-{number:03}",
            recorded_at=instant(recorded),
            valid_from=instant(since or recorded),
            scenario="own",
            **dict(zip(names, rest, strict=True)),
        )
        for number, (recorded, since, *rest) in enumerate(own["events"])
    ]
    questions = [
        module.Question.from_json(
            {"id": f"own-{number}", "category": category, "question": text, "probe": probe, "scenario": "own"}
            | {"gold": _gold(answer), **(more[0] if more else {})}
        )
        for number, (category, text, probe, answer, *more) in enumerate(own["questions"])
    ]
    return replace(
        dataset,
        evaluated_at=instant(own["evaluated_at"]),
        predicates={**dataset.predicates, **predicates},
        events=(*dataset.events_for("filler"), *events),
        questions=tuple(questions),
    )


def _gold(answer: Any) -> dict[str, Any]:
    match answer:
        case None:
            return {"kind": "none"}
        case list():
            return {"kind": "set", "values": answer}
        case {"date": day}:
            return {"kind": "date", "value": day}
    return {"kind": "value", "value": answer}


def print_table(tallies: Mapping[str, Any], systems: Mapping[str, Mapping[str, int]]) -> None:
    """Print the number of right answers by category and system."""
    print(f"\n| right answers | {' | '.join(systems)} | of |\n| --- |{' --- |' * (len(systems) + 1)}")
    for category, tally in tallies.items():
        print(f"| {category} | {' | '.join(str(right[category]) for right in systems.values())} | {tally.total} |")
    totals = (str(sum(right.values())) for right in systems.values())
    print(f"| all | {' | '.join(totals)} | {sum(tally.total for tally in tallies.values())} |")


def main() -> None:
    """Run the benchmark, print the table and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--benchmark", type=Path, required=True, help="the unpacked source distribution of memvara")
    parser.add_argument("--python", default=sys.executable, help="a Python that has memvara installed")
    parser.add_argument("--own", action="store_true", help="ask our own questions")
    parser.add_argument("--failures", action="store_true", help="print the questions that are answered wrongly")
    parser.add_argument("--out", type=Path, help="where to write the figures as JSON")
    given = parser.parse_args()
    folder = given.benchmark.resolve()
    sys.path.insert(0, str(folder))
    part = {
        name: importlib.import_module(f"benchmarks.agent_memory.{name}")
        for name in ("adapters.base", "dataset", "report", "runner", "timeline")
    }
    dataset = part["dataset"].load("v1")
    if given.own:
        dataset = own_dataset(part["dataset"], dataset)
    adapter = Adapter(part["adapters.base"])
    try:
        result = part["runner"].run(adapter, dataset)
    finally:
        adapter.close()
    if given.failures:
        wrong = part["runner"].failures(result, dataset)
        print(part["report"].failure_report(wrong, dataset, part["timeline"].Truth(dataset)))
    tallies = {category: tally for category, tally in result.scorecard.by_category.items() if tally.total}
    systems = {adapter.name: {category: tally.correct for category, tally in tallies.items()}}
    if not given.own:
        systems |= run_theirs(folder, given.python)
    print_table(tallies, systems)
    write({name: dict(right) for name, right in systems.items()}, given.out)


if __name__ == "__main__":
    main()

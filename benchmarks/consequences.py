"""Measure what a memory concludes from changes: stories with exact answers on kg-memory and Graphiti.

    python -m benchmarks.consequences [--system graphiti|kg-memory|both] [--seed N] [--wrong] [--out FILE.json]

Run it from the root of the repository; Graphiti needs the extra ``bench``. `benchmarks.consequences_stories` generates
the stories: tracking (values that change), cascade (facts whose reason ended), absence (a thing given up without a
replacement), deletion (forgotten messages), multi-hop (chains of reasons) and recurrence (true again). Both systems get
the messages in order through their public API, with a scripted model without errors, which returns the entities, facts,
dates, reasons and verdicts of the story. The questions ask the graph, without a model, for the standing of a sentence
at a time.

Graphiti has valid, invalid and expired edges, but no doubt. It is judged in its favour, by the better of two
interpretations of its fields for each question: for a doubtful fact it is right if the edge no longer holds; for an
absent one if neither the edge nor another one with the same subject and relation holds; for a forgotten one if no edge
has it after `remove_episode`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.consequences_stories import CLASSES, SEED, Asked, Standing, Story, make_stories
from benchmarks.database import fresh_database
from benchmarks.temporal import GRAPHITI, KG_MEMORY, Near
from kg_memory.memory.memory import GraphMemory
from kg_memory.settings import Settings
from tests.time.reader import reader

GOALS = {"tracking": 0.95, "cascade": 0.9, "absence": 0.9}
Answers = list[bool]


def on_kg_memory(story: Story, place: int, url: str) -> Answers:
    """Return whether kg-memory answers each question of *story* correctly."""
    settings = Settings(url=url, merge_threshold=0.98, ask_threshold=0.6)
    with GraphMemory(settings, model=reader(story.scenario), embeddings=Near(1024)) as memory:
        namespace = f"story {place}"
        episodes = [
            memory.add(said.content, at=said.moment, namespace=namespace).episode for said in story.scenario.said
        ]
        for number in story.forgotten:
            memory.privacy.forget(episode=episodes[number], namespace=namespace)
        return [find_standing(memory, asked, namespace) == asked.answer for asked in story.questions]


def find_standing(memory: GraphMemory, asked: Asked, namespace: str) -> Standing:
    """Return the standing of the sentence that is *asked* about, by its latest period that had begun by then."""
    time = moment(asked)
    periods = [
        fact
        for fact in memory.facts.about(asked.subject, during=(None, time), namespace=namespace)
        if fact.sentence == asked.sentence
    ]
    if not periods:
        return "unknown"
    if any(fact.invalid_at is None or fact.invalid_at >= time for fact in periods):
        return "doubtful" if any(fact.doubtful_since for fact in periods) else "holds"
    return "absent" if any(fact.absent for fact in periods) else "ended"


def moment(asked: Asked) -> datetime:
    """Return the time that is asked about: noon of its day, or now."""
    if asked.as_of is None:
        return datetime.now(UTC)
    return datetime.fromisoformat(asked.as_of).replace(tzinfo=UTC) + timedelta(hours=12)


def on_graphiti(story: Story, place: int, url: str) -> Answers:
    """Return whether Graphiti answers each question of *story* correctly."""
    try:
        from benchmarks import consequences_graphiti  # noqa: PLC0415 - an extra, which kg-memory alone does without
    except ImportError as error:
        raise SystemExit(f"{error}: install the extra bench, or give --system kg-memory") from error
    return asyncio.run(consequences_graphiti.run(story, place, url.removeprefix("unix://"), Near(1024)))


SYSTEMS = {KG_MEMORY: on_kg_memory, GRAPHITI: on_graphiti}


def main() -> None:
    """Run the stories, print the table and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--system", choices=(*SYSTEMS, "both"), default="both")
    parser.add_argument("--seed", type=int, default=SEED, help="make other stories")
    parser.add_argument("--wrong", action="store_true", help="list the questions that kg-memory gets wrong")
    parser.add_argument("--out", type=Path, help="write the figures to this JSON file")
    given = parser.parse_args()
    systems = [*SYSTEMS] if given.system == "both" else [given.system]
    stories = list(make_stories(given.seed))
    with fresh_database() as url:
        results = {name: [SYSTEMS[name](story, place, url) for place, story in enumerate(stories)] for name in systems}
    found = figures(stories, results)
    print_table(found, systems)
    if given.wrong:
        _print_wrong(stories, results[systems[0]])
    if given.out:
        given.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def figures(stories: list[Story], results: dict[str, list[Answers]]) -> dict[str, dict[str, float]]:
    """Return the counts of stories and questions, and each system's shares of right answers, by class of story."""
    found: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for kind in (*CLASSES, "all"):
        own = [place for place, story in enumerate(stories) if kind in (story.kind, "all")]
        asked = sum(len(stories[place].questions) for place in own)
        found[kind] = {"stories": len(own), "questions": asked}
        for name, answers in results.items():
            found[kind][f"{name} questions"] = sum(sum(answers[place]) for place in own) / asked
            found[kind][f"{name} stories"] = sum(all(answers[place]) for place in own) / len(own)
    return dict(found)


def print_table(found: dict[str, dict[str, float]], systems: list[str]) -> None:
    """Print, for each class, the shares of right answers and of stories without a wrong answer."""
    print("| class | stories | questions |", " | ".join(f"{name} | whole stories" for name in systems), "| goal |")
    print("| --- | --- | --- |", " | ".join("--- | ---" for _ in systems), "| --- |")
    for kind, row in found.items():
        shares = (f"{row[f'{name} questions']:.3f} | {row[f'{name} stories']:.3f}" for name in systems)
        goal = f"{GOALS[kind]:.2f}" if kind in GOALS else ""
        print(f"| {kind} | {row['stories']} | {row['questions']} |", " | ".join(shares), f"| {goal} |")


def _print_wrong(stories: list[Story], results: list[Answers]) -> None:
    for story, answers in zip(stories, results, strict=True):
        for asked, right in zip(story.questions, answers, strict=True):
            if not right:
                print(story.scenario.name, asked, [(each.at, each.content) for each in story.scenario.said], sep="\n  ")


if __name__ == "__main__":
    main()

"""Measure contexts on one long conversation as a model reads it: evidence and answers, by the size of the context.

    python -m benchmarks.long_memory [--budgets 200,400,700,1500] [--arms model,offline] [--messages 300]
        [--unanswered FILE.jsonl]

`long_memory_data` has 300 invented messages of two years, by two people and an assistant, and 120 questions; eight have
no answer, and are left out here. Readers without sight of the questions answered the prompts of the ingestion:
`readings.jsonl` has the facts of each message, and `answers.jsonl` the identities of entities, verdicts on pairs of
facts, predicates and summaries. They are replayed over HTTP by the text of the message, or by the items that a prompt
asks about, so they stay usable when prompts change. An unknown item counts as new or unrelated; the last line of the
output counts them. The lines before tell how often a question such as "What did Noreen do on 14 October 2023?" has an
event of hers on that day among its first two facts.

| column | what it is |
| --- | --- |
| evidence | share of the messages with the answer that the context prints, or that are the source of a printed fact |
| words | share of the answer's words that the context has |

The arm ``offline`` reads the messages without a model.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.database import fresh_database
from benchmarks.recorded_model import FENCE, compose, items_of, serve
from kg_memory import GraphMemory, Settings
from kg_memory.text.tokenise import terms

DATA = Path(__file__).parent / "long_memory_data"
SOURCE = re.compile(r"S\d\d:\d\d")
JSON = dict[str, Any]


def read_lines(name: str) -> list[JSON]:
    """Return the JSON objects of the file *name* of the benchmark's data."""
    return [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]


def questions_about(messages: Sequence[JSON]) -> list[JSON]:
    """Return the questions whose evidence is in *messages*; those without an answer have none."""
    known = {each["id"] for each in messages}
    return [each for each in read_lines("questions.jsonl") if each["evidence"] and known.issuperset(each["evidence"])]


class Answers:
    """Recorded answers to the prompts of the ingestion, by the message that is read or the items asked about."""

    def __init__(self) -> None:
        ids = {(each["speaker"], each["content"]): each["id"] for each in read_lines("messages.jsonl")}
        readings = {each.pop("id"): each for each in read_lines("readings.jsonl")}
        self._readings = {text: readings[id_] for text, id_ in ids.items()}
        self._items = {each["item"]: each["answer"] for each in read_lines("answers.jsonl")}
        self.asked: set[str] = set()
        """The items that were asked about."""
        self.unanswered: dict[str, JSON] = {}
        """Those without a recorded answer, with the rows of the prompt."""

    def answer(self, prompt: str, _: Any) -> str:
        """Return the answer to *prompt* as JSON text."""
        items = items_of(prompt)
        if not items:
            episode = json.loads(next(text for name, _, text in FENCE.findall(prompt) if name == "episode"))
            return json.dumps(self._readings[episode["speaker"], episode["content"]], ensure_ascii=False)
        recorded, neutral = {}, {}
        for item, row in rows_of(prompt, items):
            key = f"{row['name']}: {row['facts'][0]}" if row["kind"] == "summary" else item
            self.asked.add(key)
            neutral[f" {item}"] = neutral_answer(row)
            recorded[f" {item}"] = self._items.get(key, neutral[f" {item}"])
            if key not in self._items:
                self.unanswered[key] = {"item": key, **row}
        # The second, if a recorded name is not among the candidates.
        return json.dumps(compose(prompt, "", recorded) or compose(prompt, "", neutral), ensure_ascii=False)


def rows_of(prompt: str, items: dict[str, str]) -> Iterator[tuple[str, JSON]]:
    """Yield (hash, what is asked) for each of the *items* of a *prompt*; see `recorded_model.items_of`."""
    data = {name: json.loads(text) for name, _, text in FENCE.findall(prompt) if name != "known"}
    for row in data.get("predicates", ()):
        yield items[row["name"]], {"kind": "predicate", **row}
    for new in data.get("facts", ()):
        for known in new["existing"]:
            shown = {name: value for name, value in new.items() if name != "existing"}
            yield items[f"{new['id']} {known['id']}"], {"kind": "pair", "new": shown, "known": known}
    for entity in data.get("entities", ()):
        place = str(entity["id"])
        asked = {"kind": "summary"} if "facts" in entity else {"kind": "entity", "episode": data["episode"]}
        if place in items:
            yield items[place], {**asked, **entity}


def neutral_answer(row: JSON) -> JSON | None:
    """Return the answer for an unknown item: a new entity, an unrelated fact, or no change of predicate or summary."""
    match row["kind"]:
        case "entity":
            return {"same_as": None, "name": row["name"], "confidence": 0.9}
        case "predicate":
            return {"name": row["name"], "canonical": row["name"], "one_at_a_time": False}
        case "summary":
            return {"summary": row["summary"]}
    return None


def ingest(url: str, base_url: str | None, messages: Sequence[JSON]) -> GraphMemory:
    """Return a memory that has read *messages*, with the model at *base_url* or offline."""
    model = {"base_url": base_url, "api_key": "none", "model_timeout": 300.0} if base_url else {}
    settings = Settings(url=url, **model)
    memory = GraphMemory.open(settings=settings, model="recorded" if base_url else "offline", embeddings="offline")
    episodes = [{**each, "source_id": each["id"]} for each in messages]
    for episode in episodes:
        del episode["id"]
    failed = [result.error for result in memory.add_many(episodes, namespace=model_name(base_url)) if result.error]
    if failed:
        raise SystemExit(f"{len(failed)} messages could not be read: {failed[0]}")
    return memory


def model_name(base_url: str | None) -> str:
    """Return the name of the arm, which is also its namespace."""
    return "model" if base_url else "offline"


def score(memory: GraphMemory, arm: str, questions: Sequence[JSON], budget: int) -> dict[str, list[float]]:
    """Return the scores of *questions* by column, and of the evidence by kind of question, in *budget* tokens."""
    scores: dict[str, list[float]] = defaultdict(list)
    for each in questions:
        context = memory.context(each["question"], namespace=arm, max_tokens=budget)
        shown, wanted = set(SOURCE.findall(context)), set(terms(each["answer"]))
        share = mean(id_ in shown for id_ in each["evidence"])
        scores["evidence"].append(share)
        scores[each["kind"]].append(share)
        scores["words"].append(len(wanted & set(terms(context))) / len(wanted))
    return scores


def find_days(memory: GraphMemory, arm: str, most: int = 40) -> tuple[int, int]:
    """Ask who did what on a day, for *most* dated events; return how often one is among the first two facts, of all."""
    events = [fact for fact in memory.facts.list(namespace=arm, limit=5000) if fact.kind == "event"]
    days = {(fact.subject, fact.valid_at) for fact in events if fact.valid_at and fact.precision == "day"}
    right = 0
    asked = random.Random(1).sample(sorted(days), min(most, len(days)))
    for subject, day in asked:
        found = memory.search(f"What did {subject} do on {day.day} {day:%B %Y}?", namespace=arm, limit=2)
        right += any((fact.kind, fact.subject, fact.valid_at) == ("event", subject, day) for fact in found.facts)
    return right, len(asked)


def main() -> None:
    """Run the benchmark and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budgets", default="200,400,700,1500")
    parser.add_argument("--arms", default="model,offline")
    parser.add_argument("--messages", type=int, default=300, help="read only the first of them")
    parser.add_argument("--unanswered", type=Path, help="write the items without a recorded answer to this file")
    chosen = parser.parse_args()
    messages, answers = read_lines("messages.jsonl")[: chosen.messages], Answers()
    questions = questions_about(messages)
    kinds = list(dict.fromkeys(each["kind"] for each in questions))
    columns = ("evidence", "words", *kinds)
    print(f"| arm | tokens | {' | '.join(columns)} |\n|{' --- |' * (len(columns) + 2)}")
    days: list[str] = []
    with fresh_database() as url, serve(answers) as base_url:
        for arm in chosen.arms.split(","):
            with ingest(url, base_url if arm == "model" else None, messages) as memory:
                for budget in map(int, chosen.budgets.split(",")):
                    scores = score(memory, arm, questions, budget)
                    cells = (f"{mean(scores[column]):.3f}" if scores[column] else "-" for column in columns)
                    print(f"| {arm} | {budget} | {' | '.join(cells)} |", flush=True)
                days.append("{}: {} of {} days".format(arm, *find_days(memory, arm)))
    print("", *days, sep="\n")
    print(f"{len(answers.asked)} items asked about, {len(answers.unanswered)} of them without a recorded answer")
    if chosen.unanswered:
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in answers.unanswered.values())
        chosen.unanswered.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()

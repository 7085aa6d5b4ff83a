"""Measure which fabricated facts of a reader are accepted: ``python -m benchmarks.fabrications [--half HALF] [-v]``.

A scripted reader returns the annotated facts of each message (`reading_data`), and in addition facts that the message
does not state, made by the rules of `fabrications_data`. All are added by `GraphMemory.add_many`. A fact is *refused*
(`AddResult.dropped`), *marked* ("not confirmed by its words"), or accepted as *true*. The check was tuned on the open
half; HALF is open, closed or both. The messages are reported in two parts, split by a hash of their ids.
``--min-support 0`` disables the check.

    python -m benchmarks.fabrications --offline [--locomo FILE.json]

counts how many facts of the offline reader are refused and marked in the same messages, and in 300 of LoCoMo's.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from benchmarks.conversations import locomo_conversations
from benchmarks.database import fresh_database
from benchmarks.exports import read_export
from benchmarks.fabrications_data import Planted, Scene, plant
from benchmarks.reading import DATA, Conversation
from kg_memory import GraphMemory, Settings
from kg_memory.contrib.offline import OfflineModel
from kg_memory.runtime.effects import Ask

JSON = dict[str, Any]
HONEST = "honest"
OUTCOMES = ("refused", "marked", "true")
"""The outcomes of a fact. A fact that is dropped for its form, or merged with another one, has none of them."""


class Reader(OfflineModel):
    """A model that returns prepared facts for each message, by its content; other prompts are answered by rules."""

    name = "scripted"
    by_rules = False

    def __init__(self, readings: Mapping[str, JSON]) -> None:
        self._readings = readings

    def answer(self, ask: Ask) -> BaseModel:
        """Return the typed answer to *ask*."""
        answer: BaseModel = ask.prompt.answer.model_validate(self._tell(ask.prompt.name, ask))
        return answer

    async def aanswer(self, ask: Ask) -> BaseModel:
        """Return the typed answer to *ask*."""
        return self.answer(ask)

    def _tell(self, prompt: str, ask: Ask) -> JSON:
        match prompt:
            case "read":
                return self._readings[ask.fields["episode"]["content"].strip()]
            case "judge":
                return {"verdicts": []}
            case "resolve":
                return {"resolutions": []}
            case "predicates":
                names = [each["name"] for each in ask.fields["predicates"]]
                return {"predicates": [{"name": each, "canonical": each, "one_at_a_time": False} for each in names]}
        return {"summaries": []}


def is_held_out(message: str) -> bool:
    """Return whether a message is in the second part, on which the first version of the check was not tuned."""
    return hashlib.sha256(message.encode()).digest()[0] % 2 == 1


def load(half: str) -> list[Conversation]:
    """Return the annotated conversations of a half, without JSON records."""
    halves = json.loads((DATA / "set" / "halves.json").read_text(encoding="utf-8"))
    names = halves["open"] + halves["closed"] if half == "both" else halves[half]
    conversations = map(Conversation.load, sorted((DATA / "set").glob("*.jsonl")))
    return [each for each in conversations if each.name in names and each.kind != "json" and each.name != "other1"]


def language_of(conversation: Conversation) -> str:
    """Return the language of a conversation: "zh" if its name begins with zh, else "en"."""
    return "zh" if conversation.name.startswith("zh") else "en"


def list_cases(conversations: Sequence[Conversation]) -> list[Planted]:
    """Return the honest facts of all messages, and the fabricated ones."""
    honest = [
        Planted(HONEST, language_of(each), message["id"], told, [])
        for each in conversations
        for place, message in enumerate(each.messages)
        for _, told in Scene(each, language_of(each), place).honest()
    ]
    planted = plant(conversations, {each.name: language_of(each) for each in conversations})
    taken = {(case.message, case.fact["sentence"]) for case in planted}
    return [case for case in honest if (case.message, case.fact["sentence"]) not in taken] + planted


def to_readings(conversation: Conversation, cases: Iterable[Planted]) -> dict[str, JSON]:
    """Return the entities and facts that the reader returns for each message, by its content."""
    by_message = defaultdict[str, list[JSON]](list)
    for case in cases:
        by_message[case.message].append(case.fact)
    readings: dict[str, JSON] = {}
    for place, (message, episode) in enumerate(zip(conversation.messages, conversation.episodes(), strict=True)):
        scene, facts = Scene(conversation, language_of(conversation), place), by_message[message["id"]]
        names = dict.fromkeys(name for fact in facts for name in (fact["subject"], *fact["objects"]))
        speaker = [{"name": message["speaker"], "type": "Person"}] if message["speaker"] else []
        others = [{"name": name, "type": scene.type_of(name)} for name in names if name != message["speaker"]]
        readings[episode["content"].strip()] = {"entities": speaker + others, "facts": facts}
    return readings


def run(
    conversation: Conversation, cases: Iterable[Planted], url: str, folder: Path, min_support: float
) -> dict[tuple[str, str], str]:
    """Ingest a conversation with a reader that returns *cases*; return the outcome of each fact.

    Outcomes are "true", "marked", "refused", or the reason why the fact was dropped for its form, by (message id,
    sentence).
    """
    reader = Reader(to_readings(conversation, cases))
    settings = Settings(
        url=url, plan="standard", min_support=min_support, max_facts=1000, max_entities=1000, read_all=True
    )
    target = folder / f"{conversation.name}.jsonl"
    with GraphMemory.open(settings=settings, model=reader, embeddings="offline") as memory:
        added = memory.add_many(conversation.episodes(), namespace=conversation.name)
        failed = [result.error for result in added if result.error]
        if failed:
            raise SystemExit(f"{conversation.name}: {len(failed)} messages could not be read: {failed[0]}")
        memory.data.export(target, namespace=conversation.name, embeddings=False)
    outcomes: dict[tuple[str, str], str] = {}
    for message, result in zip(conversation.messages, added, strict=True):
        losses = ((loss.text, loss.reason) for loss in getattr(result, "dropped", ()) if loss.kind == "fact")
        outcomes |= {(message["id"], text): "refused" if "quote" in reason else reason for text, reason in losses}
    return outcomes | {key: "true" if confirmed else "marked" for key, confirmed in list_stored(target)}


def list_stored(path: Path) -> Iterator[tuple[tuple[str, str], bool]]:
    """Yield ((message, sentence), whether it is confirmed) for each stored statement in an export."""
    messages: dict[str, str] = {}
    sentences: dict[str, str] = {}
    for name, record in read_export(path):
        if name == "Episode":
            messages[record["id"]] = record.get("source_id") or ""
        elif name == "Fact":
            sentences[record["id"]] = record["sentence"]
        elif name == "STATES":
            yield (messages[record["source"]], sentences[record["target"]]), not record.get("weak")


def count(
    cases: Iterable[Planted], outcomes: Mapping[tuple[str, str], str], *, verbose: bool
) -> dict[Any, Counter[str]]:
    """Count the *outcomes* of facts by kind, language and part of the messages; *verbose* prints the wrong ones."""
    table = defaultdict[Any, Counter[str]](Counter)
    for case in cases:
        outcome = outcomes.get((case.message, " ".join(case.fact["sentence"].split())), "merged")
        if outcome not in OUTCOMES:
            outcome = "neither"
        kinds = (case.kind, "all fabrications") if case.kind != HONEST else (HONEST,)
        for kind in kinds:
            table[kind, case.language, is_held_out(case.message)][outcome] += 1
        if verbose and (outcome in ("true", "neither")) == (case.kind != HONEST):
            print(f"{case.kind}, {case.message}, {outcome}: {case.fact['sentence']} | {case.fact['quote']}")
    return table


def print_table(table: Mapping[Any, Counter[str]]) -> None:
    """Print the outcomes by kind, for the messages of both parts."""
    print("| kind | first part: refused | marked | true | second: refused | marked | true | of them Chinese, true |")
    print("|" + " --- |" * 8)
    for kind in dict.fromkeys(kind for kind, _, _ in table):
        halves = [sum((table[kind, language, half] for language in ("en", "zh")), Counter()) for half in (False, True)]
        cells = [str(half[outcome]) for half in halves for outcome in OUTCOMES]
        chinese = table[kind, "zh", True]
        print(f"| {kind} | {' | '.join(cells)} | {chinese['true']} of {chinese.total()} |")


def count_offline(episodes: Sequence[Any], url: str, name: str) -> None:
    """Print how many facts of the offline reader in *episodes* are refused and marked."""
    with GraphMemory.open(settings=Settings(url=url), model="offline", embeddings="offline") as memory:
        added = memory.add_many(episodes, namespace=name)
        refused = [loss for result in added for loss in result.dropped if "quote" in loss.reason]
        target = Path(tempfile.mkdtemp()) / "out.jsonl"
        memory.data.export(target, namespace=name, embeddings=False)
    stored = list(list_stored(target))
    weak = [sentence for (_, sentence), confirmed in stored if not confirmed]
    print(f"{name}: {len(episodes)} messages, {len(stored)} facts, {len(refused)} refused, {len(weak)} marked")
    for sentence in [loss.text for loss in refused] + weak:
        print(f"  {sentence}")


def main() -> None:
    """Run the benchmark and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", default="open", choices=("open", "closed", "both"))
    parser.add_argument("--min-support", type=float, default=Settings().min_support)
    parser.add_argument("--offline", action="store_true", help="check what the offline reader finds")
    parser.add_argument("--locomo", type=Path, help="a file of LoCoMo, with --offline")
    parser.add_argument("-v", "--verbose", action="store_true", help="list what came out wrong")
    chosen = parser.parse_args()
    with fresh_database() as url, tempfile.TemporaryDirectory(prefix="kg-fabrications-") as folder:
        if chosen.offline:
            halves = json.loads((DATA / "set" / "halves.json").read_text(encoding="utf-8"))["open"]
            own = map(Conversation.load, sorted((DATA / "set").glob("*.jsonl")))
            count_offline([episode for each in own if each.name in halves for episode in each.episodes()], url, "set")
            if chosen.locomo:
                count_offline(locomo_conversations(chosen.locomo)[0].episodes[:300], url, "locomo")
            return
        conversations = load(chosen.half)
        cases, outcomes = list_cases(conversations), dict[tuple[str, str], str]()
        for conversation in conversations:
            outcomes |= run(conversation, cases, url, Path(folder), chosen.min_support)
    print_table(count(cases, outcomes, verbose=chosen.verbose))


if __name__ == "__main__":
    main()

"""Measure how many pairs of facts a model must judge, and which facts are ended although they still hold.

    python -m benchmarks.retirements --data locomo.json [--beam FOLDER --chats 1] [--conversations 1]
        [--messages 200] [--dense] [--similarities] [--list]

Run it from the root of the repository. Conversations of LoCoMo (Maharana et al. 2024) and BEAM (Tavakoli et al. 2025)
are read offline into an empty graph. With ``--dense`` a scripted model finds four entities and three facts in each
message instead (see `ingest_cost_dense`), as many as a good model would, and only the verdicts are made by rules.

It prints the pairs judged per message, how many of them have a verdict, and the ended facts. An end is *wrong* if
another fact ended it and either its predicate can have several values at a time (a hobby, a visit, a friend), or the
two have different subjects and neither is the object of the other. ``--similarities`` prints the similarity of related
pairs by the embedding model, beside that of all judged pairs.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from benchmarks.database import fresh_database
from benchmarks.ingest_cost_dense import dense
from kg_memory import GraphMemory, Settings
from kg_memory.contrib.chats import read
from kg_memory.contrib.offline import OfflineModel
from kg_memory.contrib.offline.embeddings import LocalEmbeddings
from kg_memory.llm import prompts
from kg_memory.models.graph import EpisodeInput, Fact
from kg_memory.runtime.effects import Ask
from kg_memory.text.predicates import canonical_predicate

Row = Mapping[str, Any]


@dataclass
class Judge:
    """The offline model, which records the pairs of facts that it judges; *readings* script messages by content."""

    name: str
    readings: Mapping[str, Any]
    pairs: list[tuple[Row, Row]] = field(default_factory=list)
    verdicts: list[tuple[Row, Row, str]] = field(default_factory=list)
    offline: OfflineModel = field(default_factory=OfflineModel)

    @property
    def by_rules(self) -> bool:
        """Whether messages are read by rules, without scripted readings."""
        return self.name == self.offline.name

    def answer(self, ask: Ask) -> BaseModel:
        """Return the answer of the offline model, or the scripted reading of a message."""
        if self.readings and ask.prompt.name == prompts.READ.name:
            return ask.prompt.answer.model_validate(self.readings[ask.fields["episode"]["content"]])
        answer = self.offline.answer(ask)
        facts = ask.fields.get("facts")
        if isinstance(facts, Sequence) and any(isinstance(fact, Mapping) and "existing" in fact for fact in facts):
            self._note(facts, getattr(answer, "verdicts", ()))
        return answer

    async def aanswer(self, ask: Ask) -> BaseModel:
        """Return the result of `answer`."""
        return self.answer(ask)

    def _note(self, facts: Sequence[Row], verdicts: Sequence[Any]) -> None:
        shown = {(fact["id"], known["id"]): (fact, known) for fact in facts for known in fact["existing"]}
        self.pairs += shown.values()
        for verdict in verdicts:
            self.verdicts.append((*shown[verdict.fact, verdict.known], verdict.verdict))


def list_facts(memory: GraphMemory, namespace: str) -> list[Fact]:
    """Return all facts in a namespace, once for each period in which they hold."""
    names = [entity.name for entity in memory.entities.list(namespace=namespace, limit=10_000)]
    facts: dict[tuple[object, ...], Fact] = {}
    for name in names:
        for fact in memory.facts.history(name, namespace=namespace, limit=10_000):
            facts[fact.id, fact.valid_at, fact.invalid_at] = fact
    return list(facts.values())


def find_wrong_ends(facts: Sequence[Fact], judge: Judge) -> Iterator[tuple[Fact, str, str]]:
    """Yield (fact, other sentence, reason) for facts that another fact ended although both may hold."""
    ended = {fact.sentence: fact for fact in facts if fact.invalid_at}
    for new, known, verdict in judge.verdicts:
        for row, rival in ((known, new), (new, known)):
            fact = ended.get(row["sentence"])
            if verdict != "supersedes" or fact is None:
                continue
            rule = canonical_predicate(fact.predicate)
            apart = row["subject"] != rival["subject"] and not {row["subject"], *row["objects"]}.intersection(
                (rival["subject"], *rival["objects"])
            )
            if rule is not None and rule.single_valued is False:
                yield fact, rival["sentence"], "several at a time"
            elif apart:
                yield fact, rival["sentence"], "nothing in common"


def report(name: str, episodes: Sequence[EpisodeInput], memory: GraphMemory, judge: Judge, *, is_listed: bool) -> None:
    """Ingest one conversation, and print its figures."""
    for episode in episodes:
        memory.add(**dict(episode), namespace=name)
    facts = list_facts(memory, name)
    wrong = {fact.sentence: (fact, rival, why) for fact, rival, why in find_wrong_ends(facts, judge)}
    ended = [fact for fact in facts if fact.invalid_at]
    kinds = [verdict for *_, verdict in judge.verdicts]
    superseded = kinds.count("supersedes")
    cells = {
        "messages": len(episodes),
        "facts": len(facts),
        "pairs shown": len(judge.pairs),
        "a message": f"{len(judge.pairs) / len(episodes):.2f}",
        "with a verdict": len(kinds),
        "ended": len(ended),
        "supersedes": superseded,
        "wrong ends": len(wrong),
    }
    print(f"{name}: " + ", ".join(f"{value} {label}" for label, value in cells.items()), flush=True)
    for fact, rival, why in wrong.values() if is_listed else ():
        print(f"  {fact.predicate}: {fact.sentence!r} ended by {rival!r}: {why}")


def report_similarities(judge: Judge) -> None:
    """Print the similarity of pairs with a verdict, and the share of all pairs above each threshold."""
    texts = sorted({row["sentence"] for pair in judge.pairs for row in pair})
    vectors = dict(zip(texts, LocalEmbeddings().embed_documents(texts), strict=True))

    def measure(new: Row, known: Row) -> float:
        one, another = vectors[new["sentence"]], vectors[known["sentence"]]
        return sum(a * b for a, b in zip(one, another, strict=True))

    everything = [measure(*pair) for pair in judge.pairs]
    by_kind: dict[str, list[float]] = {}
    for new, known, verdict in judge.verdicts:
        by_kind.setdefault(verdict, []).append(measure(new, known))
    for kind, values in sorted(by_kind.items()):
        print(f"  {kind}: {len(values)} pairs, least {min(values):.3f}, median {statistics.median(values):.3f}")
    for cut in (0.80, 0.82, 0.84, 0.86, 0.88, 0.90):
        kept = sum(value >= cut for value in everything) / max(1, len(everything))
        lost = {kind: sum(value < cut for value in values) for kind, values in by_kind.items()}
        print(f"  cut at {cut:.2f}: {kept:.0%} of the pairs shown; verdicts below it: {lost}")


def read_conversations(options: argparse.Namespace) -> Iterator[tuple[str, list[EpisodeInput]]]:
    """Yield the name and the first messages of each chosen conversation."""
    threads: dict[str, list[EpisodeInput]] = {}
    for episode in read(options.data):
        # The thread of a LoCoMo message consists of its conversation and session.
        threads.setdefault((episode.thread or "").split("/")[0].split(":")[0], []).append(episode)
    for name, episodes in list(threads.items())[: options.conversations]:
        yield f"locomo {name}", episodes[: options.messages]
    for chat in sorted(options.beam.iterdir())[: options.chats] if options.beam else ():
        yield f"beam {chat.name}", list(read(next(chat.rglob("chat.json"))))[: options.messages]


def main() -> None:
    """Ingest the conversations, and print their figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a LoCoMo file")
    parser.add_argument("--beam", type=Path, help="a folder of BEAM chats")
    parser.add_argument("--chats", type=int, default=1)
    parser.add_argument("--conversations", type=int, default=1)
    parser.add_argument("--messages", type=int, default=200)
    parser.add_argument("--dense", action="store_true", help="a scripted model finds three facts in each message")
    parser.add_argument("--similarities", action="store_true")
    parser.add_argument("--list", action="store_true", help="list the wrong ends")
    options = parser.parse_args()
    with fresh_database() as url:
        for name, episodes in read_conversations(options):
            people = {episode.speaker for episode in episodes}
            readings = {episode.content: dense(episode, people) for episode in episodes} if options.dense else {}
            judge = Judge("scripted" if options.dense else "offline", readings)
            with GraphMemory(Settings(url=url), model=judge, embeddings="offline") as memory:
                report(name, episodes, memory, judge, is_listed=options.list)
            if options.similarities:
                report_similarities(judge)


if __name__ == "__main__":
    main()

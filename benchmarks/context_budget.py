"""Measure how much of an answer a context of a given size contains, beside the same space filled with turns, offline.

    python benchmarks/context_budget.py [--locomo locomo.json] [--beam FOLDER] [--recorded] --out figures.json
        [--locomo-folder FOLDER] [--beam-folder FOLDER] [--every N]

Two shares are measured for each question and budget of tokens. *Evidence*: evidence turns that a line names as its
source and of which it has at least half of the content words, or half of those of the sentence that best matches the
answer. *Answer*: content words of the answer that occur anywhere in the text. ``memory.context`` is compared with turns
ranked by our search, and with turns ranked by BM25 with neighbours; each turn has its time, speaker and source, and
turns that do not fit are skipped. The questions are those of LoCoMo (Maharana et al. 2024) and BEAM (Tavakoli et al.
2025), read offline; with ``--recorded`` also facts of the annotated messages of `reading.py` without their object, on
graphs read by recorded answers of a model. The spread is that of the means of the conversations.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from statistics import fmean
from typing import Any

from baselines import words
from conversations import beam_conversations, locomo_conversations, turn
from opening import ingest, kept, opened, write

from kg_memory import GraphMemory, Settings
from kg_memory.contrib.evaluation.records import Conversation, Question
from kg_memory.contrib.evaluation.systems import best
from kg_memory.contrib.offline.lexicon import content_words
from kg_memory.models.graph import EpisodeInput
from kg_memory.text.sentences import split_sentences
from kg_memory.text.tokenise import estimate_tokens

BUDGETS = (150, 350, 700, 1400)
CONTEXT, BY_SEARCH, BY_WORDS = "context", "turns in the order of our search", "turns by BM25"
PLAN = "standard"
_REFERENCES = re.compile(r"\[([^\[\]]*)\]")
_ELSEWHERE = re.compile(r"(?:see|contradicts) \[[^\[\]]*\]")
"""A mark after a line that refers to another line."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, the words that must be shown of each evidence turn, and the content words of its answer."""

    question: Question
    evidence: Mapping[str, frozenset[str]]
    answer: frozenset[str]

    def shares(self, text: str) -> tuple[float, float]:
        """Return the shares of the evidence and of the answer that *text* contains; NaN for an answer without words."""
        shown = set()
        for line in map(unescape, text.splitlines()):
            line_words = content_words(_REFERENCES.sub("", line))
            for several in _REFERENCES.findall(_ELSEWHERE.sub("", line)):
                shown |= {name for name in map(turn_of, several.split(", ")) if self._shows(name, line_words)}
        told = content_words(unescape(text)) & self.answer
        return len(shown) / len(self.evidence), len(told) / len(self.answer) if self.answer else float("nan")

    def _shows(self, name: str, line_words: frozenset[str]) -> bool:
        wanted = self.evidence.get(name)
        return wanted is not None and 2 * len(wanted & line_words) >= len(wanted)


def turn_of(reference: str) -> str:
    """Return the name of the turn that *reference* refers to."""
    return turn(reference) or reference


def ask(conversation: Conversation) -> Iterator[Asked]:
    """Yield the questions about a conversation whose evidence is among its turns."""
    contents = {turn_of(episode.source_id or ""): episode.content for episode in conversation.episodes}
    for question in conversation.questions:
        answer = content_words(question.answer or " ".join(question.rubric))
        evidence = {
            name: _telling_words(contents[name], answer) for name in map(turn_of, question.evidence) if name in contents
        }
        if evidence:
            yield Asked(question, evidence, answer)


def _telling_words(content: str, answer: frozenset[str]) -> frozenset[str]:
    """Return the content words of the sentence in *content* that has most words of *answer*; of all if none has any."""
    sentences = [content_words(sentence.text) for sentence in split_sentences(content)]
    telling = max(sentences, key=lambda sentence: len(sentence & answer), default=frozenset[str]())
    return telling if telling & answer else content_words(content)


def fill(episodes: Sequence[Any], budget: int) -> str:
    """Return the lines of *episodes*, in order, that fit into *budget* tokens; longer ones are skipped."""
    lines, room = [], budget
    for episode in episodes:
        when = f"({episode.at:%Y-%m-%d}) " if episode.at else ""
        line = f"- [{episode.source_id}] {when}{episode.speaker or ''}: {episode.content}".replace("\n", " ")
        if (cost := estimate_tokens(line)) <= room:
            lines.append(line)
            room -= cost
    return "\n".join(lines)


def measure(memory: GraphMemory, conversations: Sequence[Conversation], every: int) -> list[dict[str, Any]]:
    """Return a row for each budget and method: the shares of evidence and answers, and the spread by conversation.

    Every *every*-th question is asked.
    """
    shares: defaultdict[tuple[str, int], defaultdict[str, list[tuple[float, float]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for conversation in conversations:
        score = words(conversation.episodes, neighbours=True)
        for asked in list(ask(conversation))[::every]:
            text = asked.question.text
            by_words = [conversation.episodes[place] for place in best(score(text))[:200]]
            by_search = memory.search(text, namespace=conversation.name, limit=60).episodes
            for budget in BUDGETS:
                filled = {
                    CONTEXT: memory.context(text, namespace=conversation.name, max_tokens=budget),
                    BY_SEARCH: fill(by_search, budget),
                    BY_WORDS: fill(by_words, budget),
                }
                for way, shown in filled.items():
                    shares[way, budget][conversation.name].append(asked.shares(shown))
    return [{"way": way, "budget": budget, **_summarise(by_name)} for (way, budget), by_name in shares.items()]


def _summarise(by_name: Mapping[str, Sequence[tuple[float, float]]]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for place, what in enumerate(("evidence", "answer")):
        known = {name: [pair[place] for pair in pairs if pair[place] == pair[place]] for name, pairs in by_name.items()}
        means = [fmean(values) for values in known.values() if values]
        row[what] = round(fmean(value for values in known.values() for value in values), 4)
        row[f"{what}_from"], row[f"{what}_to"] = round(min(means), 4), round(max(means), 4)
    return row


def recorded(folder: Path) -> list[Conversation]:
    """Return the annotated conversations in *folder*, with a question for each fact whose sentence names its object."""
    from benchmarks import reading  # noqa: PLC0415 - only for these

    conversations = []
    for annotated in reading.choose_conversations(folder / "set", "both", None):
        questions = []
        for message in annotated.messages:
            for fact in message["facts"]:
                names = annotated.entities[fact["object"]]["names"] if fact.get("object") else []
                name = next((name for name in sorted(names, key=len, reverse=True) if name in fact["sentence"]), None)
                if name and not fact.get("optional") and not fact.get("repeats"):
                    text = fact["sentence"].replace(name, "...")
                    evidence = frozenset([message["id"]])
                    questions.append(Question(str(len(questions)), text, PLAN, name, evidence))
        episodes = [EpisodeInput.model_validate(each) for each in annotated.episodes()]
        conversations.append(Conversation(f"{annotated.name}-{PLAN}", episodes, questions))
    return conversations


def measure_recorded(every: int) -> list[dict[str, Any]]:
    """Ingest the annotated messages with recorded answers, and return the rows of `measure` for these graphs."""
    from benchmarks import reading  # noqa: PLC0415
    from benchmarks.database import fresh_database  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as name, fresh_database() as url:
        with reading.recorded_answers(PLAN, reading.DATA / "recordings", None) as (base_url, _):
            for annotated in reading.choose_conversations(reading.DATA / "set", "both", None):
                reading.run(annotated, PLAN, url, base_url, Path(name))
        with GraphMemory.open(settings=Settings(url=url), model="offline", embeddings="offline") as memory:
            return measure(memory, recorded(reading.DATA), every)


def show(data: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print the rows as a table: evidence / answer, with the spread of the evidence."""
    print(f"\n| {data} | {' | '.join(f'{budget} tokens' for budget in BUDGETS)} |\n|{' --- |' * (len(BUDGETS) + 1)}")
    for way in (CONTEXT, BY_SEARCH, BY_WORDS):
        of_way = {row["budget"]: row for row in rows if row["way"] == way}
        cells = [
            "{evidence:.3f} / {answer:.3f} ({evidence_from:.2f} to {evidence_to:.2f})".format(**of_way[budget])
            for budget in BUDGETS
        ]
        print(f"| {way} | {' | '.join(cells)} |")


def main() -> None:
    """Run the benchmark, print its tables and write its figures."""
    parser = argparse.ArgumentParser(description="What a context of so many tokens holds of an answer, offline.")
    parser.add_argument("--locomo", type=Path, help="a LoCoMo JSON file")
    parser.add_argument("--beam", type=Path, help="a folder of BEAM chats")
    parser.add_argument("--locomo-folder", type=Path, help="keep the database of LoCoMo here")
    parser.add_argument("--beam-folder", type=Path, help="keep the database of BEAM here")
    parser.add_argument("--recorded", action="store_true", help="also graphs read by recorded answers of a model")
    parser.add_argument("--every", type=int, default=1, help="ask every n-th question only")
    parser.add_argument("--out", type=Path, help="where to write the figures as JSON")
    options = parser.parse_args()
    if not (options.locomo or options.beam or options.recorded):
        sys.exit("nothing to measure: give --locomo, --beam or --recorded")
    figures: dict[str, Any] = {}
    for data, load, path, place in (
        ("LoCoMo", locomo_conversations, options.locomo, options.locomo_folder),
        ("BEAM", beam_conversations, options.beam, options.beam_folder),
    ):
        if path:
            conversations = load(path)
            with kept(place) as folder, opened(folder) as memory:
                ingest(memory, [(each.name, each.episodes) for each in conversations])
                figures[data] = measure(memory, conversations, options.every)
            show(data, figures[data])
    if options.recorded:
        figures["recorded"] = measure_recorded(options.every)
        show("facts read by a model", figures["recorded"])
    write(figures, options.out)


if __name__ == "__main__":
    main()

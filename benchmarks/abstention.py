"""How well `SearchResults.relevance` tells an unknown subject, offline; and the constants it uses.

    python benchmarks/abstention.py --data locomo.json --out figures.json [--quick] [--folder FOLDER]
        [--beam FOLDER] [--beam-folder FOLDER] [--chats 1,2]

Each LoCoMo conversation (Maharana et al. 2024) is asked its own questions, and those of others with the names of its
own speakers put in: who is asked about is known, only what is asked is not. Some of these it may answer by chance. A
logistic regression on the evidence of `kg_memory.retrieval.search` predicts each conversation from the others; as
much weight is on both sides, so 0.5 is where a question is as likely to be answered as not if half of all are.
``--beam`` tests the constants that are in use on chats that were not used to choose them (Tavakoli et al. 2025): their
questions with evidence, beside those of other chats, and those that ask for a detail which the chat never tells.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from conversations import (
    Conversation,
    beam_chats,
    beam_conversations,
    beam_namespace,
    beam_probing,
    locomo_conversations,
)
from opening import arguments, ingest, kept, opened, write

from kg_memory import GraphMemory
from kg_memory.falkor.queries import search as cypher
from kg_memory.retrieval.graph import decode_search, search
from kg_memory.retrieval.records import RetrievalState
from kg_memory.retrieval.search import counts_of, evidence, frequencies_of, probability
from kg_memory.runtime.effects import read
from kg_memory.runtime.flow import Flow
from kg_memory.text.tokenise import terms as tokens

QUICK = 6
"""A quick run asks every sixth question."""
OTHERS = 2
"""How many other conversations' questions each is asked."""
RIDGE = 1e-2
STEPS = 30
BELOW = (0.05, 0.1, 0.2, 0.3, 0.5)
OWN, FOREIGN, UNTOLD = "own", "of others", "never told"


@dataclass(frozen=True, slots=True)
class Asked:
    """A question to a namespace, and what it is there: its own, one of another, or one about what is never told."""

    namespace: str
    text: str
    what: str


def main() -> None:
    """Run the benchmark, print its tables and the constants, and write its figures."""
    parser = arguments(
        "How well a memory tells what it knows nothing about, on LoCoMo conversations, offline.",
        data="a LoCoMo JSON file with two conversations or more",
        quick=f"every {QUICK}th question",
    )
    parser.add_argument("--beam", type=Path, help="test on BEAM chats too: a folder of folders with a chat.json each")
    parser.add_argument("--beam-folder", type=Path, help="keep their database here")
    parser.add_argument("--chats", help="the names of the chats to take, as in 1,2")
    options = parser.parse_args()
    conversations = locomo_conversations(options.data)
    if len(conversations) < 2:
        sys.exit(f"{options.data} has no two LoCoMo conversations: give a JSON list of objects with a `conversation`")
    with kept(options.folder) as folder, opened(folder) as memory:
        ingest(memory, [(each.name, each.episodes) for each in conversations])
        asked = list(locomo_asked(conversations, QUICK if options.quick else 1))
        figures = fitted(asked, seen(memory, asked))
    if options.beam:
        chats = beam_conversations(options.beam, options.chats)
        with kept(options.beam_folder) as folder, opened(folder) as memory:
            ingest(memory, [(each.name, each.episodes) for each in chats], every=50)
            asked = [*own_and_others(chats), *beam_untold(options.beam, options.chats)]
            figures["beam"] = tested(asked, seen(memory, asked))
    write(figures, options.out)


def locomo_asked(conversations: Sequence[Conversation], step: int) -> Iterator[Asked]:
    """Yield every *step*-th question of each conversation, to it and, under other names, to others."""
    speakers = {each.name: list(dict.fromkeys(said.speaker or "" for said in each.episodes)) for each in conversations}
    for place, conversation in enumerate(conversations):
        for question in conversation.questions[::step]:
            yield Asked(conversation.name, question.text, OWN)
        for other in (*conversations[place + 1 :], *conversations[:place])[:OTHERS]:
            names = dict(zip(speakers[other.name], speakers[conversation.name], strict=False))
            for question in other.questions[::step]:
                yield Asked(conversation.name, renamed(question.text, names), FOREIGN)


def renamed(text: str, names: Mapping[str, str]) -> str:
    """Return *text* with the *names* that it has exchanged, all at once."""
    return re.sub(rf"\b({'|'.join(map(re.escape, names))})\b", lambda match: names[match[1]], text)


def own_and_others(chats: Sequence[Conversation]) -> Iterator[Asked]:
    """Yield the questions of each chat, to it and to the next one."""
    for chat, other in zip(chats, (*chats[1:], *chats[:1]), strict=True):
        yield from (Asked(chat.name, question.text, OWN) for question in chat.questions)
        if other is not chat:
            yield from (Asked(chat.name, question.text, FOREIGN) for question in other.questions)


def beam_untold(data: Path, wanted: str | None) -> Iterator[Asked]:
    """Yield the questions that ask a BEAM chat for what it never tells."""
    for chat in beam_chats(data, wanted):
        yield from (Asked(beam_namespace(chat), each["question"], UNTOLD) for each in beam_probing(chat)["abstention"])


def seen(memory: GraphMemory, asked: Sequence[Asked]) -> np.ndarray:
    """Return the evidence of each question, a row for each."""
    return np.array([memory.driver.run(_features(memory, each.text), each.namespace) for each in asked])


def _features(memory: GraphMemory, question: str) -> Flow[tuple[float, float]]:
    """Take the first step of retrieval, and return the evidence of what it finds."""
    state: RetrievalState = {"question": question}
    state |= yield from search(state, memory.settings)
    terms = list(dict.fromkeys(tokens(question)))
    [row] = yield from read(cypher.WORD_STATISTICS, terms=terms)
    hits = decode_search(state).hits
    return evidence(hits, frequencies_of(row), terms, counts_of(row))


def fitted(asked: Sequence[Asked], rows: np.ndarray) -> dict[str, Any]:
    """Print how well each conversation is predicted from the others, and the constants of all; return the figures."""
    known = np.array([each.what == OWN for each in asked])
    names = np.array([each.namespace for each in asked])
    held_out = np.empty(len(asked))
    for name in dict.fromkeys(names):
        held_out[names == name] = logistic(rows[names == name], fit(rows[names != name], known[names != name]))
    figures = {
        "held_out": judged(held_out, known),
        "in_use": judged(predicted(rows), known),
        "reliability": reliability(held_out, known),
        "below": below(held_out, asked),
        "constants": [round(float(each), 1) for each in fit(rows, known)],
    }
    _show("LoCoMo, each conversation predicted from the others", figures["held_out"], figures["below"])
    print("\n| predicted | on average | answered | questions |\n| --- | --- | --- | --- |")
    for row in figures["reliability"]:
        print(f"| from {row['from']:.1f} | {row['predicted']:.2f} | {row['answered']:.2f} | {row['questions']} |")
    print(f"\nBy the constants in use: {_told(figures['in_use'])}.")
    print(f"BIAS, COVERED, AGREED = {', '.join(map(str, figures['constants']))}")
    return figures


def tested(asked: Sequence[Asked], rows: np.ndarray) -> dict[str, Any]:
    """Print how well the constants in use tell a chat's own questions from the others; return the figures."""
    likely, table = predicted(rows), below(predicted(rows), asked)
    figures: dict[str, Any] = {"below": table}
    for what in [each for each in table if each != OWN]:
        chosen = [place for place, each in enumerate(asked) if each.what in (OWN, what)]
        figures[what] = judged(likely[chosen], np.array([asked[place].what == OWN for place in chosen]))
        _show(f"BEAM, own questions beside those {what}", figures[what], {OWN: table[OWN], what: table[what]})
    return figures


def predicted(rows: np.ndarray) -> np.ndarray:
    """Return what the constants in use say of each row of evidence."""
    return np.array([probability(*map(float, row)) for row in rows])


def logistic(rows: np.ndarray, constants: np.ndarray) -> np.ndarray:
    """Return the probability of each row of features; the first of the *constants* is the bias."""
    return 1 / (1 + np.exp(-(constants[0] + rows @ constants[1:])))


def fit(rows: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return the bias and a weight for each feature, by Newton's method with a ridge; both sides weigh the same."""
    inputs, weights = np.column_stack([np.ones(len(rows)), rows]), evenly(known) * len(known)
    ridge = np.diag([0.0, *[RIDGE] * rows.shape[1]])
    constants = np.zeros(inputs.shape[1])
    for _ in range(STEPS):
        found = logistic(rows, constants)
        slope = inputs.T @ (weights * (known - found)) - ridge @ constants
        constants += np.linalg.solve((inputs.T * (weights * found * (1 - found))) @ inputs + ridge, slope)
    return constants


def evenly(known: np.ndarray) -> np.ndarray:
    """Return a weight for each question, so that those that are known and those that are not weigh a half each."""
    return np.where(known, 0.5 / known.sum(), 0.5 / (~known).sum())


def judged(likely: np.ndarray, known: np.ndarray) -> dict[str, float]:
    """Return the area under the ROC curve, and the Brier score of an even share of both sides."""
    above = np.sign(likely[known][:, None] - likely[~known])
    brier = (evenly(known) * (likely - known) ** 2).sum()
    return {"auc": round(float((above.mean() + 1) / 2), 4), "brier": round(float(brier), 4)}


def reliability(likely: np.ndarray, known: np.ndarray) -> list[dict[str, float]]:
    """Return for each tenth of the probabilities what was predicted on average, and the share that has an answer."""
    weights, tenths, table = evenly(known), np.minimum((likely * 10).astype(int), 9), []
    for tenth in range(10):
        if (inside := tenths == tenth).any():
            mean, answered = (float(np.average(each[inside], weights=weights[inside])) for each in (likely, known))
            row = {"from": tenth / 10, "predicted": round(mean, 4), "answered": round(answered, 4)}
            table.append({**row, "questions": int(inside.sum())})
    return table


def below(likely: np.ndarray, asked: Sequence[Asked]) -> dict[str, dict[str, float]]:
    """Return for each sort of question the share that is below each threshold."""
    groups: defaultdict[str, list[float]] = defaultdict(list)
    for each, value in zip(asked, likely, strict=True):
        groups[each.what].append(float(value))
    return {
        what: {"questions": len(values), **{str(most): round(fmean(one < most for one in values), 4) for most in BELOW}}
        for what, values in groups.items()
    }


def _show(title: str, figures: Mapping[str, float], table: Mapping[str, Mapping[str, float]]) -> None:
    print(f"\n{title}: {_told(figures)}.\n\n| relevance below | {' | '.join(table)} |\n|{' --- |' * (len(table) + 1)}")
    for most in map(str, BELOW):
        print(f"| {most} | {' | '.join(f'{row[most]:.3f}' for row in table.values())} |")
    print(f"| questions | {' | '.join(str(row['questions']) for row in table.values())} |")


def _told(figures: Mapping[str, float]) -> str:
    return f"AUC {figures['auc']:.3f}, Brier score {figures['brier']:.3f}"


if __name__ == "__main__":
    main()

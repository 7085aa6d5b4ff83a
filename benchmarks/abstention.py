"""Measure how well `SearchResults.relevance` recognises unanswerable questions, offline, and fit its constants.

    python benchmarks/abstention.py --data locomo.json --out figures.json [--quick] [--folder FOLDER]
        [--beam FOLDER] [--beam-folder FOLDER] [--chats 1,2]

Each conversation is asked its own questions, and three kinds that it cannot answer. *Of others*: questions about
another conversation of LoCoMo (Maharana et al. 2024) with the names of its own speakers, so that the subject is known;
it may answer some of them by chance. *Of strangers*: the same with the original names. *Never told*: unanswerable
questions in the data sets themselves, about a missing detail: LoCoMo's category 5, where the detail belongs to the
other speaker, and BEAM's abstention questions (Tavakoli et al. 2025). Two logistic regressions on
`kg_memory.retrieval.answerable.Evidence` (is the subject known, is the detail stated) are tested on each conversation
after fitting on the others, on each half of the conversations after the other half, and on each data set after the
other; relevance is the geometric mean of both probabilities. Known and unknown questions weigh the same. Intervals are
of 95 %, by resampling the questions.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from conversations import beam_chats
from opening import arguments, ingest, kept, opened, write

from kg_memory.contrib.evaluation.datasets.assistants import beam_name, load_beam
from kg_memory.contrib.evaluation.datasets.people import load_locomo
from kg_memory.contrib.evaluation.records import Conversation
from kg_memory.retrieval.answerable import BIASES, DETAIL, NO, SUBJECT, UNLIKELY, WEIGHTS, Evidence
from kg_memory.retrieval.question import SearchQuery
from kg_memory.retrieval.search import search
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings

QUICK = 6
"""A quick run asks every sixth question."""
EVERY = 2
"""Of the questions of another LoCoMo conversation, every second one is asked."""
RIDGE, STEPS = 1e-3, 40
DRAWS, LEVEL = 1000, 95
BELOW = tuple(sorted({0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, UNLIKELY, NO}))
OWN, FOREIGN, STRANGER, UNTOLD = "own", "of others", "of strangers", "never told"


@dataclass(frozen=True, slots=True)
class Asked:
    """A question to a namespace, and whether the namespace can answer it (*what*: OWN, FOREIGN, STRANGER or UNTOLD)."""

    namespace: str
    text: str
    what: str


@dataclass(frozen=True, slots=True)
class Level:
    """A logistic regression on *features*, which separates the *known* kinds of question from the *unknown* ones."""

    features: Sequence[str]
    known: Sequence[str]
    unknown: Sequence[str]

    @property
    def places(self) -> list[int]:
        names = [field.name for field in fields(Evidence)]
        return [names.index(name) for name in self.features]


LEVELS = {"subject": Level(SUBJECT, (OWN, UNTOLD), (FOREIGN, STRANGER)), "detail": Level(DETAIL, (OWN,), (UNTOLD,))}
ANY = Level((*SUBJECT, *DETAIL), (OWN,), (FOREIGN, STRANGER, UNTOLD))
WHOLE = "relevance"
Model = dict[str, np.ndarray]
"""The bias and weights of each level."""
Predicted = dict[str, np.ndarray]
"""The probabilities of each level, and their geometric mean under `WHOLE`."""
IN_USE: Model = {
    name: np.array([BIASES[name], *(getattr(WEIGHTS, feature) for feature in level.features)])
    for name, level in LEVELS.items()
}


@dataclass(frozen=True, slots=True)
class Sample:
    """The questions to the conversations of one data set, and their evidence, one row for each."""

    asked: Sequence[Asked]
    rows: np.ndarray

    @property
    def what(self) -> np.ndarray:
        return np.array([each.what for each in self.asked])

    @property
    def names(self) -> np.ndarray:
        return np.array([each.namespace for each in self.asked])

    def part(self, chosen: np.ndarray) -> Sample:
        """Return the sample with only the *chosen* questions, a mask."""
        return Sample([each for each, taken in zip(self.asked, chosen, strict=True) if taken], self.rows[chosen])


def main() -> None:
    """Run the benchmark, print the tables and constants, and write the figures."""
    parser = arguments(
        "How well a memory tells what it does not know, on LoCoMo and BEAM conversations, offline.",
        data="a LoCoMo JSON file with two conversations or more",
        quick=f"every {QUICK}th question",
    )
    parser.add_argument("--beam", type=Path, help="BEAM chats too: a folder of folders with a chat.json each")
    parser.add_argument("--beam-folder", type=Path, help="keep their database here")
    parser.add_argument("--chats", help="the names of the chats to take, as in 1,2")
    options = parser.parse_args()
    conversations, step = load_locomo(options.data), QUICK if options.quick else 1
    if len(conversations) < 2:
        sys.exit(f"{options.data} has no two LoCoMo conversations: give a JSON list of objects with a `conversation`")
    samples = {"LoCoMo": sample(conversations, list(locomo_asked(conversations))[::step], options.folder)}
    if options.beam:
        names = {beam_name(chat) for chat in beam_chats(options.beam, options.chats)}
        chats = [chat for chat in load_beam(options.beam) if chat.name in names]
        samples["BEAM"] = sample(chats, list(beam_asked(chats))[::step], options.beam_folder)
    write(report(samples), options.out)


def locomo_asked(conversations: Sequence[Conversation]) -> Iterator[Asked]:
    """Yield the questions of each conversation, and those of the next one, with its names and with replaced names."""
    speakers = {each.name: list(dict.fromkeys(said.speaker or "" for said in each.episodes)) for each in conversations}
    for conversation, other in zip(conversations, (*conversations[1:], conversations[0]), strict=True):
        yield from own(conversation)
        names = dict(zip(speakers[other.name], speakers[conversation.name], strict=False))
        for each in [each for each in own(other) if each.what == OWN][::EVERY]:
            yield Asked(conversation.name, renamed(each.text, names), FOREIGN)
            if renamed(each.text, names) != each.text:
                yield Asked(conversation.name, each.text, STRANGER)


def beam_asked(chats: Sequence[Conversation]) -> Iterator[Asked]:
    """Yield the questions of each chat, and those of the next chat, which this chat cannot answer."""
    for chat, other in zip(chats, (*chats[1:], chats[0]), strict=True):
        yield from own(chat)
        yield from (Asked(chat.name, each.text, FOREIGN) for each in own(other) if each.what == OWN)


def own(conversation: Conversation) -> Iterator[Asked]:
    """Yield the questions about a conversation: those with evidence, and those about details that it never states."""
    for question in conversation.questions:
        if question.evidence or not question.answerable:
            yield Asked(conversation.name, question.text, OWN if question.answerable else UNTOLD)


def renamed(text: str, names: Mapping[str, str]) -> str:
    """Return *text* with all *names* (old -> new) replaced at once."""
    return re.sub(rf"\b({'|'.join(map(re.escape, names))})\b", lambda match: names[match[1]], text)


def sample(conversations: Sequence[Conversation], asked: Sequence[Asked], folder: Path | None) -> Sample:
    """Ingest *conversations* into a memory in *folder* (None: temporary); return the questions with their evidence."""
    with kept(folder) as place, opened(place) as memory:
        ingest(memory, [(each.name, each.episodes) for each in conversations])
        return Sample(asked, np.array([memory.driver.run(_seen(each.text), each.namespace) for each in asked]))


def _seen(question: str) -> Flow[tuple[float, ...]]:
    """Run the search step of retrieval for *question*, and return its evidence features (`Evidence`) as numbers."""
    found = (yield from search({"question": SearchQuery.parse({"question": question})}, Settings()))["found"]
    return astuple(found.evidence or Evidence())


def report(samples: Mapping[str, Sample]) -> dict[str, Any]:
    """Print how well each kind of unanswerable question is separated from a conversation's own; return the figures."""
    figures: dict[str, Any] = {}
    for name, one in samples.items():
        ways = {
            "each conversation from the others": folded(one, one.names),
            "each half of the conversations from the other": folded(one, halves(one.names)),
            **{f"from {other}": predicted(one.rows, fit(samples[other])) for other in samples if other != name},
            "by the constants in use": predicted(one.rows, IN_USE),
        }
        areas = {way: {what: judged(one, likely) for what, likely in each.items()} for way, each in ways.items()}
        alone = {field.name: judged(one, one.rows[:, place]) for place, field in enumerate(fields(Evidence))}
        figures[name] = {"areas": areas, "alone": alone, "below": below(one, ways["by the constants in use"][WHOLE])}
        figures[name]["reliability"] = reliability(one, ways["each conversation from the others"][WHOLE])
        _show_areas(f"{name}, area under the curve", areas, alone)
        _show_below(f"{name}, by the constants in use", figures[name]["below"])
        _show_reliability(f"{name}, each conversation from the others", figures[name]["reliability"])
    constants = fit(*samples.values())
    figures["constants"] = {level: [round(float(each), 1) for each in values] for level, values in constants.items()}
    biases = {level: values[0] for level, values in figures["constants"].items()}
    values = [value for level in LEVELS for value in figures["constants"][level][1:]]
    names = [name for level in LEVELS.values() for name in level.features]
    weights = ", ".join(f"{name}={value}" for name, value in zip(names, values, strict=True))
    print(f"\nBIASES = {biases}\nWEIGHTS = Evidence({weights})")
    return figures


def halves(names: np.ndarray) -> np.ndarray:
    """Return 0 or 1 for each of *names* (of conversations): distinct names are assigned to the halves in turn."""
    places = {name: place % 2 for place, name in enumerate(dict.fromkeys(names.tolist()))}
    return np.array([places[name] for name in names.tolist()])


def folded(one: Sample, folds: np.ndarray) -> Predicted:
    """Return cross-validated probabilities for each question; *folds* has a fold number for each question."""
    likely = {what: np.empty(len(one.asked)) for what in (*LEVELS, WHOLE)}
    for fold in np.unique(folds):
        inside = folds == fold
        for what, values in predicted(one.rows[inside], fit(one.part(~inside))).items():
            likely[what][inside] = values
    return likely


def predicted(rows: np.ndarray, model: Model) -> Predicted:
    """Return the probabilities of both levels for each row of features by *model*, and their geometric mean."""
    likely = {level: logistic(rows[:, LEVELS[level].places], constants) for level, constants in model.items()}
    return {**likely, WHOLE: np.sqrt(np.prod(list(likely.values()), axis=0))}


def logistic(rows: np.ndarray, constants: np.ndarray) -> np.ndarray:
    """Return the probability of each row of features; the first of *constants* is the bias, the others are weights."""
    return 1 / (1 + np.exp(-(constants[0] + rows @ constants[1:])))


def fit(*samples: Sample) -> Model:
    """Return the constants of both levels, fitted to *samples* with equal weight."""
    model = {}
    for name, level in LEVELS.items():
        parts = [one.part(np.isin(one.what, (*level.known, *level.unknown))) for one in samples]
        known = [np.isin(one.what, level.known) for one in parts]
        weights = np.concatenate([evenly(one.what, level) / len(samples) for one in parts])
        model[name] = regress(np.vstack([one.rows[:, level.places] for one in parts]), np.concatenate(known), weights)
    return model


def regress(rows: np.ndarray, known: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the bias and weights of a ridge logistic regression by Newton's method; *weights* of rows sum to 1."""
    inputs = np.column_stack([np.ones(len(rows)), rows])
    ridge = np.diag([0.0, *(RIDGE * rows.var(axis=0))])
    constants = np.zeros(inputs.shape[1])
    for _ in range(STEPS):
        found = logistic(rows, constants)
        slope = inputs.T @ (weights * (known - found)) - ridge @ constants
        constants += np.linalg.solve((inputs.T * (weights * found * (1 - found))) @ inputs + ridge, slope)
    return constants


def evenly(what: np.ndarray, level: Level) -> np.ndarray:
    """Return a weight for each question, so that known and unknown questions, and all kinds of each, weigh the same."""
    weights = np.zeros(len(what))
    for side in (level.known, level.unknown):
        there = [sort for sort in side if (what == sort).any()]
        for sort in there:
            weights += np.where(what == sort, 0.5 / len(there) / (what == sort).sum(), 0.0)
    return weights


def judged(one: Sample, likely: np.ndarray) -> dict[str, dict[str, Any]]:
    """Return the area under the ROC curve, with its interval, by kind of question that has no answer.

    It compares the probabilities *likely* of a conversation's own questions with those of the kind.
    """
    figures: dict[str, dict[str, Any]] = {}
    for sort in sorts(one):
        known, unknown = likely[one.what == OWN], likely[one.what == sort]
        draw = np.random.default_rng(0)
        drawn = [area(draw.choice(known, len(known)), draw.choice(unknown, len(unknown))) for _ in range(DRAWS)]
        low, high = np.percentile(drawn, [(100 - LEVEL) / 2, (100 + LEVEL) / 2])
        figures[sort] = {"auc": round(area(known, unknown), 4), "from": round(low, 4), "to": round(high, 4)}
    return figures


def sorts(one: Sample) -> list[str]:
    """Return the kinds of unanswerable question in *one* sample."""
    return [sort for sort in (FOREIGN, STRANGER, UNTOLD) if (one.what == sort).any()]


def area(known: np.ndarray, unknown: np.ndarray) -> float:
    """Return the share of pairs in which a value of *known* exceeds one of *unknown*; ties count half."""
    ordered = np.sort(unknown)
    less, least = np.searchsorted(ordered, known, "left"), np.searchsorted(ordered, known, "right")
    return float((less + least).mean() / 2 / len(unknown))


def reliability(one: Sample, likely: np.ndarray) -> list[dict[str, float]]:
    """Return, for each tenth of the predicted probabilities, their mean and the share of answerable questions."""
    weights, tenths, table = evenly(one.what, ANY), np.minimum((likely * 10).astype(int), 9), []
    for tenth in range(10):
        if (inside := tenths == tenth).any():
            mean, answered = (
                float(np.average(each[inside], weights=weights[inside])) for each in (likely, one.what == OWN)
            )
            row = {"from": tenth / 10, "predicted": round(mean, 4), "answered": round(answered, 4)}
            table.append({**row, "questions": int(inside.sum())})
    return table


def below(one: Sample, likely: np.ndarray) -> dict[str, dict[str, float]]:
    """Return the share of questions whose probability is below each threshold, by kind of question."""
    table: dict[str, dict[str, float]] = {}
    for sort in (OWN, *sorts(one)):
        values = likely[one.what == sort]
        shares = {str(most): round(float((values < most).mean()), 4) for most in BELOW}
        table[sort] = {"questions": len(values), **shares}
    return table


def _show_areas(title: str, areas: Mapping[str, Any], alone: Mapping[str, Any]) -> None:
    first = next(iter(alone.values()))
    cells = [(what, sort) for sort in first for what in (*LEVELS, WHOLE)]
    print(f"\n{title}\n\n| | {' | '.join(f'{sort}: {what}' for what, sort in cells)} |\n|{' --- |' * (len(cells) + 1)}")
    for way, each in areas.items():
        print(f"| {way} | {' | '.join(_told(each[what][sort]) for what, sort in cells)} |")
    print(f"\n| alone | {' | '.join(first)} |\n|{' --- |' * (len(first) + 1)}")
    for name, each in alone.items():
        print(f"| {name} | {' | '.join(_told(figure) for figure in each.values())} |")


def _told(figure: Mapping[str, float]) -> str:
    return f"{figure['auc']:.3f} ({figure['from']:.2f} to {figure['to']:.2f})"


def _show_below(title: str, table: Mapping[str, Mapping[str, float]]) -> None:
    print(f"\n{title}\n\n| relevance below | {' | '.join(table)} |\n|{' --- |' * (len(table) + 1)}")
    for most in map(str, BELOW):
        print(f"| {most} | {' | '.join(f'{row[most]:.3f}' for row in table.values())} |")
    print(f"| questions | {' | '.join(str(row['questions']) for row in table.values())} |")


def _show_reliability(title: str, table: Sequence[Mapping[str, float]]) -> None:
    print(f"\n{title}\n\n| predicted | on average | answered | questions |\n| --- | --- | --- | --- |")
    for row in table:
        print(f"| from {row['from']:.1f} | {row['predicted']:.2f} | {row['answered']:.2f} | {row['questions']} |")


if __name__ == "__main__":
    main()

"""Judge answers: by a model with strict and lenient questions, by a rubric, or by rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from kg_memory.contrib.evaluation import metrics, prompts, rules
from kg_memory.contrib.evaluation.models import Asker
from kg_memory.contrib.evaluation.records import Criterion, Dataset, Question
from kg_memory.contrib.evaluation.spending import Meter
from kg_memory.errors import InputError

RULES = "rules"
MODES = ("strict", "lenient")
Verdict = dict[str, float | None]
"""Scores from 0 to 1 by mode; None where the judge's reply cannot be read."""
_WORD = re.compile(r"\b(RIGHT|CORRECT|WRONG|INCORRECT)\b")
_SCORE = re.compile(r"(?<![\d.])(?:1(?:\.0)?|0?\.5|0(?:\.0)?)(?![\d.]*\d)")


class Judge:
    """Judges the answers of a data set; without a model (*asker* is None) by rules."""

    def __init__(self, dataset: Dataset, asker: Asker | None, modes: tuple[str, ...] = MODES) -> None:
        self._dataset, self._asker, self.modes = dataset, asker, modes
        self.name = RULES if asker is None else asker.name

    @property
    def meter(self) -> Meter | None:
        """The meter of the model, if there is one."""
        return self._asker.meter if self._asker else None

    def judge(self, question: Question, answer: str) -> Verdict:
        """Return the verdict about *answer*. Raises: as `Asker.ask`."""
        criterion = self._dataset.criterion(question.category)
        if self._asker is None or criterion.by == "rules":
            exact = rules.judge(question, answer)
            return {mode: exact[mode] for mode in self.modes}
        if criterion.by == "rubric" and question.rubric:
            return self._by_rubric(question, answer, criterion)
        return {mode: self._by_model(question, answer, getattr(criterion, mode)) for mode in self.modes}

    def calls(self, question: Question) -> int:
        """Return how many calls of the model a verdict takes."""
        criterion = self._dataset.criterion(question.category)
        if self._asker is None or criterion.by == "rules":
            return 0
        if criterion.by == "rubric" and question.rubric:
            return len(question.rubric) + criterion.ordered
        return len(self.modes)

    def _by_model(self, question: Question, answer: str, criterion: str) -> float | None:
        return self._read(prompts.judge(question, answer, criterion), _read_word)

    def _by_rubric(self, question: Question, answer: str, criterion: Criterion) -> Verdict:
        scores = [self._read(prompts.rubric(question, answer, item), _read_score) for item in question.rubric]
        read = [score for score in scores if score is not None]
        if len(read) < len(scores):
            return dict.fromkeys(self.modes)
        verdict: Verdict = {"strict": sum(score == 1 for score in read) / len(read), "lenient": sum(read) / len(read)}
        verdict = {mode: verdict[mode] for mode in self.modes}
        if criterion.ordered:
            verdict["order"] = self._read(
                prompts.order(question, answer), lambda reply: _read_order(reply, len(question.rubric))
            )
        return verdict

    def _read(self, question: str, read: Callable[[str], float | None]) -> float | None:
        """Ask, and once more if the reply cannot be read."""
        if self._asker is None:
            return None
        found = read(self._asker.ask(question))
        return read(self._asker.ask(question)) if found is None else found


def check(dataset: Dataset, judge: str, categories: Collection[str] = ()) -> None:
    """Raises: `InputError` if *judge* is ``rules`` and *categories* have rubrics, which only a model can apply.

    No categories are all that are not asked by name only.
    """
    chosen = categories or dataset.criteria.keys() - dataset.left_out
    if judge == RULES and any(dataset.criterion(category).by == "rubric" for category in chosen):
        raise InputError(f"{dataset.name} is judged by rubrics, which rules cannot apply: name a model with --judge")


def needs_model(dataset: Dataset) -> bool:
    """Return whether some of the answers are not exact, so that rules do not suffice."""
    return any(criterion.by != "rules" for criterion in dataset.criteria.values())


def _read_word(reply: str) -> float | None:
    words = _WORD.findall(reply.upper())
    return float(words[-1] in ("RIGHT", "CORRECT")) if words else None


def _read_score(reply: str) -> float | None:
    scores = _SCORE.findall(reply)
    return float(scores[-1]) if scores else None


def _read_order(reply: str, count: int) -> float | None:
    """Return the order as a score, 0 to 1; 0 if at most one event is told."""
    numbers = [int(number) for number in re.findall(r"\d+", reply)]
    order = [number for number in dict.fromkeys(numbers) if 0 < number <= count]
    if not order:
        return 0.0 if "-" in reply else None
    return (metrics.kendall(order) + 1) / 2 if len(order) > 1 else 0.0

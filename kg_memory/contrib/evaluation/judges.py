"""Judge answers: by a model with strict and lenient questions, by a rubric, or by rules where the answer is exact."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from string import ascii_lowercase

from kg_memory.contrib.evaluation import metrics, prompts
from kg_memory.contrib.evaluation.models import Asker
from kg_memory.contrib.evaluation.prompts import OWN_LETTER
from kg_memory.contrib.evaluation.records import Criterion, Dataset, Question
from kg_memory.contrib.evaluation.spending import Meter
from kg_memory.errors import InputError
from kg_memory.text.dates.find import find_dates

RULES = "rules"
MODES = ("strict", "lenient")
Verdict = dict[str, float | None]
"""Scores from 0 to 1 by mode; None where the judge's reply cannot be read."""
_WORD = re.compile(r"\b(RIGHT|CORRECT|WRONG|INCORRECT)\b")
_SCORE = re.compile(r"(?<![\d.])(?:1(?:\.0)?|0?\.5|0(?:\.0)?)(?![\d.]*\d)")

_ARTICLES = frozenset({"a", "an", "the"})
_TOKEN = re.compile(r"\d+(?:\.\d+)?|\w+")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")
_NUMBERS = {
    word: str(number)
    for number, word in enumerate("zero one two three four five six seven eight nine ten eleven twelve".split())
}
_UNKNOWN = re.compile(
    r"\b(?:unknown|unanswerable|not (?:known|mentioned|stated|specified|provided|given|in the notes|enough|available)"
    r"|no (?:information|mention|record|answer)|(?:do|does|did)(?: not|n't) (?:know|say|mention|state|contain)"
    r"|cannot (?:be )?(?:answer|determin|tell|know)\w*|can't (?:answer|tell|say)|isn't (?:known|mentioned))",
    re.IGNORECASE,
)
_LETTER = re.compile(
    r"^\W*(?:(?:the )?(?:(?:option|answer|choice)\W*(?:is\W*)?)+([a-z])\b|([a-z])(?=[.):,]|\W*$))", re.IGNORECASE
)
_BOXED = re.compile(r"\(([a-z])\)", re.IGNORECASE)
_YEAR = re.compile(r"\d{4}")
_ANY_TIME = datetime(2024, 1, 1, tzinfo=UTC)
"""Only dates with a year count, and these do not depend on the time of writing."""


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
            exact = judge_by_rules(question, answer)
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


def judge_by_rules(question: Question, answer: str) -> dict[str, float]:
    """Return the strict and the lenient verdict, 1 or 0.

    Strict: the answer is the expected one, but for case, articles, punctuation and the form of dates and numbers.
    Lenient: the words of the expected answer stand in it, in their order.
    """
    if not question.answerable and not question.choices:
        verdict = float(says_unknown(answer))
        return {"strict": verdict, "lenient": verdict}
    expected = question.answer or ""
    if question.choices:
        verdict = float(choice(answer, question.choices) == _place(expected, question.choices))
        return {"strict": verdict, "lenient": verdict}
    wanted, given = normalise(expected), normalise(answer)
    return {"strict": float(bool(wanted) and wanted == given), "lenient": float(_stands_in(wanted, given))}


def says_unknown(answer: str) -> bool:
    """Tell whether *answer* says that there is no answer."""
    return not answer.strip() or _UNKNOWN.search(answer) is not None


def choice(answer: str, choices: Sequence[str]) -> int | None:
    """Return the place of the choice that *answer* names by its letter or its text; None if none, or several."""
    match = _LETTER.match(answer)
    letters = {letter.lower() for letter in _BOXED.findall(answer)} or {(match[1] or match[2]).lower() if match else ""}
    own = [match[1].lower() if (match := OWN_LETTER.match(text)) else None for text in choices]
    named = [own[place] or letter for place, letter in enumerate(ascii_lowercase[: len(choices)])]
    if len(letters) == 1 and (only := letters.pop()) in named:
        return named.index(only)
    given = normalise(answer)
    places = [place for place, text in enumerate(choices) if _stands_in(normalise(OWN_LETTER.sub("", text)), given)]
    return places[0] if len(places) == 1 else None


def normalise(text: str) -> list[str]:
    """Return the words of *text*: folded, without articles; dates as ISO 8601, number words as figures."""
    folded = _iso_days(_THOUSANDS.sub("", unicodedata.normalize("NFKC", text).casefold()))
    tokens = re.findall(rf"\d{{4}}-\d\d-\d\d|{_TOKEN.pattern}", folded)
    return [_figure(_NUMBERS.get(token, token)) for token in tokens if token not in _ARTICLES]


def _iso_days(text: str) -> str:
    """Return *text* with its full dates, such as "May 7th, 2023", as ISO 8601."""
    for mention in reversed(find_dates(text, _ANY_TIME)):
        start, day = mention.interval.start, mention.interval.precision == "day"
        if day and start and _YEAR.search(text, mention.start, mention.end):
            text = f"{text[: mention.start]} {start:%Y-%m-%d} {text[mention.end :]}"
    return text


def _figure(token: str) -> str:
    """Return a number without leading zeros and without zeros behind the point."""
    return f"{float(token):g}" if re.fullmatch(r"\d+(?:\.\d+)?", token) and len(token) < 16 else token


def _stands_in(wanted: Sequence[str], given: Sequence[str]) -> bool:
    size = len(wanted)
    return size > 0 and any(given[place : place + size] == wanted for place in range(len(given) - size + 1))


def _place(expected: str, choices: Sequence[str]) -> int | None:
    """Return the place of the expected choice, which is given by its text or its letter."""
    return choices.index(expected) if expected in choices else choice(expected, choices)

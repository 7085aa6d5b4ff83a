"""Judges of answers: a model that says right or wrong, a model that applies a rubric, or rules that compare words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib.resources import files
from string import ascii_lowercase

from kg_memory.contrib.evaluation.models import Asker
from kg_memory.contrib.evaluation.records import Criterion, Dataset, Question
from kg_memory.contrib.evaluation.report import kendall
from kg_memory.text.dates.english import SMALL
from kg_memory.text.dates.find import find_dates

RULES = "rules"
MODES = ("strict", "lenient")
Verdict = dict[str, float | None]
"""Scores from 0 to 1 by mode; ``None`` if the judge model's reply could not be parsed."""
_WORD = re.compile(r"\b(RIGHT|CORRECT|WRONG|INCORRECT)\b")
_SCORE = re.compile(r"(?<![\d.])(?:1(?:\.0)?|0?\.5|0(?:\.0)?)(?![\d.]*\d)")

_ARTICLES = frozenset({"a", "an", "the"})
_TOKEN = re.compile(r"\d+(?:\.\d+)?|\w+")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")
_NUMBERS = {word: str(number) for number, word in enumerate(SMALL)}
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
"""A reference time for parsing dates. Only dates with a year are used, and these do not depend on it."""

OWN_LETTER = re.compile(r"\s*\(([a-z])\)", re.IGNORECASE)
"""A letter in the text of a choice itself: ``(a) tea``."""

_READER, _JUDGE, _RUBRIC, _ORDER = (
    files(__package__).joinpath(f"{name}.md").read_text(encoding="utf-8")
    for name in ("answer", "judge", "rubric", "order")
)
_CHOICES = "Options:\n{options}\nAnswer with the letter of one option, and nothing else.\n"


class Judge:
    """Scores answers to the questions of *dataset*: by the judge model *asker*, or by rules if *asker* is ``None``."""

    def __init__(self, dataset: Dataset, asker: Asker | None, modes: tuple[str, ...] = MODES) -> None:
        self._dataset, self._asker, self.modes = dataset, asker, modes
        self.name = RULES if asker is None else asker.name

    def judge(self, question: Question, answer: str) -> Verdict:
        """Return the scores of *answer*, each from 0 to 1: ``{"strict": 0.0, "lenient": 1.0}``.

        A score is None if the model's reply could not be parsed. Errors: those of `Asker.ask`.
        """
        criterion = self._dataset.criterion(question.category)
        if self._asker is None or criterion.by == "rules":
            exact = judge_by_rules(question, answer)
            return {mode: exact[mode] for mode in self.modes}
        if criterion.by == "rubric" and question.rubric:
            return self._by_rubric(question, answer, criterion)
        asked = {mode: judge_prompt(question, answer, getattr(criterion, mode)) for mode in self.modes}
        return {mode: self._ask_score(text, _read_word) for mode, text in asked.items()}

    def calls(self, question: Question) -> int:
        """Return the number of model calls to judge an answer to *question*; unreadable replies cost more calls."""
        criterion = self._dataset.criterion(question.category)
        if self._asker is None or criterion.by == "rules":
            return 0
        if criterion.by == "rubric" and question.rubric:
            return len(question.rubric) + criterion.ordered
        return len(self.modes)

    def _by_rubric(self, question: Question, answer: str, criterion: Criterion) -> Verdict:
        """Let the model score *answer* by each requirement of the rubric, and combine the scores.

        If the score of a requirement cannot be parsed, all scores are None.
        """
        scores = [self._ask_score(rubric_prompt(question, answer, item), _read_score) for item in question.rubric]
        read = [score for score in scores if score is not None]
        if len(read) < len(scores):
            return dict.fromkeys(self.modes)
        verdict: Verdict = {"strict": sum(score == 1 for score in read) / len(read), "lenient": sum(read) / len(read)}
        verdict = {mode: verdict[mode] for mode in self.modes}
        if criterion.ordered:
            verdict["order"] = self._ask_score(
                order_prompt(question, answer), lambda reply: _read_order(reply, len(question.rubric))
            )
        return verdict

    def _ask_score(self, question: str, read: Callable[[str], float | None]) -> float | None:
        """Send *question*, a prompt, to the judge model; return the score that *read* finds in its reply.

        If *read* finds none, the model is asked once more. None if that fails too, or if there is no model.
        """
        if self._asker is None:
            return None
        found = read(self._asker.ask(question))
        return read(self._asker.ask(question)) if found is None else found


def _read_word(reply: str) -> float | None:
    words = _WORD.findall(reply.upper())
    return float(words[-1] in ("RIGHT", "CORRECT")) if words else None


def _read_score(reply: str) -> float | None:
    scores = _SCORE.findall(reply)
    return float(scores[-1]) if scores else None


def _read_order(reply: str, count: int) -> float | None:
    """Score the order of events in an answer: ``"1, 2, 3"`` -> 1.0, ``"3, 2, 1"`` -> 0.0.

    The reply "-" (no event) gives 0.0. None if the reply could not be parsed.
    """
    numbers = [int(number) for number in re.findall(r"\d+", reply)]
    order = [number for number in dict.fromkeys(numbers) if 0 < number <= count]
    if not order:
        return 0.0 if "-" in reply else None
    return (kendall(order) + 1) / 2 if len(order) > 1 else 0.0


def judge_by_rules(question: Question, answer: str) -> dict[str, float]:
    """Compare *answer* with the expected answer word by word: ``{"strict": 0.0, "lenient": 1.0}``."""
    expected = question.answer or ""
    if question.choices:
        return dict.fromkeys(MODES, float(choice(answer, question.choices) == _index_in(expected, question.choices)))
    if not question.answerable:
        return dict.fromkeys(MODES, float(not answer.strip() or _UNKNOWN.search(answer) is not None))
    wanted, given = normalise(expected), normalise(answer)
    return {"strict": float(bool(wanted) and wanted == given), "lenient": float(_is_sublist(wanted, given))}


def choice(answer: str, choices: Sequence[str]) -> int | None:
    """Return the index of the choice that *answer* names, by letter or text; ``None`` if none or several match."""
    match = _LETTER.match(answer)
    letters = {letter.lower() for letter in _BOXED.findall(answer)} or {(match[1] or match[2]).lower() if match else ""}
    own = [match[1].lower() if (match := OWN_LETTER.match(text)) else None for text in choices]
    named = [own[place] or letter for place, letter in enumerate(ascii_lowercase[: len(choices)])]
    if len(letters) == 1 and (only := letters.pop()) in named:
        return named.index(only)
    given = normalise(answer)
    places = [place for place, text in enumerate(choices) if _is_sublist(normalise(OWN_LETTER.sub("", text)), given)]
    return places[0] if len(places) == 1 else None


def normalise(text: str) -> list[str]:
    """Return the words of *text* to compare them: ``"The 7th of May 2023, two cats" -> ["2023-05-07", ...]``."""
    folded = _use_iso_dates(_THOUSANDS.sub("", unicodedata.normalize("NFKC", text).casefold()))
    tokens = re.findall(rf"\d{{4}}-\d\d-\d\d|{_TOKEN.pattern}", folded)
    return [_normalise_number(_NUMBERS.get(token, token)) for token in tokens if token not in _ARTICLES]


def _use_iso_dates(text: str) -> str:
    """Replace full dates in *text* by ISO 8601 dates: "May 7th, 2023" -> "2023-05-07"; other dates stay."""
    for mention in reversed(find_dates(text, _ANY_TIME)):
        start, day = mention.interval.start, mention.interval.precision == "day"
        if day and start and _YEAR.search(text, mention.start, mention.end):
            text = f"{text[: mention.start]} {start:%Y-%m-%d} {text[mention.end :]}"
    return text


def _normalise_number(token: str) -> str:
    """Return the shortest form of a number: "07.50" -> "7.5"; any other word is returned unchanged."""
    return f"{float(token):g}" if re.fullmatch(r"\d+(?:\.\d+)?", token) and len(token) < 16 else token


def _is_sublist(wanted: Sequence[str], given: Sequence[str]) -> bool:
    size = len(wanted)
    return size > 0 and any(given[place : place + size] == wanted for place in range(len(given) - size + 1))


def _index_in(expected: str, choices: Sequence[str]) -> int | None:
    return choices.index(expected) if expected in choices else choice(expected, choices)


# Prompts


def reader_prompt(question: Question, context: str) -> str:
    """Return the prompt that asks the reader model to answer *question* from *context*."""
    about = f"The question is asked on {question.asked_at:%A, %d %B %Y, %H:%M}.\n" if question.asked_at else ""
    about += f"{question.asker} asks it.\n" if question.asker else ""
    labelled = zip(ascii_lowercase, question.choices, strict=False)
    options = "\n".join(text if OWN_LETTER.match(text) else f"({letter}) {text}" for letter, text in labelled)
    choices = _CHOICES.format(options=options) if options else ""
    return _READER.format(about=about, context=context, question=question.text, choices=choices)


def judge_prompt(question: Question, answer: str, criterion: str) -> str:
    """Return the prompt that asks the judge model whether *answer* is right; *criterion* are instructions for it."""
    expected = f"Expected answer: {question.answer}\n" if question.answer else ""
    if question.rubric:
        expected += "A right answer has:\n" + "".join(f"- {item}\n" for item in question.rubric)
    return _JUDGE.format(criterion=criterion, question=question.text, expected=expected, answer=answer)


def rubric_prompt(question: Question, answer: str, item: str) -> str:
    """Return the prompt that asks the judge model whether *answer* meets *item*, a requirement in the rubric."""
    return _RUBRIC.format(question=question.text, item=item, answer=answer)


def order_prompt(question: Question, answer: str) -> str:
    """Return a prompt for the judge model: in which order does *answer* list the events in the rubric?"""
    events = "\n".join(f"{number}. {item}" for number, item in enumerate(question.rubric, start=1))
    return _ORDER.format(events=events, answer=answer)

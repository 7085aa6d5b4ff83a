"""A question with its options, validated once, and what the steps of retrieval find out about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, Self

from kg_memory.errors import InputError
from kg_memory.models.filters import Filter, parse_filter, to_plain
from kg_memory.models.graph import Kind
from kg_memory.models.results import QueryTime
from kg_memory.plugins import load_plugin
from kg_memory.retrieval.answerable import EMPTY, Evidence
from kg_memory.retrieval.context.templates import Template, find_template
from kg_memory.retrieval.fuse import Hits, Scored
from kg_memory.retrieval.plugins import Instants
from kg_memory.retrieval.recipe import DEFAULT, Recipe, find_recipe
from kg_memory.temporal.interval import iso_or_text
from kg_memory.text.identity import replace_unstorable
from kg_memory.validation import validate_count, validate_name, validate_names, validate_text

DEFAULT_LIMIT = 10
DEFAULT_TOKENS = 2000
SPARE = 5
"""The episodes behind the best that are read, in the place of those that say nothing."""
MIN_LINES = 10
TOKENS_A_LINE = 40
"""Tokens that a line of one kind takes of a context, with its share of the lines of the others."""
_TYPES = {"question": str, "thread": str, "asker": str, "limit": int, "max_tokens": int}
_NOUNS = {str: "a string", int: "a whole number"}

Stage = tuple[str, float]
"""The name of a stage of ranking, and the score after it."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question and how to answer it. Times are unparsed; `limit` is the most results of each kind.

    Without `max_tokens`, no text is written.
    """

    text: str
    recipe: Recipe = DEFAULT
    where: Filter | None = None
    limit: int = DEFAULT_LIMIT
    max_tokens: int = DEFAULT_TOKENS
    as_of: Any = None
    during: Any = None
    believed_at: Any = None
    unreviewed: bool = False
    thread: str | None = None
    center: tuple[str, ...] = ()
    asker: str | None = None
    template: Template | str | None = None
    explain: bool = False

    @classmethod
    def parse(cls, options: Mapping[str, Any]) -> Self:
        """Return the question that *options* describe; options that are None have their defaults.

        Errors: `InputError`.
        """
        given = {name: options[name] for name in (*_NAMES, "question") if options.get(name) is not None}
        if "question" not in given:
            raise InputError("the input must have a question; set 'question'")
        for name in _TYPES.keys() & given.keys():
            value, kind = given[name], _TYPES[name]
            if isinstance(value, bool) or not isinstance(value, kind):
                raise InputError(f"{name} must be {_NOUNS[kind]}, got {value!r}")
        given["recipe"] = find_recipe(given.get("recipe"))
        if "where" in given:
            given["where"] = parse_filter(given["where"])
        if given["recipe"].route:
            given["recipe"] = load_plugin("stages", "route")(given["recipe"], given["question"])
        given["center"] = validate_names("center", given.get("center"), "the name of an entity")
        given["limit"] = max(given.get("limit", DEFAULT_LIMIT), 0)
        if "template" in given:
            find_template(given["template"])
        return cls(given.pop("question"), **given)

    def as_state(self) -> dict[str, Any]:
        """Return the question as the input of the LangGraph graph: plain JSON, without options at their defaults."""
        changed = {name: value for name in _NAMES if (value := getattr(self, name)) != _DEFAULTS[name]}
        plain: dict[str, Any] = {"where": to_plain(self.where) if self.where else None, "center": list(self.center)}
        plain |= {"recipe": self.recipe.as_state(), "during": _plain_period(self.during)}
        plain |= {"as_of": iso_or_text(self.as_of), "believed_at": iso_or_text(self.believed_at)}
        return {"question": self.text, **{name: plain.get(name, value) for name, value in changed.items()}}


_DEFAULTS = {each.name: each.default for each in fields(Question)[1:]}
_NAMES = tuple(_DEFAULTS)


def _plain_period(during: Any) -> Any:
    is_pair = isinstance(during, Iterable) and not isinstance(during, str)
    return list(map(iso_or_text, during)) if is_pair else during


def ask(
    text: str, limits: Mapping[str, int], times: Mapping[str, Any], thread: str | None = None,
    how: Mapping[str, Any] = MappingProxyType({}),
) -> Question:  # fmt: skip
    """Return the question of a verb: its text must have words, and its *limits* must be counts.

    Errors: `InputError`.
    """
    validate_name("question", text, "some words to look for")
    if thread is not None:
        validate_text("thread", thread)
    if how.get("asker") is not None:
        validate_name("asker", how["asker"], "the name of an entity")
    counts = {name: validate_count(name, limit) for name, limit in limits.items()}
    return Question.parse({**times, **how, **counts, "question": replace_unstorable(text), "thread": thread})


def lines_within(max_tokens: Any) -> int:
    """Return how many lines of each kind there may be room for."""
    return max(MIN_LINES, max_tokens // TOKENS_A_LINE) if isinstance(max_tokens, int) else MIN_LINES


@dataclass(frozen=True, slots=True)
class QuestionTime:
    """The time that a question is about: for queries, and for the user; `past` says that it is over, and filters."""

    instants: Instants
    time: QueryTime
    past: bool


@dataclass(frozen=True, slots=True)
class Found(QuestionTime):
    """The results of the step search: the time, and the hits of each kind.

    `named` are the ids of the entities that the question names, and `centers` those of its center. `unread` are those
    of episodes that are saved and not read yet, which are found by their words alone. `relevance` is how likely the
    memory holds an answer, by the `evidence`, which a search without words does not know, and `doubt` is why it may
    hold none. `degraded` is why it did not search by meaning, where the embedding model failed.
    """

    hits: Mapping[Kind, Hits]
    named: Sequence[str] = ()
    centers: Sequence[str] = ()
    unread: Sequence[str] = ()
    relevance: float | None = 0.0
    doubt: str = EMPTY
    evidence: Evidence | None = None
    degraded: str | None = None


@dataclass(frozen=True, slots=True)
class Ranked:
    """The candidates of each kind in one order, and, for an explanation, their scores after each stage."""

    ranked: Mapping[Kind, list[Scored]]
    stages: Mapping[Kind, Mapping[str, list[Stage]]] = field(default_factory=dict)

"""A question with its options, the names in its text, and the results of the steps of retrieval."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, fields
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Self

from kg_memory.errors import InputError
from kg_memory.models.filters import Filter, parse_filter, to_plain
from kg_memory.models.graph import Kind
from kg_memory.models.results import QueryTime
from kg_memory.plugins import load_plugin
from kg_memory.retrieval.answerable import EMPTY, Evidence
from kg_memory.retrieval.context.lines import Template
from kg_memory.retrieval.context.templates import find_template
from kg_memory.retrieval.ranking import Hits, Instants, Scored
from kg_memory.retrieval.recipe import DEFAULT, Recipe, find_recipe
from kg_memory.temporal.interval import iso_or_text
from kg_memory.text.identity import alias_key, is_first_person, replace_unstorable, without_possessive
from kg_memory.text.message_fields import USER
from kg_memory.text.tokenise import terms
from kg_memory.validation import validate_count, validate_name, validate_names, validate_namespaces, validate_text

DEFAULT_LIMIT = 10
DEFAULT_TOKENS = 2000
SPARE = 5
"""The number of episodes beyond the limit that are read, to replace messages without content."""
MIN_LINES = 10
TOKENS_A_LINE = 40
"""The average number of tokens in a context per line of one kind, including lines of the other kinds."""
_TYPES = {"question": str, "thread": str, "asker": str, "limit": int, "max_tokens": int}
_NOUNS = {str: "a string", int: "a whole number"}

Stage = tuple[str, float]
"""The name of a stage of ranking, and the score of a candidate after it."""


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """A question and the validated options of its search.

    `limit`: results of each kind. `max_tokens`: length of the context; 0 writes none. Times are as the user gave them.
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
    recall_from: tuple[str, ...] = ()

    def namespaces(self, home: str) -> tuple[str, ...]:
        """Return all namespaces to search: *home*, and those of `recall_from`."""
        return tuple(dict.fromkeys((home, *self.recall_from)))

    @classmethod
    def parse(cls, options: Mapping[str, Any]) -> Self:
        """Return the `SearchQuery` with the *options* of a search: ``{"question": "Where is Ann?", "limit": 5}``.

        Errors: `InputError` for an invalid option.
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
        given["recall_from"] = validate_namespaces(given["recall_from"]) if given.get("recall_from") else ()
        given["limit"] = max(given.get("limit", DEFAULT_LIMIT), 0)
        if "template" in given:
            find_template(given["template"])
        return cls(given.pop("question"), **given)

    def as_state(self) -> dict[str, Any]:
        """Return the question and all options that are not defaults as JSON: ``{"question": "...", "limit": 5}``."""
        changed = {name: value for name in _NAMES if (value := getattr(self, name)) != _DEFAULTS[name]}
        plain: dict[str, Any] = {"where": to_plain(self.where) if self.where else None, "center": list(self.center)}
        plain["recall_from"] = list(self.recall_from)
        plain |= {"recipe": self.recipe.as_state(), "during": _plain_period(self.during)}
        plain |= {"as_of": iso_or_text(self.as_of), "believed_at": iso_or_text(self.believed_at)}
        return {"question": self.text, **{name: plain.get(name, value) for name, value in changed.items()}}


_DEFAULTS = {each.name: each.default for each in fields(SearchQuery)[1:]}
_NAMES = tuple(_DEFAULTS)


def _plain_period(during: Any) -> Any:
    is_pair = isinstance(during, Iterable) and not isinstance(during, str)
    return list(map(iso_or_text, during)) if is_pair else during


def make_search_query(
    text: str, limits: Mapping[str, int], times: Mapping[str, Any], thread: str | None = None,
    how: Mapping[str, Any] = MappingProxyType({}),
) -> SearchQuery:  # fmt: skip
    """Return the `SearchQuery` for the arguments of a method such as `GraphMemory.search`, after checking them."""
    validate_name("question", text, "some words to look for")
    if thread is not None:
        validate_text("thread", thread)
    if how.get("asker") is not None:
        validate_name("asker", how["asker"], "the name of an entity")
    counts = {name: validate_count(name, limit) for name, limit in limits.items()}
    return SearchQuery.parse({**times, **how, **counts, "question": replace_unstorable(text), "thread": thread})


def lines_within(max_tokens: Any) -> int:
    """Return how many results of each kind to search for a context of *max_tokens* tokens; at least `MIN_LINES`."""
    return max(MIN_LINES, max_tokens // TOKENS_A_LINE) if isinstance(max_tokens, int) else MIN_LINES


@dataclass(frozen=True, slots=True)
class QuestionTime:
    """The time that a question is about: when facts must be true, and when the memory must have known them."""

    instants: Instants
    time: QueryTime
    past: bool


@dataclass(frozen=True, slots=True)
class Found(QuestionTime):
    """The result of the search step: the candidates of each kind, and the time of the question.

    `relevance`: the probability of an answer, None if unknown. `degraded`: why vectors were not searched, or None.
    """

    hits: Mapping[Kind, Hits]
    named: Sequence[str] = ()
    centers: Sequence[str] = ()
    unread: Sequence[str] = ()
    relevance: float | None = 0.0
    doubt: str = EMPTY
    evidence: Evidence | None = None
    degraded: str | None = None
    namespaces: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Ranked:
    """The result of the rerank step: ``(id, score)`` of the search results of each kind, best first."""

    ranked: Mapping[Kind, list[Scored]]
    stages: Mapping[Kind, Mapping[str, list[Stage]]] = field(default_factory=dict)


# The names that a question may contain, and the name of the asker

LONGEST_NAME = 5
"""The most words of a name."""
HYPHENS = range(1, 3)
"""The numbers of spaces in a question that may stand for hyphens in a name: "billing service" for billing-service."""
LONGEST_UNSPACED = 8
"""The most characters of a name in a script without spaces, such as Chinese."""
MOST_WORDS = 200
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff]+")
_EDGES = re.compile(r"^[\W_]+|[\W_]+$")


def asker_keys(question: str, asker: str | None) -> list[str]:
    """Return ``[name hash of the asker]`` if *question* says "I", "my", "the user" or 我, otherwise ``[]``."""
    return [alias_key(replace_unstorable(asker or USER))] if is_first_person(question) else []


def name_keys(text: str) -> list[str]:
    """Return the hashes of all phrases in *text* that may be names: of "Ann", "Lee" and "Ann Lee"."""
    return list(dict.fromkeys(alias_key(name) for name in _possible_names(text)))


def without_names(text: str, keys: AbstractSet[str]) -> str:
    """Return *text* without the names whose hashes are in *keys*: "Where did Ann swim?" -> "Where did swim?"."""
    words = text.split()
    for length in range(min(LONGEST_NAME, len(words)), 0, -1):
        for start in range(len(words) - length, -1, -1):
            if not keys.isdisjoint(map(alias_key, _forms(" ".join(words[start : start + length])))):
                del words[start : start + length]
    rest = _UNSPACED.sub(lambda run: _remove_unspaced_names(run[0], keys), " ".join(words))
    return rest if terms(rest) else text


def _remove_unspaced_names(run: str, keys: AbstractSet[str]) -> str:
    for length in range(min(LONGEST_UNSPACED, len(run)), 1, -1):
        for start in range(len(run) - length, -1, -1):
            if alias_key(run[start : start + length]) in keys:
                run = run[:start] + run[start + length :]
    return run


def _possible_names(text: str) -> list[str]:
    """Return all phrases in *text* that could be a name: ``"Ann's dog" -> ["Ann", "dog", "Ann's dog", ...]``."""
    words = text.split()
    if _UNSPACED.search(text):
        words += _UNSPACED.sub(" ", text).split()  # find "Ann" in "Ann住在哪里", without a space
    words = words[:MOST_WORDS]
    stretches: list[str] = []
    for length in range(1, LONGEST_NAME + 1):
        for start in range(len(words) - length + 1):
            stretches += _forms(" ".join(words[start : start + length]))
    for run in _UNSPACED.findall(text[: MOST_WORDS * LONGEST_NAME]):
        for start in range(len(run)):
            stretches += [run[start:end] for end in range(start + 1, start + LONGEST_UNSPACED + 1)]
    return [name for name in dict.fromkeys(stretches) if any(map(_has_terms, name.split()))]


@lru_cache(maxsize=4096)
def _has_terms(word: str) -> bool:
    return bool(terms(word))


def _forms(stretch: str) -> list[str]:
    """Return all spellings under which a name may be stored: ``"(Ann's)" -> ["(Ann's)", "Ann's", "Ann"]``."""
    bare = _EDGES.sub("", stretch)
    plain = without_possessive(bare)
    forms = [stretch, bare, plain, plain.replace("-", " ")]
    if plain.count(" ") in HYPHENS:
        forms.append(plain.replace(" ", "-"))
    return [form for form in dict.fromkeys(forms) if form]

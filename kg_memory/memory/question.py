"""A question as the retrieval graph takes it, and its results as users hold them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from kg_memory.models import filters
from kg_memory.models.results import SearchResults
from kg_memory.retrieval.recipe import find_recipe
from kg_memory.temporal.interval import iso_or_text
from kg_memory.text.identity import replace_unstorable
from kg_memory.validation import validate_count, validate_name, validate_names, validate_namespace, validate_text

MIN_LINES = 10
TOKENS_A_LINE = 40
"""Tokens that a line of one kind takes of a context, with its share of the lines of the others."""


def question_state(
    text: str, namespace: str, limits: Mapping[str, int], times: Mapping[str, Any], thread: str | None,
    how: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Any]:  # fmt: skip
    """Return a question as the retrieval graph takes it; *how* has the recipe, filter, center and template.

    Errors: `InputError`.
    """
    validate_name("question", text, "some words to look for")
    if thread is not None:
        validate_text("thread", thread)
    counts = {name: validate_count(name, limit) for name, limit in limits.items()}
    during = times["during"]
    if isinstance(during, Iterable) and not isinstance(during, str):
        during = list(map(iso_or_text, during))
    return {
        "question": replace_unstorable(text),
        "namespace": validate_namespace(namespace),
        "thread": thread,
        "during": during,
        "as_of": iso_or_text(times["as_of"]),
        "believed_at": iso_or_text(times["believed_at"]),
        "unreviewed": times["unreviewed"],
        **counts,
        **_options(how),
    }


def _options(how: Mapping[str, Any]) -> dict[str, Any]:
    """Return the recipe, filter and so on as JSON; what is not set is left out."""
    options = {name: value for name, value in how.items() if value is not None and value is not False}
    if "recipe" in options and not isinstance(options["recipe"], str):
        options["recipe"] = find_recipe(options["recipe"]).as_state()
    if "where" in options:
        where = filters.parse_filter(options["where"])
        options["where"] = None if where is None else filters.to_plain(where)
    if "center" in options:
        options["center"] = list(validate_names("center", options["center"], "the name of an entity"))
    if "asker" in options:
        validate_name("asker", options["asker"], "the name of an entity")
    return options


def search_results(state: Mapping[str, Any]) -> SearchResults:
    """Return the results of a question that went through the retrieval graph."""
    return SearchResults.model_validate(state["results"])


def lines_within(max_tokens: Any) -> int:
    """Return how many lines of each kind there may be room for."""
    return max(MIN_LINES, max_tokens // TOKENS_A_LINE) if isinstance(max_tokens, int) else MIN_LINES

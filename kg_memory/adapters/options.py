"""The manner in which an adapter asks the memory: by which recipe and filter, and how it writes what it is told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kg_memory.models import filters
from kg_memory.retrieval.context.templates import Template
from kg_memory.retrieval.context.templates import find_template as checked_template
from kg_memory.retrieval.recipe import Recipe
from kg_memory.retrieval.recipe import find_recipe as checked_recipe

Where = Mapping[str, Any]
"""A filter of `kg_memory.models.filters`."""


def checked_manner(
    recipe: Recipe | str | None = None, where: Where | None = None, template: Template | str | None = None
) -> dict[str, Any]:
    """Return what is given of it, as `GraphMemory.search` and `GraphMemory.context` take it by name.

    Errors: `InputError`.
    """
    checked_recipe(recipe)
    filters.parse_filter(where)
    checked_template(template)
    manner = {"recipe": recipe, "where": where, "template": template}
    return {name: value for name, value in manner.items() if value is not None}

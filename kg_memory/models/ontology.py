"""Ontologies: the types of entities and facts to extract from texts; a default one, and your own in TOML files.

A file looks like this::

    strict = true                                  # facts with other predicates are dropped

    [[entity_types]]                               # the first one is for entities that fit no other
    name = "Thing"
    description = "anything that fits no other type"

    [[fact_types]]
    name = "RUNS_ON"
    description = "a service runs on a device"
    signature = [["Service", "Device"]]            # optional
    single_valued = true                           # optional
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kg_memory.errors import SettingsError


@dataclass(frozen=True, slots=True)
class EntityType:
    """A type of entities, such as "Person". `description` tells the model that extracts entities when to use it."""

    name: str
    description: str


@dataclass(frozen=True, slots=True)
class FactType:
    """A type of facts that a user declares: a predicate, its meaning, and the types of entities that it may connect.

    Example::

        FactType("RUNS_ON", "a service runs on a device", signature=(("Service", "Device"),))

    The model prefers declared predicates where they fit. It may use others unless `Settings.strict_fact_types` is set.
    """

    name: str
    description: str
    signature: tuple[tuple[str, str], ...] = ()
    single_valued: bool | None = None
    """Whether a subject has one object at a time (as of ``LIVES_IN``); None leaves that to rules and the model."""


@dataclass(frozen=True, slots=True)
class Ontology:
    """The types of entities and facts that a memory knows; if `strict`, facts of other types are not stored."""

    entity_types: tuple[EntityType, ...]
    fact_types: tuple[FactType, ...] = ()
    strict: bool = False


ENTITY_TYPES = (
    EntityType("Entity", "anything that fits no other type"),
    EntityType("Person", "a human being, by name or by role"),
    EntityType("Organization", "a company, team, school, club or authority"),
    EntityType("Place", "a city, country, address, building or region"),
    EntityType("Event", "something that happens at a time, with a name or a clear description"),
    EntityType("Product", "a tool, device, work, brand or other thing that can be named"),
    EntityType("Topic", "a field, activity, interest or idea"),
)


def read_ontology(file: str) -> Ontology:
    """Parse the TOML file at the path *file*, and return the ontology in it.

    Raises `SettingsError` for a missing or invalid file.
    """
    path = Path(file).expanduser()
    try:
        return _parse_ontology(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, TypeError, ValueError, KeyError) as error:
        raise SettingsError(f"ontology {file} cannot be read ({error}); see kg_memory.models.ontology") from None


def _parse_ontology(content: Mapping[str, Any]) -> Ontology:
    """Convert a parsed TOML file to an ontology; raise `ValueError`, `TypeError` or `KeyError` if it is invalid."""
    if unknown := content.keys() - {"entity_types", "fact_types", "strict"}:
        raise ValueError(f"unknown keys {sorted(unknown)}; use entity_types, fact_types and strict")
    facts = tuple(_read_fact_type(row) for row in content.get("fact_types", ()))
    entities = tuple(EntityType(**row) for row in content.get("entity_types", ())) or ENTITY_TYPES
    types: tuple[EntityType | FactType, ...] = (*entities, *facts)
    texts = [*(type_.name for type_ in types), *(type_.description for type_ in types)]
    if not all(isinstance(text, str) and text.strip() for text in texts):
        raise ValueError("names and descriptions must be non-empty strings")
    strict = content.get("strict", False)
    if not isinstance(strict, bool) or (strict and not facts):
        raise ValueError("strict must be true or false, and true only with fact_types")
    return Ontology(entities, facts, strict)


def _read_fact_type(row: Mapping[str, Any]) -> FactType:
    signature = tuple((str(subject), str(target)) for subject, target in row.get("signature", ()))
    return FactType(**{**row, "signature": signature})

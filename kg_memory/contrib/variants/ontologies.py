"""Ontologies of other memory systems for `Settings.ontology`: their types of entities and facts."""

from __future__ import annotations

from kg_memory.models.ontology import EntityType, FactType, Ontology

_CONCEPT = EntityType("Concept", "an idea, a method or a field, and whatever fits no other type")
_PERSON = EntityType("Person", "a human being, by name or by role")
_ORGANIZATION = EntityType("Organization", "a company, team, school, club or authority")
_TOOL = EntityType("Tool", "a program, service or device that people use")
_PROJECT = EntityType("Project", "a piece of work with a name")
MEMORYD = Ontology(
    entity_types=(
        _CONCEPT,
        _PERSON,
        _ORGANIZATION,
        EntityType("Place", "a city, country, address, building or region"),
        EntityType("Library", "a software library or framework"),
        _TOOL,
        _PROJECT,
    ),
    fact_types=(
        FactType("WORKS_ON", "a person works on a project", (("Person", "Project"),)),
        FactType("USES", "a person uses a library or a tool", (("Person", "Library"), ("Person", "Tool"))),
        FactType("PREFERS", "a person prefers something to others", (("Person", "Library"), ("Person", "Tool"))),
        FactType("RUNS_ON", "a program or service runs on a device", (("Tool", "Tool"),)),
        FactType("BELONGS_TO", "a project is of somebody", (("Project", "Person"), ("Project", "Organization"))),
        FactType("LOCATED_AT", "a person or a device is at a place", (("Person", "Place"), ("Tool", "Place"))),
    ),
    strict=True,
)
"""The ontology of memoryd. Its other five predicates are relations of the graph itself: what an episode
mentions, and what supersedes, conflicts with or cites what."""
ZEPH = Ontology(
    entity_types=(
        _CONCEPT,
        _PERSON,
        _TOOL,
        _PROJECT,
        EntityType("Language", "a programming language"),
        EntityType("File", "a file or a folder"),
        EntityType("Config", "a setting, an option or its value"),
        _ORGANIZATION,
    )
)
"""The entity types of Zeph. Predicates are not restricted."""

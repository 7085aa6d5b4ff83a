"""Reads prompts about communities, and answers them."""

from collections.abc import Callable, Mapping
from typing import Any

from tests.scripted import Rule

Items = list[Mapping[str, str]]
MEMBERSHIPS = "MATCH (c:Community)-[:HAS_MEMBER]->(e:Entity) RETURN c.id AS id, e.name AS name"


def describing(described: Callable[[Items], tuple[str, str]]) -> Rule:
    """Return a rule that gives each community the name and the summary that are *described* for its items."""

    def rule(fields: Mapping[str, Any]) -> Any:
        found = [(each["community"], *described(each["items"])) for each in fields["communities"]]
        return {"communities": [{"community": one, "name": name, "summary": summary} for one, name, summary in found]}

    return rule


def names(fields: Mapping[str, Any]) -> list[list[str]]:
    """Return the members or the parts of each community in a prompt."""
    described = (one["items"] for one in fields["communities"])
    return [[each.get("entity") or each["part"] for each in items if "fact" not in each] for items in described]

"""Forgetting: what was said is gone, and all else is as if it had never been said."""

from collections.abc import Callable, Sequence
from typing import Any

from kg_memory import GraphMemory
from tests.scripted import Rule

Look = Callable[..., list[dict[str, Any]]]
ALL = (
    "MATCH (n) RETURN labels(n)[0] AS what, properties(n) AS held",
    "MATCH ()-[r]->() RETURN type(r) AS what, properties(r) AS held",
)


def residue(rows: Look, *texts: str) -> list[tuple[str, str, Any]]:
    """Return each property of a node or edge that contains one of *texts*, with its label or type and its name."""
    found = []
    for query in ALL:
        for row in rows(query):
            for name, value in row["held"].items():
                held = str(value).casefold()
                if name != "embedding" and any(text.casefold() in held for text in texts):
                    found.append((row["what"], name, value))
    return found


def once(action: Callable[[], Any], rule: Rule) -> Rule:
    """Return *rule*, which runs *action* before its first use."""
    left = [action]
    return lambda fields: (left.pop()() if left else None, rule(fields))[1]


def believed(memory: GraphMemory, namespace: str, names: Sequence[str]) -> set[tuple[Any, ...]]:
    """Return the facts of all time about *names*, with dates and sources.

    The confidence of a statement may stay a little high where a forgotten message had supported it.
    """
    return {
        (
            fact.sentence, fact.predicate, fact.valid_at, fact.invalid_at, fact.known_from, fact.precision,
            fact.end_precision, fact.reviewed, tuple(each.quote for each in fact.sources),
        )
        for name in names
        for fact in memory.facts.history(name, namespace=namespace, limit=1000)
    }  # fmt: skip


def carried(rows: Look) -> dict[tuple[str, int], dict[str, int]]:
    """Return the words that each episode has in the index, and how often."""
    found: dict[tuple[str, int], dict[str, int]] = {}
    for row in rows(
        "MATCH (t:Term)-[p:IN_EPISODE]->(e:Episode) RETURN t.s AS term, coalesce(p.f, 1) AS f, e.content AS said, e.n AS n"
    ):
        found.setdefault((row["said"], row["n"]), {})[row["term"]] = row["f"]
    return found

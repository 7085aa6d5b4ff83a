"""Premises: facts that others rest on, as they were read or declared, and by the vocabulary.

The rules are few and surely right: who works in the place where the employer is stops to be sure of it when he leaves
the employer, or the employer the place; and two are colleagues at what both work for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from kg_memory.ingestion.records import JSON, StatedFact


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule by predicates: a fact *of* the subject rests on its *first* fact, and on a *second* one.

    *kind*: ``placed``, the second is about the object of the first and has the object of the fact; ``shared``, it is
    about the object of the fact and has the object of the first.
    """

    kind: Literal["placed", "shared"]
    of: tuple[str, ...]
    first: tuple[str, ...]
    second: tuple[str, ...]


EMPLOYED = ("WORKS_AT",)
RULES = (
    Rule("placed", ("WORKS_IN", "COMMUTES_TO"), EMPLOYED, ("IS_LOCATED_IN", "HAS_OFFICE_IN")),
    Rule("shared", ("WORKS_WITH", "HAS_COLLEAGUE", "REPORTS_TO", "HAS_BOSS", "HAS_MANAGER"), EMPLOYED, EMPLOYED),
)


def premise_rows(facts: Sequence[StatedFact]) -> list[JSON]:
    """Return which stored facts rest on which; what is declared names facts that are stored before."""
    stored = {fact.id: fact.stored_id for fact in facts}
    pairs = {(fact.stored_id, stored.get(premise, premise)) for fact in facts for premise in fact.premises}
    return [{"fact": fact, "premise": premise} for fact, premise in sorted(pairs) if fact != premise]


def rule_rows(facts: Iterable[StatedFact]) -> dict[str, list[JSON]]:
    """Return by kind of rule the stated facts that it may link to others, with its predicates."""
    rows: dict[str, list[JSON]] = {"placed": [], "shared": []}
    for fact in facts:
        for rule in RULES:
            if fact.predicate in (*rule.of, *rule.first, *rule.second):
                names = {"of": rule.of, "first": rule.first, "second": rule.second}
                rows[rule.kind].append({"fact": fact.stored_id, **{key: list(value) for key, value in names.items()}})
    return rows

"""The vocabulary of a namespace, listed and corrected by persons."""

from __future__ import annotations

from kg_memory.errors import InputError
from kg_memory.falkor.queries import facts as cypher
from kg_memory.models.graph import PredicateInfo
from kg_memory.runtime.effects import now, read, write
from kg_memory.runtime.flow import Flow
from kg_memory.text.identity import replace_unstorable
from kg_memory.text.predicates import canonical_predicate as by_rules
from kg_memory.text.predicates import predicate_name
from kg_memory.validation import validate_count


def listed(limit: int, skip: int) -> Flow[list[PredicateInfo]]:
    """Return the predicates that were learned, declared or corrected here, by name."""
    page = {"limit": validate_count("limit", limit), "skip": validate_count("skip", skip, 0)}
    rows = yield from read(cypher.ALL_PREDICATES, **page)
    return [PredicateInfo(**row["predicate"]) for row in rows]


def correct(name: str, canonical: str | None, *, one_at_a_time: bool | None) -> Flow[PredicateInfo]:
    """Keep what a person says of a predicate; what is left out stays as it is known.

    Errors: `InputError` when there is no name, or nothing to say.
    """
    if not isinstance(name, str) or not any(map(str.isalnum, name)):
        raise InputError("the predicate is empty: give a name such as LIVES_IN")
    if canonical is None and one_at_a_time is None:
        raise InputError("nothing is corrected: give canonical or one_at_a_time")
    if canonical is not None and not (isinstance(canonical, str) and any(map(str.isalnum, canonical))):
        raise InputError(f"canonical is {canonical!r}: give a name such as LIVES_IN")
    if one_at_a_time is not None and not isinstance(one_at_a_time, bool):
        raise InputError(f"one_at_a_time is {one_at_a_time!r}: give True or False, or leave it out")
    written = predicate_name(replace_unstorable(name))
    stored = yield from read(cypher.PREDICATES, names=[written])
    rule = by_rules(written)
    known = PredicateInfo(
        name=written, canonical=rule.name if rule else written, origin="rules",
        one_at_a_time=rule.one_at_a_time if rule else None,
    )  # fmt: skip
    if stored:
        known = PredicateInfo(**stored[0]["predicate"])
    info = PredicateInfo(
        name=written,
        canonical=known.canonical if canonical is None else predicate_name(replace_unstorable(canonical)),
        one_at_a_time=known.one_at_a_time if one_at_a_time is None else one_at_a_time,
        origin="corrected",
    )
    told = info.model_dump(exclude={"origin"})
    yield from write(cypher.CORRECT_PREDICATE, **told, now=(yield from now()))
    return info

"""`GraphMemory.predicates`: list and correct the predicates (relations) of a namespace."""

from __future__ import annotations

import builtins

from kg_memory.errors import InputError
from kg_memory.falkor.queries import facts as queries
from kg_memory.memory._verb import Group, verb
from kg_memory.models.graph import PredicateInfo
from kg_memory.models.ontology import FactType
from kg_memory.runtime.effects import fetch, now, write
from kg_memory.runtime.flow import Flow
from kg_memory.text.identity import replace_unstorable
from kg_memory.text.predicates import canonical_predicate, declared_predicate, predicate_name
from kg_memory.validation import DEFAULT_NAMESPACE, validate_count


class Predicates(Group):
    """`GraphMemory.predicates`: the predicates (relations such as ``LIVES_IN``), to list and to correct.

    Predicates with the same meaning have one canonical name: ``RESIDES_IN`` is stored as ``LIVES_IN``. A single-valued
    predicate has one object at a time for a subject: somebody lives in one place, but likes many things.
    """

    _group = "predicates"

    def _list(
        self, *, namespace: str = DEFAULT_NAMESPACE, limit: int = 100, skip: int = 0
    ) -> Flow[builtins.list[PredicateInfo]]:
        """Return the predicates that the namespace learned, and those declared or corrected in it, sorted by name.

        The built-in predicates are not included. *limit*: the maximum number. *skip*: how many of the first to leave
        out.
        """
        page = {"limit": validate_count("limit", limit), "skip": validate_count("skip", skip, 0)}
        return [PredicateInfo(**row["predicate"]) for row in (yield from fetch(queries.ALL_PREDICATES, **page))]

    list, alist = verb(_list)

    def _update(
        self,
        name: str,
        *,
        canonical: str | None = None,
        single_valued: bool | None = None,
        namespace: str = DEFAULT_NAMESPACE,
    ) -> Flow[PredicateInfo]:
        """Set the canonical name of a predicate (a relation), or whether it is single-valued; return the result.

        Example::

            memory.predicates.update("RESIDES_IN", canonical="LIVES_IN")
            memory.predicates.update("PREFERS", single_valued=True)

        A single-valued predicate has one object at a time. None leaves a value unchanged, and existing facts stay
        unchanged. Raises `InputError` for an invalid name, or if neither value is given.
        """
        _validate_correction(name, canonical, single_valued)
        own_name = predicate_name(replace_unstorable(name))
        current = yield from read_predicate(own_name, self._engine.settings.fact_types)
        info = PredicateInfo(
            name=own_name,
            canonical=current.canonical if canonical is None else predicate_name(replace_unstorable(canonical)),
            single_valued=current.single_valued if single_valued is None else single_valued,
            origin="corrected",
        )
        yield from write(queries.CORRECT_PREDICATE, **info.model_dump(exclude={"origin"}), now=(yield from now()))
        return info

    update, aupdate = verb(_update)


def _validate_correction(name: object, canonical: object, single_valued: object) -> None:
    if not _is_name(name):
        raise InputError(f"name must be the name of a predicate such as LIVES_IN, got {name!r}")
    if canonical is None and single_valued is None:
        raise InputError("give canonical or single_valued: both are None, which changes nothing")
    if canonical is not None and not _is_name(canonical):
        raise InputError(f"canonical must be the name of a predicate such as LIVES_IN, got {canonical!r}")
    if single_valued is not None and not isinstance(single_valued, bool):
        raise InputError(f"single_valued must be True or False, got {single_valued!r}")


def _is_name(value: object) -> bool:
    return isinstance(value, str) and any(map(str.isalnum, value))


def read_predicate(name: str, fact_types: tuple[FactType, ...]) -> Flow[PredicateInfo]:
    """Return the predicate (a relation) *name*: its canonical name, and whether it has one object at a time."""
    stored = yield from fetch(queries.PREDICATES, names=[name])
    info = PredicateInfo(**stored[0]["predicate"]) if stored else None
    own = declared_predicate(name, fact_types)
    if own is not None and (info is None or info.origin != "corrected"):
        return PredicateInfo(name=name, canonical=own.name, single_valued=own.single_valued, origin="declared")
    if info is not None:
        return info
    rule = canonical_predicate(name)
    if rule is None:
        return PredicateInfo(name=name, canonical=name, origin="rules")
    return PredicateInfo(name=name, canonical=rule.name, single_valued=rule.single_valued, origin="rules")

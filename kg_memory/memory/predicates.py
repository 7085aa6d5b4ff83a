"""`GraphMemory.predicates`: the vocabulary of relations that a namespace uses."""

from __future__ import annotations

import builtins

from kg_memory.maintenance.review import predicates as vocabulary
from kg_memory.memory._verb import Group, verb
from kg_memory.models.graph import PredicateInfo
from kg_memory.runtime.flow import Flow
from kg_memory.validation import DEFAULT_NAMESPACE


class Predicates(Group):
    """Relations: their canonical names, and whether a subject has one object at a time."""

    group = "predicates"

    def _list(
        self, *, namespace: str = DEFAULT_NAMESPACE, limit: int = 100, skip: int = 0
    ) -> Flow[builtins.list[PredicateInfo]]:
        """Return the predicates that this namespace learned, or that were declared or corrected in it, by name.

        The built-in ones are left out.
        """
        return vocabulary.listed(limit, skip)

    list, alist = verb(_list)

    def _update(
        self,
        name: str,
        *,
        canonical: str | None = None,
        single_valued: bool | None = None,
        namespace: str = DEFAULT_NAMESPACE,
    ) -> Flow[PredicateInfo]:
        """Set the *canonical* name of a predicate, and whether a subject has one object of it at a time.

        It applies to what is read from now on. Errors: `InputError`.
        """
        return vocabulary.correct(name, canonical, one_at_a_time=single_valued)

    update, aupdate = verb(_update)

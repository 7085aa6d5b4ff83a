"""``kg-memory predicates``: the vocabulary of predicates, listed and corrected."""

from __future__ import annotations

from argparse import Namespace

from kg_memory.cli.opening import namespace_of, open_memory
from kg_memory.cli.screen import Cell, Screen
from kg_memory.models.graph import PredicateInfo
from kg_memory.text.predicates import canonical_predicate, predicate_name

_SEARCHED = 100_000
_COLUMNS = ("predicate", "kept as", "values at a time", "by")


def predicates(arguments: Namespace, screen: Screen) -> int:
    """List the predicates, tell what is known of one, or correct it."""
    namespace = namespace_of(arguments)
    with open_memory(arguments, screen) as memory:
        if arguments.name is None:
            found = memory.predicates.list(namespace=namespace, limit=arguments.limit)
            empty = "No predicates were learned yet. What the rules know, as LIVES_IN, goes without saying."
            screen.values(found, _COLUMNS, [_row(each) for each in found], ("bold", "", "yellow", "dim"), empty=empty)
            return 0
        if arguments.canonical is None and arguments.one_at_a_time is None:
            stored = memory.predicates.list(namespace=namespace, limit=_SEARCHED)
            _tell(_known(arguments.name, stored), screen)
            return 0
        corrected = memory.predicates.update(
            arguments.name, canonical=arguments.canonical, single_valued=arguments.one_at_a_time, namespace=namespace
        )
    _tell(corrected, screen)
    screen.note("It counts for what is read from now on.")
    return 0


def _known(name: str, stored: list[PredicateInfo]) -> PredicateInfo:
    """Return what the namespace or the rules know of a predicate in any of its wordings."""
    written = predicate_name(name)
    for each in stored:
        if each.name == written:
            return each
    rule = canonical_predicate(written)
    one = rule.single_valued if rule else None
    return PredicateInfo(name=written, canonical=rule.name if rule else written, single_valued=one, origin="rules")


def _tell(info: PredicateInfo, screen: Screen) -> None:
    if screen.as_json:
        screen.json(info.model_dump(mode="json"))
    else:
        screen.table(_COLUMNS, [_row(info)], ("bold", "", "yellow", "dim"))


def _row(info: PredicateInfo) -> tuple[Cell, ...]:
    times = {True: "one", False: "several", None: "not known"}
    return info.name, info.canonical, times[info.one_at_a_time], info.origin

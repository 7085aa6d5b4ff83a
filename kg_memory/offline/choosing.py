"""Choose among the statements that patterns found in one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kg_memory.offline import lexicon
from kg_memory.offline.patterns import NOT, SINGLE
from kg_memory.offline.scene import MOST_OBJECTS, MOST_OF_SENTENCE, Statement
from kg_memory.offline.spans import PRODUCT


def as_tools(found: list[Statement]) -> list[Statement]:
    """Read "we dropped Jira and moved to Linear" as a change of tools, not of homes."""
    if not any((one.predicate == "USES" and one.change == "ends") or one.predicate == f"{NOT}USES" for one in found):
        return found
    return [
        replace(one, predicate="USES", objects=tuple(replace(each, type=PRODUCT) for each in one.objects))
        if one.predicate == "LIVES_IN" and one.objects[0].name.casefold() not in lexicon.PLACES
        else one
        for one in found
    ]


def chosen(found: Sequence[Statement]) -> list[Statement]:
    """Keep one statement for the same subject and objects, one of a kind for things done or planned, and few in all."""
    kept: list[Statement] = []
    for statement in sorted(found, key=lambda one: -one.confidence):
        names = {one.name for one in statement.objects}
        mine = [other for other in kept if other.subject.name == statement.subject.name]
        if any(names <= {one.name for one in other.objects} for other in mine):
            continue
        like = next((other for other in mine if other.predicate == statement.predicate), None)
        if like is None or like.predicate in SINGLE:
            kept.append(statement)
        else:
            objects = {one.name: one for one in (*like.objects, *statement.objects)}
            kept[kept.index(like)] = replace(like, objects=tuple(objects.values())[: MOST_OBJECTS + 1])
    return sorted(kept[:MOST_OF_SENTENCE], key=lambda one: one.objects[0].start)

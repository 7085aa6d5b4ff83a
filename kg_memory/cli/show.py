"""The commands that print facts, entities, episodes, communities, predicates, namespaces and counts."""

from __future__ import annotations

from argparse import Namespace
from datetime import UTC, datetime
from typing import Any

from kg_memory.cli.command import (
    NOTHING_YET,
    call_verb,
    explain_nothing,
    namespace_of,
    open_memory,
    open_to_change,
    open_to_look,
    review_command,
)
from kg_memory.cli.output import Columns, Screen, count_noun, count_waiting
from kg_memory.cli.views import COLUMNS
from kg_memory.errors import InputError
from kg_memory.memory.memory import GraphMemory
from kg_memory.memory.predicates import read_predicate
from kg_memory.models.graph import Entity
from kg_memory.models.operations import CommunityRefresh, Usage
from kg_memory.models.results import CommunityCard, Neighbourhood
from kg_memory.text.predicates import predicate_name

_SIZES = ("episodes", "facts", "entities", "waiting", "failed", "paused")
_FILTERS = {"as_of": "--on", "during": "--during", "believed_at": "--believed-at", "where": "--where"}


def show_result(arguments: Namespace, screen: Screen) -> int:
    """Call the method of the memory that belongs to the command, such as ``memory.episodes.list``; print its result.

    Return 0.
    """
    with open_to_look(arguments, screen) as memory:
        show_list(memory, call_verb(memory, arguments), arguments, screen)
    return 0


def show_list(memory: GraphMemory, values: Any, arguments: Namespace, screen: Screen, empty: str = "") -> None:
    """Print a list of results and how to get the next page; for an empty list, print the reason.

    *values*: the results, such as facts. *empty*: the text for an empty list; "" means the command's own text.
    """
    if not values:
        empty = explain_nothing(memory, arguments, empty or arguments.command.empty.format_map(vars(arguments)))
    screen.values(values, ids=getattr(arguments, "ids", False), empty=empty)
    if cursor := getattr(values, "next", None):
        screen.note(f"More on the next page: --after {cursor}")


def show_facts(arguments: Namespace, screen: Screen) -> int:
    """Run ``kg-memory facts``, ``history`` or ``timeline``: print the facts about one entity or all; return 0.

    If ``facts`` finds nothing for a name, it prints the facts about an entity with a similar name.
    """
    with open_to_look(arguments, screen) as memory:
        found, name = call_verb(memory, arguments), getattr(arguments, "about", None)
        if not found and name is not None:
            alike = memory.entities.list(like=name, limit=1, namespace=namespace_of(arguments))
            if alike and alike[0].name != name:
                screen.note(f"Nothing is known about {name!r}; these are about {alike[0].name}.")
                found = call_verb(memory, arguments, about=alike[0].id)
        show_list(memory, found, arguments, screen, "" if found else _explain_no_facts(memory, arguments))
    return 0


def _explain_no_facts(memory: GraphMemory, arguments: Namespace) -> str:
    name = getattr(arguments, "name", None) or getattr(arguments, "about", None)
    predicate = getattr(arguments, "predicate", None)
    given = [option for argument, option in _FILTERS.items() if getattr(arguments, argument, None)]
    reason = f"No facts{f' about {name!r}' if name else ''}{f' with the predicate {predicate!r}' if predicate else ''}."
    namespace = namespace_of(arguments)
    if name and not memory.entities.list(like=name, limit=1, namespace=namespace):
        return f"{reason} kg-memory entities lists the known names."
    hints = [f"Without {' and '.join(given)} there may be some."] if given else []
    if name and predicate:
        others = memory.facts.history(name, namespace=namespace, believed_at=arguments.believed_at)
        hints += [f"Its predicates are {', '.join(sorted({fact.predicate for fact in others}))}."] if others else []
    return " ".join((reason, *hints))


def show_around(arguments: Namespace, screen: Screen) -> int:
    """Run ``kg-memory around``: print the entities near an entity, nearest first, and the facts that connect them."""
    with open_to_look(arguments, screen) as memory:
        found: Neighbourhood = call_verb(memory, arguments)
        otherwise = arguments.command.empty.format_map(vars(arguments))
        empty = "" if found.entities else explain_nothing(memory, arguments, otherwise)
    if screen.prints_json(found):
        return 0
    if empty:
        screen.line(empty)
    else:
        _show_neighbourhood(found, screen)
    return 0


def _show_neighbourhood(found: Neighbourhood, screen: Screen) -> None:
    near = sorted(found.entities, key=lambda entity: (found.depths[entity.id], entity.name))
    columns: Columns = {"steps": lambda entity: found.depths[entity.id], **COLUMNS[Entity]}
    screen.values(near, columns)
    if found.facts:
        screen.line()
        screen.values(found.facts)


def show_namespaces(arguments: Namespace, screen: Screen) -> int:
    """Run ``kg-memory namespaces``: print namespaces with their sizes, and the names of sleeping (packed) ones."""
    with open_to_look(arguments, screen) as memory:
        counts = {name: memory.stats(namespace=name) for name in memory.data.namespaces("awake")}
        asleep = memory.data.namespaces("asleep")
    sizes = [{"namespace": name, **size.model_dump()} for name, size in counts.items()]
    if screen.prints_json([*sizes, *({"namespace": name, "asleep": True} for name in asleep)]):
        return 0
    if asleep:
        screen.note(f"{count_noun(len(asleep), 'namespace')} asleep, not counted: {', '.join(asleep[:5])}")
    if counts:
        screen.table(("namespace", *_SIZES), [(name, *map(vars(size).get, _SIZES)) for name, size in counts.items()])
    elif not asleep:
        screen.line(NOTHING_YET)
    return 0


def show_stats(arguments: Namespace, screen: Screen) -> int:
    """Run ``kg-memory stats``: print the numbers of messages, facts and so on in a namespace; return 0.

    The names of all other namespaces are printed too.
    """
    namespace = namespace_of(arguments)
    with open_to_look(arguments, screen) as memory:
        counts = memory.stats(namespace=namespace)
        others = sorted({*memory.driver.store.database.namespaces(reachable=True)} - {namespace})
    if screen.prints_json({"namespace": namespace, **counts.model_dump(), "other_namespaces": others}):
        return 0
    named = {name.replace("_", " "): value for name, value in counts.model_dump().items()}
    screen.table(("what", "how many"), [("namespace", namespace), *named.items()])
    if counts.waiting:
        screen.note(f"{count_noun(counts.waiting, 'episode')} not read yet: kg-memory resume reads them")
    if counts.failed:
        screen.note(f"{count_noun(counts.failed, 'episode')} that could not be read: kg-memory retry reads them again")
    if counts.reviews:
        screen.note(f"{count_waiting(counts.reviews, 'verdict')} for review: {review_command(arguments)}")
    if others:
        screen.line(f"other namespaces: {', '.join(others)}", "dim")
    return 0


def show_predicates(arguments: Namespace, screen: Screen) -> int:
    """Run ``kg-memory predicates``: list predicates (relations such as ``LIVES_IN``), show or correct one; return 0."""
    namespace, name = namespace_of(arguments), arguments.name
    changes = {"canonical": arguments.canonical, "single_valued": arguments.single_valued}
    is_changed = any(value is not None for value in changes.values())
    with (open_to_change if is_changed else open_to_look)(arguments, screen) as memory:
        if name is None:
            show_list(memory, memory.predicates.list(namespace=namespace, limit=arguments.limit), arguments, screen)
            return 0
        if is_changed:
            shown = memory.predicates.update(name, **changes, namespace=namespace)
        else:
            shown = memory.driver.run(read_predicate(predicate_name(name), memory.settings.fact_types), namespace)
    if not screen.prints_json(shown):
        screen.values([shown])
    if is_changed:
        screen.note("This affects only messages that are read from now on.")
    return 0


def show_communities(arguments: Namespace, screen: Screen) -> int:
    """Run ``kg-memory communities``: print all communities (groups of entities) or one; return 0.

    With ``--refresh``, they are detected again first. Errors: `InputError` for an unknown name, or ``--full`` without
    ``--refresh``.
    """
    if arguments.full and not arguments.refresh:
        raise InputError("--full needs --refresh: give both")
    namespace = namespace_of(arguments)
    with (open_memory if arguments.refresh else open_to_look)(arguments, screen) as memory:
        if arguments.refresh:
            screen.note(_describe_refresh(memory.communities.refresh(namespace=namespace, full=arguments.full)))
        if arguments.name:
            card = memory.communities.get(arguments.name, namespace=namespace, limit=arguments.limit)
        else:
            empty = "No communities were found." if arguments.refresh else ""
            show_list(memory, call_verb(memory, arguments), arguments, screen, empty)
            return 0
    if card is None:
        raise InputError(f"no community's name begins with {arguments.name!r}: kg-memory communities lists all names")
    _show_community(card, screen)
    return 0


def _describe_refresh(done: CommunityRefresh) -> str:
    drift = f" {done.drift:.1%} of the entities changed their community." if done.drift else ""
    return (
        f"{count_noun(done.changed, 'community')} summarised, {done.unchanged} unchanged, "
        f"{done.removed} removed; {count_noun(done.questions, 'question')} asked.{drift}"
    )


def _show_community(card: CommunityCard, screen: Screen) -> None:
    """Print the name, summary, members and latest facts of one community."""
    if screen.prints_json(card):
        return
    community = card.community
    screen.line(community.name, "bold")
    screen.line(community.summary)
    if community.members:
        joined = f" ({community.joined} joined since it was summarised)" if community.joined else ""
        screen.line(f"{count_noun(len(community.members), 'member')}{joined}: {', '.join(community.members)}")
    if card.part_of:
        screen.line(f"part of: {card.part_of.name}")
    for values in (card.parts, card.facts):
        if values:
            screen.values(values)


def show_usage(arguments: Namespace, screen: Screen) -> int:
    """Run ``kg-memory usage``: print the model usage of each day, and how much of today's budget is spent; return 0."""
    namespace = namespace_of(arguments)
    with open_to_look(arguments, screen) as memory:
        spent = memory.usage.spent(namespace=namespace, days=arguments.days)
        is_paused, budget = memory.stats(namespace=namespace).paused, memory.settings.budget
    period = "today" if arguments.days == 1 else f"in the last {arguments.days} days"
    screen.values(spent, empty=f"No model was asked {period}.")
    if is_paused:
        screen.note(f"{namespace} is paused: nothing new is remembered until kg-memory unpause")
    if budget.day:
        today = sum((day for day in spent if day.day == datetime.now(UTC).date()), Usage())
        shares = (f"{budget.measure(today, name):,.6g} of {limit:,} {name}" for name, limit in budget.day)
        screen.note(f"spent of today's budget: {', '.join(shares)}")
    return 0

"""The commands that change facts and entities: ``retract``, ``replace``, ``entities`` and ``saved``."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

from kg_memory.cli import command
from kg_memory.cli.maintenance import check_confirmable, forget_after_asking, set_paused
from kg_memory.cli.output import Columns, Screen, cell, count_noun, login
from kg_memory.cli.show import show_list
from kg_memory.cli.views import DOES, DONE, describe_fact, source, validity
from kg_memory.errors import InputError
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.graph import Fact, IdentityDecision, Review

SAVED: Columns = {"saved": lambda fact: f"{fact.created_at:%Y-%m-%d}", "memory": describe_fact, "source": source}


def correct(arguments: Namespace, screen: Screen) -> int:
    """Run ``kg-memory retract`` or ``replace``: withdraw or replace a fact, print the outcome, and return 0."""
    opened = command.open_memory if arguments.command.name == "replace" else command.open_to_change
    with opened(arguments, screen) as memory:
        decided = command.call_verb(memory, arguments)
    show_decision(decided, arguments, screen)
    return 0


def show_decision(decided: Review, arguments: Namespace, screen: Screen, *, undo: bool = True) -> None:
    """Print a person's decision on how two facts relate, and the state of the two facts."""
    if screen.prints_json(decided):
        return
    for line in describe_outcome(decided):
        screen.line(line)
    if undo:
        screen.line(f"Undo it: {command.review_command(arguments)} --undo {decided.id}", "dim")


# Merge and split entities


def entities(arguments: Namespace, screen: Screen) -> int:
    """Run ``kg-memory entities``: list entities or decisions about them, merge, split or undo; return the exit code."""
    _check_entity_options(arguments)
    with (command.open_to_look if arguments.action in ("list", "decisions") else command.open_to_change)(
        arguments, screen
    ) as memory:
        listed = {"namespace": command.namespace_of(arguments), "limit": arguments.limit}
        if arguments.action == "list":
            show_list(memory, memory.entities.list(**listed), arguments, screen)
        elif arguments.action == "decisions":
            show_list(memory, memory.entities.decisions(**listed), arguments, screen, "Nothing was merged or split.")
        else:
            _change_entities(memory, arguments, screen)
    return 0


def _change_entities(memory: GraphMemory, arguments: Namespace, screen: Screen) -> None:
    given, (first, *others) = command.verb_arguments(memory, arguments), arguments.names
    who = {name: given[name] for name in ("by", "reason", "namespace")}
    if arguments.action == "merge":
        show_identities(memory.entities.merge(first, *others, **who), arguments, screen)
    elif arguments.action == "split":
        show_identities([memory.entities.split(first, **given)], arguments, screen)
    else:
        undone = memory.entities.undo(command.whole_id(memory, arguments, "Identity", first, shortest=1), **who)
        if not screen.prints_json(undone):
            screen.line(describe_identity(undone))


def _check_entity_options(arguments: Namespace) -> None:
    action, names = arguments.action, arguments.names
    most = {"merge": None, "split": 1, "undo": 1}.get(action, 0)
    if most is not None and len(names) > most:
        raise InputError(f"entities {action} takes {most} names, got {len(names)}; quote names with spaces")
    if action == "merge" and len(names) < 2:
        raise InputError("entities merge needs the entity to keep and those to merge into it; give two names or ids")
    if action in ("split", "undo") and not names:
        raise InputError(f"entities {action} needs {'the name of an entity' if action == 'split' else 'an ID'}")
    if action != "split" and (arguments.facts or arguments.episodes or arguments.name or arguments.type):
        raise InputError("--fact, --episode, --as and --type are for entities split only: leave them out")
    if arguments.reason and action not in ("merge", "split", "undo"):
        raise InputError("--reason is for entities merge, split and undo only: leave it out")


def show_identities(decisions: Sequence[IdentityDecision], arguments: Namespace, screen: Screen) -> None:
    """Print decisions to merge or split entities, each with the command that undoes it."""
    if screen.prints_json(decisions):
        return
    for decision in decisions:
        screen.line(describe_identity(decision))
        screen.line(f"Undo it: kg-memory entities undo {decision.id}{command.name_option(arguments)}", "dim")


# Texts


def describe_identity(decision: IdentityDecision) -> str:
    """Return a sentence about a decision to merge, split or keep apart entities, such as "Merged into Ann (Annie)."."""
    name, second = cell(decision.entity.name), cell(decision.second.name if decision.second else "")
    moved = f"; {count_noun(decision.facts, 'fact')} moved" if decision.facts else ""
    if decision.state == "undone":
        now = f"{name} is one" if decision.kind == "split" else f"{name} and {second} are two"
        return f"Undone: {now} again."
    if decision.state == "waiting":
        return f"Undone: whether {name} and {second} are one waits for review again."
    if decision.state == "apart":
        return f"Kept apart: {name} and {second} are two."
    if decision.kind == "split":
        return f"Split: {second} is no longer part of {name}{moved}."
    return f"Merged into {name} ({', '.join(map(cell, decision.entity.aliases))}){moved}."


def describe_outcome(review: Review) -> list[str]:
    """Return lines of text about the last decision on a review (how two facts relate), and about its two facts."""
    last = review.decisions[-1].decision if review.decisions else None
    lines = [f"{DONE[last].capitalize()}: {DOES[review.ruling]}."] if last else []
    facts = {fact.id: fact for fact in (review.pending, review.existing)}
    return [*lines, *(f"  {cell(fact.sentence)}: {_state(fact, review)}" for fact in facts.values())]


def _state(fact: Fact, review: Review) -> str:
    if fact.reviewed or fact.expired_at is not None:
        return validity(fact)
    waits = fact.id == review.existing.id or review.ruling != "waiting"
    return "waits for another verdict" if waits else "waits for review"


# Saved memories


def saved(arguments: Namespace, screen: Screen) -> int:
    """Run ``kg-memory saved``: list facts, show a fact's sources, delete a fact, or switch saving on or off."""
    action = arguments.action
    if (action in ("source", "delete")) != (arguments.id is not None):
        needs = "needs the id of a memory" if arguments.id is None else "takes no id"
        raise InputError(f"saved {action} {needs}; kg-memory saved lists the ids")
    if action in ("off", "on"):
        return set_paused(arguments, screen, paused=action == "off")
    if action == "delete":
        check_confirmable(arguments, screen)
    with (command.open_to_change if action == "delete" else command.open_to_look)(arguments, screen) as memory:
        if action == "list":
            _list_saved(memory, arguments, screen)
            return 0
        fact = command.whole_id(memory, arguments, "Fact", arguments.id)
        if action == "source":
            _show_sources(memory, fact, arguments, screen)
            return 0
        who = {"by": arguments.by or login(), "reason": arguments.reason}
        return forget_after_asking(
            memory, {"fact": fact, **who, "namespace": command.namespace_of(arguments)}, arguments, screen
        )


def _list_saved(memory: GraphMemory, arguments: Namespace, screen: Screen) -> None:
    facts = memory.facts.list(as_of="now", **command.verb_arguments(memory, arguments))
    empty = "" if facts else command.explain_nothing(memory, arguments, arguments.command.empty)
    screen.values(facts, SAVED, ids=True, empty=empty)
    if facts.next:
        screen.note(f"More on the next page: --after {facts.next}")
    if memory.stats(namespace=command.namespace_of(arguments)).paused:
        screen.note("Saving is off; turn it on: kg-memory saved on")


def _show_sources(memory: GraphMemory, fact: str, arguments: Namespace, screen: Screen) -> None:
    why = memory.facts.explain(fact, namespace=command.namespace_of(arguments))
    if screen.prints_json(why.model_dump(mode="json", include={"fact", "sources"})):
        return
    screen.line("This fact is no longer believed." if why.fact is None else describe_fact(why.fact), "bold")
    rows = [(told.at, told.speaker, told.quote, told.source_id or told.episode) for told in why.sources]
    screen.table(("said at", "by", "said", "message"), rows)

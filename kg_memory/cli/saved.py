"""``kg-memory saved``: what holds, memory by memory; its source, deletion, and saving off and on."""

from __future__ import annotations

from argparse import Namespace

from kg_memory.cli import maintenance
from kg_memory.cli.command import explain_nothing, namespace_of, open_to_look, whole_id
from kg_memory.cli.output import FACT_STYLES, Screen, mark_doubtful, mark_unreviewed, source
from kg_memory.errors import InputError
from kg_memory.models.graph import Fact

_WITH_ID = ("source", "delete")


def saved(arguments: Namespace, screen: Screen) -> int:
    """List the saved memories, or do what is asked for with one or all."""
    if (arguments.action in _WITH_ID) != (arguments.id is not None):
        needs = "needs the id of a memory" if arguments.id is None else "takes no id"
        raise InputError(f"saved {arguments.action} {needs}; kg-memory saved lists the ids")
    if arguments.action == "off":
        return maintenance.pause(arguments, screen)
    if arguments.action == "on":
        return maintenance.unpause(arguments, screen)
    if arguments.action == "delete":
        others = dict.fromkeys(("episode", "thread", "entity", "speaker", "source", "span", "erase"))
        what = {**others, "everything": False, "search": True, "fact": arguments.id}
        return maintenance.forget(Namespace(**{**vars(arguments), **what}), screen)
    return _show_sources(arguments, screen) if arguments.action == "source" else _list(arguments, screen)


def _list(arguments: Namespace, screen: Screen) -> int:
    namespace, page = namespace_of(arguments), {"limit": arguments.limit, "after": arguments.after}
    with open_to_look(arguments, screen) as memory:
        facts = memory.facts.list(about=arguments.about, as_of="now", namespace=namespace, **page)
        paused = memory.stats(namespace=namespace).paused
        empty = "" if facts else explain_nothing(memory, arguments, "No saved memories.")
    rows = [(fact.created_at.date().isoformat(), _tell(fact), source(fact), fact.id) for fact in facts]
    styles = ("green", "bold", "dim", "dim")
    screen.values(facts, ("saved", "memory", "source", "id"), rows, styles, empty=empty)
    if facts.next:
        screen.note(f"There are more: --after {facts.next}")
    if paused:
        screen.note("Saving is off: kg-memory saved on")
    return 0


def _show_sources(arguments: Namespace, screen: Screen) -> int:
    with open_to_look(arguments, screen) as memory:
        why = memory.facts.explain(whole_id(memory, arguments, "Fact", arguments.id), namespace=namespace_of(arguments))
    if screen.as_json:
        screen.json(why.model_dump(mode="json", include={"fact", "sources"}))
        return 0
    screen.line("It is not believed any more." if why.fact is None else _tell(why.fact), "bold")
    rows = [(one.at, one.speaker, one.quote, one.source_id or one.episode) for one in why.sources]
    screen.table(("said at", "by", "said", "message"), rows, FACT_STYLES)
    return 0


def _tell(fact: Fact) -> str:
    return mark_doubtful(fact, mark_unreviewed(fact, fact.sentence))

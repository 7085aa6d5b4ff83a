"""``kg-memory communities``: what belongs together, listed, looked at and found anew."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from kg_memory.cli.command import namespace_of, open_memory
from kg_memory.cli.output import FACT_STYLES, FACTS, Cell, Screen, count_noun, fact_row
from kg_memory.communities.picture import picture
from kg_memory.errors import InputError
from kg_memory.models.graph import Community
from kg_memory.models.operations import CommunityRefresh
from kg_memory.models.results import CommunityCard

_COLUMNS = ("community", "level", "members", "summary")
_SHOWN = 8
"""How many members a line names."""
_DRAWN = 60
"""How many members or parts a picture has."""


def communities(arguments: Namespace, screen: Screen) -> int:
    """List the communities or show one, after a refresh if that is asked for."""
    if arguments.full and not arguments.refresh:
        raise InputError("--full says how to refresh: give --refresh too")
    if arguments.svg and not arguments.name:
        raise InputError("--svg draws one community: give its name too, as `kg-memory communities` lists it")
    namespace = namespace_of(arguments)
    with open_memory(arguments, screen) as memory:
        done = memory.communities.refresh(namespace=namespace, full=arguments.full) if arguments.refresh else None
        if arguments.name:
            card = memory.communities.get(arguments.name, namespace=namespace, limit=arguments.limit)
        else:
            communities_ = memory.communities.list(namespace=namespace, level=arguments.level, limit=arguments.limit)
    if done:
        screen.note(_describe_refresh(done))
    if arguments.name:
        return _show(card, arguments.name, arguments.svg, screen)
    hint = "nothing belongs together yet" if done else "kg-memory communities --refresh finds them"
    styles = ("bold", "cyan", "", "")
    screen.values(
        communities_,
        _COLUMNS,
        [_row(community) for community in communities_],
        styles,
        empty=f"No communities: {hint}.",
    )
    return 0


def _describe_refresh(done: CommunityRefresh) -> str:
    drift = f" {done.drift:.1%} of the entities had been elsewhere before." if done.drift else ""
    return (
        f"{count_noun(done.changed, 'community')} summarised, {done.unchanged} unchanged, "
        f"{done.removed} removed; {count_noun(done.questions, 'question')} asked.{drift}"
    )


def _row(community: Community) -> tuple[Cell, ...]:
    inside = community.parts or community.members
    more = len(inside) - _SHOWN
    members = ", ".join(inside[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
    return community.name, community.level, members, community.summary


def _show(card: CommunityCard | None, name: str, path: Path | None, screen: Screen) -> int:
    """Print one community, and draw it if there is a *path*."""
    if card is None:
        raise InputError(f"no community has a name that begins with {name!r}: kg-memory communities lists them")
    if path:
        path.write_text(draw(card), encoding="utf-8")
        screen.note(f"Drawn in {path}.")
    if screen.as_json:
        screen.json(card.model_dump(mode="json"))
        return 0
    community = card.community
    screen.line(community.name, "bold")
    screen.line(community.summary)
    if community.members:
        joined = f" ({community.joined} joined since it was summarised)" if community.joined else ""
        screen.line(f"{count_noun(len(community.members), 'member')}{joined}: {', '.join(community.members)}")
    if card.part_of:
        screen.line(f"part of: {card.part_of.name}")
    if card.parts:
        screen.table(
            ("part", "level", "summary"), [(part.name, part.level, part.summary) for part in card.parts], ("bold",)
        )
    if card.facts:
        screen.table(FACTS, [fact_row(fact) for fact in card.facts], FACT_STYLES)
    return 0


def draw(card: CommunityCard) -> str:
    """Return a picture of a community: its members and their facts, or itself amid its parts."""
    if card.parts:
        names = [card.community.name, *(part.name for part in card.parts[:_DRAWN])]
        return picture(card.community.name, names, [(0, place, "") for place in range(1, len(names))])
    shown = card.community.members[:_DRAWN]
    places = {name: place for place, name in enumerate(shown)}
    lines = [
        (places[fact.subject], places[neighbour], fact.predicate.replace("_", " ").lower())
        for fact in card.facts
        for neighbour in fact.objects
        if fact.subject in places and neighbour in places and neighbour != fact.subject
    ]
    return picture(card.community.name, shown, lines)

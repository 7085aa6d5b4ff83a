"""``kg-memory communities``: what belongs together, listed and found anew."""

from __future__ import annotations

from argparse import Namespace

from kg_memory.cli.opening import namespace_of, open_memory
from kg_memory.cli.screen import Cell, Screen, counted
from kg_memory.errors import InputError
from kg_memory.model import Community, CommunityRefresh

_COLUMNS = ("community", "members", "summary")
_SHOWN = 8
"""How many members a line names."""


def communities(arguments: Namespace, screen: Screen) -> int:
    """List the communities, after a refresh if that is asked for."""
    if arguments.full and not arguments.refresh:
        raise InputError("--full says how to refresh: give --refresh too")
    namespace = namespace_of(arguments)
    with open_memory(arguments, screen) as memory:
        done = memory.refresh_communities(namespace=namespace, full=arguments.full) if arguments.refresh else None
        found = memory.communities(namespace=namespace, limit=arguments.limit)
    if done:
        screen.note(_said(done))
    looked = "nothing belongs together yet" if done else "kg-memory communities --refresh finds them"
    screen.values(found, _COLUMNS, [_row(each) for each in found], ("bold", "", ""), empty=f"No communities: {looked}.")
    return 0


def _said(done: CommunityRefresh) -> str:
    return (
        f"{counted(done.changed, 'community')} summarised, {done.unchanged} unchanged, "
        f"{done.removed} removed; {counted(done.asked, 'question')} to the model."
    )


def _row(community: Community) -> tuple[Cell, ...]:
    more = len(community.members) - _SHOWN
    members = ", ".join(community.members[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
    return community.name, members, community.summary

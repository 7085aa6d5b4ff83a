"""``kg-memory evict``: what is over makes room; it tells what went, or would."""

from __future__ import annotations

from argparse import Namespace

from kg_memory.cli.opening import namespace_of, open_memory
from kg_memory.cli.screen import Screen, counted
from kg_memory.errors import InputError
from kg_memory.maintenance.eviction import EvictionRequest

_COLUMNS, _STYLES = ("what", "text", "id"), ("yellow", "bold", "dim")


def evict(arguments: Namespace, screen: Screen) -> int:
    """Evict what is asked, or tell what would go."""
    names = ("expired_days", "orphans", "max_entities", "expired_episodes", "dry_run")
    asked = {name: getattr(arguments, name) for name in names}
    if EvictionRequest(**asked).is_empty():
        raise InputError(
            "nothing is to be evicted: give --expired-days, --orphans, --max-entities or --expired-episodes"
        )
    with open_memory(arguments, screen) as memory:
        done = memory.privacy.evict(**asked, namespace=namespace_of(arguments))
    if screen.as_json:
        screen.json(done.model_dump(mode="json"))
        return 0
    kinds = (("message", done.episodes), ("fact", done.facts), ("entity", done.entities))
    rows = [(kind, done.texts[id_], id_) for kind, ids in kinds for id_ in ids if done.texts.get(id_)]
    if rows:
        screen.table(_COLUMNS, rows, _STYLES)
    gone = [counted(len(ids), kind) for kind, ids in kinds]
    said = f"{', '.join(gone)} and {counted(done.beliefs, 'belief')} of the past"
    screen.line(f"{'This would go' if done.dry_run else 'Evicted'}: {said}.")
    more = sum(len(ids) for _, ids in kinds) - len(rows)
    if rows and more > 0:
        screen.note(f"{more} more are not shown: --json has their ids")
    return 0

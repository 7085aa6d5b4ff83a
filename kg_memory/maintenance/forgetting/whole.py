"""Forget a whole namespace: its graph goes at once, with all that belongs to it outside."""

from __future__ import annotations

from collections.abc import Callable

from kg_memory.maintenance.forgetting import outbox
from kg_memory.maintenance.forgetting import selection_cypher as cypher
from kg_memory.maintenance.forgetting.caches import cleared
from kg_memory.maintenance.forgetting.forget import Run, begun, ended, receipt
from kg_memory.maintenance.forgetting.scan import Search
from kg_memory.maintenance.forgetting.selection import none_such
from kg_memory.maintenance.forgetting.traces import Traces
from kg_memory.models.receipts import ForgetReceipt
from kg_memory.runtime.effects import command, now, read, work
from kg_memory.runtime.flow import Flow


def forget_everything(run: Run, delete: Callable[[], None]) -> Flow[ForgetReceipt]:
    """Delete the graph of *run* by *delete*, and return the receipt; its ledger, its words and its vectors are in it.

    Whoever is killed before that has changed nothing; what was done by one who is killed after it is logged later.
    """
    counts = yield from read(cypher.COUNTS)
    if not counts:
        raise none_such("everything", run.namespace)
    run.done.times.append((yield from now()))
    run.done.episodes, run.done.facts, run.done.entities = (counts[0][name] for name in outbox.COUNTS)
    if run.asked.dry_run:
        return receipt(run)
    yield from begun(run)
    note = {**run.note(), **{name: len(counts[0][name]) for name in outbox.COUNTS}, "messages": []}
    yield from outbox.put(run.key, note)
    yield from outbox.point(run.key, note, run.since)
    yield from work(delete)
    yield from cleared()
    left = yield from command("EXISTS", run.key)
    run.searches.append(Search(Traces(), searched=1))
    if left:  # somebody writes to it again
        run.searches[0].traces.ids.update(run.done.episodes)
    return (yield from ended(run))

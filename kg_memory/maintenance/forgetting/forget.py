"""Forget messages: their text, all that only they support, and their effects on what stays.

Many go in batches, each whole by itself. Then what is left is searched for traces, and it is all entered into the log.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import chain

from kg_memory.errors import EmbeddingMismatch
from kg_memory.falkor import rows
from kg_memory.falkor.connect import graph_key
from kg_memory.ingestion.save import LEFT
from kg_memory.ingestion.summarise import refresh
from kg_memory.maintenance.forgetting import audit, cypher
from kg_memory.maintenance.forgetting.audit import AuditNote
from kg_memory.maintenance.forgetting.delete import (
    Batch,
    Deleted,
    check_model,
    delete_batch,
    describe,
    plan_batch,
    redact,
)
from kg_memory.maintenance.forgetting.erase import (
    ADVICE_FOR_STALE_REPLICAS,
    clear_process_caches,
    erase_leftovers,
    find_stale_replicas,
)
from kg_memory.maintenance.forgetting.residue import Search, Traces, search_residue
from kg_memory.maintenance.forgetting.selection import ForgetRequest, add_summaries, not_found, select_episodes
from kg_memory.models.operations import ForgetReceipt, Residue
from kg_memory.runtime.effects import command, now, read, work
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.text.identity import replace_unstorable
from kg_memory.text.tokenise import terms

AT_ONCE = 50
"""The messages that go in one batch."""
MOST_TRACES = 500_000
"""The most traces that are gathered before they are searched for."""
MOST_RESIDUE = 100
"""The most findings that a receipt lists."""
LEFT_OUT = "(left out: it has words of what was forgotten)"
OnProgress = Callable[[int, int], None]


def ignore_progress(_: int, __: int) -> None:
    """Do nothing."""


@dataclass(slots=True)
class Run:
    """The progress of one call: its receipt, and what was deleted and searched so far."""

    request: ForgetRequest
    settings: Settings
    namespace: str
    receipt: str = field(default_factory=lambda: secrets.token_hex(16))
    salt: str = ""
    since: int = 0
    deleted: Deleted = field(default_factory=Deleted)
    searches: list[Search] = field(default_factory=list)

    @property
    def key(self) -> str:
        """The key of the graph."""
        return graph_key(self.namespace)

    def mask(self, text: str) -> str:
        """Return the salted hash that stands for *text* in the log."""
        return audit.mask(self.salt, text)

    def note(self, at: str = "") -> AuditNote:
        """Return the note of a batch that is deleted *at* that time."""
        request = self.request
        masks = self.mask(request.target), self.mask(self.namespace), self.mask(request.by)
        return AuditNote(self.receipt, request.kind, *masks, at)


def forget(
    request: ForgetRequest,
    settings: Settings,
    namespace: str,
    on_progress: OnProgress = ignore_progress,
    ids: Sequence[str] | None = None,
) -> Flow[ForgetReceipt]:
    """Forget what is requested, or the messages *ids*, and return the receipt.

    *on_progress* is called with how many of how many are deleted. Errors: `InputError` when there is nothing to forget.
    """
    run = Run(request, settings, namespace)
    ids = (yield from select_episodes(request)) if ids is None else ids
    if not ids:
        raise not_found(request.kind, request.target)
    ids = yield from add_summaries(ids)
    redactions = (yield from redact(ids[0], request.span, settings, namespace)) if request.span else {}
    if request.dry_run:
        planned = yield from plan_batch(Batch(ids, redactions), settings, namespace)
        if planned is None:
            raise not_found(request.kind, request.target)
        run.deleted.add(*planned)
        run.deleted.texts = describe(*planned[:2])
        return _build_receipt(run)
    yield from check_model()
    yield from _begin(run)
    traces = Traces()
    for start in range(0, len(ids), AT_ONCE):
        some = ids[start : start + AT_ONCE]
        yield from audit.point_to(run.key, run.note(), run.since)
        note = run.note(rows.to_datetime((yield from now())).isoformat())
        batch = Batch(some, redactions, note, {id_: run.mask(id_) for id_ in some})
        batch_traces = yield from delete_batch(batch, settings, namespace, run.deleted)
        if request.search:
            traces.add(batch_traces)
        on_progress(start + len(some), len(ids))
        if len(traces) > MOST_TRACES:
            yield from _search(run, traces)
            traces = Traces()
    if not run.deleted.episodes:
        yield from audit.settle(run.key, run.receipt)
        raise not_found(request.kind, request.target)
    if request.search:
        yield from _search(run, traces)
    receipt = yield from _finish(run)
    cleared = yield from clear_process_caches()
    with suppress(EmbeddingMismatch):  # `resume` makes the summaries later
        for time in run.deleted.times:
            yield from refresh(since=time, before=time - LEFT)
    return receipt.model_copy(update={"cleared": cleared})


def forget_everything(
    request: ForgetRequest, settings: Settings, namespace: str, delete: Callable[[], None]
) -> Flow[ForgetReceipt]:
    """Delete the whole graph of *namespace* by *delete*, and return the receipt.

    A process that is killed before that has changed nothing; what one did that is killed after it is logged later.
    """
    run = Run(request, settings, namespace)
    everything = yield from read(cypher.EVERYTHING)
    if not everything:
        raise not_found("everything", namespace)
    run.deleted.times.append((yield from now()))
    row = everything[0]
    run.deleted.episodes, run.deleted.facts, run.deleted.entities = row["episodes"], row["facts"], row["entities"]
    if request.dry_run:
        return _build_receipt(run)
    yield from _begin(run)
    note = replace(
        run.note(rows.to_datetime(run.deleted.times[-1]).isoformat()),
        episodes=len(row["episodes"]),
        facts=len(row["facts"]),
        entities=len(row["entities"]),
    )
    yield from audit.put_note(run.key, note)
    yield from audit.point_to(run.key, note, run.since)
    yield from work(delete)
    cleared = yield from clear_process_caches()
    is_there = yield from command("EXISTS", run.key, at=run.key)
    search = Search(Traces(), searched=1)
    if is_there:  # somebody writes to it again
        search.traces.ids.update(run.deleted.episodes)
    run.searches.append(search)
    return (yield from _finish(run)).model_copy(update={"cleared": cleared})


def _begin(run: Run) -> Flow[None]:
    """Log what killed processes left, and read where the log is."""
    yield from audit.take_over_notes(run.key)
    run.salt = yield from audit.read_salt()
    run.since = yield from audit.last_number()


def _search(run: Run, traces: Traces) -> Flow[None]:
    """Search for *traces*, once this process caches nothing any more; not while the graph is being re-embedded."""
    yield from clear_process_caches()
    yield from audit.point_to(run.key, run.note(), run.since)
    with suppress(EmbeddingMismatch):
        run.searches.append((yield from search_residue(traces)))


def _finish(run: Run) -> Flow[ForgetReceipt]:
    """Erase what else the server keeps, enter it all into the log, and return the receipt."""
    erases = run.settings.url is None if run.request.erase is None else run.request.erase
    erasure = yield from erase_leftovers(run.key, run.receipt, rewrite=erases)
    receipt = _build_receipt(run).model_copy(update={"erased": erasure.done, "advice": erasure.advice})
    if stale := (yield from find_stale_replicas(run.key)):
        receipt = _tell_of_replicas(receipt, stale)
    entry = yield from audit.append(_to_entry(run, receipt), run.since)
    yield from audit.settle(run.key, run.receipt)
    return receipt.model_copy(update={"head": entry.hash})


def _tell_of_replicas(receipt: ForgetReceipt, stale: Sequence[str]) -> ForgetReceipt:
    """Return *receipt* with the *stale* replicas as residue."""
    left = [Residue(label="Replica", name=name, trace="replica") for name in stale]
    advice = f"{ADVICE_FOR_STALE_REPLICAS} {', '.join(stale)}"
    residue = None if receipt.residue is None else (*receipt.residue, *left)
    advice = "; ".join(filter(None, (receipt.advice, advice)))
    return receipt.model_copy(update={"erased": False, "residue": residue, "advice": advice})


def _to_entry(run: Run, receipt: ForgetReceipt) -> audit.Content:
    """Return the content of the entry for *receipt*, with no word of what is gone."""
    words = set(chain.from_iterable(search.traces.words for search in run.searches))
    by, reason = (text if words.isdisjoint(terms(text)) else LEFT_OUT for text in (receipt.by, receipt.reason))
    residue = None if receipt.residue is None else len(receipt.residue)
    messages = list(map(run.mask, receipt.episodes[: audit.LISTED]))
    counts = {name: len(getattr(receipt, name)) for name in audit.COUNTS}
    content = asdict(run.note(receipt.at.isoformat())) | counts | {"by": by, "reason": reason, "messages": messages}
    searched = {"residue": residue, "searched": receipt.searched, "erased": receipt.erased}
    return {**content, **searched, "complete": True}


def _build_receipt(run: Run) -> ForgetReceipt:
    """Return the receipt of *run* as far as it came."""
    request, deleted = run.request, run.deleted
    findings = chain.from_iterable(search.findings for search in run.searches)
    residue = tuple(residue for residue, _ in findings)
    return ForgetReceipt(
        kind=request.kind if request.span is None else "span",
        episodes=tuple(deleted.episodes),
        facts=tuple(deleted.facts),
        entities=tuple(deleted.entities),
        restored=tuple(sorted(deleted.restored)),
        changed=tuple(sorted(deleted.changed)),
        unread=tuple(sorted(deleted.unread)),
        redacted=tuple(deleted.redacted),
        parts=len(deleted.times),
        dry_run=request.dry_run,
        at=rows.to_datetime(deleted.times[-1]),
        by=replace_unstorable(request.by),
        reason=replace_unstorable(request.reason),
        texts=deleted.texts,
        residue=residue[:MOST_RESIDUE] if run.searches else None,
        searched=sum(search.searched for search in run.searches),
        receipt="" if request.dry_run else run.receipt,
    )

"""Forget messages: their text, all that only they support, and their effects on what stays.

Many go in batches, each whole by itself. The log has an entry before, and one afterwards with what the search for
traces found.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain

from kg_memory.errors import EmbeddingMismatch
from kg_memory.falkor.connect import graph_key
from kg_memory.falkor.rows import Row, to_datetime
from kg_memory.ingestion.save import LEFT
from kg_memory.ingestion.summarise import refresh
from kg_memory.maintenance.forgetting import audit, cypher
from kg_memory.maintenance.forgetting.delete import (
    Batch,
    Deleted,
    Searcher,
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
from kg_memory.maintenance.forgetting.selection import ForgetRequest, add_summaries, not_found, select_episodes
from kg_memory.models.operations import ForgetReceipt, Residue
from kg_memory.plugins import load_plugin
from kg_memory.runtime.effects import now, read, work
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.text.identity import replace_unstorable
from kg_memory.text.tokenise import terms

AT_ONCE = 50
"""The messages that go in one batch."""
MOST_RESIDUE = 100
"""The most findings that a receipt lists."""
LEFT_OUT = "(left out: it has words of what was forgotten)"
OnProgress = Callable[[int, int], None]


def ignore_progress(_: int, __: int) -> None:
    """Do nothing."""


@dataclass(slots=True)
class Run:
    """The progress of one call: its receipt, and what was deleted, searched and found so far."""

    request: ForgetRequest
    settings: Settings
    namespace: str
    receipt: str = field(default_factory=lambda: secrets.token_hex(16))
    salt: str = ""
    deleted: Deleted = field(default_factory=Deleted)
    residue: list[Residue] = field(default_factory=list)
    searched: int = 0

    @property
    def key(self) -> str:
        """The key of the graph."""
        return graph_key(self.namespace)

    def mask(self, text: str) -> str:
        """Return the salted hash that stands for *text* in the log."""
        return audit.mask(self.salt, text)

    def to_entry(self, messages: Sequence[str], time: int) -> audit.Content:
        """Return what both entries of the call have: its receipt, and masks of its target and *messages*."""
        return {
            "receipt": self.receipt,
            "kind": self.request.kind,
            "what": self.mask(self.request.target),
            "namespace": self.mask(self.namespace),
            "messages": list(map(self.mask, messages[: audit.LISTED])),
            "episodes": len(messages),
            "at": to_datetime(time).isoformat(),
        }


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
    yield from _begin(run, ids)
    searcher: Searcher | None = load_plugin("searches", "residue")() if request.search else None
    for start in range(0, len(ids), AT_ONCE):
        batch = Batch(ids[start : start + AT_ONCE], redactions)
        gone = yield from delete_batch(batch, settings, namespace, run.deleted, searcher)
        if gone and searcher is None:
            run.residue += yield from _find_left(gone, run.deleted.times[-1])
        on_progress(min(start + AT_ONCE, len(ids)), len(ids))
    if searcher:
        yield from clear_process_caches()
        with suppress(EmbeddingMismatch):  # not while the graph is being re-embedded
            run.residue, run.searched = yield from searcher.search()
    receipt = yield from _finish(run)
    if not run.deleted.episodes:  # somebody else was first
        raise not_found(request.kind, request.target)
    with suppress(EmbeddingMismatch):  # `resume` makes the summaries later
        for time in run.deleted.times:
            yield from refresh(since=time, before=time - LEFT)
    return receipt


def forget_everything(
    request: ForgetRequest, settings: Settings, namespace: str, delete: Callable[[], None]
) -> Flow[ForgetReceipt]:
    """Delete the whole graph of *namespace* by *delete*, and return the receipt.

    A process that is killed before that has changed nothing.
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
    yield from _begin(run, row["episodes"])
    yield from work(delete)
    return (yield from _finish(run))


def _begin(run: Run, ids: Sequence[str]) -> Flow[None]:
    """Enter into the log that the messages *ids* are about to be deleted."""
    run.salt = yield from audit.read_salt()
    entry = run.to_entry(ids, (yield from now()))
    yield from audit.append({**entry, "by": run.mask(run.request.by), "complete": False})


def _find_left(ids: Collection[str], time: int) -> Flow[list[Residue]]:
    """Return what still has one of *ids* and was made before that *time*; later, somebody may have added it again."""
    rows: Sequence[Row] = ()
    with suppress(EmbeddingMismatch):
        rows = yield from read(cypher.IDS_LEFT, ids=sorted(ids), since=0, until=time)
    return [Residue(label=row["label"], name=row["name"], id="", trace="id") for row in rows]


def _finish(run: Run) -> Flow[ForgetReceipt]:
    """Erase what else is kept, enter it all into the log, and return the receipt."""
    cleared = yield from clear_process_caches()
    if not run.deleted.times:
        run.deleted.times.append((yield from now()))
    erases = run.settings.url is None if run.request.erase is None else run.request.erase
    erasure = yield from erase_leftovers(run.key, run.receipt, rewrite=erases)
    receipt = _build_receipt(run).model_copy(
        update={"erased": erasure.done, "advice": erasure.advice, "cleared": cleared}
    )
    if stale := (yield from find_stale_replicas(run.key)):
        receipt = _tell_of_replicas(receipt, stale)
    entry = yield from audit.append((yield from _to_entry(run, receipt)))
    return receipt.model_copy(update={"head": entry.hash})


def _tell_of_replicas(receipt: ForgetReceipt, stale: Sequence[str]) -> ForgetReceipt:
    """Return *receipt* with the *stale* replicas as residue."""
    left = [Residue(label="Replica", name=name, trace="replica") for name in stale]
    advice = f"{ADVICE_FOR_STALE_REPLICAS} {', '.join(stale)}"
    advice = "; ".join(filter(None, (receipt.advice, advice)))
    return receipt.model_copy(update={"erased": False, "residue": (*(receipt.residue or ()), *left), "advice": advice})


def _to_entry(run: Run, receipt: ForgetReceipt) -> Flow[audit.Content]:
    """Return the content of the last entry, with no word that nobody says any more."""
    texts = {"by": receipt.by, "reason": receipt.reason}
    words = run.deleted.words.intersection(chain.from_iterable(map(terms, texts.values())))
    if words:
        with suppress(EmbeddingMismatch):
            words -= {row["word"] for row in (yield from read(cypher.TERMS_LEFT, words=sorted(words)))}
    shown = {name: text if words.isdisjoint(terms(text)) else LEFT_OUT for name, text in texts.items()}
    counts = {"facts": len(receipt.facts), "entities": len(receipt.entities)}
    residue = {"residue": len(receipt.residue or ()), "searched": receipt.searched, "erased": receipt.erased}
    entry = run.to_entry(receipt.episodes, run.deleted.times[-1])
    return {**entry, **counts, **shown, **residue, "complete": True}


def _build_receipt(run: Run) -> ForgetReceipt:
    """Return the receipt of *run* as far as it came."""
    request, deleted = run.request, run.deleted
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
        at=to_datetime(deleted.times[-1]),
        by=replace_unstorable(request.by),
        reason=replace_unstorable(request.reason),
        texts=deleted.texts,
        residue=None if request.dry_run else tuple(run.residue[:MOST_RESIDUE]),
        searched=run.searched,
        receipt="" if request.dry_run else run.receipt,
    )

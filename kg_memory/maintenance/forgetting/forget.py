"""Forget episodes (stored messages): delete their text, all that only they support, and their effects on the rest.

Episodes are deleted in batches of `AT_ONCE`, each in one atomic query. The audit log gets one entry before the first
batch, and one after the search for remains.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Protocol

from kg_memory.errors import DatabaseUnavailable, EmbeddingMismatch
from kg_memory.falkor import schema
from kg_memory.falkor.connect import graph_key
from kg_memory.falkor.rows import Row, to_datetime
from kg_memory.ingestion.postings import is_block, line
from kg_memory.ingestion.save import LEFT
from kg_memory.ingestion.summarise import refresh
from kg_memory.maintenance.forgetting import audit, cypher, erase
from kg_memory.maintenance.forgetting.look import Impact, read_impact
from kg_memory.maintenance.forgetting.plan import Plan, plan_removal
from kg_memory.maintenance.forgetting.selection import ForgetRequest, add_summaries, not_found, redact, select_episodes
from kg_memory.models.operations import ForgetReceipt, Residue
from kg_memory.plugins import load_plugin
from kg_memory.runtime.caches import ignore_progress
from kg_memory.runtime.effects import EmbeddingModel, fetch, now, work, write
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.text.identity import replace_unstorable
from kg_memory.text.tokenise import terms

ATTEMPTS = 50
"""The number of tries to delete a batch while other writers change the same entities or threads."""
AT_ONCE = 50
"""The number of episodes in a batch."""
MOST_RESIDUE = 100
"""The number of findings that a receipt lists."""
LEFT_OUT = "(left out: it has words of a forgotten episode)"
OnProgress = Callable[[int, int], None]


class Searcher(Protocol):
    """Protocol of plug-ins that check whether ids, words or vectors of deleted messages are still stored."""

    def gather(self, impact: Impact, parameters: Row) -> Flow[Any]:
        """Return the ids, words and vectors of a batch of messages, before it is deleted; then give them to `add`."""

    def add(self, traces: Any) -> None:
        """Remember *traces* (ids, words and vectors of a batch that is now deleted, from `gather`) for `search`."""

    def search(self) -> Flow[tuple[list[Residue], int]]:
        """Search all stored properties in the namespace for remains of the deleted episodes."""


@dataclass(slots=True)
class Run:
    """The progress of one call to `forget`: the ids deleted or changed so far, and the remains found."""

    request: ForgetRequest
    settings: Settings
    namespace: str
    receipt: str = field(default_factory=lambda: secrets.token_hex(16))
    salt: str = ""
    redactions: Mapping[str, Row] = field(default_factory=dict)
    episodes: list[str] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)
    entities: list[str] = field(default_factory=list)
    restored: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    unread: set[str] = field(default_factory=set)
    redacted: list[str] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    times: list[int] = field(default_factory=list)
    words: set[str] = field(default_factory=set)
    residue: list[Residue] = field(default_factory=list)
    searched: int = 0

    def add(self, impact: Impact, plan: Plan, time: int) -> None:
        """Record which ids the deletion of a batch of messages removed or changed."""
        parameters = plan.parameters
        new_ids = [row["new_id"] for row in parameters["redacted"]]
        self.episodes += [episode["id"] for episode in impact.episodes]
        self.facts += parameters["gone_facts"]
        self.entities += parameters["gone_entities"]
        self.restored.update(plan.restored)
        self.changed.update(plan.changed, (row["id"] for row in parameters["reworded"]))
        self.unread.update(parameters["unread"])
        if not all(map(is_block, impact.episodes)):
            self.unread.update(new_ids)
        self.redacted += new_ids
        self.times.append(time)
        self.words |= impact.forgotten.words
        gone = {*self.facts, *self.entities, *(set(self.episodes) - set(new_ids))}
        for ids in (self.restored, self.changed, self.unread):
            ids.difference_update(gone)

    @property
    def key(self) -> str:
        """The database key of the namespace's graph."""
        return graph_key(self.namespace)

    def mask(self, text: str) -> str:
        """Return the salted hash of *text*, an id or a name, which the audit log stores instead of the text."""
        return audit.salted_hash(self.salt, text)

    def to_entry(self, messages: Sequence[str], time: int) -> audit.Content:
        """Return the fields of an audit log entry about this call, with all ids and names as salted hashes."""
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
    """Delete the episodes that *request* selects, or *ids*, with all that only they support.

    With ``request.dry_run`` nothing is deleted. Errors: `InputError` if no episode is selected.
    """
    run = Run(request, settings, namespace)
    ids = (yield from select_episodes(request)) if ids is None else ids
    if not ids:
        raise not_found(request.kind, request.target)
    ids = yield from add_summaries(ids)
    if request.span:
        run.redactions = yield from redact(ids[0], request.span, settings, namespace)
    if request.dry_run:
        planned = yield from _plan_batch(ids, run)
        if planned is None:
            raise not_found(request.kind, request.target)
        run.add(*planned)
        run.texts = _texts_for_dry_run(*planned[:2])
        return _build_receipt(run)
    yield from _check_model()
    yield from _write_first_entry(run, ids)
    searcher: Searcher | None = load_plugin("searches", "residue")() if request.search else None
    for start in range(0, len(ids), AT_ONCE):
        gone = yield from _delete_batch(ids[start : start + AT_ONCE], run, searcher)
        if gone and searcher is None:
            run.residue += yield from _find_left(gone, run.times[-1])
        on_progress(min(start + AT_ONCE, len(ids)), len(ids))
    if searcher:
        yield from work(erase.clear_all_caches)
        with suppress(EmbeddingMismatch):  # not while the graph is being re-embedded
            run.residue, run.searched = yield from searcher.search()
    receipt = yield from _finish(run)
    if not run.episodes:  # another call deleted the same episodes first
        raise not_found(request.kind, request.target)
    with suppress(EmbeddingMismatch):  # `resume` makes the summaries later
        for time in run.times:
            yield from refresh(since=time, before=time - LEFT)
    return receipt


def _texts_for_dry_run(impact: Impact, plan: Plan) -> dict[str, str]:
    episodes = {episode["id"]: line(episode) for episode in impact.episodes}
    facts = {id_: impact.facts[id_]["sentence"] for id_ in plan.parameters["gone_facts"]}
    entities = {id_: impact.entities[id_]["name"] for id_ in impact.gone_entities}
    return {**episodes, **facts, **entities, **plan.sentences}


def _plan_batch(ids: Sequence[str], run: Run) -> Flow[tuple[Impact, Plan, int] | None]:
    """Plan the deletion of the episodes *ids*; return (affected data, changes, time in microseconds).

    None if none of the episodes exists.
    """
    for _ in range(ATTEMPTS):
        times = yield from fetch(cypher.FORGOTTEN)
        try:
            episodes = yield from fetch(cypher.EPISODES, ids=list(ids))
            if not episodes:
                return None
            impact = yield from read_impact(episodes, run.settings, run.redactions)
            time = yield from now()
            return impact, (yield from plan_removal(impact, run.settings, run.namespace, time)), time
        except KeyError:  # a concurrent deletion removed a row between two of the queries
            if (yield from fetch(cypher.FORGOTTEN)) == times:
                raise
    raise _gave_up()


def _check_model() -> Flow[str]:
    model: str = yield EmbeddingModel()
    for meta in (yield from fetch(schema.READ_META)):
        schema.refuse_other_vectors(meta, model)
    return model


def _delete_batch(ids: Sequence[str], run: Run, searcher: Searcher | None) -> Flow[set[str]]:
    """Delete the messages *ids* in one query, and add the effects to *run*; return the deleted ids.

    Errors: `EmbeddingMismatch`, before anything is deleted.
    """
    for _ in range(ATTEMPTS):
        model = yield from _check_model()
        planned = yield from _plan_batch(ids, run)
        if planned is None:
            return set()
        impact, plan, time = planned
        traces = (yield from searcher.gather(impact, plan.parameters)) if searcher else None
        if (yield from write(cypher.FORGET, **plan.parameters, model=model, now=time)):
            run.add(impact, plan, time)
            if searcher:
                searcher.add(traces)
            return find_gone_ids(impact, plan.parameters)
    raise _gave_up()


def _gave_up() -> DatabaseUnavailable:
    return DatabaseUnavailable(f"gave up forgetting after {ATTEMPTS} write conflicts; try again later")


def find_gone_ids(impact: Impact, parameters: Row) -> set[str]:
    """Return the ids that a deletion removed: ids of deleted nodes, and the old ids of shortened messages."""
    kinds = ("episodes", "facts", "entities", "beliefs", "verdicts", "decisions")
    ids = set(chain.from_iterable(parameters[f"gone_{kind}"] for kind in kinds))
    ids.update(row["id"] for row in parameters["redacted"])
    ids.update(impact.entities[id_]["key"] for id_ in impact.gone_entities)
    ids.difference_update(row["new_id"] for row in parameters["redacted"])
    return ids


def forget_everything(
    request: ForgetRequest, settings: Settings, namespace: str, delete: Callable[[], None]
) -> Flow[ForgetReceipt]:
    """Delete the whole *namespace* by calling *delete*, with audit log entries before and after.

    With ``request.dry_run`` nothing is deleted. Errors: `NotFound` if the namespace does not exist.
    """
    run = Run(request, settings, namespace)
    everything = yield from fetch(cypher.EVERYTHING)
    if not everything:
        raise not_found("everything", namespace)
    run.times.append((yield from now()))
    row = everything[0]
    run.episodes, run.facts, run.entities = row["episodes"], row["facts"], row["entities"]
    if request.dry_run:
        return _build_receipt(run)
    yield from _write_first_entry(run, row["episodes"])
    yield from work(delete)
    return (yield from _finish(run))


def _write_first_entry(run: Run, ids: Sequence[str]) -> Flow[None]:
    run.salt = yield from audit.read_salt()
    entry = run.to_entry(ids, (yield from now()))
    yield from audit.append({**entry, "by": run.mask(run.request.by), "complete": False})


def _find_left(ids: Collection[str], time: int) -> Flow[list[Residue]]:
    """Return the nodes that still have one of the deleted *ids*, as findings for the receipt."""
    rows: Sequence[Row] = ()
    with suppress(EmbeddingMismatch):
        rows = yield from fetch(cypher.IDS_LEFT, ids=sorted(ids), since=0, until=time)
    return [Residue(label=row["label"], name=row["name"], id="", trace="id") for row in rows]


def _finish(run: Run) -> Flow[ForgetReceipt]:
    cleared = yield from work(erase.clear_all_caches)
    if not run.times:
        run.times.append((yield from now()))
    erases = run.settings.url is None if run.request.erase is None else run.request.erase
    erasure = yield from erase.erase_leftovers(run.key, run.receipt, rewrite=erases)
    receipt = _build_receipt(run).model_copy(
        update={"erased": erasure.done, "advice": erasure.advice, "cleared": cleared}
    )
    if stale := (yield from erase.find_stale_replicas(run.key)):
        receipt = _tell_of_replicas(receipt, stale)
    entry = yield from audit.append((yield from _to_entry(run, receipt)))
    return receipt.model_copy(update={"head": entry.hash})


def _tell_of_replicas(receipt: ForgetReceipt, stale: Sequence[str]) -> ForgetReceipt:
    left = [Residue(label="Replica", name=name, trace="replica") for name in stale]
    advice = "; ".join(filter(None, (receipt.advice, f"{erase.ADVICE_FOR_STALE_REPLICAS} {', '.join(stale)}")))
    return receipt.model_copy(update={"erased": False, "residue": (*(receipt.residue or ()), *left), "advice": advice})


def _to_entry(run: Run, receipt: ForgetReceipt) -> Flow[audit.Content]:
    """Return the fields of the last audit log entry of a call to `forget`."""
    texts = {"by": receipt.by, "reason": receipt.reason}
    words = run.words.intersection(chain.from_iterable(map(terms, texts.values())))
    if words:
        with suppress(EmbeddingMismatch):
            words -= {row["word"] for row in (yield from fetch(cypher.TERMS_LEFT, words=sorted(words)))}
    shown = {name: text if words.isdisjoint(terms(text)) else LEFT_OUT for name, text in texts.items()}
    counts = {"facts": len(receipt.facts), "entities": len(receipt.entities)}
    residue = {"residue": len(receipt.residue or ()), "searched": receipt.searched, "erased": receipt.erased}
    return {**run.to_entry(receipt.episodes, run.times[-1]), **counts, **shown, **residue, "complete": True}


def _build_receipt(run: Run) -> ForgetReceipt:
    """Return the result of `forget` or `forget_everything` from its progress *run*.

    The fields `erased` and `head` are set later.
    """
    request = run.request
    # The fields `erased` and `head` are set later.
    return ForgetReceipt(
        kind=request.kind if request.span is None else "span",
        episodes=tuple(run.episodes),
        facts=tuple(run.facts),
        entities=tuple(run.entities),
        restored=tuple(sorted(run.restored)),
        changed=tuple(sorted(run.changed)),
        unread=tuple(sorted(run.unread)),
        redacted=tuple(run.redacted),
        parts=len(run.times),
        dry_run=request.dry_run,
        at=to_datetime(run.times[-1]),
        by=replace_unstorable(request.by),
        reason=replace_unstorable(request.reason),
        texts=run.texts,
        residue=None if request.dry_run else tuple(run.residue[:MOST_RESIDUE]),
        searched=run.searched,
        receipt="" if request.dry_run else run.receipt,
    )

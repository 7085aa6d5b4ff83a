"""Forget messages: their text, all that only they support, and what they brought about in what stays.

Many go in parts, each whole by itself. Then it is searched for what is left of them, and the log tells of it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kg_memory.falkor import rows
from kg_memory.falkor.connect import graph_key
from kg_memory.ingestion.save import LEFT as LEFT_STALE
from kg_memory.ingestion.summarise import refresh
from kg_memory.maintenance.forgetting import audit, outbox
from kg_memory.maintenance.forgetting.caches import cleared
from kg_memory.maintenance.forgetting.erase import LEFT, erased, swept
from kg_memory.maintenance.forgetting.part import Done, Going, looked, removed
from kg_memory.maintenance.forgetting.redact import redacted
from kg_memory.maintenance.forgetting.scan import TOLD, Search, search
from kg_memory.maintenance.forgetting.selection import Asked, chosen, none_such
from kg_memory.maintenance.forgetting.traces import Traces
from kg_memory.models.receipts import ForgetReceipt
from kg_memory.runtime.effects import now
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.text.identity import replace_unstorable
from kg_memory.text.tokenise import terms

AT_ONCE = 50
"""How many messages go in one part."""
MOST_TRACES = 500_000
"""How many traces are gathered before they are searched for."""
UNSAID = "(left out: it told what was forgotten)"
Told = Callable[[int, int], None]


def untold(_: int, __: int) -> None:
    """Tell nobody."""


@dataclass(slots=True)
class Run:
    """One call: where it works, under which `receipt`, what it found so far, and whom it tells how far it is."""

    asked: Asked
    settings: Settings
    namespace: str
    told: Told
    receipt: str = field(default_factory=lambda: secrets.token_hex(16))
    salt: str = ""
    since: int = 0
    done: Done = field(default_factory=Done)
    searches: list[Search] = field(default_factory=list)

    @property
    def key(self) -> str:
        """The key of the graph."""
        return graph_key(self.namespace)

    def masked(self, text: str) -> str:
        """Return what stands for *text* in the log."""
        return audit.masked(self.salt, text)

    def note(self, ids: Sequence[str] = ()) -> dict[str, Any]:
        """Return what is noted of a part: who and what only as salted hashes."""
        return {
            "receipt": self.receipt, "kind": self.asked.kind, "what": self.masked(self.asked.what),
            "namespace": self.masked(self.namespace), "by": self.masked(self.asked.by),
            "at": rows.to_datetime(self.done.times[-1]).isoformat() if self.done.times else "",
            "messages": {id_: self.masked(id_) for id_ in ids},
        }  # fmt: skip


def forget(
    asked: Asked, settings: Settings, namespace: str, told: Told = untold, ids: Sequence[str] | None = None
) -> Flow[ForgetReceipt]:
    """Forget what is *asked* for, or the messages *ids*, and return the receipt; *told* is how many of how many.

    Errors: `InputError` when it is not there.
    """
    run = Run(asked, settings, namespace, told)
    ids = (yield from chosen(asked)) if ids is None else ids
    if not ids:
        raise none_such(asked.kind, asked.what)
    others = (yield from redacted(ids[0], asked.span, settings, namespace)) if asked.span else {}
    if asked.dry_run:
        look = yield from looked(Going(ids, others), settings, namespace)
        if look is None:
            raise none_such(asked.kind, asked.what)
        run.done.add(*look, texts=True)
        return receipt(run)
    yield from begun(run)
    traces = Traces()
    for start in range(0, len(ids), AT_ONCE):
        some = ids[start : start + AT_ONCE]
        yield from outbox.point(run.key, {**run.note(), "at": ""}, run.since)
        note = {**run.note(some), "at": rows.to_datetime((yield from now())).isoformat()}
        found = yield from removed(Going(some, others, note), settings, namespace, run.done)
        if asked.search:
            traces.add(found)
        told(start + len(some), len(ids))
        if len(traces) > MOST_TRACES:
            yield from _searched(run, traces)
            traces = Traces()
    if not run.done.episodes:
        yield from outbox.settle(run.key, run.receipt)
        raise none_such(asked.kind, asked.what)
    if asked.search:
        yield from _searched(run, traces)
    made = yield from ended(run)
    yield from cleared()
    for time in run.done.times:
        yield from refresh(since=time, before=time - LEFT_STALE)
    return made


def begun(run: Run) -> Flow[None]:
    """Log what others left who were killed, and learn where the log is."""
    yield from outbox.taken_over(run.key)
    run.salt = yield from audit.salt()
    run.since = yield from audit.length()


def ended(run: Run) -> Flow[ForgetReceipt]:
    """Rid the server of what else it keeps, enter it all into the log, and return the receipt."""
    yield from swept(run.key, run.receipt)
    erases = run.settings.url is None if run.asked.erase is None else run.asked.erase
    done, advice = (yield from erased(run.key)) if erases else (False, LEFT)
    made = receipt(run).model_copy(update={"erased": done, "advice": advice})
    entry = yield from audit.append(_entered(run, made), run.since)
    yield from outbox.settle(run.key, run.receipt)
    return made.model_copy(update={"head": entry.hash})


def _searched(run: Run, traces: Traces) -> Flow[None]:
    """Search for *traces*, with nothing more at hand in this process."""
    yield from cleared()
    yield from outbox.point(run.key, {**run.note(), "at": ""}, run.since)
    run.searches.append((yield from search(traces, untold)))


def _entered(run: Run, made: ForgetReceipt) -> dict[str, Any]:
    """Return what the log tells of *made*, with no word of what is gone."""
    tells = {word for each in run.searches for word in each.traces.words}
    by, reason = (each if tells.isdisjoint(terms(each)) else UNSAID for each in (made.by, made.reason))
    counts = {"episodes": len(made.episodes), "facts": len(made.facts), "entities": len(made.entities)}
    return {
        **run.note(), **counts, "messages": [run.masked(id_) for id_ in made.episodes[: audit.LISTED]], "by": by,
        "reason": reason, "at": made.at.isoformat(), "residue": None if made.residue is None else len(made.residue),
        "searched": made.searched, "erased": made.erased, "complete": True,
    }  # fmt: skip


def receipt(run: Run) -> ForgetReceipt:
    """Return the receipt of *run* as far as it came."""
    asked, done = run.asked, run.done
    found = [each for search in run.searches for each, _ in search.found]
    return ForgetReceipt(
        kind=asked.kind if asked.span is None else "span", episodes=tuple(done.episodes), facts=tuple(done.facts),
        entities=tuple(done.entities), restored=tuple(sorted(done.restored)), changed=tuple(sorted(done.changed)),
        unread=tuple(sorted(done.unread)), redacted=tuple(done.redacted), parts=len(done.times),
        dry_run=asked.dry_run, at=rows.to_datetime(done.times[-1]),
        by=replace_unstorable(asked.by), reason=replace_unstorable(asked.reason),
        texts=done.texts, residue=tuple(found[:TOLD]) if run.searches else None,
        searched=sum(each.searched for each in run.searches), receipt="" if asked.dry_run else run.receipt,
    )  # fmt: skip

"""`GraphMemory.privacy`: forgetting, eviction, and the log of what was forgotten."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kg_memory.falkor.connect import graph_key
from kg_memory.maintenance.forgetting import audit as log
from kg_memory.maintenance.forgetting.erase import Checkpointer, delete_checkpoints
from kg_memory.maintenance.forgetting.forget import OnProgress, forget, forget_everything, ignore_progress
from kg_memory.maintenance.forgetting.selection import ForgetRequest, select_threads
from kg_memory.memory._verb import Group, run_plugin, verb
from kg_memory.models.operations import AuditEntry, AuditReport, EvictionResult, ForgetReceipt
from kg_memory.runtime.flow import Flow
from kg_memory.validation import DEFAULT_NAMESPACE

ALL = ""
"""The namespace of a call that names none and is about all of them."""


class Privacy(Group):
    """Removal from a memory, and the proof of it."""

    _group = "privacy"

    def _forget(
        self,
        *,
        episode: str | None = None,
        thread: str | None = None,
        entity: str | None = None,
        speaker: str | None = None,
        source: str | None = None,
        fact: str | None = None,
        span: tuple[int, int] | None = None,
        everything: bool = False,
        by: str = "user",
        reason: str = "",
        dry_run: bool = False,
        erase: bool | None = None,
        search: bool = False,
        checkpointer: Checkpointer | None = None,
        progress: OnProgress = ignore_progress,
        namespace: str = DEFAULT_NAMESPACE,
    ) -> Flow[ForgetReceipt]:
        """Forget what is named, exactly one thing, and return a receipt; it cannot be undone.

        An *episode* goes with its text, its words and vectors, and with what only it supports: facts and everything
        that was believed of them, verdicts and decisions about them, entities and names. What others say too stays, and
        is believed as if the episode had never been said: what it had ended holds again. Summaries are made anew. A
        *thread*, a *speaker* and a *source* go with all their episodes. A *fact* goes with every episode that states
        it, the whole message, as contexts also show raw messages. An *entity*, by its id or a name, goes with every
        episode that mentions or names it. With a *span*, the start and the end of some characters of the *episode*,
        only these go, and the rest is read again as if it alone had been said. *everything* is all that the namespace
        has.

        Many episodes go in parts, each whole by itself; a call that was killed goes on when it is repeated. *progress*
        is called with how many of how many are gone. *dry_run* changes nothing and shows all that would go, with its
        text.

        An episode that stays is to be read again where one of its names or relations was known only from what went
        ("I like it there"): the receipt lists it as `unread`, and `resume` reads it. Afterwards nothing may have an id
        of what went: what has is the `residue`. With *search* its words, names, quotes and vectors are looked for in
        all there is; it takes seconds at 10,000 facts. *erase* has the server rewrite its files too; left out, an
        embedded one does. *checkpointer* loses the checkpoints of the threads in which something was forgotten. *by*
        and *reason* go into the log, see `audit`: do not put there what is to be forgotten. Added again, the same
        message is a new episode.
        Errors: `InputError`, also where it is not there or forgotten already; `DatabaseError`.
        """
        what = {"episode": episode, "thread": thread, "entity": entity, "speaker": speaker, "source": source}
        how = {"by": by, "reason": reason, "dry_run": dry_run, "span": span, "erase": erase, "search": search}
        request = ForgetRequest.from_arguments({**what, "fact": fact, "everything": everything}, **how)
        threads = (yield from select_threads(request)) if checkpointer is not None and not dry_run else []
        engine = self._engine
        if request.kind == "everything":
            delete = partial(engine.driver.store.database.delete, graph_key(namespace))
            receipt = yield from forget_everything(request, engine.settings, namespace, delete)
        else:
            receipt = yield from forget(request, engine.settings, namespace, progress)
        if checkpointer is not None:
            yield from delete_checkpoints(checkpointer, threads)
        return receipt.model_copy(update={"checkpoints": tuple(threads)})

    forget, aforget = verb(_forget)

    def _evict(
        self,
        *,
        expired_days: float | None = None,
        orphans: bool = False,
        max_entities: int | None = None,
        expired_episodes: bool = False,
        dry_run: bool = False,
        namespace: str = DEFAULT_NAMESPACE,
        progress: Callable[[EvictionResult], None] | None = None,
    ) -> Flow[EvictionResult]:
        """Remove what the arguments select, and return what went; see `docs/eviction.md`.

        *expired_days*: superseded beliefs, and facts that have ended, both for at least so many days: what holds now,
        or did at any time since then, stays. *orphans*: entities last seen so long ago, or 90 days, without other
        facts. *max_entities*: so many entities are left; those with the fewest current facts go first, and of these
        the longest unseen; their facts are evicted with them. *expired_episodes*: messages past their `expires_at` are
        forgotten; see `forget`. Without any of these, they are, and nothing else goes.

        Messages stay, except those that expired. Evicted facts and entities lose their vectors and words: no search
        finds them by words or meaning until they are stated or mentioned again, and what is asked by their names is
        told as before. *dry_run* changes nothing and returns what would go. *progress* is called with what went so far.
        It may be interrupted and called again.
        Errors: `InputError`, `DatabaseError`.
        """
        return run_plugin(
            "evict",
            self._engine.settings,
            namespace,
            expired_days=expired_days,
            orphans=orphans,
            max_entities=max_entities,
            expired_episodes=expired_episodes,
            dry_run=dry_run,
            on_progress=progress,
        )

    evict, aevict = verb(_evict)

    def _audit(self, *, namespace: str = ALL, limit: int = 100, skip: int = 0) -> Flow[list[AuditEntry]]:
        """Return what was forgotten on this server, latest first, or in one *namespace*: the log, without any text."""
        return log.read_entries(limit, skip, namespace or None)

    audit, aaudit = verb(_audit)

    def _verify(self, *, head: str | None = None) -> Flow[AuditReport]:
        """Check that no entry of the log was changed, removed or inserted, and return what is wrong with it.

        That its end was not cut off shows only by the *head* of a receipt: the log must still have that entry.
        """
        return log.verify(head)

    verify, averify = verb(_verify)

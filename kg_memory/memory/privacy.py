"""`GraphMemory.privacy`: delete episodes and facts for good, remove old content, and list and verify the audit log."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kg_memory.falkor.connect import graph_key
from kg_memory.maintenance.forgetting import audit as log
from kg_memory.maintenance.forgetting.erase import Checkpointer, delete_checkpoints
from kg_memory.maintenance.forgetting.forget import OnProgress, forget, forget_everything
from kg_memory.maintenance.forgetting.selection import ForgetRequest, select_threads
from kg_memory.memory._verb import Group, run_plugin, verb
from kg_memory.models.operations import AuditEntry, AuditReport, EvictionResult, ForgetReceipt
from kg_memory.runtime.caches import ignore_progress
from kg_memory.runtime.flow import Flow
from kg_memory.validation import DEFAULT_NAMESPACE, validate_count

ALL = ""
"""The default namespace of `Privacy.audit`: all namespaces."""


class Privacy(Group):
    """`GraphMemory.privacy`: delete content of a memory for good, with an audit log of the deletions."""

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
        """Delete stored messages, a fact, an entity or all content, with all that only they support; return a receipt.

        This cannot be undone. Give exactly one of these:

        - *episode*: the id of an episode; with *span* ``(start, end)`` only these characters; the rest is read again
        - *thread*, *speaker* or *source*: all episodes of that conversation, author or source
        - *fact*: the id of a fact; all episodes that state it are deleted whole, because contexts also show episodes
        - *entity*: an id or a name; all episodes that mention or name it are deleted
        - *everything*: True deletes the namespace

        With an episode go its text, words and vectors, and the facts, beliefs, verdicts, decisions, entities and names
        that only it supports. What other episodes state stays, and is believed as if the deleted episode had never been
        added: facts that it had ended hold again. Summaries are written again. `ForgetReceipt.unread` lists episodes
        that made sense only together with the deleted ones ("I like it there"); `episodes.resume` reads them again. The
        same message can be added again.

        *dry_run* deletes nothing, and returns what would be deleted, with the texts.
        *search* also searches the namespace for words, names, quotes and vectors of the deleted text, which takes
        seconds at 10,000 facts; ids are always searched for. `ForgetReceipt.residue` lists the traces found.
        *erase* makes the server rewrite its files without the deleted data; None does so only for the embedded server.
        *checkpointer* is a LangGraph checkpointer, which loses the checkpoints of the deleted episodes' threads.
        *by* and *reason* go into the audit log: write nothing there that must be forgotten.
        *progress* is called with the numbers of deleted and of all episodes. Many episodes are deleted in batches, each
        atomic; if the call is interrupted, repeat it.

        See `docs/forgetting.md`. Raises `InputError`, also if there is nothing to delete, and `DatabaseError`.
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
        """Remove old or excess content to bound the size of the memory, and return what was removed.

        *expired_days* removes facts that ended, and beliefs (periods of facts) that were corrected, at least this many
        days ago; answers about any later time stay the same.
        *orphans* removes entities last seen at least *expired_days* ago (90 if None) that have no facts, or only facts
        that ended that long ago, which are removed with them.
        *max_entities* is how many entities remain: those with the fewest current facts are removed first, together with
        their facts; of entities with equally many, the longest unmentioned.
        *expired_episodes* deletes episodes past their `expires_at`, as `forget` does. Without any of these four
        arguments, only this is done.

        Evicted facts and entities lose their words and vectors, so searches do not find them until they are stated or
        mentioned again; `facts.about` and `facts.history` still return them. Other episodes stay.
        *dry_run* changes nothing, and returns what would be removed. *progress* is called with the result so far. The
        call may be interrupted and repeated. See `docs/eviction.md`. Raises `InputError` and `DatabaseError`.
        """
        return run_plugin(
            "evict",
            self._engine.settings,
            namespace,
            expired_days=expired_days,
            orphans=orphans,
            max_entities=max_entities,
            expired_episodes=expired_episodes,
            dry_run=bool(dry_run),
            on_progress=progress,
        )

    evict, aevict = verb(_evict)

    def _audit(self, *, namespace: str = ALL, limit: int = 100, skip: int = 0) -> Flow[list[AuditEntry]]:
        """Return the audit log of this server, latest first: what was forgotten, when and by whom, without the text.

        *namespace* selects one namespace; if left out, all are listed. *limit* is the maximum number of entries; *skip*
        is how many of the latest to leave out.
        """
        return log.read_entries(validate_count("limit", limit), validate_count("skip", skip, 0), namespace or None)

    audit, aaudit = verb(_audit)

    def _verify(self, *, head: str | None = None) -> Flow[AuditReport]:
        """Check that no entry of the audit log was changed, removed or inserted; return a report of the problems found.

        *head* is the hash in a `ForgetReceipt` that you have stored: the log must still have the entry with this hash.
        Without *head*, the removal of the last entries is not noticed.
        """
        return log.verify(head)

    verify, averify = verb(_verify)

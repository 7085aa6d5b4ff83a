"""The verbs by which memory forgets, and by which it is told what was forgotten."""

from __future__ import annotations

from functools import partial

from kg_memory.falkor.connect import graph_key
from kg_memory.maintenance.forgetting import audit as log
from kg_memory.maintenance.forgetting.erase import Checkpointer, adelete_checkpoints, delete_checkpoints
from kg_memory.maintenance.forgetting.forget import OnProgress, forget, forget_everything, ignore_progress
from kg_memory.maintenance.forgetting.selection import ForgetRequest, select_threads
from kg_memory.memory.verbs import Verbs
from kg_memory.models.receipts import AuditEntry, AuditReport, ForgetReceipt
from kg_memory.runtime.flow import Flow
from kg_memory.text.identity import DEFAULT_NAMESPACE, validate_namespace


class Forgetting(Verbs):
    """What was said is removed, with all that follows from it."""

    def forget(
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
        search: bool = True,
        checkpointer: Checkpointer | None = None,
        progress: OnProgress = ignore_progress,
        namespace: str = DEFAULT_NAMESPACE,
    ) -> ForgetReceipt:
        """Forget what is named, exactly one thing, and return a receipt; it cannot be undone.

        An *episode* goes with its text, its words and vectors, and with what only it supports: facts, what was ever
        believed of them, verdicts and decisions about them, entities and names. What others say too stays, and is
        believed as if the episode had never been said: what it had ended holds again. A sentence that only it gave is
        told by the names and the predicate instead. Summaries are made anew. A *thread*, a *speaker* and a *source* go
        with all their episodes. A *fact* goes with every episode that states it, the whole message, as a context also
        shows raw messages, and they would tell it again. An *entity*, by its id or a name, goes with every episode that
        mentions or names it. With a *span*, the start and the end of some characters of the *episode*, only these go,
        and the rest is read again as if it alone had been said. *everything* is all that the namespace has.

        Many episodes go in parts, each whole by itself; asked again, a call that was killed goes on. *progress* is told
        how many of how many are gone. *dry_run* changes nothing and shows all that would go, with its text.

        An episode that stays is to be read again where one of its names or relations was known only from what went
        ("I like it there"): the receipt has it as `unread`, and `resume` reads it. Afterwards all is searched for what
        is left, the `residue`: not so without *search*, which takes seconds at 10,000 facts. *erase* has the server
        rewrite its files too; left out, an embedded one does. *checkpointer* loses the checkpoints of the threads in
        which something was forgotten. *by* and *reason* go into the log, see `audit`: do not tell there what is to be
        forgotten. Added again, the same message is a new episode.
        Errors: `InputError`, also where it is not there or forgotten already; `DatabaseError`.
        """
        what = {"episode": episode, "thread": thread, "entity": entity, "speaker": speaker, "source": source}
        how = {"by": by, "reason": reason, "dry_run": dry_run, "span": span, "erase": erase}
        how |= {"search": search}
        wanted = ForgetRequest.from_arguments({**what, "fact": fact, "everything": everything}, **how)
        threads = self._run(select_threads(wanted), namespace) if checkpointer is not None and not dry_run else []
        done = self._run(self._forgetting(wanted, validate_namespace(namespace), progress), namespace)
        return done.model_copy(update={"checkpoints": delete_checkpoints(checkpointer, threads)})

    async def aforget(
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
        search: bool = True,
        checkpointer: Checkpointer | None = None,
        progress: OnProgress = ignore_progress,
        namespace: str = DEFAULT_NAMESPACE,
    ) -> ForgetReceipt:
        """`forget`, for asyncio."""
        what = {"episode": episode, "thread": thread, "entity": entity, "speaker": speaker, "source": source}
        how = {"by": by, "reason": reason, "dry_run": dry_run, "span": span, "erase": erase}
        how |= {"search": search}
        wanted = ForgetRequest.from_arguments({**what, "fact": fact, "everything": everything}, **how)
        threads = (
            await self._arun(select_threads(wanted), namespace) if checkpointer is not None and not dry_run else []
        )
        done = await self._arun(self._forgetting(wanted, validate_namespace(namespace), progress), namespace)
        return done.model_copy(update={"checkpoints": await adelete_checkpoints(checkpointer, threads)})

    def audit(self, *, namespace: str | None = None, limit: int = 100, skip: int = 0) -> list[AuditEntry]:
        """Return what was forgotten on this server, latest first, or in one *namespace*: the log, without any text."""
        return self._run(log.read_entries(limit, skip, namespace), DEFAULT_NAMESPACE)

    async def aaudit(self, *, namespace: str | None = None, limit: int = 100, skip: int = 0) -> list[AuditEntry]:
        """`audit`, for asyncio."""
        return await self._arun(log.read_entries(limit, skip, namespace), DEFAULT_NAMESPACE)

    def verify_audit(self, *, head: str | None = None) -> AuditReport:
        """Check that no entry of the log was changed, removed or put in, and return what is wrong with it.

        That its end was not cut off shows only by the *head* of a receipt: the log must still have that entry.
        """
        return self._run(log.verify(head), DEFAULT_NAMESPACE)

    async def averify_audit(self, *, head: str | None = None) -> AuditReport:
        """`verify_audit`, for asyncio."""
        return await self._arun(log.verify(head), DEFAULT_NAMESPACE)

    def _forgetting(self, wanted: ForgetRequest, namespace: str, progress: OnProgress) -> Flow[ForgetReceipt]:
        if wanted.kind != "everything":
            return forget(wanted, self.settings, namespace, progress)
        delete = partial(self.driver.database.delete, graph_key(namespace))
        return forget_everything(wanted, self.settings, namespace, delete)

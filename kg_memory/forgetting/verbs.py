"""The verb by which memory forgets."""

from __future__ import annotations

from kg_memory.forgetting.forget import Asked
from kg_memory.forgetting.forget import forget as forgetting
from kg_memory.identity import DEFAULT_NAMESPACE
from kg_memory.model import Forgotten
from kg_memory.verbs import Verbs


class Forgetting(Verbs):
    """What was said is removed, with all that follows from it."""

    def forget(
        self,
        *,
        fact: str | None = None,
        episode: str | None = None,
        by: str = "user",
        reason: str = "",
        dry_run: bool = False,
        namespace: str = DEFAULT_NAMESPACE,
    ) -> Forgotten:
        """Forget the *episode* with that id, or the *fact*, and return a receipt; it cannot be undone.

        An episode goes with its text, its words and vectors, and with what only it supports: facts, what was ever
        believed of them, verdicts and decisions about them, entities and names. What others say too stays, and is
        believed as if the episode had never been said: what it had ended holds again. A sentence that only it gave is
        told by the names and the predicate instead. Summaries are made anew.

        A fact goes with every episode that states it, the whole message, as a context also shows raw messages, and
        they would tell it again. *dry_run* changes nothing and shows all that would go, with its text.

        An episode that stays is to be read again where one of its names or relations was known only from what went
        ("I like it there"): the receipt has it as `unread`, and `resume` reads it. *by* and *reason* go into the
        receipt, and are not stored. Added again, the same message is a new episode.
        Errors: `InputError`, also where it is not there or forgotten already; `DatabaseError`.
        """
        return self._run(forgetting(Asked(episode, fact, by, reason, dry_run), self.settings, namespace), namespace)

    async def aforget(
        self,
        *,
        fact: str | None = None,
        episode: str | None = None,
        by: str = "user",
        reason: str = "",
        dry_run: bool = False,
        namespace: str = DEFAULT_NAMESPACE,
    ) -> Forgotten:
        """`forget`, for asyncio."""
        asked = Asked(episode, fact, by, reason, dry_run)
        return await self._arun(forgetting(asked, self.settings, namespace), namespace)

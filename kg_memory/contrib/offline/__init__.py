"""The offline reader: extraction, judgements and embeddings by rules, without a language model."""

import asyncio

from pydantic import BaseModel

from kg_memory.contrib.offline.embeddings import LocalEmbeddings
from kg_memory.runtime.effects import Ask
from kg_memory.runtime.lifecycle import PerLoop

__all__ = ["LocalEmbeddings", "OfflineModel"]


class OfflineModel:
    """A model that reads English and Chinese by rules, without an API key or network; it is deterministic."""

    name = "offline"
    by_rules = True

    def __init__(self) -> None:
        self._turns = PerLoop(asyncio.Lock)

    def answer(self, ask: Ask) -> BaseModel:
        """Return the answer to *ask*, a prompt with values for its fields, as an object of the prompt's answer type.

        Errors: `ModelError` for an unknown prompt.
        """
        from kg_memory.contrib.offline.answers import answer  # noqa: PLC0415 - its patterns take 0.1 s to compile

        answered: BaseModel = ask.prompt.answer.model_validate(answer(ask.prompt.name, ask.fields))
        return answered

    async def aanswer(self, ask: Ask) -> BaseModel:
        """Answer *ask* like `answer`, in a thread; concurrent calls are answered one at a time."""
        # Concurrent answers would take as long together, and slow down the event loop.
        async with self._turns.get():
            return await asyncio.to_thread(self.answer, ask)

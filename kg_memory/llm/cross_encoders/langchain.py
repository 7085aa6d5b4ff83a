"""LangChain's cross-encoders, which score pairs of texts: one that runs on this machine, mostly."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from langchain_core.cross_encoders import BaseCrossEncoder

from kg_memory.errors import ModelError
from kg_memory.llm.cross_encoders.encoder import Scale, number
from kg_memory.llm.embeddings import own_name, sendable


class PairScorer:
    """Scores with a LangChain `BaseCrossEncoder`; under asyncio in a thread, as these have no async way."""

    def __init__(self, model: BaseCrossEncoder) -> None:
        self._model = model
        self._scale = Scale()
        self.name = own_name(model)

    def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return how well each of *texts* answers *question*, from 0 to 1.

        Errors: `ModelError`.
        """
        asked = sendable(question)
        try:
            scores = self._model.score([(asked, sendable(text)) for text in texts]) if texts else []
        except Exception as error:
            raise ModelError(f"the cross-encoder {self.name} failed ({error!r:.300}): check its set-up") from error
        return self._scale([number(score) for score in scores])

    async def ascores(self, question: str, texts: Sequence[str]) -> list[float]:
        """`scores` on the running event loop."""
        return await asyncio.to_thread(self.scores, question, texts)

"""A language model as a cross-encoder: asked how relevant each text is, many texts at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kg_memory.llm.prompts import SCORE
from kg_memory.runtime.effects import Ask, Model, ask
from kg_memory.runtime.flow import Flow, arun, every, run

BATCH = 20
"""How many texts one question to the model has."""
LONGEST_TEXT = 2000
"""Characters of a text that are read."""
MOST_RELEVANT = 10


class ModelScorer:
    """Scores with any model that answers prompts; the offline one counts words in common."""

    def __init__(self, model: Model) -> None:
        self._model = model

    @property
    def name(self) -> str:
        """The model's name."""
        return self._model.name

    def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return how well each of *texts* answers *question*, from 0 to 1; one that the model leaves out has 0.

        Errors: `ModelError` and those below it, `SettingsError`.
        """
        return run(_scores(question, texts), self._perform)

    async def ascores(self, question: str, texts: Sequence[str]) -> list[float]:
        """`scores` on the running event loop."""
        return await arun(_scores(question, texts), self._aperform)

    def _perform(self, effect: Any) -> Any:
        match effect:
            case Ask():
                return self._model.answer(effect)
        raise TypeError(f"no such effect: {effect!r}")

    async def _aperform(self, effect: Any) -> Any:
        match effect:
            case Ask():
                return await self._model.aanswer(effect)
        raise TypeError(f"no such effect: {effect!r}")


def _scores(question: str, texts: Sequence[str]) -> Flow[list[float]]:
    # Sorted, so that where a text stood before changes nothing: models favour the first of a list.
    distinct = sorted(set(texts))
    batches = [distinct[begin : begin + BATCH] for begin in range(0, len(distinct), BATCH)]
    found = yield from every(_batch(question, batch) for batch in batches)
    known = {text: score for batch in found for text, score in batch.items()}
    return [known[text] for text in texts]


def _batch(question: str, texts: Sequence[str]) -> Flow[dict[str, float]]:
    told = [{"id": place, "text": text[:LONGEST_TEXT]} for place, text in enumerate(texts)]
    answer = yield from ask(SCORE, question=question[:LONGEST_TEXT], texts=told)
    relevance = {each.text: each.relevance / MOST_RELEVANT for each in answer.scores}
    return {text: relevance.get(place, 0.0) for place, text in enumerate(texts)}

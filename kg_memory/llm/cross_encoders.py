"""Cross-encoders: they read a question together with each text, and score how well the text answers it (Zep 3.2).

Any object with `name`, `scores` and `ascores` is one. `ModelCrossEncoder` asks a language model; the plug-ins of the
kind ``scorers`` send requests to a rerank endpoint, and wrap LangChain's cross-encoders.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from kg_memory.llm.prompts import SCORE
from kg_memory.runtime.effects import Ask, Model, both, call
from kg_memory.runtime.flow import Flow, every

MODEL_BATCH = 20
"""Texts per question to a language model."""
MAX_TEXT = 2000
"""Characters of a text that a language model reads."""
MAX_RELEVANCE = 10


class ModelCrossEncoder:
    """Scores with any model that answers prompts, many texts per question; the offline model counts common words."""

    def __init__(self, model: Model) -> None:
        self._model = model

    @property
    def name(self) -> str:
        """The model's name."""
        return self._model.name

    def _score(self, question: str, texts: Sequence[str]) -> Flow[list[float]]:
        """Score *texts* for *question*, from 0 to 1; a text that the model leaves out gets 0.

        Raises: `ModelError`, `SettingsError`.
        """
        # Sorted, so that the former order has no influence: models favour the first items of a list.
        distinct = sorted(set(texts))
        batches = [distinct[begin : begin + MODEL_BATCH] for begin in range(0, len(distinct), MODEL_BATCH)]
        answers: list[list[float]] = yield from every(self._score_batch(question, batch) for batch in batches)
        scores = dict(zip(distinct, chain(*answers), strict=True))
        return [scores[text] for text in texts]

    scores, ascores = both(_score)

    def _score_batch(self, question: str, texts: Sequence[str]) -> Flow[list[float]]:
        items = [{"id": place, "text": text[:MAX_TEXT]} for place, text in enumerate(texts)]
        ask = Ask(SCORE, {"question": question[:MAX_TEXT], "texts": items})
        answer = yield from call(self._model, "answer", ask)
        relevance = {score.text: score.relevance / MAX_RELEVANCE for score in answer.scores}
        return [relevance.get(place, 0.0) for place in range(len(texts))]

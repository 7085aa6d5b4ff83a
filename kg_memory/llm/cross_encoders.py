"""Cross-encoders: models that score how well each text answers a question, reading both together.

Any object with `name`, `scores` and `ascores` is a cross-encoder. `ModelCrossEncoder` asks a language model; the
plug-ins of kind ``scorers`` call a rerank endpoint or wrap LangChain's cross-encoders.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from kg_memory.llm.prompts import SCORE
from kg_memory.runtime.effects import Ask, Model, both, call
from kg_memory.runtime.flow import Flow, every

MODEL_BATCH = 20
"""The most texts in one question to the model."""
MAX_TEXT = 2000
"""The first characters of a text that the model reads."""
MAX_RELEVANCE = 10


class ModelCrossEncoder:
    """Asks a language model how well texts answer a question, `MODEL_BATCH` texts in one request."""

    def __init__(self, model: Model) -> None:
        self._model = model

    @property
    def name(self) -> str:
        """The name of the model."""
        return self._model.name

    def _score(self, question: str, texts: Sequence[str]) -> Flow[list[float]]:
        """Return how well each of *texts* answers *question*, from 0 to 1: ``[0.9, 0.0]``."""
        # Sort texts, as models favour the first items: so their former rank has no influence.
        distinct = sorted(set(texts))
        batches = [distinct[begin : begin + MODEL_BATCH] for begin in range(0, len(distinct), MODEL_BATCH)]
        answers: list[list[float]] = yield from every(self._score_batch(question, batch) for batch in batches)
        scores = dict(zip(distinct, chain(*answers), strict=True))
        return [scores[text] for text in texts]

    scores, ascores = both(_score)

    def _score_batch(self, question: str, texts: Sequence[str]) -> Flow[list[float]]:
        items = [{"id": place, "text": text[:MAX_TEXT]} for place, text in enumerate(texts)]
        answer = yield from call(self._model, "answer", Ask(SCORE, {"question": question[:MAX_TEXT], "texts": items}))
        relevance = {score.text: score.relevance / MAX_RELEVANCE for score in answer.scores}
        return [relevance.get(place, 0.0) for place in range(len(texts))]

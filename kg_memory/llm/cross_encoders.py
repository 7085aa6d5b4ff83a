"""Cross-encoders: they read a question together with each text, and score how well the text answers it (Zep 3.2).

Any object with `name`, `scores` and `ascores` is one. `ModelCrossEncoder` asks a language model,
`LangChainCrossEncoder` wraps LangChain's, and the plug-in ``server`` sends requests to a rerank endpoint.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from kg_memory.errors import ModelError
from kg_memory.llm.embeddings import model_name_of, prepare_text
from kg_memory.llm.prompts import SCORE
from kg_memory.llm.retry import diagnose, make_error
from kg_memory.runtime.driver import to_number
from kg_memory.runtime.effects import Ask, Call, Model, both, in_thread
from kg_memory.runtime.flow import Flow, every

if TYPE_CHECKING:
    from langchain_core.cross_encoders import BaseCrossEncoder

MODEL_BATCH = 20
"""Texts per question to a language model."""
MAX_TEXT = 2000
"""Characters of a text that a language model reads."""
MAX_RELEVANCE = 10


class Scale:
    """Maps a model's scores to 0..1: unchanged, or by the logistic function after one was outside.

    A model with scores outside returns logits, even if all scores of one question happen to be inside.
    """

    def __init__(self) -> None:
        self._logits = False

    def __call__(self, scores: list[float]) -> list[float]:
        """Return *scores* from 0 to 1, in the same order; a NaN stays one."""
        self._logits = self._logits or any(score < 0 or score > 1 for score in scores)
        return [_logistic(score) for score in scores] if self._logits else scores


def _logistic(score: float) -> float:
    small = math.exp(-abs(score))
    return (1.0 if score >= 0 else small) / (1.0 + small)


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
        answer = yield Call(partial(self._model.answer, ask), partial(self._model.aanswer, ask))
        relevance = {score.text: score.relevance / MAX_RELEVANCE for score in answer.scores}
        return [relevance.get(place, 0.0) for place in range(len(texts))]


class LangChainCrossEncoder:
    """Scores with a LangChain `BaseCrossEncoder`; under asyncio in a thread, as these are synchronous."""

    def __init__(self, model: BaseCrossEncoder) -> None:
        self._model = model
        self._scale = Scale()
        self.name = model_name_of(model)

    def _score(self, question: str, texts: Sequence[str]) -> Flow[list[float]]:
        """Score *texts* for *question*, from 0 to 1.

        Raises: `ModelError`.
        """
        prepared = prepare_text(question)
        pairs = [(prepared, prepare_text(text)) for text in texts]
        try:
            scores = (yield in_thread(partial(self._model.score, pairs))) if pairs else []
        except Exception as error:  # noqa: BLE001 - raised below
            failure = diagnose(error)
            remedies = [(True, ModelError, "check its set-up")]
            raise make_error(f"the cross-encoder {self.name}", failure, remedies) from failure.cause
        return self._scale([to_number(score) for score in scores])

    scores, ascores = both(_score)

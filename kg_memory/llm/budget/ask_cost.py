"""What a question will take, before it is asked."""

from __future__ import annotations

from kg_memory.models.usage import Usage
from kg_memory.runtime.effects import Ask
from kg_memory.text.tokens import estimate

LEAST_ANSWER = 200
ANSWERED = 0.5
"""Tokens of an answer: so many at least, and this part of those of the data that is asked about."""


def ask_cost(ask: Ask) -> Usage:
    """Return about what *ask* takes if the first answer is good: rather too much than too little."""
    # OpenAI's client takes half a second to import, and what asks nothing does without it.
    from kg_memory.llm.chat.render import rendered  # noqa: PLC0415
    from kg_memory.llm.chat.wire import schema_text  # noqa: PLC0415

    asked = rendered(ask)
    data = max(0, len(asked) - len(ask.prompt.text)) / len(asked)
    tokens = estimate(asked)
    answer = LEAST_ANSWER + round(ANSWERED * data * tokens)
    return Usage(calls=1, input_tokens=tokens + estimate(schema_text(ask.prompt.answer)), output_tokens=answer)

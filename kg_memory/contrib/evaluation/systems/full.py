"""The whole conversation, whatever its length: what a model answers that needs no memory."""

from __future__ import annotations

from kg_memory.contrib.evaluation.records import Conversation, Cost, Question, Retrieved, System, Tools
from kg_memory.contrib.evaluation.systems._turns import line
from kg_memory.text.tokenise import estimate_tokens


class FullContext:
    """Gives the reader each message, and no ranking of them."""

    name = "full"

    def __init__(self) -> None:
        self._texts: dict[str, Retrieved] = {}

    def ingest(self, conversation: Conversation) -> None:
        """Do nothing: there is no memory."""

    def context(self, question: Question, conversation: Conversation, max_tokens: int) -> Retrieved:
        """Return the conversation; *max_tokens* does not cut it."""
        del question, max_tokens
        return self._text(conversation)

    def estimate(self, conversation: Conversation, max_tokens: int) -> tuple[Cost, int]:
        """Return no cost, and the length of the conversation."""
        del max_tokens
        return Cost(), self._text(conversation).tokens

    def forget(self, conversation: Conversation) -> None:
        """Drop the text."""
        self._texts.pop(conversation.name, None)

    def close(self) -> None:
        """Release nothing."""

    def _text(self, conversation: Conversation) -> Retrieved:
        if conversation.name not in self._texts:
            text = "\n".join(map(line, conversation.episodes))
            self._texts = {conversation.name: Retrieved(text, (), estimate_tokens(text))}  # the latest alone
        return self._texts[conversation.name]


def open_system(tools: Tools, variant: str | None = None) -> System:
    """Return the system; it takes no variant."""
    del tools, variant
    return FullContext()

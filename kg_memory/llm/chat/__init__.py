"""Everything between an `Ask` and a language model: rendering, the wire, reading the answer, repairs."""

from kg_memory.llm.chat.model import ChatModel, chat_model

__all__ = ["ChatModel", "chat_model"]

"""Everything between an `Ask` and a language model: rendering, the wire, reading the answer, repairs."""

from kg_memory.chat.model import ChatModel, chat_model
from kg_memory.chat.usage import Usage

__all__ = ["ChatModel", "Usage", "chat_model"]

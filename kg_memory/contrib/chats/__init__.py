"""Read chat exports, texts and JSON records from files as `EpisodeInput`s: messages or texts to save in the memory."""

from kg_memory.contrib.chats.reading import FORMATS, Reading, read
from kg_memory.contrib.chats.survey import survey
from kg_memory.contrib.chats.whatsapp import DATE_ORDERS

__all__ = ["DATE_ORDERS", "FORMATS", "Reading", "read", "survey"]

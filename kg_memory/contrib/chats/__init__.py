"""Read chat exports and files of conversations, texts and JSON records as `EpisodeInput`s to remember."""

from kg_memory.contrib.chats.reading import FORMATS, Reading, read
from kg_memory.contrib.chats.survey import survey
from kg_memory.contrib.chats.whatsapp import DATE_ORDERS

__all__ = ["DATE_ORDERS", "FORMATS", "Reading", "read", "survey"]

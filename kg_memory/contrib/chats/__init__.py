"""Files of conversations, texts and records, and exports of chats, as `EpisodeInput`s to remember."""

from kg_memory.contrib.chats.reading import FORMATS, Reading, read
from kg_memory.contrib.chats.survey import survey
from kg_memory.contrib.chats.whatsapp import DATE_ORDERS

__all__ = ["DATE_ORDERS", "FORMATS", "Reading", "read", "survey"]

"""Files of conversations, texts and records, as `EpisodeInput`s to remember; see `kg_memory.contrib.chats`."""

from kg_memory.contrib.chats import FORMATS, Reading, read

__all__ = ["FORMATS", "Reading", "read"]

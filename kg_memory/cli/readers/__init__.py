"""Files of conversations, texts and records, as `EpisodeInput`s to remember."""

from kg_memory.cli.readers.reading import FORMATS, Format, Reading, read

__all__ = ["FORMATS", "Format", "Reading", "read"]

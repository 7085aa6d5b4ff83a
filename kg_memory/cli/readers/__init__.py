"""Files of conversations, texts and records, as `EpisodeInput`s to remember."""

from kg_memory.cli.readers.formats import FORMATS, Format
from kg_memory.cli.readers.reading import Reading, read

__all__ = ["FORMATS", "Format", "Reading", "read"]

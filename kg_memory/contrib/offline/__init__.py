"""The offline reader: extraction, judgements and embeddings by rules, without a language model."""

from kg_memory.contrib.offline.embeddings import LocalEmbeddings
from kg_memory.contrib.offline.model import OfflineModel

__all__ = ["LocalEmbeddings", "OfflineModel"]

"""The offline reader: entities, facts, judgements and embeddings without any language model."""

from kg_memory.contrib.offline.embeddings import LocalEmbeddings
from kg_memory.contrib.offline.model import OfflineModel

__all__ = ["LocalEmbeddings", "OfflineModel"]

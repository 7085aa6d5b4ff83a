"""The offline reader: entities, facts, judgements and embeddings without any language model."""

from kg_memory.offline.embeddings import LocalEmbeddings
from kg_memory.offline.model import OfflineModel

__all__ = ["LocalEmbeddings", "OfflineModel"]

"""Cross-encoders: they read a question together with each text, and say how well the text answers it (Zep 3.2)."""

from kg_memory.llm.cross_encoders.encoder import CrossEncoder, checked
from kg_memory.llm.cross_encoders.langchain import PairScorer
from kg_memory.llm.cross_encoders.model import ModelScorer

__all__ = ["CrossEncoder", "ModelScorer", "PairScorer", "checked"]

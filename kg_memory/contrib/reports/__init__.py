"""Reports of a memory: a digest of a period, a portrait of somebody, and a handoff to the next session."""

from kg_memory.contrib.reports.reports import Reports
from kg_memory.contrib.reports.values import Digest, Handoff, Identity

__all__ = ["Digest", "Handoff", "Identity", "Reports"]

"""Reports of a memory: a digest of a period, a portrait of somebody, and a handoff to the next session."""

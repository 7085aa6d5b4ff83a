"""The profile of an entity: the states that hold for it, by topic and sub-topic; see `GraphMemory.profile`."""

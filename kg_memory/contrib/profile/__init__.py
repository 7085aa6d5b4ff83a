"""The profile of an entity: the states that hold of it, by topic and sub-topic; see `GraphMemory.profile`."""

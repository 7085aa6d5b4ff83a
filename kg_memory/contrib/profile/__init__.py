"""The profile of an entity: the states that are true of it, by topic and sub-topic; see `GraphMemory.profile`."""

"""Optional parts of kg-memory, loaded as plug-ins: the library does not import them until they are used."""

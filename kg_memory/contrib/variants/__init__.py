"""Alternatives to the default search and reading: rerankers, graph walks, decay, templates, a reading plan."""

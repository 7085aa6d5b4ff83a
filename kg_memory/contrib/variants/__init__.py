"""Alternatives to the default search and reading: rerankers, graph traversal, decay, templates, a reading plan."""

"""Eviction: what is over, or of which nothing is known any more, makes room."""

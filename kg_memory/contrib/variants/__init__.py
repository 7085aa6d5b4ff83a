"""Walks and rerankers of papers, beside those that the benchmarks favour."""

"""The checks, by capability."""

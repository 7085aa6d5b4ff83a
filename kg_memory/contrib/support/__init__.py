"""Checks whether the words of a message support the facts that were read from it."""

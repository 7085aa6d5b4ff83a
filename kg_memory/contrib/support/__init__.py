"""Check that the words of a message support the facts that were read in it."""

"""Memory systems that can be compared."""

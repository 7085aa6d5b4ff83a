"""Facts over time, by scenarios."""

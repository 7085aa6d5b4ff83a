"""Truth over time, by scenarios."""

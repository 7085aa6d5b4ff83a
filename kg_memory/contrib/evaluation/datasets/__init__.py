"""Public benchmarks: each `Dataset` describes one and loads its files."""

"""``kg-memory evaluate``: evaluate memory systems on public benchmarks.

`datasets` has a module for each kind of benchmark, `systems` the memory and the baselines, and `records` the data types
that they share.
"""

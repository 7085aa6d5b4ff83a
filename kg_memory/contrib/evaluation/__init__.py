"""Evaluate memory systems on public benchmarks: ``kg-memory evaluate``.

`datasets` and `systems` have a module for each data set and each system; `records` has what they share.
"""

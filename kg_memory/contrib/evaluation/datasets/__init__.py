"""Public benchmarks: each module loads the files of one or more as a `Dataset`."""

"""Public benchmarks. Each module loads the files of one or more benchmarks as a `Dataset`."""

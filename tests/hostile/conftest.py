"""The examples of the fuzz tests: few and the same in each run, or ``KG_MEMORY_FUZZ`` random ones."""

import os

from hypothesis import HealthCheck, settings

EXAMPLES = int(os.environ.get("KG_MEMORY_FUZZ", "0"))
FUZZ = settings(
    max_examples=EXAMPLES or 60, derandomize=not EXAMPLES, database=None, deadline=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip

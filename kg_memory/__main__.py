"""Run the command line: ``python -m kg_memory`` is the same as ``kg-memory``."""

import sys

from kg_memory.cli import main

sys.exit(main())

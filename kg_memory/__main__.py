"""``python -m kg_memory`` is ``kg-memory``."""

import sys

from kg_memory.cli import main

sys.exit(main())

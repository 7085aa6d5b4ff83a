"""The tests of the stores that the command names; pytest is pointed at this file."""

from __future__ import annotations

import pytest

from kg_memory.errors import InputError
from kg_memory.testing.store_conformance.naming import CHOSEN, suites

pytest.register_assert_rewrite("kg_memory.testing.store_conformance")
try:
    globals().update(suites(CHOSEN))
except InputError as error:
    raise pytest.UsageError(str(error)) from None

"""What authors of LangGraph stores test them with: the conformance suite `store_conformance`, and its report.

It needs pytest, which whoever runs it has; nothing else of kg-memory does.
"""

from kg_memory.errors import MissingExtra

try:
    import pytest
except ImportError as error:
    raise MissingExtra("kg_memory.testing needs pytest: pip install pytest") from error

pytest.register_assert_rewrite("kg_memory.testing.store_conformance")

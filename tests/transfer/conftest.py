"""The memory whose model must not be asked."""

from tests.declared.conftest import declaring  # noqa: F401 - a fixture

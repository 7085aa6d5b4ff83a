"""Fixtures of the tests of failing models."""

from collections.abc import Iterator

import pytest

from tests.chat_server import chat_server
from tests.faults.failing import Model


@pytest.fixture(scope="module")
def serving() -> Iterator[Model]:
    model = Model()
    with chat_server(model) as model.url:
        yield model


@pytest.fixture
def remote(serving: Model) -> Iterator[Model]:
    serving.mend()
    yield serving
    serving.mend()

"""A memory whose model must not be called."""

import pytest


class Unasked:
    """A model that fails the test if it is called."""

    name = "unasked"
    by_rules = False

    def answer(self, ask):
        raise AssertionError(f"the model was asked {ask.prompt.name}")

    async def aanswer(self, ask):
        return self.answer(ask)


@pytest.fixture
def declaring(opened):
    return opened(Unasked())

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kg_memory import GraphMemory
from kg_memory.maintenance.forgetting import forget as forgetting
from kg_memory.maintenance.forgetting.selection import ForgetRequest
from kg_memory.models.operations import ForgetReceipt
from tests.bound import Verbs
from tests.review import World


@pytest.fixture(autouse=True)
def searching(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is searched for traces each time that something is forgotten in these tests."""
    request = ForgetRequest.from_arguments

    def searching(kinds: Mapping[str, object], **options: Any) -> ForgetRequest:
        return request(kinds, **{**options, "search": True})

    monkeypatch.setattr(ForgetRequest, "from_arguments", searching)


@pytest.fixture(autouse=True)
def searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """No trace is found in these tests."""
    real = forgetting._build_receipt

    def receipt(run: forgetting.Run) -> ForgetReceipt:
        made = real(run)
        assert made.residue in ((), None), made.residue
        assert made.dry_run == (made.residue is None)
        return made

    monkeypatch.setattr(forgetting, "_build_receipt", receipt)


@pytest.fixture
def world(memory: GraphMemory, namespace: str) -> World:
    """An empty namespace."""
    return World(memory, namespace)


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def verbs(request: pytest.FixtureRequest, memory: GraphMemory, namespace: str) -> Verbs:
    return Verbs(memory, namespace, asynchronous=request.param)

from __future__ import annotations

import pytest

from kg_memory import GraphMemory
from kg_memory.maintenance.forgetting import forget as forgetting
from kg_memory.models.operations import ForgetReceipt
from tests.bound import Verbs
from tests.review import World


@pytest.fixture(autouse=True)
def searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time that something is forgotten in these tests, nothing of it is found afterwards."""
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

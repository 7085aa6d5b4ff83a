from collections.abc import Callable, Mapping
from typing import Any

import pytest

from kg_memory.maintenance.forgetting import forget as forgetting
from kg_memory.maintenance.forgetting.selection import ForgetRequest
from kg_memory.models.operations import ForgetReceipt
from tests.scripted import Fields


@pytest.fixture(autouse=True)
def searching(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make each `forget` search everything for traces."""
    request = ForgetRequest.from_arguments

    def searching(kinds: Mapping[str, object], **options: Any) -> ForgetRequest:
        return request(kinds, **{**options, "search": True})

    monkeypatch.setattr(ForgetRequest, "from_arguments", searching)


@pytest.fixture(autouse=True)
def searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Assert that no `forget` leaves a trace."""
    real = forgetting._build_receipt

    def receipt(run: forgetting.Run) -> ForgetReceipt:
        made = real(run)
        assert made.residue in ((), None), made.residue
        assert made.dry_run == (made.residue is None)
        return made

    monkeypatch.setattr(forgetting, "_build_receipt", receipt)


@pytest.fixture
def guessing(model) -> Callable[[Fields], Any]:
    """Make the model read "there" as the Oslo of the message before; return its rule for facts."""
    told = dict(model.rules)

    def means_oslo(fields: Fields) -> bool:
        before = [each["content"] for each in fields["previous"]]
        return "there" in fields["episode"]["content"] and "I moved to Oslo." in before

    def extract(fields: Fields) -> Any:
        found = told["extract_message"](fields)
        return {"entities": found["entities"] + [{"name": "Oslo", "type": "Place"}] * means_oslo(fields)}

    def facts(fields: Fields) -> Any:
        episode = fields["episode"]
        content = "Oslo" if means_oslo(fields) else episode["content"]
        return told["facts"]({**fields, "episode": {**episode, "content": content}})

    model.rules |= {"extract_message": extract, "facts": facts}
    return facts

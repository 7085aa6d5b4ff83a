import pytest

from kg_memory.errors import EmbeddingMismatch, ModelUnavailable
from kg_memory.ingestion.graph import note_failure
from kg_memory.ingestion.state import decode
from tests.ingestion.stepping import answered, state


@pytest.mark.parametrize(
    ("error", "stumbled", "kept", "status"),
    [
        (ModelUnavailable("it is down"), False, True, "waiting"),
        (EmbeddingMismatch("it is embedded anew"), True, True, "waiting"),
        (ValueError("what was answered makes no sense"), False, True, "failed"),
        (ValueError("what was answered makes no sense"), True, False, "failed"),
    ],
)
def test_note_failure_stores_answers_unless_they_are_suspect(error, stumbled, kept, status):
    """Answers are deleted if the step itself failed, except in an outage."""
    told, [marked] = answered(note_failure(decode(state()), "resolve", error, stumbled), [])
    assert (told, marked.params["status"], marked.params["kept"]) == (status, status, kept)

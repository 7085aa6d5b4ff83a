"""An episode whose reading kills the process fails after some attempts; the other episodes are read."""

import os
import signal

import pytest

from kg_memory.errors import EpisodeAborted
from kg_memory.ingestion.interrupted import FOREIGN_SECONDS, MAX_INTERRUPTIONS, READER, ReaderIdentity
from tests.children import ends_well_in_a_child

POISON = "Poison ends Rome."
SAID = ("Ann knows Bob.", "Bob knows Cem.", POISON, "Cem knows Dora.")


@pytest.fixture
def poisoned(memory, model):
    """A memory whose model kills the process when it reads `POISON`."""
    extract = model.rules["extract_message"]

    def end(fields):
        if fields["episode"]["content"] == POISON:
            os.kill(os.getpid(), signal.SIGKILL)
        return extract(fields)

    model.rules["extract_message"] = end
    return memory


def survives(work):
    """Return whether a forked child process exits normally after *work*."""
    return ends_well_in_a_child(lambda: (work(), True)[1])


def statuses(memory, namespace):
    return {episode.content: episode.status for episode in memory.episodes.list(namespace=namespace)}


def test_crashing_episode_fails_after_max_interruptions(poisoned, namespace):
    poisoned.episodes.save(SAID, namespace=namespace)
    for _ in range(MAX_INTERRUPTIONS):
        assert not survives(lambda: poisoned.episodes.resume(namespace=namespace))
    [result] = [each for each in poisoned.episodes.resume(namespace=namespace) if each.status == "failed"]

    assert "retry()" in result.error
    assert statuses(poisoned, namespace) == dict.fromkeys(SAID, "done") | {POISON: "failed"}
    [failed] = poisoned.episodes.list(namespace=namespace, status="failed")
    assert failed.reason == "the process ended 3 times while it read this episode"
    assert survives(lambda: poisoned.episodes.resume(namespace=namespace))


def test_aborted_episode_is_read_only_by_retry(poisoned, model, namespace):
    poison = {"content": POISON, "source_id": "1"}
    for _ in range(MAX_INTERRUPTIONS):
        assert not survives(lambda: poisoned.add_many([poison], namespace=namespace))

    with pytest.raises(EpisodeAborted, match="ended 3 times"):
        poisoned.add(POISON, source_id="1", namespace=namespace)
    results = poisoned.add_many([poison, "Dora knows Eve."], namespace=namespace)
    assert [result.status for result in results] == ["failed", "done"]
    model.rules["extract_message"] = lambda _: {"entities": [{"name": "Rome", "type": "Place"}]}
    [result] = poisoned.episodes.retry(namespace=namespace)
    assert (result.status, result.entities) == ("done", ("Rome",))


def test_concurrent_attempt_is_not_counted_as_interrupted(memory, model, namespace, rows):
    def again(_):
        """Add the same episode again while it is read, as another worker may."""
        if len(model.asked) < 10:
            memory.add("Ann knows Bob.", source_id="1", namespace=namespace)
        return {"entities": []}

    model.rules["extract_message"] = again
    memory.add("Ann knows Bob.", source_id="1", namespace=namespace)

    [row] = rows("MATCH (e:Episode) RETURN e.status AS status, e.interrupted AS interrupted, e.reader AS reader")
    assert row == {"status": "done", "interrupted": None, "reader": None}


def test_has_ended_detects_readers_of_ended_processes():
    other = ReaderIdentity()
    parent = f"{READER.host}/{os.getppid()}/0"

    assert not READER.has_ended(READER.id, 0)
    assert not READER.has_ended(parent, 10 * FOREIGN_SECONDS)
    assert READER.has_ended(other.id, 0)  # the same number, given to a new process
    assert READER.has_ended(f"{READER.host}/{2**22 + 1}/0", 0)
    assert not READER.has_ended("elsewhere/1/0", FOREIGN_SECONDS - 1)
    assert READER.has_ended("elsewhere/1/0", FOREIGN_SECONDS + 1)

"""Export and import are killed at every command: no partial result is visible, and the next run cleans up."""

import io
import os

import pytest

from kg_memory import GraphMemory
from kg_memory.falkor.connect import graph_key
from kg_memory.falkor.schema import LOCK
from tests.faults.nursery import Nursery
from tests.faults.proxy import How, Plan, Proxy
from tests.transfer import exported, left_aside, whole
from tests.transfer.lives import KEPT, NEW, SERVE

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def scripted(scripted: GraphMemory) -> GraphMemory:
    scripted.add("I moved to Oslo", speaker="Ann", at="2024-01-01", namespace=KEPT)
    return scripted


def test_killed_export_or_import_leaves_no_partial_result(scripted, server, tmp_path):
    plan = Plan()
    kept, data = whole(scripted, KEPT), exported(scripted, KEPT)
    scripted.add("I moved to Paris", speaker="Ann", at="2024-01-02", namespace="other")
    (tmp_path / "in.jsonl").write_bytes(exported(scripted, "other"))
    scripted.data.import_(tmp_path / "in.jsonl", namespace=NEW)
    new = whole(scripted, NEW)
    connection = scripted.driver.store.database.client()
    with Proxy(plan, server.socket) as proxy, Nursery(proxy.url, str(tmp_path), serving=SERVE) as lives:
        plan.strike = lives.kill

        def live(verb: str, at: int | None = None, how: How = "unsent") -> tuple[int, list[str]]:
            """Run *verb* in a child killed at command *at*; return its exit code and the commands so far."""
            if verb == "import":
                connection.delete(graph_key(NEW))
            plan.choose(at, how)
            ended, _ = lives.live(verb)
            connection.delete(LOCK)  # as if the lock of the killed child had expired
            return ended, plan.seen[: None if at is None else at + 1]

        assert live("export")[0] == 0
        assert (tmp_path / "out.jsonl").read_bytes() == data
        (tmp_path / "out.jsonl").unlink()
        for at in chosen(plan.seen):
            assert live("export", at)[0] == -9
            assert not (tmp_path / "out.jsonl").exists()
        assert (live("export")[0], left_aside(scripted.driver.store.database)) == (0, [])
        assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl"]

        assert live("import")[0] == 0
        left = False
        for at in chosen(plan.seen):
            ended, done = live("import", at, "unanswered")
            assert ended == (-9 if len(plan.seen) > at else 0), "it asks as often for the indices as they take"
            assert whole(scripted, NEW) == (new if "EXEC" in done else {}), done[-1]
            left |= bool(left_aside(scripted.driver.store.database))
        assert left, "those that died left what they had made"
        assert live("replace")[0] == 0
        assert left_aside(scripted.driver.store.database) == [], "who lives takes it away"
        scripted.data.import_(io.BytesIO(data), replace=True)
        for at in chosen(plan.seen):
            ended, done = live("replace", at)
            assert ended == -9
            assert (whole(scripted, KEPT) == kept) == ("EXEC" not in done[:-1]), done[-1]
            if "EXEC" in done[:-1]:
                scripted.data.import_(io.BytesIO(data), replace=True)
    assert [each.sentence for each in scripted.facts.about("Ann", namespace=KEPT)] == ["Ann lives in Oslo"]


def chosen(seen: list[str]) -> list[int]:
    """Return the numbers of commands to kill at: the last and some before, or all with KG_MEMORY_EVERY_COMMAND."""
    if "KG_MEMORY_EVERY_COMMAND" in os.environ:
        return list(range(len(seen)))
    last = max(len(seen) - 4, 0)
    return [*range(10, last, max(last // 2, 1)), *range(last, len(seen))]

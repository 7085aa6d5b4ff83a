"""A refresh that is killed at any moment leaves the communities as they were or whole, and nothing to be paid twice."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from kg_memory.errors import ModelUnavailable
from kg_memory.falkor.connect import graph_key
from tests.communities.conftest import APART
from tests.communities.told import names

ROOT = Path(__file__).parents[2]
LEFT = "MATCH (a:Answer) RETURN a.key AS key"


@pytest.mark.parametrize(("most", "questions"), [(APART, 2), (16_384, 1)], ids=["one by one", "together"])
def test_a_refresh_killed_at_any_write_is_resumed_by_the_next(
    server, memory, namespace, circles, rows, most, questions
):
    command = [sys.executable, "-m", "tests.communities.killed", server.url, namespace, str(most)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as lives:
        asked: Counter[str] = Counter()
        deaths = 0
        for line in lives.stdout:
            told = json.loads(line)
            if "asked" in told:
                asked[str(told["asked"])] += 1
                continue
            listed = memory.communities.list(namespace=namespace)
            assert len(listed) in (0, 2), "a reader never sees half of it"
            assert all(len(each.members) == 3 and each.name and each.summary for each in listed)
            deaths += told["status"] == -9
            lives.stdin.write("\n")
            lives.stdin.flush()
    assert (lives.returncode, told["status"]) == (0, 0)
    assert deaths == 2 * (questions + 1), "before and after each answer is kept, and all is saved"
    assert list(asked.values()) == [2] * questions, "only what was answered and not yet kept is asked again"
    assert rows(LEFT) == []
    assert memory.communities.refresh(namespace=namespace).changed == 0


def test_what_is_answered_after_something_was_forgotten_is_not_kept(apart, model, namespace, circles, rows, database):
    rule, forgotten = model.rules["community"], "MATCH (m:Meta {id: 'schema'}) SET m.communities = 7"

    def forgetting(fields):
        database.query(graph_key(namespace), forgotten, {}, write=True)
        return rule(fields)

    def failing(fields):
        raise ModelUnavailable("the server is down: try again later")

    answers = {"Ann": forgetting, "Dora": failing}
    model.rules["community"] = lambda fields: answers[names(fields)[0][0]](fields)
    with pytest.raises(ModelUnavailable):
        apart.communities.refresh(namespace=namespace)
    assert rows(LEFT) == []

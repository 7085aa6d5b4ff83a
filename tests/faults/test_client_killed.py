"""The client is killed at every effect of a run, a child process for each: the next one loses and repeats nothing."""

from collections import Counter
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from kg_memory.contrib.embedded import Server
from kg_memory.falkor.connect import Database
from tests.chat_server import chat_server
from tests.faults.nursery import MESSAGES, Nursery
from tests.faults.proxy import How, Plan, Proxy
from tests.faults.whole import Tenant

pytestmark = pytest.mark.system


class World:
    """A database and models over HTTP; any effect may be the last of the child that asks for it."""

    def __init__(self, database: Database) -> None:
        self.plan = Plan()
        self.tenant = Tenant(lambda: database)
        self.asked: Counter[str] = Counter()
        """The number of model calls by kind, also of those whose answer never arrived."""
        self.nursery: Nursery

    def watch(self, name: str, _: Any) -> None:
        how = self.plan.arrive(name)
        if how != "unsent":
            self.asked[name] += 1
        if how:
            self.plan.cut()

    def live(self, verbs: str, at: int | None = None, how: How = "unsent") -> tuple[int, list[str]]:
        """Let a child run *verbs* and die at effect *at*; check that its graph has no flaw."""
        self.plan.choose(at, how)
        ended = self.nursery.live(verbs)
        self.tenant.forget("no graph")
        assert self.tenant.flaws() == []
        return ended


@pytest.fixture(scope="module")
def world(server: Server, database: Database) -> Iterator[World]:
    made = World(database)
    with (
        chat_server(made.watch) as models,
        Proxy(made.plan, server.socket) as proxy,
        Nursery(proxy.url, models) as nursery,
    ):
        made.plan.strike, made.nursery = nursery.kill, nursery
        yield made
    made.tenant.forget()
    made.tenant.forget(Tenant.COPY)


def test_client_killed_in_first_save_loses_nothing(world):
    world.tenant.forget()
    assert world.live("save") == (0, ["saved"])
    clean = world.tenant.graph()
    for at in count():
        world.tenant.forget()
        ended = world.live("save", at)
        if not world.plan.reached:
            break
        assert ended == (-9, []), at
        assert world.live("save") == (0, ["saved"])
        assert world.tenant.differs(clean) == [], at
    assert ended == (0, ["saved"])
    assert at > 25


@pytest.mark.parametrize("how", ["unsent", "unanswered"])
def test_client_killed_in_add_loses_nothing_and_pays_once(world, how):
    world.tenant.forget()
    assert world.live("begin") == (0, [])
    world.tenant.keep()
    world.asked.clear()
    assert world.live("add") == (0, ["added"])
    clean, paid, effects = world.tenant.graph(), Counter(world.asked), tuple(world.plan.seen)
    for at in count():
        if how == "unanswered" and effects[at : at + 1] == ("GRAPH.RO_QUERY",):
            continue  # a read without answer leaves the same graph as one never sent
        world.tenant.begin()
        world.asked.clear()
        ended = world.live("add", at, how)
        if not world.plan.reached:
            break
        last = world.plan.seen[at - 1 : at + 1]
        assert ended == (-9, []), last
        stored = world.tenant.look("MATCH (e:Episode {source_id: 'm1'}) RETURN e.content AS content")
        kept = [each["content"] for each in stored]
        assert kept in ([], [MESSAGES[1]["content"]])
        assert kept or world.asked.keys() <= {"embeddings"}, "no chat model is asked before the episode is stored"

        assert world.live("finish+add") == (0, ["added"])
        assert world.tenant.differs(clean) == [], (at, last)
        again = world.asked - paid
        vectors = again.pop("embeddings", 0)  # vectors are not stored separately: the next run embeds again
        assert vectors <= paid["embeddings"] + 1
        # An answer that was not stored yet is asked again.
        assert again.total() <= 1, (at, last)
        assert again.keys() <= set(last), (at, last)
    assert ended == (0, ["added"])
    assert at > 15

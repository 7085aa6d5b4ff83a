"""The audit log of `forget`: changes are detected, no entry is lost, and no entry has text."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from kg_memory import GraphMemory
from kg_memory.maintenance.forgetting import audit, cypher
from kg_memory.maintenance.forgetting import forget as forgetting
from kg_memory.models.operations import AuditReport


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, namespace: str) -> None:
    """A separate log for each test."""
    monkeypatch.setattr(audit, "LOG", f"{audit.LOG}:{namespace}")


@pytest.fixture
def redis(memory: GraphMemory) -> Callable[..., Any]:
    return memory.driver.store.database.command


def test_audit_lists_entries_latest_first_without_text(verbs, memory, namespace, redis):
    for by, reason in (("Tom", "asked for, ticket 4711"), ("Ann", "Ann no longer lives in Oslo")):
        added = verbs.add("I moved to Oslo.", speaker="Ann", at="2024-01-01")
        done = verbs.privacy.forget(episode=added.episode, by=by, reason=reason)
    last, first = verbs.privacy.audit()
    assert (first.number, first.by, first.reason) == (2, "Tom", "asked for, ticket 4711")
    assert (last.number, last.hash) == (4, done.head)
    assert (last.by, last.reason) == (forgetting.LEFT_OUT, forgetting.LEFT_OUT)
    assert (last.kind, last.episodes, last.facts, last.entities, last.residue) == ("episode", 1, 1, 2, 0)
    assert verbs.privacy.audit(namespace="another") == []
    kept = str(redis("HGETALL", audit.LOG)).lower()
    assert not any(text in kept for text in ("oslo", added.episode, namespace.lower(), *done.facts, *done.entities))
    [message] = last.messages
    assert message == audit.salted_hash(redis("GET", audit.SALT), added.episode)
    assert memory.privacy.verify(head=done.head) == AuditReport(entries=4, head=done.head)


def test_dry_run_adds_no_audit_entry(world, memory):
    world.privacy.forget(episode=world.moves("Oslo", "2024-01-01").episode, dry_run=True)
    assert (world.privacy.audit(), memory.privacy.verify()) == ([], AuditReport(entries=0))


def resealed(text: str, **changes: Any) -> str:
    told = {**json.loads(text), **changes}
    told.pop("hash")
    return audit.seal(told)


TAMPERING = {
    "changed": (lambda texts: {"2": texts[1].replace('"by":"user"', '"by":"me"')}, "entry 2 does not match its hash"),
    "changed with its hash": (lambda texts: {"2": resealed(texts[1], by="me")}, "entry 3 does not follow"),
    "spoilt": (lambda texts: {"3": "{}"}, "entry 3 is not a valid entry"),
    "removed": (lambda texts: {"2": None}, "entry 2 is missing"),
    "the first removed": (lambda texts: {"1": None}, "entry 1 is missing"),
    "reordered": (lambda texts: {"2": texts[2], "3": texts[1]}, "entry 2 was entry 3"),
    "cut off": (lambda texts: {"4": None}, "no entry has the hash"),
    "cut off and written anew": (lambda texts: {"4": resealed(texts[3], by="me")}, "no entry has the hash"),
    "put in": (lambda texts: {"5": resealed(texts[3], number=5)}, "entry 5 does not follow"),
}


@pytest.mark.parametrize("how", TAMPERING)
def test_verify_detects_a_changed_log(memory, redis, how):
    """Changed, removed or reordered entries of the audit log are detected.

    Features: D25.
    """
    heads = [_append(memory, each) for each in "abcd"]
    assert memory.privacy.verify(head=heads[-1]) == AuditReport(entries=4, head=heads[-1])
    assert all(memory.privacy.verify(head=each).ok for each in heads)
    change, said = TAMPERING[how]
    for field, text in change([redis("HGET", audit.LOG, str(number)) for number in range(1, 5)]).items():
        redis("HDEL", audit.LOG, field) if text is None else redis("HSET", audit.LOG, field, text)
    check = memory.privacy.verify(head=heads[-1])
    assert not check.ok
    assert said in check.problems[0], check
    _append(memory, "later")  # later entries do not repair the chain
    assert not memory.privacy.verify(head=heads[-1]).ok


def _append(memory: GraphMemory, receipt: str) -> str:
    told = {"receipt": receipt, "kind": "episode", "what": "", "namespace": "", "by": "user", "at": "2024-01-01T00:00Z"}
    return memory.driver.run(audit.append(told), "default").hash


def test_concurrent_entries_form_one_chain(memory):
    with ThreadPoolExecutor(8) as pool:
        heads = list(pool.map(lambda number: _append(memory, str(number)), range(60)))
    check = memory.privacy.verify(head=heads[0])
    assert (check.ok, check.entries, len(set(heads))) == (True, 60, 60)


@pytest.mark.parametrize("kind", ["episode", "everything"])
@pytest.mark.parametrize("place", ["before", "after"])
def test_killed_forget_has_an_incomplete_audit_entry(world, memory, monkeypatch, kind, place):
    added = world.moves("Oslo", "2024-01-01", thread="t")
    real = memory.driver.store.database.__class__

    def dying(ask: Any) -> Any:
        def delete(self: Any, key: str) -> None:
            if place == "after":
                ask(self, key)
            raise KeyboardInterrupt

        def query(self: Any, *args: Any, **options: Any) -> Any:
            if cypher.FORGET not in args:
                return (yield from ask(self, *args, **options))
            if place == "after":
                yield from ask(self, *args, **options)
            raise KeyboardInterrupt

        return delete if kind == "everything" else query

    named: dict[str, Any] = {"everything": True} if kind == "everything" else {"episode": added.episode}
    with monkeypatch.context() as patch:
        name = "delete" if kind == "everything" else "query_flow"
        patch.setattr(real, name, dying(getattr(real, name)))
        with pytest.raises(KeyboardInterrupt):
            world.privacy.forget(**named, by="Tom")
    [entry] = world.privacy.audit()
    assert (entry.kind, entry.complete, entry.episodes, "Tom" in str(entry)) == (kind, False, 1, False)
    assert (memory.privacy.verify().ok, memory.privacy.verify().pending) == (True, 1)
    assert len(world.episodes.list()) == (place == "before")
    if place == "before":
        world.privacy.forget(**named, by="Tom")
        assert [each.complete for each in world.privacy.audit()] == [True, False]

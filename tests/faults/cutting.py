"""A memory in this process whose connection to the database is cut at any command, and its next calls."""

from collections import Counter
from collections.abc import Callable
from itertools import count
from typing import Any

from kg_memory import GraphMemory
from kg_memory.errors import DatabaseUnavailable
from tests.faults.nursery import MESSAGES, NAMESPACE
from tests.faults.proxy import How, Plan
from tests.faults.whole import Tenant
from tests.scripted import Scripted

Open = Callable[[], GraphMemory]


def save_at_every_command(plan: Plan, tenant: Tenant, opened: Open, how: How) -> None:
    """Save a first message, with a cut at each command in turn; a second save must leave it stored once."""

    def save() -> None:
        memory.episodes.save(MESSAGES[:1], namespace=NAMESPACE)

    plan.choose(None)
    tenant.forget()
    with opened() as memory:
        save()
        clean = tenant.graph()
    for at in count():
        tenant.forget()
        with opened() as memory:
            plan.choose(at, how)
            if not _cut(plan, memory, save):
                break
            assert tenant.flaws() == []
            tenant.forget("no graph")
            save()
            assert not (found := tenant.differs(clean)), (at, found)
    assert at > 20


def add_at_every_command(plan: Plan, tenant: Tenant, opened: Open, how: How, *, in_parts: bool = False) -> None:
    """Add a second message, with a cut at each command in turn; a resume stores it once and pays no answer twice.

    A message that is saved *in_parts* may have a part saved before it is read.
    """

    def add() -> None:
        memory.add(**MESSAGES[1], namespace=NAMESPACE)

    plan.choose(None)
    tenant.forget()
    with opened() as memory:
        memory.add(**MESSAGES[0], namespace=NAMESPACE)
    tenant.keep()
    with opened() as memory:
        plan.choose(None)
        add()
        clean, effects, paid = tenant.graph(), tuple(plan.seen), _asked(memory)
    for at in count():
        if how == "unanswered" and effects[at : at + 1] == ("GRAPH.RO_QUERY",):
            continue  # a read without answer leaves the same graph as one never sent
        tenant.begin()
        with opened() as memory:
            plan.choose(at, how)
            if not _cut(plan, memory, add):
                break
            assert not [found for found in tenant.flaws() if not (in_parts and "not read" in found["flaw"])]
            memory.episodes.resume(namespace=NAMESPACE)
            assert memory.stats(namespace=NAMESPACE).waiting == 0
            add()
            assert not (found := tenant.differs(clean)), (at, found)
            again = _asked(memory) - paid
            assert again.total() <= 1, (at, again)  # an answer that was not stored yet is asked again
    assert at > 12


def _cut(plan: Plan, memory: GraphMemory, act: Callable[[], Any]) -> bool:
    """Call *act*, in which the connection may be cut, and call the memory again; return whether it was cut."""
    said = ""
    try:
        act()
    except DatabaseUnavailable as error:
        said = str(error)
    reached = plan.reached
    assert ("try again" in said) == reached
    plan.choose(None)
    assert memory.stats(namespace=NAMESPACE).episodes <= len(MESSAGES), "the next verb reconnects"
    return reached


def _asked(memory: GraphMemory) -> Counter[str]:
    assert isinstance(memory.driver.model, Scripted)
    return Counter(each.prompt.name for each in memory.driver.model.asked)

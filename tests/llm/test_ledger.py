"""Spending: in the process, and in the graph of each namespace."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from kg_memory import GraphMemory, Usage
from kg_memory.errors import AnswerError
from kg_memory.llm import prompts
from kg_memory.llm.budget import Account, Spending, estimate_cost
from kg_memory.models.budget import DAY
from kg_memory.runtime.effects import Ask
from tests.paid import AT, NOON, Open, Paid, calls_of, opened_memories, paid_model  # noqa: F401 - fixtures


def test_account_counts_spending_once_before_and_after_write():
    account = Account()

    def spent() -> int:
        return account.spending(NOON, None).namespace.calls

    account.note_stored(Spending(namespace=Usage(calls=5)), NOON)
    account.spend(Usage(calls=2), None)
    assert spent() == 7
    written = account.begin_write(NOON + 10)
    assert (written, spent()) == (Usage(calls=2), 7)
    account.undo_write(NOON + 10, written)
    assert spent() == 7
    assert account.begin_write(NOON + 11) == written
    account.note_stored(Spending(namespace=Usage(calls=5)), NOON + 9)  # read before that write
    assert spent() == 7
    account.note_stored(Spending(namespace=Usage(calls=7)), NOON + 11)
    assert spent() == 7
    account.note_stored(Spending(namespace=Usage(calls=5)), NOON + 8)  # a late answer
    assert spent() == 7


def test_account_counts_spending_of_all_threads():
    account = Account()

    def spend(_: int) -> None:
        for _ in range(500):
            account.spend(Usage(calls=1), "e")
            account.begin_write(NOON)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(spend, range(8)))
    spending = account.spending(NOON, "e")
    assert {each.calls for each in (spending.day, spending.namespace, spending.episode)} == {4000}


def test_account_renew_drops_unwritten_spending_of_parent():
    account = Account()
    account.spend(Usage(calls=2), None)
    account.renew()
    assert account.begin_write(NOON) == Usage()


def test_estimate_cost_grows_with_prompt_and_overestimates():
    fields = {"entity_types": {}, "fact_types": [], "instructions": "", "episode": {"content": "I moved to Oslo."}}
    asks = (Ask(prompts.READ, {**fields, "previous": [{"content": "x " * n}]}) for n in (1, 5_000))
    short, long = map(estimate_cost, asks)
    assert short.calls == long.calls == 1
    assert long.input_tokens - short.input_tokens > 2_000
    assert long.output_tokens > short.output_tokens >= 200


# The ledger


def ledger(rows: Any) -> list[dict[str, Any]]:
    return rows(
        "MATCH (s:Spent) RETURN s.day AS day, s.calls AS calls, s.input_tokens AS i, s.output_tokens AS o ORDER BY day"
    )


def test_ledger_stores_spending_by_day(opened, paid, namespace, rows):
    first, second = opened(), opened(at=NOON + DAY)
    first.add("I moved to Oslo.", speaker="Ann", at=AT, namespace=namespace)
    before = paid.count()
    asyncio.run(second.aadd("I know Bob.", speaker="Ann", at=AT, namespace=namespace))
    after = paid.count() - before
    assert [(item["day"], item["calls"], item["i"], item["o"]) for item in ledger(rows)] == [
        (20_000, before, before * 1_000, before * 100), (20_001, after, after * 1_000, after * 100),
    ]  # fmt: skip


def test_ledger_counts_failed_calls(opened, paid, namespace, rows):
    def cost_and_fail(ask: Ask) -> Any:
        ask.meter(paid.usage)
        raise AnswerError("no JSON: use another model")

    paid.answer = cost_and_fail  # type: ignore[method-assign]
    with pytest.raises(AnswerError):
        opened().add("I moved to Oslo.", speaker="Ann", at=AT, namespace=namespace)
    assert [item["calls"] for item in ledger(rows)] == [1]


def test_ledger_counts_calls_of_communities(opened, paid, namespace, rows):
    memory = opened()
    memory.add("I know Bob and Cy.", speaker="Ann", at=AT, namespace=namespace)
    [text] = ledger(rows)
    assert memory.communities.refresh(namespace=namespace).questions == 1
    assert [item["calls"] for item in ledger(rows)] == [text["calls"] + 1]


def test_ledger_writes_nothing_without_cost(opened, namespace, rows):
    opened().add("Thanks!", speaker="Ann", at=AT, namespace=namespace)
    assert ledger(rows) == []


def test_budget_adds_no_database_command(opened, namespace, monkeypatch):
    requests: list[str] = []

    def commands(memory: GraphMemory, space: str) -> list[str]:
        query = memory.driver.store.perform
        monkeypatch.setattr(
            memory.driver.store, "perform", lambda key, what: requests.append(str(what)[:60]) or query(key, what)
        )
        requests.clear()
        memory.add("I live in Oslo with Bob.", speaker="Ann", at=AT, namespace=space)
        return list(requests)

    free = commands(opened(), f"{namespace} free")
    assert commands(opened(calls_of(100)), f"{namespace} limited") == free

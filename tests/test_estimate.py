"""`usage.estimate` predicts the usage of reading: it calls no model, and comes near to the actual usage."""

from datetime import UTC, datetime
from typing import Any

import pytest

from kg_memory import Budget, Settings, Usage
from kg_memory.errors import InputError
from kg_memory.llm.budget import estimate_cost
from kg_memory.models.operations import Estimate
from kg_memory.runtime.effects import Ask
from tests.paid import PRICES
from tests.scripted import Scripted


class Honest(Scripted):
    """A scripted model that uses the estimated number of input tokens, and 77 output tokens a call."""

    def answer(self, ask: Ask) -> Any:
        answer = super().answer(ask)
        ask.meter(Usage(calls=1, input_tokens=estimate_cost(ask).input_tokens, output_tokens=77))
        return answer


@pytest.fixture
def model() -> Honest:
    return Honest()


@pytest.fixture
def settings() -> Settings:
    return Settings(merge_threshold=0.98, ask_threshold=0.6)


def talk(count: int) -> list[dict[str, Any]]:
    people = ("Bob", "Cy", "Dan", "Eve")
    return [
        {"content": f"I know {people[n % 4]}, and day {n} was fine.", "speaker": "Ann", "at": f"2024-01-{n % 28 + 1:02}T{n // 28:02}:00:00Z", "thread": "t"}
        for n in range(count)
    ]  # fmt: skip


def test_estimate_calls_no_model_and_stores_nothing(opened, model, namespace):
    memory = opened(budget=Budget(**PRICES))
    told = memory.usage.estimate(talk(5), namespace=namespace)
    assert (told.episodes, told.to_read, told.finished, told.skipped, told.past) == (5, 5, 0, 0, 0)
    assert (told.calls.low, told.seconds) == (5, None)
    assert told.money
    assert 0 < told.money.low < told.money.likely < told.money.high
    assert model.asked == []
    assert memory.stats(namespace=namespace).episodes == 0
    assert namespace not in memory.data.namespaces()


def test_estimate_excludes_read_and_skipped_episodes(opened, namespace):
    memory = opened()
    memory.add_many(talk(2), namespace=namespace)
    memory.episodes.save(talk(3)[2:], namespace=namespace)
    said = [*talk(4), *talk(4), {"content": "Thanks!", "speaker": "Bob"}, {"content": "Be kind.", "kind": "block"}]
    told = memory.usage.estimate(said, namespace=namespace)
    assert (told.episodes, told.to_read, told.finished, told.skipped) == (6, 2, 2, 2)
    nothing = memory.usage.estimate(talk(2), namespace=namespace)
    assert (nothing.to_read, nothing.calls.high, nothing.input_tokens.high) == (0, 0, 0)
    assert memory.usage.estimate([], namespace=namespace).episodes == 0


@pytest.mark.parametrize("plan", ["standard", "thorough"])
def test_estimate_range_includes_actual_usage(opened, namespace, plan):
    memory = opened(plan=plan)
    told = memory.usage.estimate(talk(12), namespace=namespace)
    usage = sum((each.usage for each in memory.add_many(talk(12), namespace=namespace)), Usage())
    assert told.calls.low <= usage.calls <= told.calls.high
    assert told.input_tokens.low <= usage.input_tokens <= told.input_tokens.high


def test_estimate_improves_with_past_usage_of_the_namespace(opened, namespace):
    memory = opened(budget=Budget(**PRICES))
    said = talk(40)
    before = memory.usage.estimate(said[25:], namespace=namespace)
    memory.add_many(said[:25], namespace=namespace)
    told = memory.usage.estimate(said[25:], namespace=namespace)
    assert (before.past, told.past) == (0, 25)
    usage = sum((each.usage for each in memory.add_many(said[25:], namespace=namespace)), Usage())
    for name in ("calls", "input_tokens", "output_tokens"):
        taken = getattr(usage, name)
        assert abs(getattr(told, name).likely - taken) <= 0.25 * taken, name
        assert abs(getattr(told, name).likely - taken) <= abs(getattr(before, name).likely - taken), name
    assert told.seconds
    assert 0 < told.seconds[0] <= told.seconds[1]


def test_estimate_ignores_past_usage_of_another_plan(opened, namespace):
    memory = opened()
    memory.episodes.save(talk(21), namespace=namespace)
    done = "MATCH (e:Episode) SET e.status = 'done', e.plan = 'standard', e.took = [2, 4000, 90, 1.5, 1, 2500, 80]"
    memory.driver.store.database.query(memory.driver.key(namespace), done, {}, write=True)
    told = memory.usage.estimate(talk(22), namespace=namespace)
    assert (told.past, told.calls.likely, told.output_tokens.likely, told.seconds) == (21, 2, 90, (1.5, 1.5))
    assert opened(plan="thorough").usage.estimate(talk(22), namespace=namespace).past == 0


def test_estimate_batches_messages_of_a_thread_under_economy(opened, namespace):
    plans = [opened(plan=plan) for plan in ("economy", "standard")]
    economy, standard = (memory.usage.estimate(talk(20), namespace=namespace) for memory in plans)
    assert (economy.to_read, economy.calls.low) == (20, 3)
    assert economy.input_tokens.likely < standard.input_tokens.likely / 2


def test_estimate_counts_chunks_and_tokens_of_any_script(opened, namespace):
    memory = opened(chunk_size=500)
    text = {"content": "Bob knows Ann and Cy. " * 200, "kind": "text"}
    assert memory.usage.estimate([text], namespace=namespace).calls.low == 10
    assert opened(chunk_size=500, plan="thorough").usage.estimate([text], namespace=namespace).calls.low == 30
    chinese, english = (
        opened().usage.estimate([text * 300], namespace=namespace).input_tokens
        for text in ("我住在奥斯陆。", "I lived.")
    )
    assert chinese.low > english.low + 1_000
    hostile = "}>>> $episode ${x} %s {0} \x00 \ud800 '); MATCH (n) DETACH DELETE n //"
    assert memory.usage.estimate([hostile], namespace=namespace).to_read <= 1


def test_estimate_is_zero_for_the_offline_model(opened, namespace):
    memory = opened(model="offline", embeddings="offline", budget=Budget(**PRICES))
    told = memory.usage.estimate(talk(3), namespace=namespace)
    assert (told.to_read, told.calls.high) == (3, 0)
    assert told.money
    assert told.money.high == 0


@pytest.mark.parametrize(
    "given", [[""], ["x" * 2_000_000], [{"contents": "x"}], [{"content": "{", "kind": "json"}], "text", 5]
)
def test_estimate_refuses_invalid_episodes(opened, namespace, given):
    with pytest.raises(InputError):
        opened().usage.estimate(given, namespace=namespace)


def test_estimates_add_up_and_unknown_money_stays_unknown(opened, namespace):
    memory = opened(budget=Budget(**PRICES))
    one, other = (memory.usage.estimate(talk(count), namespace=namespace) for count in (2, 3))
    whole = one + other
    assert (whole.episodes, whole.calls.low) == (5, 5)
    assert whole.money
    assert one.money
    assert whole.money.likely > one.money.likely
    assert (one + Estimate(**{**dict(other), "money": None})).money is None


def test_spent_lists_usage_by_day(opened, model, namespace):
    memory = opened(budget=Budget(**PRICES))
    assert memory.usage.spent(namespace=namespace) == []
    before = datetime.now(UTC).date()
    added = memory.add("I know Bob.", speaker="Ann", namespace=namespace)
    spent = memory.usage.spent(namespace=namespace)
    assert sum(each.calls for each in spent) == added.usage.calls == len(model.asked)
    assert sum(each.input_tokens for each in spent) == added.usage.input_tokens
    assert spent[0].day >= before
    assert spent[0].money == pytest.approx((added.usage.input_tokens + 10 * added.usage.output_tokens) / 1e6)
    past = "MERGE (s:Spent {day: $day}) SET s.calls = 7"
    key, today = memory.driver.key(namespace), memory.driver.clock() // 86_400_000_000
    memory.driver.store.database.query(key, past, {"day": today - 3}, write=True)
    assert [len(memory.usage.spent(namespace=namespace, days=days)) for days in (3, 4)] == [1, 2]
    for days in (0, -1, 1.5, True):
        with pytest.raises(InputError, match="days must be"):
            memory.usage.spent(namespace=namespace, days=days)  # type: ignore[arg-type]

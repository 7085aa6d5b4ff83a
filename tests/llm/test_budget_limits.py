"""What reading may cost, as a value: what it refuses, where it is set, and the ladder."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from kg_memory import Budget, Limits, Settings, Usage
from kg_memory.contrib.offline import OfflineModel
from kg_memory.errors import BudgetSpent, SettingsError
from kg_memory.llm import prompts
from kg_memory.models.budget import BY_RULES, LADDER, READING, rung_of
from kg_memory.runtime.effects import Ask, Prompt
from tests.all_prompts import ALL
from tests.paid import PRICES


@pytest.mark.parametrize(
    "given",
    [
        {"day": {"calls": -1}},
        {"day": {"calls": 1.5}},
        {"day": {"calls": True}},
        {"day": {"tokens": 10**400}},
        {"episode": {"tokens": "many"}},
        {"namespace": {"money": float("nan")}, **PRICES},
        {"namespace": {"money": float("inf")}, **PRICES},
        {"namespace": {"money": -0.01}, **PRICES},
        {"namespace": Limits(money=5.0)},
        {"namespace": Limits(money=5.0), "input_price": 1.0},
        {"namespace_days": 0},
        {"input_price": -1.0},
        {"cached_price": float("nan")},
        {"day": 5},
        {"day": None},
    ],
)
def test_a_budget_that_cannot_be_kept_is_refused_with_what_to_do(given: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=r"must|set"):
        Budget(**given)


def test_limits_are_true_where_anything_is_limited_be_it_to_nothing() -> None:
    assert not Limits()
    assert Limits(calls=0)
    assert not Budget(input_price=1.0)
    assert Budget(day=Limits(tokens=0))


def test_settings_take_only_a_budget() -> None:
    with pytest.raises(SettingsError, match="budget must be a dictionary or an instance of Budget, got 5"):
        Settings(budget=5)  # type: ignore[arg-type]


def test_every_limit_and_price_can_be_set_from_the_environment() -> None:
    names = [
        f"{scope}_{measure}" for scope in ("EPISODE", "DAY", "NAMESPACE") for measure in ("CALLS", "TOKENS", "MONEY")
    ]
    names += ["NAMESPACE_DAYS", "INPUT_PRICE", "OUTPUT_PRICE", "CACHED_PRICE"]
    budget = Settings.from_env({f"KG_MEMORY_BUDGET_{name}": str(n) for n, name in enumerate(names, 1)}).budget
    assert budget == Budget(
        episode=Limits(1, 2, 3.0), day=Limits(4, 5, 6.0), namespace=Limits(7, 8, 9.0), namespace_days=10,
        input_price=11.0, output_price=12.0, cached_price=13.0,
    )  # fmt: skip
    assert not Settings.from_env({}).budget


@pytest.mark.parametrize("name", ["KG_MEMORY_BUDGET", "KG_MEMORY_BUDGET_DAILY_MONEY", "KG_MEMORY_BUDGET_DAY"])
def test_a_limit_that_is_misspelt_is_told_instead_of_not_kept(name: str) -> None:
    with pytest.raises(SettingsError, match=rf"{name} is not a setting: use one of .*KG_MEMORY_BUDGET_DAY_MONEY"):
        Settings.from_env({name: "5"})


def test_a_variable_that_is_no_number_is_named() -> None:
    with pytest.raises(SettingsError, match=r"KG_MEMORY_BUDGET_DAY_CALLS must be a valid integer.*got 'ten'"):
        Settings.from_env({"KG_MEMORY_BUDGET_DAY_CALLS": "ten"})


def test_money_is_counted_by_the_prices_and_cached_tokens_by_theirs() -> None:
    usage = Usage(calls=1, input_tokens=2_000_000, output_tokens=1_000_000, cached_tokens=1_000_000)
    assert Budget(**PRICES).money(usage) == 2.0 + 10.0
    assert Budget(**PRICES, cached_price=0.25).money(usage) == 1.0 + 0.25 + 10.0
    assert Budget(input_price=1.0).money(usage) is None


def test_each_rung_keeps_more_than_the_one_before_it_and_every_prompt_stands_on_one() -> None:
    shares = [rung.share for rung in LADDER]
    assert shares == sorted(set(shares))
    stored = {item.name for item in ALL}
    assert {name for rung in LADDER for name in rung.prompts} <= stored
    assert {"read", "facts", "read_window"} <= {name for name in stored if rung_of(name) is READING}


def test_what_is_left_to_rules_is_what_rules_can_answer() -> None:
    empty: dict[str, Any] = {"facts": [], "entities": [], "predicates": [], "missed": []}
    for rung in BY_RULES:
        parts = [item for item in vars(prompts).values() if isinstance(item, Prompt) and item.name in rung.prompts]
        for prompt in parts:
            assert isinstance(OfflineModel().answer(Ask(prompt, empty)), prompt.answer)


def test_an_error_of_a_budget_survives_being_sent_to_another_process() -> None:
    error = pickle.loads(pickle.dumps(BudgetSpent("spent: raise it", "day")))
    assert (str(error), error.scope) == ("spent: raise it", "day")

"""Budgets as values: refused limits, environment variables, and the ladder."""

import pickle
from typing import Any

import pytest

from kg_memory import Budget, Limits, Settings, Usage
from kg_memory.contrib.offline import OfflineModel
from kg_memory.errors import BudgetSpent, SettingsError
from kg_memory.llm import prompts
from kg_memory.models.budget import BY_RULES, LADDER, READING, rung_of
from kg_memory.runtime.effects import Ask, PromptTemplate
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
def test_budget_refuses_invalid_limits_and_prices(given):
    with pytest.raises(SettingsError, match=r"must|set"):
        Budget(**given)


def test_limits_are_truthy_if_any_limit_is_set():
    """A limit of zero counts as set."""
    assert not Limits()
    assert Limits(calls=0)
    assert not Budget(input_price=1.0)
    assert Budget(day=Limits(tokens=0))


def test_settings_read_all_limits_and_prices_from_environment():
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
def test_settings_refuse_misspelt_budget_variables(name):
    with pytest.raises(SettingsError, match=rf"{name} is not a setting: use one of .*KG_MEMORY_BUDGET_DAY_MONEY"):
        Settings.from_env({name: "5"})


def test_settings_refuse_budget_of_another_type():
    with pytest.raises(SettingsError, match="budget must be a dictionary or an instance of Budget, got 5"):
        Settings(budget=5)  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match=r"KG_MEMORY_BUDGET_DAY_CALLS must be a valid integer.*got 'ten'"):
        Settings.from_env({"KG_MEMORY_BUDGET_DAY_CALLS": "ten"})


def test_budget_money_counts_cached_tokens_by_their_price():
    usage = Usage(calls=1, input_tokens=2_000_000, output_tokens=1_000_000, cached_tokens=1_000_000)
    assert Budget(**PRICES).money(usage) == 2.0 + 10.0
    assert Budget(**PRICES, cached_price=0.25).money(usage) == 1.0 + 0.25 + 10.0
    assert Budget(input_price=1.0).money(usage) is None


def test_ladder_shares_ascend_and_rungs_name_existing_prompts():
    shares = [rung.share for rung in LADDER]
    assert shares == sorted(set(shares))
    stored = {item.name for item in ALL}
    assert {name for rung in LADDER for name in rung.prompts} <= stored
    assert {"read", "facts", "read_window"} <= {name for name in stored if rung_of(name) is READING}


def test_offline_model_answers_all_prompts_left_to_rules():
    empty: dict[str, Any] = {"facts": [], "entities": [], "predicates": [], "missed": []}
    for rung in BY_RULES:
        parts = [one for one in vars(prompts).values() if isinstance(one, PromptTemplate) and one.name in rung.prompts]
        for prompt in parts:
            assert isinstance(OfflineModel().answer(Ask(prompt, empty)), prompt.answer)


def test_budget_spent_error_can_be_pickled():
    error = pickle.loads(pickle.dumps(BudgetSpent("spent: raise it", "day")))
    assert (str(error), error.scope) == ("spent: raise it", "day")

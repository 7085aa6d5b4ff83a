"""The limits of an episode, a day and a namespace are checked before each call, on a real FalkorDB."""

import asyncio
from typing import Any

import pytest

from kg_memory import Budget, EpisodeStatus, GraphMemory, Limits, Settings
from kg_memory.errors import BudgetSpent
from kg_memory.models.budget import DAY
from kg_memory.runtime.flow import SIDE_BY_SIDE
from tests.chat_server import chat_server
from tests.children import ends_well_in_a_child
from tests.paid import AT, NOON, PRICES, Open, Paid, calls_of, opened_memories, paid_model  # noqa: F401 - fixtures
from tests.scripted import HashEmbeddings, stated


@pytest.mark.parametrize("scope", ["episode", "day", "namespace"])
@pytest.mark.parametrize("limits", [Limits(calls=0), Limits(tokens=1_000), Limits(money=0.001)], ids=str)
def test_spent_budget_prevents_call_and_episode_waits(opened, paid, namespace, scope, limits):
    memory = opened(Budget(**{scope: limits}, **PRICES))
    with pytest.raises(
        BudgetSpent, match=r"the budget of .* is spent .*: raise KG_MEMORY_BUDGET_\w+, .*memory\.episodes\.resume"
    ):
        memory.add("I moved to Oslo.", speaker="Ann", at=AT, namespace=namespace)
    assert paid.count() == 0
    [episode] = memory.episodes.list(namespace=namespace)
    assert (episode.status, episode.step) == (EpisodeStatus.WAITING, "extract")
    assert "is spent" in (episode.reason or "")
    assert [item.content for item in memory.search("Oslo", namespace=namespace).episodes] == ["I moved to Oslo."]


def test_greeting_is_added_without_budget(opened, namespace):
    added = opened(calls_of(0)).add("Thanks!", speaker="Ann", at=AT, namespace=namespace)
    assert added.status is EpisodeStatus.SKIPPED


def test_add_many_over_budget_leaves_the_rest_waiting(opened, paid, namespace):
    memory = opened(calls_of(3))
    messages = [
        {"content": f"I know {name}.", "speaker": "Ann", "at": AT} for name in ("Bob", "Cy", "Dan", "Eve", "Fay")
    ]
    added = memory.add_many(messages, namespace=namespace)
    assert sorted(item.status for item in added) == ["done"] * 3 + ["waiting"] * 2
    assert sum("budget of the day" in (item.error or "") for item in added) == 2
    assert paid.count() == 3
    assert [item.status for item in memory.episodes.resume(namespace=namespace)] == ["waiting"] * 2
    assert paid.count() == 3


async def test_budget_holds_for_parallel_adds(opened, paid, namespace):
    memory = opened(calls_of(5))
    additions = (memory.aadd(f"I know Bob{n}.", speaker="Ann", at=AT, namespace=namespace) for n in range(30))
    results = await asyncio.gather(*additions, return_exceptions=True)
    requests = paid.count()
    assert 0 < requests < 5 + SIDE_BY_SIDE  # each parallel call may exceed the budget by one
    assert sum(isinstance(result, BudgetSpent) for result in results) == 30 - requests
    stats = await memory.astats(namespace=namespace)
    assert (stats.episodes, stats.waiting) == (30, 30 - requests)
    await opened(calls_of(5)).episodes.aresume(namespace=namespace)
    assert paid.count() == max(requests, 5)
    stats = await memory.astats(namespace=namespace)
    assert (stats.episodes, stats.waiting) == (30, 30 - paid.count())


def test_day_budget_renews_at_midnight_in_open_memory(opened, namespace):
    memory = opened(calls_of(1))
    now = [NOON]

    def clock() -> int:
        now[0] += 1
        return now[0]

    memory.driver.clock = clock
    memory.add("I know Bob.", speaker="Ann", at=AT, namespace=namespace)
    with pytest.raises(BudgetSpent, match="tomorrow"):
        memory.add("I know Cy.", speaker="Ann", at=AT, namespace=namespace)
    now[0] += DAY
    assert [item.status for item in memory.episodes.resume(namespace=namespace)] == ["done"]


def test_namespace_budget_counts_all_days_or_namespace_days(opened, namespace):
    opened().add("I know Bob.", speaker="Ann", at=AT, namespace=namespace)
    later = NOON + 7 * DAY
    with pytest.raises(BudgetSpent, match="the namespace"):
        opened(calls_of(1, "namespace"), at=later).add("I know Cy.", speaker="Ann", at=AT, namespace=namespace)
    week = Budget(namespace=Limits(calls=1), namespace_days=8)
    with pytest.raises(BudgetSpent):
        opened(week, at=later).add("I know Cy.", speaker="Ann", at=AT, namespace=namespace)
    days = Budget(namespace=Limits(calls=1), namespace_days=7)
    assert opened(days, at=later).episodes.resume(namespace=namespace)[0].status is EpisodeStatus.DONE


def test_namespaces_have_separate_budgets(opened, namespace):
    memory = opened(calls_of(1))
    for name in ("one", "other"):
        assert memory.add("I know Bob.", speaker="Ann", at=AT, namespace=f"{namespace} {name}").status == "done"


def test_budget_counts_spending_of_other_processes(opened, paid, namespace):
    def work() -> bool:
        return opened().add("I know Bob.", speaker="Ann", at=AT, namespace=namespace).usage.calls == 1

    assert ends_well_in_a_child(work)
    with pytest.raises(BudgetSpent, match="1 of 1 calls"):
        opened(calls_of(1), at=NOON + 100_000).add("I know Cy.", speaker="Ann", at=AT, namespace=namespace)
    assert paid.count() == 0


def test_offline_model_needs_no_budget(server, namespace):
    with GraphMemory(Settings(url=server.url), model="offline", embeddings="offline", budget=calls_of(0)) as memory:
        assert memory.add("I moved to Oslo.", speaker="Ann", namespace=namespace).facts


def test_resume_after_budget_is_raised_repeats_no_paid_call(opened, paid, namespace):
    text = {"content": " ".join(f"I know Bob{n}." for n in range(400)), "kind": "text", "speaker": "Ann", "at": AT}
    [added] = opened(calls_of(2), chunk_size=200).add_many([text], namespace=namespace)
    assert added.status is EpisodeStatus.WAITING
    paid_first = paid.count()
    assert 2 <= paid_first < 2 + SIDE_BY_SIDE
    [added] = opened(calls_of(100), chunk_size=200).episodes.resume(namespace=namespace)
    assert added.status is EpisodeStatus.DONE
    pieces = [item["episode"]["content"] for item in paid.asks("read")]
    assert sorted(set(pieces)) == sorted(pieces)  # no paid call is repeated
    assert added.usage.calls == paid.count() - paid_first


# A long episode


def test_episode_budget_limits_calls_of_one_episode(opened, paid, namespace):
    memory = opened(calls_of(5, "episode"), chunk_size=200)
    paid.rules["facts"] = _long_facts
    added = memory.add("I know Bob, Cy and Dan. " * 40, kind="text", speaker="Ann", at=AT, namespace=namespace)
    assert added.usage.calls == paid.count() == 5
    assert added.usage.given_up


# Bad answers


def test_bad_answer_is_not_repaired_if_budget_is_spent(server, namespace):
    requests: list[str] = []
    with chat_server(lambda name, _: requests.append(name) or "no JSON") as url:
        settings = Settings(
            url=server.url, model="m", base_url=url, merge_threshold=0.98, ask_threshold=0.6, min_support=0
        )
        with GraphMemory(settings, embeddings=HashEmbeddings(), budget=calls_of(2)) as memory:
            with pytest.raises(BudgetSpent, match="2 of 2 calls"):
                memory.add("I know Bob.", speaker="Ann", at=AT, namespace=namespace)
            assert requests == ["EpisodeReading"] * 2
            assert memory.episodes.list(namespace=namespace)[0].status is EpisodeStatus.WAITING


# The ladder


def _long_facts(fields: Any) -> Any:
    """Return facts of the first entity that are too long for a summary without a model."""
    first, *others = fields["entities"]
    again = "again " * 40
    said = [(item["id"], f"{first['name']} lives in {item['name']} {again}") for item in others]
    return {"facts": [stated(first["id"], "lives in", [place], sentence) for place, sentence in said]}


def spend(memory: GraphMemory, namespace: str, calls: int) -> None:
    """Store that *calls* calls were made on the day of the memory."""
    memory.add("Thanks!", speaker="Ann", at=AT, namespace=namespace)
    query = "MERGE (s:Spent {day: $day}) SET s.calls = $calls"
    key = memory.driver.key(namespace)
    memory.driver.store.database.query(key, query, {"day": NOON // DAY, "calls": calls}, write=True)


@pytest.mark.parametrize(
    ("spent", "given_up"),
    [
        (0, ()),
        (800, ("summaries",)),
        (850, ("summaries", "reflections")),
        (900, ("summaries", "thorough")),
        (950, ("summaries", "thorough", "judgement")),
    ],
)
def test_budget_gives_up_least_important_prompts_first(opened, paid, namespace, spent, given_up):
    opened(plan="thorough").add("I moved to Oslo.", speaker="Ann", at="2024-01-01", namespace=namespace)
    memory = opened(calls_of(1_000), plan="thorough")
    spend(memory, namespace, spent)
    paid.asked.clear()
    paid.rules["facts"] = _long_facts
    message = "I know Bob, Cy and Dan and live in Oslo and Paris."
    added = memory.add(message, speaker="Ann", at=AT, namespace=namespace)
    assert added.status is EpisodeStatus.DONE
    assert added.facts
    assert sorted(added.usage.given_up) == sorted(given_up)
    requests = {item.prompt.name for item in paid.asked}
    assert ("summarise" in requests) == ("summaries" not in given_up)
    assert ("reflect" in requests) == (spent < 850)
    assert ("facts" in requests) == (spent < 900)
    assert ("read" in requests) == (spent >= 900)
    assert ("judge" in requests) == (spent < 950)
    assert memory.entities.list(namespace=namespace, like="Ann")[0].summary
    plan = "standard" if "thorough" in given_up else "thorough"
    assert memory.episodes.list(namespace=namespace)[0].plan == plan


def test_facts_are_judged_by_rules_if_budget_is_short(opened, paid, namespace):
    opened().add("I live in Oslo.", speaker="Ann", at="2024-01-01", namespace=namespace)
    memory = opened(calls_of(1_000))
    spend(memory, namespace, 960)
    added = memory.add("I live in Paris.", speaker="Ann", at="2024-02-01", namespace=namespace)
    assert "judgement" in added.usage.given_up
    assert not paid.asks("judge")
    assert added.ended == ("Ann lives in Oslo",)


def test_communities_are_summarised_by_facts_until_budget_allows(opened, paid, namespace):
    opened().add("I know Bob and Cy.", speaker="Ann", at=AT, namespace=namespace)
    poor = opened(calls_of(1))
    poor.communities.refresh(namespace=namespace)
    assert not paid.asks("community")
    [community] = poor.communities.list(namespace=namespace)
    assert "Ann knows" in community.summary
    opened(calls_of(100)).communities.refresh(namespace=namespace)
    assert len(paid.asks("community")) == 1


def test_resume_refreshes_summaries_within_budget(opened, paid, namespace):
    paid.rules["facts"] = _long_facts
    memory = opened(calls_of(3))
    memory.add("I know Bob, Cy and Dan.", speaker="Ann", at=AT, namespace=namespace)
    count = paid.count()
    memory.episodes.resume(namespace=namespace)
    assert count == paid.count() <= 3

"""Homes and jobs by the offline model: single-valued facts do not overlap, unless both have stated dates."""

from itertools import combinations, permutations

import pytest

from kg_memory.memory.memory import GraphMemory
from kg_memory.models.graph import Fact
from kg_memory.settings import Settings
from kg_memory.text.dated import period_in_figures

MOVES = (
    ("2021-03-01", "I used to live in Bergen."),
    ("2022-05-01", "I moved to Kyoto."),
    ("2024-07-01", "I moved from Oslo to Kyoto."),
)
LEFT_ROME = (("2024-01-10", "I live in Oslo."), ("2025-07-01", "I left Rome on 20 June 2025."))
LEFT_TAP = (("2025-03-02", "I work at Iberia."), ("2025-06-01", "I quit TAP yesterday."))
SINCE = (("2023-01-10", "I live in Oslo."), ("2023-08-01", "I have lived in Rome since 2020."))
NEWS = (
    ("2024-05-14T09:00", "I live in Oslo."),
    ("2024-05-14T10:00", "I live in Oslo."),
    ("2024-05-14T11:00", "I moved to Bergen last week."),
)


@pytest.fixture
def memory(server, embeddings):
    with GraphMemory(Settings(url=server.url), model="offline", embeddings=embeddings) as memory:
        yield memory


def read_in_every_order(memory, namespace, messages):
    """Add *messages* in every order, assert that the periods are the same, and return them."""
    found = []
    for number, order in enumerate(permutations(messages)):
        for at, content in order:
            memory.add(content, speaker="Ann", at=at, namespace=f"{namespace} {number}")
        facts = memory.facts.history("Ann", namespace=f"{namespace} {number}")
        assert not any(overlap(*pair) for pair in combinations(facts, 2))
        found.append({(fact.sentence, day(fact.known_from), day(fact.invalid_at)) for fact in facts})
    assert found.count(found[0]) == len(found)
    return found[0]


def overlap(one: Fact, another: Fact) -> bool:
    return one.predicate == another.predicate and (
        (another.invalid_at is None or one.known_from is None or one.known_from < another.invalid_at)
        and (one.invalid_at is None or another.known_from is None or another.known_from < one.invalid_at)
    )


def day(moment) -> str:
    return "" if moment is None else str(moment.date())


def test_homes_do_not_overlap_in_any_order(memory, namespace):
    assert read_in_every_order(memory, namespace, MOVES) == {
        ("Ann lived in Bergen", "", "2021-03-01"),
        ("Ann lived in Oslo", "2021-03-01", "2022-05-01"),
        ("Ann lives in Kyoto", "2022-05-01", ""),
    }
    [oslo] = memory.facts.about("Oslo", as_of="2022", namespace=f"{namespace} 0")
    assert period_in_figures(oslo) == "date unknown - by 2022-05", "nobody said when it began"


def test_stated_end_is_not_overruled_by_an_unstated_start(memory, namespace):
    assert read_in_every_order(memory, namespace, LEFT_ROME) == {
        ("Ann lived in Rome", "", "2025-06-20"),
        ("Ann lives in Oslo", "2025-06-20", ""),
    }
    assert read_in_every_order(memory, f"{namespace} jobs", LEFT_TAP) == {
        ("Ann worked at TAP", "", "2025-05-31"),
        ("Ann works at Iberia", "2025-05-31", ""),
    }


def test_home_since_a_past_year_holds_when_it_is_stated(memory, namespace):
    assert read_in_every_order(memory, namespace, SINCE) == {
        ("Ann lives in Rome", "2020-01-01", "2023-01-10"),
        ("Ann lives in Oslo", "2023-01-10", "2023-08-01"),
        ("Ann lives in Rome", "2023-08-01", ""),
    }
    [home] = memory.facts.about("Rome", as_of="2024", namespace=f"{namespace} 0")
    assert [source.quote for source in home.sources] == [SINCE[1][1]]


def test_later_statement_of_a_change_overrules_present_tense(memory, namespace):
    assert read_in_every_order(memory, namespace, NEWS) == {
        ("Ann lives in Oslo", "2024-05-06", "2024-05-06"),
        ("Ann lives in Bergen", "2024-05-06", ""),
    }
    bergen, oslo = memory.facts.history("Ann", "lives in", namespace=f"{namespace} 0")
    assert (bergen.supersedes, oslo.superseded_by) == ((oslo.id,), (bergen.id,))
    assert [str(source.at)[:16] for source in oslo.sources] == ["2024-05-14 09:00", "2024-05-14 10:00"]


@pytest.mark.parametrize("correction", ["Actually I joined Acme in April, not March.", "Oops, I joined Acme in April."])
def test_a_start_is_corrected_to_the_next_month(memory, namespace, correction):
    memory.add("I joined Acme in March.", speaker="Ann", at="2024-07-10", namespace=namespace)
    memory.add(correction, speaker="Ann", at="2024-07-11", namespace=namespace)
    [fact] = memory.facts.about("Ann", namespace=namespace)
    assert (day(fact.valid_at), fact.precision) == ("2024-04-01", "month")
    assert [source.quote for source in fact.sources] == [correction]


def test_stated_start_before_a_stated_end_is_disputed(memory, namespace):
    memory.add("I joined Iberia on 1 March 2025.", speaker="Ann", at="2025-03-02", namespace=namespace)
    memory.add("I quit TAP yesterday.", speaker="Ann", at="2025-06-01", namespace=namespace)
    tap, iberia = sorted(memory.facts.history("Ann", "works at", namespace=namespace), key=lambda fact: fact.sentence)
    assert (day(iberia.valid_at), day(tap.invalid_at)) == ("2025-03-01", "2025-05-31")
    assert (iberia.disputed_by, tap.disputed_by) == ((tap.id,), (iberia.id,))
    assert "disputed" in memory.context("Where does Ann work?", namespace=namespace)
    memory.add("I left TAP on 20 February 2025.", speaker="Ann", at="2025-06-02", namespace=namespace)
    facts = memory.facts.history("Ann", "works at", namespace=namespace)
    assert [fact.disputed_by for fact in facts] == [(), ()]

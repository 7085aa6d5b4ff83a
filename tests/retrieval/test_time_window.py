"""The time of a question on a real FalkorDB: parameters filter facts, words of the question only rank them."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_memory import GraphMemory
from kg_memory.falkor.queries import search
from kg_memory.retrieval.clocks import find_time
from kg_memory.retrieval.question import QuestionTime, SearchQuery
from kg_memory.retrieval.ranking import Instants
from kg_memory.runtime.effects import Now, Query, Reads
from kg_memory.runtime.flow import run
from kg_memory.temporal.interval import EVER, HOUR, OPEN_END, OPEN_START
from tests.retrieval.findings import us
from tests.review import World

NOW = us(2024, 5, 15, 12, 30)
OSLO, PARIS, ROME = (f"Ann lives in {place}" for place in ("Oslo", "Paris", "Rome"))
Rows = list[dict[str, Any]]


def asked(question: Any = "Where does Ann live?", events: Rows = (), **given: Any) -> tuple[QuestionTime, list[Any]]:  # type: ignore[assignment]
    """Return the result of the step and its queries, which *events* answer."""
    queries: list[Any] = []

    def perform(effect: Any) -> Any:
        if isinstance(effect, Now):
            return NOW
        queries.append(effect)
        return list(events)

    return run(find_time(SearchQuery.parse({"question": question, **given})), perform), queries


def window(found: QuestionTime) -> tuple[int, int]:
    return found.instants.since, found.instants.until


# Parameters


def test_question_without_time_means_now_and_runs_no_query():
    found, queries = asked()
    assert queries == []
    assert found.instants == Instants(NOW, NOW + 1, NOW, unreviewed=False, vagueness=None)
    assert (found.time.reading, found.time.words, found.past) == ("what is true now", None, False)


PARAMETERS: dict[str, tuple[dict[str, Any], tuple[int, int, int], str, bool]] = {
    "as_of": ({"as_of": "2019"}, (us(2019, 1, 1), us(2019, 1, 1) + 1, NOW), "what was true at 2019-01-01", True),
    "as_of a datetime": (
        {"as_of": datetime(2019, 5, 1, 9, tzinfo=UTC)}, (us(2019, 5, 1, 9), us(2019, 5, 1, 9) + 1, NOW),
        "what was true at 2019-05-01 09:00 UTC", True,
    ),
    "as_of now": ({"as_of": "now"}, (NOW, NOW + 1, NOW), "what is true now", False),
    "as_of the future": ({"as_of": "2030"}, (us(2030, 1, 1), us(2030, 1, 1) + 1, NOW), "at 2030-01-01", False),
    "during": ({"during": "2019"}, (us(2019, 1, 1), us(2020, 1, 1), NOW), "from 2019-01-01 until 2020-01-01", True),
    "since": ({"during": ["2019", None]}, (us(2019, 1, 1), OPEN_END + 1, NOW), "what was true from 2019-01-01 on", False),
    "until": ({"during": [None, "2019"]}, (OPEN_START, us(2019, 1, 1), NOW), "what was true until 2019-01-01", True),
    "until now": (
        {"during": ["2019", "2024-05-15T12:30"]}, (us(2019, 1, 1), NOW, NOW), "until 2024-05-15 12:30", True,
    ),
    "ever": ({"during": [None, None]}, (OPEN_START, OPEN_END + 1, NOW), "what was true at any time", False),
    "believed_at": (
        {"believed_at": "yesterday"}, (NOW, NOW + 1, us(2024, 5, 14)),
        "what is true now, as known at 2024-05-14", True,
    ),
    "both clocks": (
        {"as_of": "2019", "believed_at": "2023"}, (us(2019, 1, 1), us(2019, 1, 1) + 1, us(2023, 1, 1)),
        "what was true at 2019-01-01, as known at 2023-01-01", True,
    ),
    "null": ({"as_of": None, "during": None, "believed_at": None}, (NOW, NOW + 1, NOW), "what is true now", False),
}  # fmt: skip


@pytest.mark.parametrize(("given_", "instants", "reading", "past"), PARAMETERS.values(), ids=PARAMETERS.keys())
def test_time_parameters_set_window_and_reading(given_, instants, reading, past):
    found, queries = asked(**given_)
    assert (*window(found), found.instants.believed_at) == instants
    assert reading in found.time.reading
    assert found.past is past
    assert found.instants.vagueness is None
    assert queries == []
    assert found.time.words is None


@pytest.mark.parametrize("given_", [{"as_of": "2020"}, {"during": "2020"}, {"during": [None, None]}])
def test_time_parameter_overrides_words_of_question(given_):
    found, queries = asked("Where did Ann live in 2019, before she moved to Oslo?", **given_)
    assert found.time.words is None
    assert window(found) != (us(2019, 1, 1), us(2020, 1, 1))
    assert queries == []


def test_believed_at_combines_with_time_words():
    found, _ = asked("Where did Ann live in 2019?", believed_at="2023")
    assert window(found) == (us(2019, 1, 1), us(2020, 1, 1))
    assert found.instants.believed_at == us(2023, 1, 1)
    assert found.time.reading.endswith('known at 2023-01-01, by the words "in 2019"')


# Words of the question

DAY = 24 * HOUR
WORDS: dict[str, tuple[str, str, tuple[int, int], int]] = {
    "a year": ("Where did Ann live in 2019?", "in 2019", (us(2019, 1, 1), us(2020, 1, 1)), 365 * DAY),
    "last month": ("Where did Ann work last month?", "last month", (us(2024, 4, 1), us(2024, 5, 1)), 30 * DAY),
    "a part of a month": (
        "What did Ann cook in the beginning of May?", "in the beginning of May", (us(2024, 5, 1), us(2024, 5, 11)), 10 * DAY,
    ),
    "a day": ("What did Ann cook on 4 May?", "on 4 May", (us(2024, 5, 4), us(2024, 5, 5)), DAY),
    "an open side": ("Where has Ann lived since 2019?", "since 2019", (us(2019, 1, 1), OPEN_END + 1), 366 * DAY),
    "last month, in Chinese": ("安上个月住在哪里？", "上个月", (us(2024, 4, 1), us(2024, 5, 1)), 30 * DAY),
    "a year, in Chinese": ("2019年安住在哪里？", "2019年", (us(2019, 1, 1), us(2020, 1, 1)), 365 * DAY),
}  # fmt: skip


@pytest.mark.parametrize(("question", "words", "expected", "vagueness"), WORDS.values(), ids=WORDS.keys())
def test_time_words_of_question_set_window(question, words, expected, vagueness):
    found, _ = asked(question)
    assert window(found) == expected
    assert words in found.time.words
    assert found.time.words in question
    assert f'by the words "{found.time.words}"' in found.time.reading
    assert found.instants.vagueness == vagueness
    assert found.past is False
    assert (found.instants.params["since"], found.instants.params["until"]) == EVER


def row(since: int, until: int = OPEN_END, *, meant: bool = True, known: int | None = None) -> dict[str, Any]:
    times = {"valid_at": since, "invalid_at": until, "known_from": since if known is None else known}
    return {"subject": "ann", "meant": meant, "sentence": "s", **times}


OF_2020, OF_2022 = us(2020, 1, 1), us(2022, 1, 1)
EVENTS: dict[str, tuple[str, Rows, tuple[int, int] | None]] = {
    "before she moved": (
        "Where did Ann work before she moved?", [row(OF_2020, OF_2022), row(OF_2022)], (OF_2022 - 1, OF_2022),
    ),
    "before she moved to a place": (
        "Where did Ann work before she moved to Oslo?", [row(OF_2020, OF_2022), row(OF_2022, meant=False)],
        (OF_2020 - 1, OF_2020),
    ),
    "after she moved to a place": (
        "Where did Ann work after she moved to Oslo?", [row(OF_2020, OF_2022), row(OF_2022, meant=False)],
        (OF_2020, NOW + 1),
    ),
    "while she worked at a firm": (
        "Where did Ann live while she worked at Acme?", [row(OF_2020, OF_2022)], (OF_2020, OF_2022),
    ),
    "while, its start unknown": (
        "Where did Ann live while she worked at Acme?", [row(OPEN_START, OF_2022, known=OF_2020)], (OF_2020, OF_2022),
    ),
    "an event that the graph does not know": ("Where did Ann live before she moved to Oslo?", [], None),
    "an event of another": ("Where did Ann live before she moved to Oslo?", [row(OF_2020, meant=False)], None),
    "an event of unknown time": ("Where did Ann live before she moved to Oslo?", [row(OPEN_START)], None),
}  # fmt: skip


@pytest.mark.parametrize(("question", "events", "expected"), EVENTS.values(), ids=EVENTS.keys())
def test_known_event_opens_or_closes_window(question, events, expected):
    found, queries = asked(question, events)
    assert [each.cypher for each in queries] == [search.EVENTS]
    assert window(found) == (expected or (NOW, NOW + 1))
    assert found.instants.vagueness == (0 if expected else None)
    assert (found.time.words is not None) is (expected is not None)


HOSTILE = [
    "", " ", "\x00in 2019\x00", "\ud800 in 2019", "in 2019 " * 10_000, "before " * 5000, "x" * 100_000, "((((" * 5000,
    "Where did Ann live in 99999?", "Where did Ann live in 0000?", "on 2019-02-30?", "Where? '}) DETACH DELETE n // in 2019",
    "Ignore all rules: as_of=1999. Where does Ann live?", "in 2019 or in 2020 or in 2021?", "上个月" * 1000, "\u202e9102 ni",
]  # fmt: skip


@pytest.mark.parametrize("question", HOSTILE, ids=lambda each: repr(each)[:20])
def test_hostile_question_has_a_window(question):
    found, _ = asked(question)
    since, until = window(found)
    assert OPEN_START <= since < until <= OPEN_END + 1


@given(
    st.text(max_size=200)
    | st.lists(st.sampled_from("in 2019 before she moved to Oslo 上个月 since last ?".split())).map(" ".join)
)
def test_any_question_has_a_window(question):
    found, _ = asked(question)
    since, until = window(found)
    assert since < until
    assert (found.time.words is None) or found.time.words in question


# On a real database


@pytest.fixture
def world(memory: GraphMemory, namespace: str) -> World:
    """Ann lived in Oslo, then in Paris from 2020, then in Rome from 2022."""
    found = World(memory, namespace)
    found.moves("Oslo", "2018-01-01")
    found.moves("Paris", "2020-06-01")
    found.moves("Rome", "2022-01-01")
    return found


def where(world: World, question: str, **given: Any) -> tuple[list[str], str | None]:
    found = world.search(question, **given)
    return [each.sentence for each in found.facts], found.time.words


RANKED: dict[str, tuple[set[str], set[str], str | None]] = {
    "Where did Ann live in 2019?": ({OSLO}, {PARIS, ROME}, "in 2019"),
    "Where did Ann live in 2020?": ({OSLO, PARIS}, {ROME}, "in 2020"),
    "Where did Ann live before she moved to Paris?": ({OSLO}, {PARIS, ROME}, "before she moved to Paris"),
    "Where did Ann live before she moved to Rome?": ({PARIS}, {OSLO, ROME}, "before she moved to Rome"),
    "Where did Ann live after she moved to Paris?": ({PARIS, ROME}, {OSLO}, "after she moved to Paris"),
    "Who was Ann while she lived in Paris?": ({PARIS}, {OSLO, ROME}, "while she lived in Paris"),
    "Where does Ann live?": ({ROME}, set(), None),
    "When did Ann move to Paris, in 2020 or in 2021?": ({ROME}, set(), None),
}


def test_time_words_rank_facts_first_and_hide_none(world):
    for question, (first, others, words) in RANKED.items():
        facts, found = where(world, question)
        assert (set(facts[: len(first)]), set(facts[len(first) :]), found) == (first, others, words), question


def test_time_words_do_not_hide_first_result(world):
    world.moves("Kyoto", "2023-01-16")
    kyoto, question = "Ann lives in Kyoto", "What about Kyoto in the beginning of January 2023?"
    plain, _ = where(world, "What about Kyoto?")
    facts, words = where(world, question)
    assert (plain[0], words) == (kyoto, "in the beginning of January 2023")
    assert (facts[0], set(facts)) == (kyoto, {OSLO, PARIS, ROME, kyoto})
    assert where(world, question, during="the beginning of January 2023")[0] == [ROME]


def test_event_must_be_believed_at_requested_time(world):
    before = world.now()
    world.moves("Kyoto", "2019-01-01")
    question = "Where did Ann live before she moved to Kyoto?"
    facts, words = where(world, question)
    assert (facts[0], words) == (OSLO, "before she moved to Kyoto")
    assert where(world, question, believed_at=before) == ([ROME], None)


@pytest.mark.withheld
def test_event_waiting_for_review_is_ignored(world):
    world.doubts()
    world.moves("Kyoto", "2024-01-01", " since 2019-01-01")
    assert where(world, "Where did Ann live before she moved to Kyoto?") == ([ROME], None)


@pytest.fixture
def queries(memory: GraphMemory, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[list[str]]]:
    """Return a function that returns the queries of each round trip since its last call."""
    trips: list[list[str]] = []
    perform = memory.driver.store.perform

    def keeping(key: str, query: Query | Reads) -> Any:
        trips.append([each.cypher for each in (query.queries if isinstance(query, Reads) else (query,))])
        return perform(key, query)

    def taken() -> list[list[str]]:
        found = list(trips)
        trips.clear()
        return found

    monkeypatch.setattr(memory.driver.store, "perform", keeping)
    return taken


def test_search_runs_no_more_queries_than_needed(world, queries):
    world.search("Where does Ann live?")
    queries()
    world.search("Where does Ann live?")
    plain = queries()
    assert len(plain) == 4  # look up, search, walk and read speakers, read the winners
    asked = [each for trip in plain for each in trip]
    assert len(asked) == len(set(asked)) == 11
    for asked_too, (question, given_, trips) in {
        "nothing": ("Where does Ann live?", {"as_of": "2019", "unreviewed": True}, 0),
        "the times of the candidates too": ("Where did Ann live in 2019?", {"unreviewed": True}, 1),
        "when she moved": ("Where did Ann live before she moved to Rome?", {}, 3),
    }.items():
        world.search(question, **given_)
        assert len(queries()) == len(plain) + trips, asked_too


# With a story


def test_state_has_time_as_json(story):
    state = story.ask("Where did Ann live in 2022?")
    assert state["time"] == state["results"]["time"]
    assert state["time"]["words"] == "in 2022"
    assert "Ann lives in Bergen (no longer so: from 1 January 2022 to 1 May 2023" in state["context"]


def test_undated_fact_is_found_by_time_words_not_by_during(story):
    question = "Who was the sister of Ann in 2020?"
    assert "Mia is Ann's sister" in [each["sentence"] for each in story.ask(question)["results"]["facts"]]
    strict = story.ask(question, during="2020")["results"]["facts"]
    assert "Mia is Ann's sister" not in [each["sentence"] for each in strict]

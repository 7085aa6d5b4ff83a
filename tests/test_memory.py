"""`GraphMemory`: every verb, sync and async, on a real server with a scripted model."""

import asyncio
import inspect
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any

import pytest

from kg_memory import EpisodeInput, GraphMemory, Settings
from kg_memory.contrib import embedded
from kg_memory.contrib.embedded import binaries
from kg_memory.errors import DatabaseClosed, InputError
from kg_memory.memory._verb import Group
from kg_memory.memory.facts import Facts
from kg_memory.memory.reviews import Reviews
from kg_memory.models.graph import Episode, EpisodeStatus
from kg_memory.models.operations import AddResult
from kg_memory.models.results import Answerable, Neighbourhood, SearchResults
from kg_memory.runtime.driver import Driver
from tests.scripted import HashEmbeddings, Scripted
from tests.waiting import until

AT = datetime(2024, 5, 1, 10, tzinfo=UTC)


def test_every_verb_has_an_async_twin_with_the_same_arguments(memory):
    groups = [value for value in vars(memory).values() if isinstance(value, Group)]
    assert len(groups) == 10
    for kind in (GraphMemory, *map(type, groups)):
        public = {name: each for name, each in inspect.getmembers(kind, inspect.isroutine) if name[0] != "_"}
        plain = {name for name, each in public.items() if not inspect.iscoroutinefunction(each)}
        assert {f"a{name}" for name in plain} == public.keys() - plain
        for name in plain:
            assert inspect.signature(public[name]) == inspect.signature(public[f"a{name}"])


def test_verb_has_signature_and_docstring_of_its_flow():
    assert str(inspect.signature(GraphMemory.add_many)).endswith(
        "namespace: 'str' = 'default', progress: 'Callable[[Progress], None] | None' = None) -> 'list[AddResult]'"
    )
    assert GraphMemory.aadd_many.__doc__ == GraphMemory.add_many.__doc__
    assert (GraphMemory.aadd_many.__name__, Facts.history.__qualname__) == ("aadd_many", "Facts.history")
    assert inspect.signature(Reviews.list).return_annotation == "list[Review]"


def test_add_stores_a_message_that_all_verbs_return(verbs):
    added = verbs.add("I moved to Oslo.", speaker="Ann", at=AT, thread="t", source="chat", source_id="m1")
    told = {"entities": ("Ann", "Oslo"), "facts": ("Ann lives in Oslo",)}
    assert added == AddResult(episode=added.episode, new=True, **told, steps=added.steps)
    again = verbs.add("I moved to Oslo.", speaker="Ann", at=AT, thread="t", source="chat", source_id="m1")
    assert (again.episode, again.new) == (added.episode, False)
    found = verbs.search("Where does Ann live?", limit=1)
    assert [each.sentence for each in found.facts] == ["Ann lives in Oslo"]
    assert all(each.score is not None for each in (*found.facts, *found.entities, *found.episodes))
    assert "Ann lives in Oslo" in verbs.context("Where does Ann live?", max_tokens=500)
    [fact] = verbs.facts.about("ann")
    assert (fact.objects, fact.valid_at, fact.sources[0].quote) == (("Oslo",), AT, "Oslo")
    [episode] = verbs.episodes.list()
    assert episode == Episode(
        id=added.episode, content="I moved to Oslo.", speaker="Ann", source="chat", source_id="m1", thread="t", at=AT,
        created_at=episode.created_at, status=EpisodeStatus.DONE, attempts=1, plan="thorough",
    )  # fmt: skip
    assert {each.name for each in verbs.entities.list()} == {"Ann", "Oslo"}
    assert verbs.stats().model_dump(exclude={"waiting", "failed", "skipped", "communities"}) == {
        "messages": 1, "blocks": 0, "episodes": 1, "entities": 2, "facts": 1, "current_facts": 1, "reviews": 0, "paused": False,
    }  # fmt: skip


def test_empty_namespace_returns_nothing_and_is_not_created(verbs, memory, namespace):
    found = verbs.search("Where?")
    nothing = Answerable(value="no", reason="nothing is stored here yet")
    assert found == SearchResults(question="Where?", time=found.time, relevance=0.0, answerable=nothing)
    assert verbs.context("Where?") == ""
    assert verbs.facts.about("Ann") == verbs.entities.list() == verbs.episodes.list() == verbs.episodes.resume() == []
    assert verbs.facts.history("Ann") == verbs.facts.timeline("Ann") == verbs.facts.changes("1999-01-01") == []
    assert verbs.reviews.list() == verbs.reviews.conflicts() == verbs.predicates.list() == []
    assert verbs.entities.around("Ann") == Neighbourhood(depths={})
    assert set(verbs.stats().model_dump().values()) == {0}
    assert namespace not in memory.data.namespaces()


def test_namespaces_are_listed_and_isolated(verbs, namespace):
    for place in ("Oslo", "Rome"):
        verbs.add(f"I moved to {place}.", speaker="Ann", namespace=f"{namespace} {place}")
    assert {f"{namespace} Oslo", f"{namespace} Rome"} <= set(verbs.data.namespaces())
    assert [each.objects for each in verbs.facts.about("Ann", namespace=f"{namespace} Rome")] == [("Rome",)]
    assert {fact.objects for fact in verbs.search("Ann", namespace=f"{namespace} Oslo").facts} == {("Oslo",)}


def test_add_many_adds_in_order_and_reports_progress(verbs):
    """Features: C14."""
    told = []
    many = [
        "hello Bob.",
        {"content": "I moved to Oslo.", "speaker": "Ann", "at": "2024-01-01"},
        EpisodeInput(content="I moved to Rome.", speaker="Ann", at=datetime(2024, 2, 1, tzinfo=UTC), kind="text"),
    ]
    added = verbs.add_many(many, progress=told.append)
    assert [each.new for each in added] == [True, True, True]
    assert [(each.done, each.total, each.new) for each in told] == [(1, 3, 1), (2, 3, 2), (3, 3, 3)]
    assert told[-1].facts == sum(len(each.facts) for each in added) == 2
    verbs.add_many(iter(many[1:]), progress=told.append)
    assert [(each.done, each.total, each.new) for each in told[3:]] == [(1, None, 0), (2, None, 0)]
    assert verbs.stats().episodes == 3


def test_lists_support_pages_and_status(verbs):
    for day in range(1, 6):
        verbs.add(f"hello Friend{day}.", at=f"2024-01-0{day}")
    assert [each.content for each in verbs.episodes.list(limit=2, skip=1)] == ["hello Friend4.", "hello Friend3."]
    assert len(verbs.episodes.list(status=EpisodeStatus.DONE)) == len(verbs.episodes.list(status="done")) == 5
    assert verbs.episodes.list(status=EpisodeStatus.SAVED) == []
    assert [each.name for each in verbs.entities.list(limit=2)] == ["Friend5", "Friend4"]
    assert verbs.entities.list(skip=5) == []


def test_episodes_list_filters_by_where(verbs):
    for day, source in enumerate(("mail", "chat", "mail", None), 1):
        verbs.add(f"I met Friend{day}.", speaker="Ann" if day < 3 else "Bob", source=source, at=f"2024-01-0{day}")
    verbs.episodes.save([{"content": "I met Friend5.", "source": "mail", "at": "2024-01-05"}])

    def list_where(where: Any, **page: Any) -> list[str]:
        return [each.content[-2] for each in verbs.episodes.list(where=where, **page)]

    assert list_where({"source": "mail"}) == ["5", "3", "1"]
    assert list_where({"source": "mail"}, limit=1, skip=1) == ["3"]
    assert list_where({"source": "mail"}, status="done") == ["3", "1"]
    assert list_where({"source": "mail", "speaker": "bob"}) == list_where({"name": "Friend5"}) == []
    assert list_where({"name": "Friend2"}) == ["2"]
    assert list_where({"$not": {"source": "mail"}}) == ["4", "2"]
    assert list_where({}) == ["5", "4", "3", "2", "1"]
    with pytest.raises(InputError, match="sourc"):
        verbs.episodes.list(where={"sourc": "mail"})


def whole(name: str, given: str) -> str:
    """Return the pattern of the error for an argument that is no whole number in range."""
    return rf"{name} must be a whole number from [01] to .*, got {given}"


BAD = {
    "an empty content": ("add", ("",), {}, "content is empty"),
    "a content that is no text": ("add", (7,), {}, "content is of type int: give a string"),
    "a record as it is": ("add", ({"name": "Ann"},), {}, "content is of type dict: give a string, a record as JSON"),
    "a huge content": ("add", ("x" * 1_000_001,), {}, "1000001 characters"),
    "a bad kind": ("add", ("Hello.",), {"kind": "picture"}, "message, text, json"),
    "a bad date": ("add", ("Hello.",), {"at": "yesterday"}, "ISO 8601"),
    "a date that is a number": ("add", ("Hello.",), {"at": 1_700_000_000}, "ISO 8601"),
    "a bad speaker": ("add", ("Hello.",), {"speaker": 7}, "speaker must be a string, got 7"),
    "bad json": ("add", ("{",), {"kind": "json"}, "not valid JSON"),
    "an episode that is none": ("add_many", ([7],), {}, "int"),
    "an episode with unknown fields": ("add_many", ([{"content": "x", "text": "y"}],), {}, "text"),
    "an episode without content": ("add_many", ([{"speaker": "Ann"}],), {}, "content"),
    "one text instead of many": ("add_many", ("Hello.",), {}, "episodes must be a list"),
    "a budget of zero": ("context", ("Oslo",), {"max_tokens": 0}, whole("max_tokens", "0")),
    "no facts at all": ("facts.about", ("Ann",), {"limit": 0}, whole("limit", "0")),
    "no entities at all": ("entities.list", (), {"limit": -1}, whole("limit", "-1")),
    "a page before the first": ("episodes.list", (), {"skip": -1}, whole("skip", "-1")),
    "facts of no date": ("facts.about", ("Ann",), {"as_of": "soon"}, "as_of must be a time, got 'soon'.*give a date"),
    "a question of no date": ("search", ("Oslo",), {"as_of": 5}, "as_of must be a datetime, ISO 8601.*got 5"),
    "a belief of no date": ("context", ("Oslo",), {"believed_at": "soon"}, "believed_at must be a time, got 'soon'"),
    "a time and a period": ("search", ("Oslo",), {"as_of": "2024", "during": "2024"}, "must not both be set"),
    "a period of one time": ("search", ("Oslo",), {"during": ["2024"]}, "during must be two times"),
    "a period of three": ("facts.about", ("Ann",), {"during": ("2023", "2024", "2025")}, "during must be two times"),
    "a period that is a number": ("context", ("Oslo",), {"during": 7}, "during must be .*got 7"),
    "a period of numbers": ("entities.around", ("Oslo",), {"during": (1, 2)}, "during must be a datetime.*got 1"),
    "an empty period": ("search", ("Oslo",), {"during": ""}, "during must be a time, got ''"),
    "a period that ends before it begins": ("search", ("Oslo",), {"during": ("2024", "2023")}, "end after it begins"),
    "history of nobody": ("facts.history", (" ",), {}, "name must be a non-empty string"),
    "history of no relation": ("facts.history", ("Ann", ""), {}, "predicate must be a non-empty string, got ''"),
    "a timeline of nobody": ("facts.timeline", (None,), {}, "name must be a non-empty string"),
    "a timeline without moments": ("facts.timeline", ("Ann",), {"limit": 0}, whole("limit", "0")),
    "changes since never": ("facts.changes", ("soon",), {}, "since must be a time, got 'soon'"),
    "no changes": ("facts.changes", ("2024",), {"limit": 0}, whole("limit", "0")),
    "an evolution of nothing": ("facts.evolution", ("",), {}, "fact must be the id of a fact"),
    "an evolution of what is no fact": ("facts.evolution", ("a\x00b\ud800",), {}, "fact 'a.*' not found"),
    "around nobody": ("entities.around", ("",), {}, "name must be a non-empty string"),
    "around too far": ("entities.around", ("Ann", 7), {}, "steps must be at most 6"),
    "around at no distance": ("entities.around", ("Ann", 0), {}, whole("steps", "0")),
    "around without facts": ("entities.around", ("Ann",), {"limit": "3"}, whole("limit", "'3'")),
    "no reviews": ("reviews.list", (), {"limit": 0}, whole("limit", "0")),
    "no conflicts": ("reviews.conflicts", (), {"skip": -1}, whole("skip", "-1")),
    "deciding about nothing": ("reviews.decide", ("", "accept"), {}, "review '' not found"),
    "deciding about what is not there": ("reviews.decide", ("\x00'", "accept"), {}, "memory.reviews"),
    "undoing what is not there": ("reviews.undo", ("nothing",), {}, "review 'nothing' not found"),
    "correcting no predicate": ("predicates.update", (" ",), {"single_valued": True}, "such as LIVES_IN, got ' '"),
    "correcting nothing of one": ("predicates.update", ("LIKES",), {}, "changes nothing"),
    "a correction that is no word": ("predicates.update", ("LIKES",), {"canonical": "!"}, "got '!'"),
    "a correction that is none": ("predicates.update", ("LIKES",), {"canonical": 7}, "got 7"),
    "a correction that is no truth": ("predicates.update", ("LIKES",), {"single_valued": "no"}, "True or False"),
    "nothing instead of many": ("add_many", (None,), {}, "episodes must be a list"),
    "one episode instead of many": ("add_many", (EpisodeInput(content="Hello."),), {}, "episodes must be a list"),
    "many with the date 0": ("add_many", ([{"content": "x", "at": 0}],), {}, "at is 0.*ISO 8601"),
    "an unknown status": ("episodes.list", (), {"status": "lost"}, "saved, waiting, working, done, failed, skipped"),
    "nothing to embed anew": ("data.reembed", (), {}, "is empty or does not exist"),
}


@pytest.mark.parametrize(("verb", "given", "named", "message"), BAD.values(), ids=BAD.keys())
def test_bad_input_raises_a_clear_error_and_stores_nothing(verbs, memory, namespace, verb, given, named, message):
    with pytest.raises(InputError, match=message):
        attrgetter(verb)(verbs)(*given, **named)
    assert namespace not in memory.data.namespaces()


async def test_sync_and_async_verbs_and_blocks_may_be_mixed(server, settings, namespace):
    settings = settings.with_(url=server.url)
    async with GraphMemory(settings, model=Scripted(), embeddings=HashEmbeddings()) as memory:
        await memory.aadd("I moved to Oslo.", speaker="Ann", namespace=namespace)
        await asyncio.to_thread(memory.add, "I know Bob.", speaker="Ann", namespace=namespace)
        assert len(await memory.facts.aabout("Ann", namespace=namespace)) == 2
    with GraphMemory(settings, model=Scripted(), embeddings=HashEmbeddings()) as memory:
        assert (await asyncio.to_thread(memory.stats, namespace=namespace)).facts == 2


@pytest.mark.parametrize(("home", "folder"), [("data_dir", "."), ("xdg_data_home", "kg-memory/database")])
def test_embedded_database_starts_at_first_use_and_persists(tmp_path, monkeypatch, home, folder):
    monkeypatch.setattr("sys.platform", "linux")
    folder, at = tmp_path / "db" / folder, tmp_path / "db"
    named = {home: at if home == "data_dir" else str(at)}
    own = Settings(**named, bin_dir=binaries.download_missing().module.parent, idle_seconds=0)
    memory = GraphMemory(own, model=Scripted(), embeddings=HashEmbeddings())
    assert (isinstance(memory.driver, Driver), at.exists()) == (True, False), "to make one touches nothing"
    memory.close()
    for content in ("I moved to Oslo.", "I moved to Rome."):
        with GraphMemory.open(settings=own, model=Scripted(), embeddings=HashEmbeddings()) as memory:
            memory.add(content, speaker="Ann")
            stored = memory.stats().episodes
        until(lambda: not embedded.is_running(folder))
    assert (stored, folder.is_dir()) == (2, True)


def test_closed_memory_raises_database_closed(verbs, memory):
    verbs.add("I moved to Oslo.", speaker="Ann", at=AT)
    memory.close()
    memory.close()
    for verb, given in (("search", ("Oslo",)), ("add", ("I moved to Paris.",)), ("stats", ()), ("episodes.resume", ())):
        with pytest.raises(DatabaseClosed, match="was closed; open another"):
            attrgetter(verb)(verbs)(*given)

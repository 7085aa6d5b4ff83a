"""Whom and what a question refers to: who asks, what was before, and messages that are not read yet."""

from __future__ import annotations

from uuid import uuid4

import pytest

from kg_memory import GraphMemory
from kg_memory.contrib.embedded import Server
from kg_memory.settings import Settings
from tests.bound import Verbs
from tests.scripted import HashEmbeddings, Scripted


@pytest.fixture(scope="module")
def opened(server: Server):
    settings = Settings(url=server.url)
    with GraphMemory(settings, model="offline", embeddings=HashEmbeddings()) as memory:
        yield memory


@pytest.fixture
def memory(opened):
    return Verbs(opened, f"test-{uuid4()}")


@pytest.fixture
def moved(memory):
    """Ann moved from Bergen to Oslo."""
    memory.add("I live in Bergen.", speaker="Ann", at="2023-01-01")
    memory.add("I moved to Oslo.", speaker="Ann", at="2024-02-01")
    memory.add("I like climbing.", speaker="Ann", at="2024-03-01")
    return memory


@pytest.mark.parametrize(
    "question",
    [
        "Where did Ann live before?",
        "Where did Ann live before Oslo?",
        "Where did Ann previously live?",
        "Where did Ann use to live?",
        "Ann以前住在哪里？",
    ],
)
def test_what_was_before_comes_first(moved, question):
    found = moved.search(question)
    assert found.facts[0].sentence == "Ann lives in Bergen"
    assert found.time.until.year == 2024


def test_a_place_without_a_verb_is_the_home_of_who_asks(moved):
    assert moved.search("before Oslo?", asker="Ann").facts[0].sentence == "Ann lives in Bergen"


def test_a_past_that_is_not_known_changes_nothing(moved):
    assert moved.search("Where did Ann work before?").time.reading == "what is so now"


@pytest.mark.parametrize(("speaker", "asker"), [("user", None), ("user", "user"), ("Ann", "Ann")])
@pytest.mark.parametrize("who", ["I", "the user"])
def test_the_time_of_who_asks_is_known(memory, speaker, asker, who):
    memory.add("I use vim.", speaker=speaker, at="2024-01-01")
    memory.add("I switched from vim to neovim.", speaker=speaker, at="2024-06-01")
    found = memory.search(f"What happened since {who} switched from vim to neovim?", asker=asker)
    assert found.time.words == f"since {who} switched from vim to neovim"
    assert found.time.since.isoformat() == "2024-06-01T00:00:00+00:00"


@pytest.mark.parametrize("recipe", ["default", "hybrid", "words"])
def test_a_message_that_is_not_read_comes_before_what_shares_a_name(memory, recipe):
    memory.add("I moved to Oslo.", speaker="Ann", at="2024-01-01")
    memory.add("Bo lives in Bergen and likes climbing.", speaker="Bo", at="2024-01-01")
    memory.episodes.save([{"content": "I started at Fjord Labs last week.", "speaker": "Ann", "at": "2024-02-01"}])
    for question in ("Fjord Labs", "What does Ann do at Fjord Labs?"):
        found = memory.search(question, recipe=recipe)
        assert found.episodes[0].content == "I started at Fjord Labs last week."
    assert memory.search("Who likes climbing?", recipe=recipe).episodes[0].speaker == "Bo"


# Places


@pytest.fixture
def places(memory):
    """Oslo is in Norway, of which a lot is told, and Norway in Scandinavia; many live elsewhere."""
    rows = [{"subject": "Oslo", "predicate": "is located in", "object": "Norway", "object_type": "Place"}]
    rows += [{"subject": "Norway", "predicate": "is part of", "object": "Scandinavia", "object_type": "Place"}]
    rows += [{"subject": "Ann", "predicate": "lives in", "object": "Oslo"}]
    rows += [{"subject": f"P{n}", "predicate": "lives in", "object": f"City{n % 9}"} for n in range(40)]
    rows += [{"subject": f"Q{n}", "predicate": "likes", "object": "Norway"} for n in range(60)]
    memory.facts.add_many([{**row, "at": f"2024-01-01T00:00:{n % 60:02}Z"} for n, row in enumerate(rows)])
    return memory


@pytest.mark.parametrize("place", ["Oslo", "Norway", "Scandinavia"])
def test_who_lives_in_a_part_of_a_place_lives_there(places, place):
    found = places.search(f"Who lives in {place}?")
    assert "Ann lives in Oslo" in [fact.sentence for fact in found.facts[:3]]


def test_what_is_named_in_a_sentence_alone_is_reached_from_it(server):
    """That Ann met Bo in Paris is a fact between Ann and Bo; who asks about France finds it by Paris."""

    namespace = "named-alone"

    def read(fields):
        people = [{"name": name, "type": "Person"} for name in ("Ann", "Bo")]
        fact = {"subject": "Ann", "predicate": "met", "objects": ["Bo"], "sentence": "Ann met Bo in Paris"}
        fact |= {"quote": fields["episode"]["content"], "valid_at": None, "invalid_at": None}
        fact |= {"edge_type": "semantic", "confidence": 1.0}
        return {"entities": [*people, {"name": "Paris", "type": "Place"}], "facts": [fact]}

    settings = Settings(url=server.url)
    with GraphMemory(settings, model=Scripted(read=read), embeddings=HashEmbeddings()) as memory:
        memory.facts.add("Paris", "is located in", "France", object_type="Place", namespace=namespace)
        memory.add("I met Bo in Paris.", speaker="Ann", at="2024-01-01", namespace=namespace)
        memory.facts.add_many([(f"P{n}", "met", f"Q{n}") for n in range(30)], namespace=namespace)
        recipe = {"facts": {"words": 0, "meaning": 0, "graph": 1}, "traversal": {"method": "bfs", "max_hops": 1}}
        for place in ("Paris", "France"):
            found = memory.search(f"Whom did one meet in {place}?", recipe=recipe, namespace=namespace)
            assert "Ann met Bo in Paris" in [fact.sentence for fact in found.facts[:2]]


def test_activation_starts_from_what_the_words_found(memory):
    """Nothing of the question is a name: the walk begins at the people of the facts that have its words.

    Features: C22.
    """
    memory.facts.add("Ann", "collects", "stamps from Peru")
    memory.facts.add("Ann", "is married to", "Carl")
    memory.facts.add_many([(f"P{n}", "is married to", f"Q{n}") for n in range(30)])
    only_graph = {"words": 0, "meaning": 0, "graph": 1}
    found = memory.search(
        "Who collects things?",
        recipe={"traversal": {"method": "synapse", "timeout_ms": 60_000}, "entities": only_graph},
    )
    assert {"Ann", "Carl"} <= {entity.name for entity in found.entities[:3]}


def test_what_a_person_says_comes_before_what_an_assistant_says(memory):
    memory.add("Sourdough needs a slow rise.", speaker="user", thread="1", at="2024-01-01")
    for day in range(2, 6):
        memory.add("Sourdough needs a slow rise, too.", speaker="assistant", thread=str(day), at=f"2024-01-0{day}")
    assert memory.search("What does sourdough need too?").episodes[0].speaker == "user"

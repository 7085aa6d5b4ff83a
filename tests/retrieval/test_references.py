"""What a question refers to: the asker, ended facts, and messages that are not extracted yet."""

from uuid import uuid4

import pytest

from kg_memory import GraphMemory
from kg_memory.contrib.embedded import Server
from kg_memory.settings import Settings
from tests.bound import Verbs
from tests.scripted import HashEmbeddings, Scripted, stated


@pytest.fixture(scope="module")
def opened(server: Server):
    with GraphMemory(Settings(url=server.url), model="offline", embeddings=HashEmbeddings()) as memory:
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


BEFORE = (
    "Where did Ann live before?", "Where did Ann live before Oslo?", "Where did Ann previously live?",
    "Where did Ann use to live?", "Ann以前住在哪里？",
)  # fmt: skip


def test_before_question_ranks_ended_fact_first(moved):
    for question in BEFORE:
        found = moved.search(question)
        assert (found.facts[0].sentence, found.time.until.year) == ("Ann lives in Bergen", 2024), question
    assert moved.search("before Oslo?", asker="Ann").facts[0].sentence == "Ann lives in Bergen"


def test_before_question_without_ended_fact_means_now(moved):
    assert moved.search("Where did Ann work before?").time.reading == "what is true now"


@pytest.mark.parametrize(("speaker", "asker"), [("user", None), ("user", "user"), ("Ann", "Ann")])
@pytest.mark.parametrize("who", ["I", "the user"])
def test_since_question_resolves_event_of_asker(memory, speaker, asker, who):
    memory.add("I use vim.", speaker=speaker, at="2024-01-01")
    memory.add("I switched from vim to neovim.", speaker=speaker, at="2024-06-01")
    found = memory.search(f"What happened since {who} switched from vim to neovim?", asker=asker)
    assert found.time.words == f"since {who} switched from vim to neovim"
    assert found.time.since.isoformat() == "2024-06-01T00:00:00+00:00"


@pytest.mark.parametrize("recipe", ["default", "hybrid", "words"])
def test_search_ranks_saved_message_above_shared_name(memory, recipe):
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
    """Oslo is in Norway, and Norway in Scandinavia. Many facts are about Norway, and many people live elsewhere."""
    rows = [{"subject": "Oslo", "predicate": "is located in", "object": "Norway", "object_type": "Place"}]
    rows += [{"subject": "Norway", "predicate": "is part of", "object": "Scandinavia", "object_type": "Place"}]
    rows += [{"subject": "Ann", "predicate": "lives in", "object": "Oslo"}]
    rows += [{"subject": f"P{n}", "predicate": "lives in", "object": f"City{n % 9}"} for n in range(40)]
    rows += [{"subject": f"Q{n}", "predicate": "likes", "object": "Norway"} for n in range(60)]
    memory.facts.add_many([{**row, "at": f"2024-01-01T00:00:{n % 60:02}Z"} for n, row in enumerate(rows)])
    return memory


@pytest.mark.parametrize("place", ["Oslo", "Norway", "Scandinavia"])
def test_search_for_place_finds_residents_of_its_parts(places, place):
    found = places.search(f"Who lives in {place}?")
    assert "Ann lives in Oslo" in [fact.sentence for fact in found.facts[:3]]


def test_search_reaches_fact_by_name_in_its_sentence(server):
    """The fact that Ann met Bo in Paris links only Ann and Bo. A question about France finds it through Paris."""

    namespace = "named-alone"

    def read(fields):
        people = [{"name": name, "type": "Person"} for name in ("Ann", "Bo")]
        fact = stated("Ann", "met", ["Bo"], "Ann met Bo in Paris", fields["episode"]["content"])
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


def test_activation_starts_from_word_hits(memory):
    """The question has no name: the walk starts from the people of the facts that contain its words.

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


def test_search_ranks_user_message_above_assistant_messages(memory):
    memory.add("Sourdough needs a slow rise.", speaker="user", thread="1", at="2024-01-01")
    for day in range(2, 6):
        memory.add("Sourdough needs a slow rise, too.", speaker="assistant", thread=str(day), at=f"2024-01-0{day}")
    assert memory.search("What does sourdough need too?").episodes[0].speaker == "user"

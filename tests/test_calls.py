"""`add_many` and `resume` with episodes that cannot be read, and questions as JSON: on a real server."""

import json
from datetime import UTC, datetime

import pytest

from kg_memory import GraphMemory
from kg_memory.errors import AnswerError, EmbeddingError, InputError, ModelError, ModelUnavailable
from kg_memory.retrieval.question import SearchQuery, make_search_query
from kg_memory.retrieval.recipe import RECIPES, find_recipe
from tests.bound import Verbs
from tests.scripted import HashEmbeddings, Scripted
from tests.test_memory import AT


class Picky(HashEmbeddings):
    """Fails with *error* on texts with *word* in them."""

    def __init__(self, error, word, *model):
        super().__init__(*model)
        self.error = error
        self.word = word

    def embed_documents(self, texts):
        if any(self.word in text for text in texts):
            raise self.error
        return super().embed_documents(texts)


def spoil(memory, error, word="poison"):
    """Make the reading of each episode with *word* in it raise *error*; return a function that undoes it."""
    rules, embeddings = memory.driver.model.rules, memory.driver.embedder.embeddings
    whole = rules["extract_message"]

    def picky(fields):
        if word in fields["episode"]["content"]:
            raise error
        return whole(fields)

    def mend():
        rules["extract_message"], memory.driver.embedder.embeddings = whole, embeddings

    if isinstance(error, EmbeddingError):
        memory.driver.embedder.embeddings = Picky(error, word)
    else:
        rules["extract_message"] = picky
    return mend


MANY = [
    {"content": content, "speaker": "Ann", "at": f"2024-01-0{day}"}
    for day, content in enumerate(("I moved to Oslo.", "poison", "I moved to Rome."), 1)
]


@pytest.mark.parametrize(
    "error",
    [
        ModelError("the context is too long: lower chunk_size"),
        AnswerError("no usable answer: try another model"),
        EmbeddingError("the vector is all zeros: use another model"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_unreadable_episode_does_not_block_the_namespace(verbs, memory, error):
    mend = spoil(memory, error)
    added = verbs.add_many(MANY)
    assert [(each.new, each.error) for each in added] == [(True, None), (True, str(error)), (True, None)]
    again = verbs.add_many(MANY)
    assert [(each.new, bool(each.error)) for each in again] == [(False, False), (False, True), (False, False)]
    assert verbs.episodes.resume() == []
    [retried] = verbs.episodes.retry()
    assert (retried.episode, retried.new, retried.error) == (added[1].episode, False, str(error))
    assert len(verbs.facts.about("Ann")) == 2
    mend()
    assert [each.error for each in verbs.episodes.retry()] == [None]
    assert (verbs.stats().waiting, verbs.stats().failed) == (0, 0)


def test_add_many_raises_when_an_episode_cannot_be_saved(verbs, memory):
    spoil(memory, EmbeddingError("the vector is empty: check the embedding model"), word="")
    with pytest.raises(EmbeddingError, match="vector is empty"):
        verbs.add_many(MANY)
    assert verbs.stats().episodes == 0


def test_resume_fails_only_episodes_above_lowered_max_content(verbs, memory):
    spoil(memory, ModelUnavailable("down: try later"))
    for content in ("poison " * 20, "poison for Oslo"):
        with pytest.raises(ModelUnavailable):
            verbs.add(content, at=AT)
    settings = memory.settings.with_(max_content=50)
    with GraphMemory(settings, model=Scripted(), embeddings=HashEmbeddings()) as other:
        resumed = Verbs(other, verbs._namespace, asynchronous=verbs._asynchronous).episodes.resume()
    assert sorted((each.error or "")[:30] for each in resumed) == ["", "the content has 140 characters"]
    with GraphMemory(settings, model=Scripted(), embeddings=HashEmbeddings()) as other, pytest.raises(InputError):
        Verbs(other, verbs._namespace, asynchronous=verbs._asynchronous).add_many(["x" * 51])


def test_resume_progress_counts_all_waiting_episodes(verbs, memory, monkeypatch):
    monkeypatch.setattr("kg_memory.memory.episodes.PAGE", 1)
    spoil(memory, AnswerError("no usable answer: try another model"))
    verbs.episodes.save([{"content": f"poison {day}", "at": f"2024-01-0{day}"} for day in range(1, 4)])
    told = []
    resumed = verbs.episodes.resume(progress=told.append)
    assert [(each.done, each.total, each.new) for each in told] == [(1, 3, 0), (2, 3, 0), (3, 3, 0)]
    assert [each.added for each in told] == resumed


NO_TIMES = dict.fromkeys(("as_of", "during", "believed_at"), None) | {"unreviewed": False}


def asked(**how):
    return make_search_query("Oslo?", {"limit": 3}, NO_TIMES, None, how)


def test_question_state_is_plain_json_with_all_options():
    where = {"said_at": {"$gt": datetime(2024, 1, 1, tzinfo=UTC)}, "speaker": ("Ann", "Bob")}
    given = asked(recipe=RECIPES["synapse"], where=where, center="Ann", explain=True, template="xml").as_state()
    assert json.loads(json.dumps(given)) == given
    assert find_recipe(given["recipe"]) == RECIPES["synapse"]
    assert given["where"] == {"said_at": {"$gt": "2024-01-01T00:00:00+00:00"}, "speaker": {"$in": ["Ann", "Bob"]}}
    assert (given["center"], given["explain"], given["template"]) == (["Ann"], True, "xml")


def test_question_state_omits_unset_options():
    """A recipe given by name is stored as that name."""
    plain = asked().as_state()
    assert plain == asked(recipe=None, where=None, center=None, explain=False, template=None).as_state()
    assert not plain.keys() & {"recipe", "where", "center", "explain", "template"}
    assert asked(where={}) == SearchQuery.parse({"question": "Oslo?", "limit": 3})
    assert asked(recipe="distance").as_state()["recipe"] == "distance"

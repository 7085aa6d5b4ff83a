"""Many episodes at once, some of which cannot be read: on a real server with a scripted model."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from kg_memory import GraphMemory
from kg_memory.errors import (
    AnswerError,
    EmbeddingError,
    InputError,
    ModelError,
    ModelUnavailable,
)
from kg_memory.retrieval.question import Question, ask
from kg_memory.retrieval.recipe import RECIPES, find_recipe
from tests.bound import Verbs
from tests.scripted import HashEmbeddings, Scripted
from tests.test_memory import AT


class Picky(HashEmbeddings):
    """Fails with *error* on texts with *word* in them."""

    def __init__(self, error, word):
        super().__init__()
        self.error = error
        self.word = word

    def embed_documents(self, texts):
        if any(self.word in text for text in texts):
            raise self.error
        return super().embed_documents(texts)


def spoil(memory, error, word="poison"):
    """Have *error* raised when an episode with *word* in it is read; return what undoes it."""
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
def test_one_unreadable_episode_does_not_block_the_namespace(verbs, memory, error):
    mend = spoil(memory, error)
    added = verbs.add_many(MANY)
    assert [(each.new, each.error) for each in added] == [(True, None), (True, str(error)), (True, None)]
    again = verbs.add_many(MANY)
    assert [(each.new, bool(each.error)) for each in again] == [(False, False), (False, True), (False, False)]
    assert verbs.episodes.resume() == []
    assert [(each.episode, each.new, each.error) for each in verbs.episodes.retry()] == [
        (added[1].episode, False, str(error))
    ]
    assert len(verbs.facts.about("Ann")) == 2
    mend()
    assert [each.error for each in verbs.episodes.retry()] == [None]
    assert (verbs.stats().waiting, verbs.stats().failed) == (0, 0)


def test_an_episode_that_could_not_be_saved_is_no_problem_but_an_error(verbs, memory):
    spoil(memory, EmbeddingError("the vector is empty: check the embedding model"), word="")
    with pytest.raises(EmbeddingError, match="vector is empty"):
        verbs.add_many(MANY)
    assert verbs.stats().episodes == 0


def test_a_limit_that_was_lowered_meanwhile_blocks_only_what_is_too_long(verbs, memory):
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


def test_the_progress_of_a_resume_counts_all_that_waits(verbs, memory, monkeypatch):
    monkeypatch.setattr("kg_memory.memory.episodes.PAGE", 1)
    spoil(memory, AnswerError("no usable answer: try another model"))
    verbs.episodes.save([{"content": f"poison {day}", "at": f"2024-01-0{day}"} for day in range(1, 4)])
    told = []
    resumed = verbs.episodes.resume(progress=told.append)
    assert [(each.done, each.total, each.new) for each in told] == [(1, 3, 0), (2, 3, 0), (3, 3, 0)]
    assert [each.added for each in told] == resumed


NO_TIMES = dict.fromkeys(("as_of", "during", "believed_at"), None) | {"unreviewed": False}


def asked(**how):
    return ask("Oslo?", {"limit": 3}, NO_TIMES, None, how)


def test_a_question_is_plain_json_however_it_is_to_be_searched():
    where = {"said_at": {"$gt": datetime(2024, 1, 1, tzinfo=UTC)}, "speaker": ("Ann", "Bob")}
    given = asked(recipe=RECIPES["synapse"], where=where, center="Ann", explain=True, template="xml").as_state()
    assert json.loads(json.dumps(given)) == given
    assert find_recipe(given["recipe"]) == RECIPES["synapse"]
    assert given["where"] == {"said_at": {"$gt": "2024-01-01T00:00:00+00:00"}, "speaker": {"$in": ["Ann", "Bob"]}}
    assert (given["center"], given["explain"], given["template"]) == (["Ann"], True, "xml")


def test_what_is_not_given_is_left_out_of_a_question_and_a_recipe_by_name_stays_its_name():
    plain = asked().as_state()
    assert plain == asked(recipe=None, where=None, center=None, explain=False, template=None).as_state()
    assert not plain.keys() & {"recipe", "where", "center", "explain", "template"}
    assert asked(where={}) == Question.parse({"question": "Oslo?", "limit": 3})
    assert asked(recipe="distance").as_state()["recipe"] == "distance"

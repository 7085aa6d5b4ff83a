"""The selector and composed scopes: what a model answers over HTTP, good and bad, and what a budget allows."""

from __future__ import annotations

import json
import logging
from uuid import uuid4

import pytest

from kg_memory import GraphMemory
from kg_memory.contrib.variants.explain import NOT_SELECTED
from kg_memory.contrib.variants.stages import PART, merge_rankings, split_by_rule
from kg_memory.models.budget import Budget, Limits
from kg_memory.retrieval.ranking import Hits
from kg_memory.settings import Settings
from tests.chat_server import chat_server, fenced
from tests.scripted import HashEmbeddings

QUESTION = "Where does Ann live?"


class Chat:
    """Answers the prompts of retrieval with what it is given, and the others as the server does."""

    def __init__(self) -> None:
        self.answers = {"Selection": "{}", "Parts": "{}"}
        self.asked: list[dict] = []

    def __call__(self, name, body):
        if name not in self.answers:
            return None
        self.asked.append(fenced(body["messages"][0]["content"]))
        answer = self.answers[name]
        return answer(self.asked[-1]) if callable(answer) else answer


@pytest.fixture
def chat():
    return Chat()


@pytest.fixture
def memory(server, chat):
    settings = Settings(url=server.url, api_key="k")
    with chat_server(chat) as url:
        settings = settings.with_(base_url=url, model="scripted")
        with GraphMemory(settings, embeddings=HashEmbeddings()) as opened:
            yield opened


@pytest.fixture
def namespace(memory):
    name = f"test-{uuid4()}"
    memory.facts.add("Ann", "lives in", "Oslo", valid_at="2024-05", namespace=name)
    memory.facts.add("Bo", "lives in", "Rome", namespace=name)
    memory.facts.add("Cy", "likes", "chess", namespace=name)
    memory.facts.add("王小明", "住在", "北京", namespace=name)
    memory.episodes.save([{"content": "I moved to Oslo!", "speaker": "Ann", "at": "2024-05-14"}], namespace=name)
    return name


def naming(*words):
    """Pick the lines with any of *words*."""

    def answer(fields):
        lines = [line["id"] for line in fields["lines"] if any(word in line["text"] for word in words)]
        return json.dumps({"lines": lines})

    return answer


@pytest.mark.parametrize(("question", "word"), [(QUESTION, "Oslo"), ("王小明住在哪里？", "北京")])
def test_only_what_the_model_picks_is_left(memory, namespace, chat, question, word):
    chat.answers["Selection"] = naming(word)
    found = memory.search(question, recipe={"select": True}, namespace=namespace, explain=True)
    assert len(chat.asked) == 1
    assert chat.asked[0]["question"] == question
    texts = [fact.sentence for fact in found.facts] + [episode.content for episode in found.episodes]
    assert texts
    assert all(word in text for text in texts)
    assert any(each.left_out == NOT_SELECTED for each in found.explanations)
    context = memory.context(question, recipe={"select": True}, namespace=namespace)
    assert context.lines
    assert all(word in line.text for line in context.lines)


def test_lines_have_numbers_times_and_speakers(memory, namespace, chat):
    memory.search(QUESTION, recipe={"select": True}, namespace=namespace)
    lines = chat.asked[0]["lines"]
    assert [line["id"] for line in lines] == list(range(1, len(lines) + 1))
    assert {"Ann lives in Oslo (since May 2024)", "14 May 2024, Ann: I moved to Oslo!"} <= {
        line["text"] for line in lines
    }


def test_it_is_off_by_default(memory, namespace, chat):
    assert memory.search(QUESTION, namespace=namespace).facts
    assert chat.asked == []


@pytest.mark.parametrize("answer", ['{"lines": [0, 999, -1]}', "The second line, I think.", '{"lines": "all"}', ""])
def test_a_bad_answer_selects_nothing_away_and_is_logged(memory, namespace, chat, answer, caplog):
    plain = memory.search(QUESTION, namespace=namespace)
    chat.answers["Selection"] = answer
    with caplog.at_level(logging.WARNING, "kg_memory.retrieval"):
        found = memory.search(QUESTION, recipe={"select": True}, namespace=namespace)
    assert [fact.id for fact in found.facts] == [fact.id for fact in plain.facts]
    assert "no lines were selected" in caplog.text


def test_no_line_is_an_answer(memory, namespace, chat):
    chat.answers["Selection"] = '{"lines": []}'
    context = memory.context(QUESTION, recipe={"select": True}, namespace=namespace)
    assert context == ""
    assert context.results.facts == context.results.episodes == ()


@pytest.mark.parametrize("answer", ['{"lines": [1, 999]}', '{"lines": ["1"]}', 'Here: ```json\n{"lines": [1]}\n```'])
def test_what_is_usable_of_an_answer_counts(memory, namespace, chat, answer):
    chat.answers["Selection"] = answer
    found = memory.search(QUESTION, recipe={"select": True}, namespace=namespace)
    assert len(found.facts) == 1
    assert found.episodes == ()


def test_a_spent_budget_asks_nothing(server, chat, namespace, memory, caplog):
    with chat_server(chat) as url:
        settings = Settings(url=server.url, api_key="k", base_url=url, model="scripted")
        with GraphMemory(settings, embeddings=HashEmbeddings(), budget=Budget(day=Limits(tokens=10))) as poor:
            found = poor.search(QUESTION, recipe={"select": True, "queries": "model"}, namespace=namespace)
    assert found.facts
    assert chat.asked == []
    assert "no lines were selected" in caplog.text


# Composed scopes

BOTH = "Which of the two came first?"
PARTS = ["Where does Ann live?", "王小明住在哪里？"]


def test_the_parts_of_a_question_are_searched_too(memory, namespace, chat):
    chat.answers["Parts"] = json.dumps({"questions": PARTS})
    recipe = {"queries": "model", "kinds": ["facts"]}
    found = memory.search(BOTH, recipe=recipe, namespace=namespace, limit=2)
    assert {("Oslo",), ("北京",)} == {fact.objects for fact in found.facts}
    assert [fields["question"] for fields in chat.asked] == [BOTH]


@pytest.mark.parametrize("answer", ['{"questions": []}', "No.", '{"questions": ["", "?"]}', '{"questions": ["one"]}'])
def test_a_question_that_is_not_split_is_searched_as_it_is(memory, namespace, chat, answer):
    chat.answers["Parts"] = answer
    found = memory.search(QUESTION, recipe={"queries": "model"}, namespace=namespace)
    plain = memory.search(QUESTION, namespace=namespace)
    assert [(fact.id, fact.score) for fact in found.facts] == [(fact.id, fact.score) for fact in plain.facts]


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("Where does Ann live?", []),
        ("Where does Ann live and when did she move?", ["Where does Ann live", "when did she move?"]),
        ("What does Ann like? Who is Bo?", ["What does Ann like?", "Who is Bo?"]),
        ("What do Ann and Bo have in common?", ["What do Ann have in common?", "What do Bo have in common?"]),
        ("小明住在哪里？他的姐姐是谁？", ["小明住在哪里？", "他的姐姐是谁？"]),
    ],
)
def test_a_rule_splits_what_is_plainly_several(question, parts):
    assert split_by_rule(question) == parts


def test_a_candidate_counts_by_its_best_query_and_then_by_all():
    first, other = [("a", 2.0), ("b", 1.0), ("d", 0.0)], [("c", 9.0), ("b", 8.0), ("e", 0.0)]
    merged = merge_rankings([Hits(first, [], []), Hits(other, [], [])], "words")
    assert [id_ for id_, _ in merged][:3] == ["a", "c", "b"]
    assert dict(merged)["c"] == pytest.approx(PART, abs=0.01)
    assert merged[0][1] <= 1.0

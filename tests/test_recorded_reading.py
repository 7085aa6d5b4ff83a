"""The recorded answers of a model still match its prompts: some conversations are read from them alone."""

from statistics import mean

import pytest

from benchmarks import long_memory
from benchmarks.reading import DATA, choose_conversations, recorded_answers, run
from benchmarks.recorded_model import serve

REPLAYED = (("standard", "json1"), ("standard", "text1"), ("standard", "zh1"), ("thorough", "json1"))


@pytest.mark.parametrize(("plan", "name"), REPLAYED)
def test_recorded_answers_are_found_for_every_question(server, tmp_path, plan, name):
    """Record the answers again after a prompt has changed: see `benchmarks/reading_data/README.md`."""
    [conversation] = choose_conversations(DATA / "set", "both", name)
    with recorded_answers(plan, DATA / "recordings", None) as (base_url, recordings):
        graph = run(conversation, plan, server.url, base_url, tmp_path)
    assert recordings
    assert recordings.missing == []
    assert graph.facts
    assert len(recordings.used) >= len(conversation.messages)


def test_part_of_long_conversation_is_replayed(server):
    messages, answers = long_memory.read_lines("messages.jsonl")[:80], long_memory.Answers()
    with serve(answers) as base_url, long_memory.ingest(server.url, base_url, messages) as memory:
        scores = long_memory.score(memory, "model", long_memory.questions_about(messages), 700)
        right, asked = long_memory.find_days(memory, "model", 20)
    assert (len(scores["evidence"]) > 20, asked) == (True, 20)
    assert right >= 16
    assert mean(scores["evidence"]) > 0.8
    assert len(answers.unanswered) < len(answers.asked) / 5

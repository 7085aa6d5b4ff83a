"""A context of the memory within a message is not read again; the rest of the message is."""

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_memory.adapters.rendering import render_results
from kg_memory.ingestion.filter import ECHO, without_contexts
from kg_memory.models.graph import EpisodeStatus
from kg_memory.retrieval.context.templates import TEMPLATES, render
from kg_memory.text.context_markers import SUPPLIED
from tests.retrieval.findings import HARM, PLENTY, fact, hostile

AT = "2024-05-01T10:00:00Z"
FOUND = hostile("Ann lives in Oslo").model_copy(
    update={"facts": tuple(fact(f"Ann knows friend {n}", confidence=n / 20, reviewed=n % 2 == 0) for n in range(20))}
)
BOTH_ENDS = [each for each in SUPPLIED if each.end]
CONTEXTS = {name: str(render(FOUND, PLENTY, name)) for name in TEMPLATES}


@pytest.mark.parametrize("context", [*CONTEXTS.values(), render_results(FOUND)], ids=[*CONTEXTS, "tool"])
def test_without_contexts_removes_contexts_and_preserves_offsets(context):
    assert len(context) > 200
    assert without_contexts(context).strip() == ""
    said = f"Here is what I know:\n\n{context}\n\nBob lives in Rome.\n{context}"
    left = without_contexts(said)
    assert len(left) == len(said)
    assert left.split() == ["Here", "is", "what", "I", "know:", "Bob", "lives", "in", "Rome."]
    assert left.index("Bob") == said.index("Bob lives in Rome")


@pytest.mark.parametrize(
    "said",
    [
        "Ann lives in Oslo.", "As you told me, you live in Oslo.", "<FACTS>\n- Ann lives in Oslo\n</FACTS>",
        "<memory>\nI was born in Oslo.\n</memory>", '{"facts": ["Ann lives in Oslo"]}',
        "[knowledge graph]\nAnn lives in Oslo",
        "Who and what\n<ENTITIES>\nAnn lives in Oslo, and the text ends here",
        "- Ann lives in Oslo (since 14 May 2024) [m2]",
    ],
)  # fmt: skip
def test_without_contexts_leaves_text_resembling_a_context(said):
    assert without_contexts(said) == said


@given(text=HARM)
def test_hostile_stored_text_does_not_escape_a_removed_context(text):
    for name in TEMPLATES:
        context = str(render(hostile(text), PLENTY, name))
        assert without_contexts(f"{context}\nBob").split() == ["Bob"]


@given(before=st.text(max_size=20), mark=st.sampled_from(BOTH_ENDS), inside=st.text(max_size=20))
def test_without_contexts_requires_an_end_marker(before, mark, inside):
    said = f"{before}{mark.begin}{inside}"
    assert without_contexts(said) == said
    assert without_contexts(f"{said}{mark.end}") == before + " " * (len(said) + len(mark.end) - len(before))


def test_without_contexts_is_fast_on_repeated_begin_markers():
    began = time.process_time()
    for mark in BOTH_ENDS:
        said = mark.begin * (1_000_000 // len(mark.begin))
        assert without_contexts(said) == said
    assert time.process_time() - began < 5


def test_text_after_a_context_is_read_with_valid_quotes(memory, model, namespace):
    memory.add("I live in Oslo.", speaker="Ann", at=AT, namespace=namespace)
    said = f"{memory.context('Where does Ann live?', namespace=namespace)}\n\nI know Cid."
    assert memory.add(said, speaker="Bob", at=AT, namespace=namespace).facts == ("Bob knows Cid",)
    assert "Oslo" not in model.asks("extract_message")[-1]["episode"]["content"]
    [fact] = memory.facts.about("Cid", namespace=namespace)
    assert [each.quote for each in fact.sources] == ["Cid"]
    assert said in {each.content for each in memory.episodes.list(namespace=namespace)}


def test_message_of_only_a_context_is_skipped_with_reason(memory, model, namespace):
    memory.add("I live in Oslo.", speaker="Ann", at=AT, namespace=namespace)
    context = memory.context("Where does Ann live?", namespace=namespace)
    asked = len(model.asked)
    added = memory.add(context, speaker="assistant", at=AT, namespace=namespace)
    assert (added.status, added.skipped, added.facts) == (EpisodeStatus.SKIPPED, ECHO, ())
    assert len(model.asked) == asked
    assert memory.add(f"{context}\n\nThank you!", speaker="Bob", at=AT, namespace=namespace).skipped
    assert len(model.asked) == asked
    [fact] = memory.facts.about("Oslo", namespace=namespace)
    assert len(fact.sources) == 1
    assert len(memory.episodes.retry(namespace=namespace, skipped=True)) == 2
    read = [each["episode"]["content"] for each in model.asks("extract_message")[1:]]
    assert [each.strip() for each in read] == [context, "Thank you!"]


def test_json_record_with_a_context_is_read_in_full(memory, model, namespace):
    memory.add(CONTEXTS["json"], kind="json", at=AT, namespace=namespace)
    assert model.asks("extract_json")[0]["episode"]["content"] == CONTEXTS["json"]


def test_without_contexts_ignores_custom_templates():
    said = str(render(FOUND, PLENTY, replace(TEMPLATES["zeph"], name="mine", head="I remember:\n")))
    assert without_contexts(said) == said

"""Payloads in messages are stored, but not read, embedded, indexed or shown in a context."""

import base64
from random import Random

import pytest

from kg_memory.ingestion.postings import MOST_TERMS, index_words
from kg_memory.text.tokenise import terms

BASE64 = base64.b64encode(Random(3).randbytes(3000)).decode()
PAYLOAD = f"data:image/png;base64,{BASE64}"
SHOWN = "[data: image/png, 4 kB]"


def test_payload_is_absent_from_prompts_embeddings_and_context(memory, model, embeddings, namespace, rows):
    content = f"Ann lives in Oslo. {PAYLOAD} She knows Bob."
    memory.add(content, thread="t", at="2024-05-01", namespace=namespace)
    memory.add("Bob lives in Rome.", thread="t", at="2024-05-01T00:01", namespace=namespace)
    context = str(memory.context("Where does Ann live?", namespace=namespace))
    asked = [str(ask.fields) for ask in model.asked]
    for text in (*asked, *embeddings.embedded, context):
        assert BASE64[:40] not in text
    assert any(SHOWN in text for text in asked)
    assert any(SHOWN in text for text in embeddings.embedded)
    assert SHOWN in context
    assert {row["t"] for row in rows("MATCH (t:Term) RETURN t.term AS t")}.isdisjoint(terms(BASE64))
    episode = next(one for one in memory.episodes.list(namespace=namespace) if "Oslo" in one.content)
    assert episode.content == content


@pytest.mark.parametrize("before", ["", f"see {PAYLOAD} ", f"{BASE64} {PAYLOAD} "])
def test_quote_after_a_payload_has_offsets_in_the_original(memory, namespace, before):
    content = f"{before}Ann lives in Oslo since 2020-01-01."
    memory.add(content, namespace=namespace)
    [fact] = [fact for fact in memory.facts.about("Ann", namespace=namespace) if fact.predicate == "LIVES_IN"]
    [source] = fact.sources
    assert source.quote == content[source.start : source.end]
    assert "Oslo" in source.quote
    assert BASE64[:40] not in source.quote


def test_index_words_limits_the_terms_of_an_episode():
    text = " ".join(f"w{n}x" for n in range(MOST_TERMS + 5000))
    _, rows = index_words({"id": "a", "kind": "text", "speaker": None, "content": text, "at": 0}, [], [])
    assert len(rows) == MOST_TERMS

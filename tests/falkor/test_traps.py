"""Inputs that once crashed the server, gave wrong answers or broke a query, through the whole ingestion."""

import pytest

from kg_memory.errors import InputError
from kg_memory.ingestion.graph import build
from kg_memory.memory.episodes import read_episodes, read_stats
from kg_memory.memory.listing import facts_about


def test_ingestion_replaces_only_nul_and_lone_surrogates(driver, settings, namespace):
    graph = build(driver, settings).compile()
    every = "".join(map(chr, [*range(0x300), 0x2028, 0xFEFF, 0xFFFE, 0x1F389, 0xD800, 0xDFFF]))
    done = graph.invoke({"content": every, "at": "2024-01-01", "namespace": namespace})
    [episode] = driver.run(read_episodes(10, 0, None), namespace)
    assert episode.content == every.translate({0: "\ufffd", 0xD800: "\ufffd", 0xDFFF: "\ufffd"})
    assert done["episode"]["content"] == episode.content


def test_ingestion_accepts_at_most_a_million_characters(driver, settings, namespace, model):
    for name in ("extract_text", "facts"):
        model.rules[name] = lambda _: {"entities": [], "facts": []}
    graph = build(driver, settings.with_(chunk_size=500_000)).compile()
    content = "word " * 200_000
    graph.invoke({"content": content, "kind": "text", "at": "2024-01-01", "namespace": namespace})
    [episode] = driver.run(read_episodes(10, 0, None), namespace)
    assert episode.content == content
    with pytest.raises(InputError, match="1000001"):
        graph.invoke({"content": content + "x", "kind": "text", "namespace": namespace})


def test_times_are_stored_as_integers(driver, settings, namespace, rows):
    graph = build(driver, settings).compile()
    graph.invoke({"content": "Oslo until 2023-01-01", "speaker": "Ann", "at": "2024-01-01", "namespace": namespace})
    names = {"at", "created_at", "said_at", "valid_at", "invalid_at", "expired_at", "first_seen", "last_seen"}
    seen = set()
    for row in rows("MATCH (n) RETURN properties(n) AS p UNION ALL MATCH ()-[r]->() RETURN properties(r) AS p"):
        for name in names & row["p"].keys():
            seen.add(name)
            assert type(row["p"][name]) is int
    assert seen == names


@pytest.mark.parametrize("at", ["0001-01-01", "1582-10-10", "1969-12-31T23:59:59.999999", "9999-12-31T23:59:59.999999"])
def test_reference_time_is_stored_to_the_microsecond(driver, settings, namespace, at):
    graph = build(driver, settings).compile()
    graph.invoke({"content": "I live in Oslo, undated", "speaker": "Ann", "at": at, "namespace": namespace})
    [episode] = driver.run(read_episodes(10, 0, None), namespace)
    assert episode.at.replace(tzinfo=None).isoformat().startswith(at)
    assert driver.run(facts_about("Ann", 10), namespace)


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00", "10000-01-01", "2024-02-30"])
def test_reference_time_outside_calendar_is_refused(driver, settings, namespace, at):
    graph = build(driver, settings).compile()
    with pytest.raises(InputError, match="at is"):
        graph.invoke({"content": "I live in Oslo.", "speaker": "Ann", "at": at, "namespace": namespace})
    assert driver.run(read_stats(), namespace).episodes == 0

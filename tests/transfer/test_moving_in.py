"""Import from Zep, memvara and tables: facts without a model, all or nothing, once."""

import json
import sqlite3
import tracemalloc
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kg_memory.contrib.importers.moving import read_json_records
from kg_memory.errors import InputError
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.graph import Fact
from kg_memory.plugins import load_plugin
from kg_memory.settings import Settings
from tests.faults.nursery import Nursery
from tests.faults.proxy import Plan, Proxy
from tests.scripted import HashEmbeddings, Scripted
from tests.transfer import put
from tests.transfer.lives import MOVED, SERVE

OWNER = {"user_uuid": "u1", "graph_uuid": "g1"}
NODES = [
    {"uuid": "n1", "name": "Ann", "labels": ["Person"], "summary": "", "created_at": "2024-02-01T00:00:00Z", **OWNER},
    {"uuid": "n2", "name": "Bergen", "labels": ["City"], "summary": "", "created_at": "2024-02-01T00:00:00Z", **OWNER},
    {"uuid": "n3", "name": "奥斯陆", "labels": ["City"], "summary": "", "created_at": "2024-02-01T00:00:00Z", **OWNER},
]
BERGEN = {
    "uuid": "e1", "name": "LIVES_IN", "fact": "Ann lives in Bergen", "source_node_uuid": "n1", "target_node_uuid": "n2",
    "created_at": "2024-02-01T10:00:00Z", "valid_at": "2020-01-01T00:00:00Z", "invalid_at": "2024-03-01T00:00:00Z",
    "expired_at": "2024-03-05T10:00:00Z", "episodes": ["m1"], **OWNER,
}  # fmt: skip
OSLO = {
    "uuid": "e2", "name": "LIVES_IN", "fact": "Ann lives in 奥斯陆", "source_node_uuid": "n1", "target_node_uuid": "n3",
    "created_at": "2024-03-05T10:00:00Z", "valid_at": "2024-03-01T00:00:00Z", "invalid_at": None, "expired_at": None,
    "episode_uuids": ["m2"], **OWNER,
}  # fmt: skip
MESSAGES = [
    {"uuid": "m1", "content": "I live in Bergen, since 2020.", "role": "Ann", "role_type": "user", "source": "message",
     "created_at": "2024-02-01T09:00:00Z", "reference_time": "2023-05-01T08:00:00Z", **OWNER},
    {"uuid": "m2", "content": "我搬到奥斯陆了。", "role": "user", "name": "Ann", "created_at": "2024-03-05T09:00:00Z"},
]  # fmt: skip
ZEP = [BERGEN, OSLO, *NODES, *MESSAGES]


def at(*date: int) -> datetime:
    return datetime(*date, tzinfo=UTC)  # type: ignore[misc, arg-type]


def periods(facts: list[Fact]) -> list[tuple[Any, ...]]:
    return sorted((fact.sentence, fact.valid_at, fact.invalid_at) for fact in facts)


ANN = [("Ann lives in Bergen", at(2020, 1, 1), at(2024, 3, 1)), ("Ann lives in 奥斯陆", at(2024, 3, 1), None)]


@pytest.mark.parametrize("form", ["lines", "pages", "one document"])
def test_zep_edges_become_facts_with_dates_and_source_times(declaring, namespace, tmp_path, form):
    path = tmp_path / "zep.json"
    if form == "lines":
        put(path, ZEP, a_line_each=True)
    elif form == "pages":  # as the API returns them, one after the other, the last of them empty
        pages = [{"items": [BERGEN, OSLO], "next_cursor": "x"}, {"items": NODES}, {"items": MESSAGES}, {"items": []}]
        path.write_text("\n".join(json.dumps(page, indent=2) for page in pages), "utf-8")
    else:
        put(path, {"edges": [BERGEN, OSLO], "nodes": NODES, "episodes": MESSAGES})
    seen: list[tuple[int, int]] = []
    where = {"namespace": namespace, "read": False}
    done = declaring.data.import_from("zep", path, **where, progress=lambda done, total: seen.append((done, total)))
    assert (done.records, done.repeated, done.unread) == ({"declared fact": 3, "message": 2}, 0, ())
    assert seen[-1] == (5, 5)
    facts = declaring.facts.about("Ann", namespace=namespace)
    assert periods(facts) == ANN
    [bergen] = [fact for fact in facts if fact.invalid_at]
    sources = declaring.facts.sources(bergen.id, namespace=namespace)
    assert [source.at for source in sources] == [at(2023, 5, 1, 8), at(2024, 3, 5, 10)], (
        "when said, when its end learned"
    )
    episodes = {episode.source_id: episode for episode in declaring.episodes.list(namespace=namespace)}
    assert (episodes["m1"].speaker, episodes["m1"].at) == ("Ann", at(2023, 5, 1, 8))
    assert (episodes["m2"].content, episodes["m2"].speaker) == ("我搬到奥斯陆了。", "Ann")
    assert [fact.sentence for fact in declaring.facts.about("Ann", as_of="2022", namespace=namespace)] == [ANN[0][0]]


def test_repeated_import_adds_only_what_zep_learned_since(declaring, namespace, tmp_path):
    path = put(tmp_path / "zep.json", [*NODES, {**BERGEN, "invalid_at": None, "expired_at": None}])
    assert declaring.data.import_from("zep", path, namespace=namespace).repeated == 0
    assert periods(declaring.facts.about("Ann", namespace=namespace)) == [(ANN[0][0], ANN[0][1], None)]
    put(path, [*NODES, BERGEN, OSLO, BERGEN])  # with a record twice
    done = declaring.data.import_from("zep", path, namespace=namespace)
    assert (done.records, done.repeated) == ({"declared fact": 5}, 3)
    assert periods(declaring.facts.about("Ann", namespace=namespace)) == ANN


def claims(path: Path) -> Path:
    """Write a store with the columns of memvara's schema that are read."""
    store = sqlite3.connect(path)
    store.executescript("""
        PRAGMA user_version = 17;
        CREATE TABLE episodes (id TEXT PRIMARY KEY, tenant TEXT NOT NULL, usr TEXT, session TEXT, role TEXT NOT NULL,
            content TEXT NOT NULL, ts REAL NOT NULL);
        CREATE TABLE claims (id TEXT PRIMARY KEY, tenant TEXT NOT NULL, usr TEXT, subject TEXT NOT NULL,
            predicate TEXT NOT NULL, object TEXT NOT NULL, text TEXT NOT NULL, polarity INTEGER NOT NULL DEFAULT 1,
            valid_from REAL NOT NULL, valid_to REAL, recorded_at REAL NOT NULL, invalidated_at REAL,
            confidence REAL NOT NULL DEFAULT 1.0, temporal_precision TEXT);
        CREATE TABLE claim_sources (episode_id TEXT NOT NULL, claim_id TEXT NOT NULL);
    """)
    said, later = at(2023, 5, 1, 8).timestamp(), at(2024, 3, 5).timestamp()
    store.execute("INSERT INTO episodes VALUES ('ep1', 'default', 'ann', 's', 'user', 'I live in Bergen.', ?)", (said,))
    rows = [
        ("c1", "lives_in", "Bergen", "Ann lives in Bergen", 1, at(2020, 1, 1).timestamp(), at(2024, 3, 1).timestamp(), None, "year"),
        ("c2", "lives_in", "奥斯陆", "Ann lives in 奥斯陆", 1, at(2024, 3, 1).timestamp(), None, None, "day"),
        ("c3", "likes", "jazz", "Ann likes jazz", 1, later, None, None, None),
        ("c4", "likes", "rock", "Ann likes rock", 1, later, None, later, None),
        ("c5", "likes", "fish", "Ann does not like fish", -1, later, None, None, None),
    ]  # fmt: skip
    for id_, predicate, value, text, polarity, begins, ends, retired, precision in rows:
        about = (id_, "default", "ann", "Ann", predicate, value, text, polarity)
        row = (*about, begins, ends, later, retired, 0.9, precision)
        store.execute(f"INSERT INTO claims VALUES ({', '.join('?' * len(row))})", row)
    store.execute("INSERT INTO claim_sources VALUES ('ep1', 'c1')")
    store.commit()
    store.close()
    return path


def test_memvara_claims_have_the_precision_of_their_dates(declaring, namespace, tmp_path):
    path = claims(tmp_path / "memvara.db")
    before = path.read_bytes()
    done = declaring.data.import_from("memvara", path, namespace=namespace, read=False)
    assert done.records == {"declared fact": 3, "message": 2}
    assert done.left_out == {"claims that memvara no longer believes": 1}
    facts = declaring.facts.about("Ann", namespace=namespace)
    assert periods(facts) == sorted([*ANN, ("Ann likes jazz", None, None)]), "a start that nobody told is not invented"
    [bergen] = [fact for fact in facts if fact.invalid_at]
    assert (bergen.precision, bergen.confidence) == ("year", 0.9)
    assert [source.at for source in bergen.sources] == [at(2023, 5, 1, 8)], "when it was said, not when it was recorded"
    assert path.read_bytes() == before


TABLE = """subject,predicate,object,valid_at,invalid_at,at
Ann,LIVES_IN,Bergen,2020-01-01,2024-03-01,2023-05-01
Ann,LIVES_IN,奥斯陆,2024-03-01,,2024-03-05
"""


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_table_rows_become_declared_facts(declaring, namespace, tmp_path, mark):
    table = tmp_path / "facts.csv"
    table.write_text(TABLE.replace(",", mark), "utf-8-sig")
    assert declaring.data.import_from("csv", table, namespace=namespace).records == {"declared fact": 2}
    dates = [
        (fact.objects, fact.valid_at, fact.invalid_at) for fact in declaring.facts.about("Ann", namespace=namespace)
    ]
    assert dates == [(("奥斯陆",), at(2024, 3, 1), None), (("Bergen",), at(2020, 1, 1), at(2024, 3, 1))]
    assert declaring.data.import_from("csv", table, namespace=namespace).repeated == 2


BAD: list[tuple[str, list[Any], str]] = [
    ("zep", [{**OSLO, "source_node_uuid": "n9"}, *NODES], "record 1: the source node n9 has no name; export the nodes"),
    ("zep", [*NODES, {**OSLO, "valid_at": "soon"}], "record 4: valid_at is not a time"),
    ("zep", [*NODES, {**OSLO, "uuid": None}], "record 4: the record has no uuid"),
    ("zep", [{"x": "y"}], "record 1: not an edge, node, episode or message"),
    ("zep", [*NODES, BERGEN, {**BERGEN, "fact": "Ann left Bergen"}], "record 5: an earlier record has the id 'e1' with another"),
    ("zep", [*NODES, {**OSLO, "name": "!!!"}], "record 4: predicate must be words .* nothing was imported"),
    ("zep", [*NODES, {**MESSAGES[0], "content": "   "}], "record 4: .*; nothing was imported"),
    ("zep", [*NODES, {**MESSAGES[0], "content": ["x"]}], "record 4: content must be a text, got list"),
    ("zep", [*NODES, {**NODES[0], "uuid": "n4", "user_uuid": "u2"}], r"the export has 2 graphs; choose one .* \['u1', 'u2'\]"),
    ("mem0", [{"memory": "x" * 2_000_000, "id": "a"}], "record 1: .*nothing was imported"),
    ("csv", [], "cannot read"),
    ("memvara", [], "is not a file"),
    ("memory", [], "origin must be one of csv, graphiti, langmem"),
]  # fmt: skip


@pytest.mark.parametrize(("origin", "records", "problem"), BAD)
def test_wrong_record_raises_with_its_number_and_stores_nothing(
    declaring, namespace, tmp_path, origin, records, problem
):
    path = tmp_path / "x.json"
    if records:
        put(path, records)
    with pytest.raises(InputError, match=problem):
        declaring.data.import_from(origin, path, namespace=namespace)
    assert declaring.stats(namespace=namespace).episodes == 0


def test_memvara_store_that_is_invalid_or_newer_raises(tmp_path):
    (tmp_path / "x.db").write_bytes(b"not a database, and long enough to have been one" * 10)
    with pytest.raises(InputError, match=r"encrypted stores cannot be read"):
        load_plugin("importers", "memvara")(tmp_path / "x.db", None)
    sqlite3.connect(tmp_path / "y.db").executescript("PRAGMA user_version = 18; CREATE TABLE claims (id)").close()
    with pytest.raises(InputError, match="with schema 17 or lower, got schema 18"):
        load_plugin("importers", "memvara")(tmp_path / "y.db", None)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[{"a": 1}, {"b": ', r"x.json:1: not JSON"),
        ('{"a": "b"}\n{"a": "b"}\n\nnonsense', r"x.json:4: not JSON .*fix or remove the line"),
        ('[{"a": 1} {"b": 2}]', r"x.json:1: not JSON \(expected , or \], got {\)"),
        ("[" * 100_000, "nested too deeply"),
        ('[{"a": 1}, 7]', "record 2: a record must be an object"),
        ("", "has no records"),
        ('{"items": [], "next_cursor": null}', "has no records"),
    ],
)
def test_invalid_json_raises_with_its_line(tmp_path, text, problem):
    (tmp_path / "x.json").write_text(text, "utf-8")
    with pytest.raises(InputError, match=problem):
        list(read_json_records(tmp_path / "x.json", ["items"]))


def test_a_large_document_is_read_record_by_record(tmp_path):
    path = tmp_path / "large.json"
    with path.open("w", encoding="utf-8") as file:
        file.write('{"results": [')
        for number in range(40_000):
            memory = {"id": str(number), "memory": f"Sentence {number}, 句子 " + "x" * 500, "user_id": "ann"}
            file.write((", \n" if number else "") + json.dumps(memory, ensure_ascii=False))
        file.write("]}")
    assert path.stat().st_size > 20_000_000
    tracemalloc.start()
    try:
        count = sum(1 for _ in load_plugin("importers", "mem0")(path, None)(Counter()))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 40_000
    assert peak < 2_000_000, f"{peak:,} bytes at once"


def test_killed_import_run_again_doubles_and_loses_nothing(server, namespace, tmp_path):
    people = [{**NODES[0], "uuid": f"p{n}", "name": f"Person {n}"} for n in range(12)]
    edges = [
        {**OSLO, "uuid": f"x{n}", "source_node_uuid": f"p{n}", "fact": f"Person {n} lives in Oslo", "episode_uuids": []}
        for n in range(12)
    ]
    put(tmp_path / MOVED, [*NODES, *people, *edges, *MESSAGES], a_line_each=True)
    plan = Plan()
    with Proxy(plan, server.socket) as proxy, Nursery(proxy.url, str(tmp_path), serving=SERVE) as lives:
        plan.strike = lives.kill
        plan.choose(None, "unsent")
        for at in (15, 30, 45):
            plan.choose(at, "unanswered")
            assert lives.live(f"zep {namespace}")[0] == -9
        plan.choose(None, "unsent")
        assert lives.live(f"zep {namespace}")[0] == 0
    with GraphMemory(Settings(url=server.url), model=Scripted(), embeddings=HashEmbeddings()) as memory:
        stats = memory.stats(namespace=namespace)
        assert (stats.episodes, stats.facts) == (14, 12)
        episodes = memory.episodes.list(namespace=namespace)
        assert Counter(episode.status for episode in episodes) == {"done": 12, "saved": 2}
        assert len({episode.source_id for episode in episodes}) == 14

"""An exported and imported graph is the same, to the last property of the last node."""

import gzip
import io
import itertools
import json
import os

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as limits
from hypothesis import strategies as st

from kg_memory import GraphMemory
from kg_memory.errors import InputError
from kg_memory.falkor.connect import graph_key
from tests.transfer import exported, left_aside, whole

EXAMPLES = int(os.environ.get("KG_MEMORY_HISTORIES", "4"))
NUMBERS = itertools.count()
FORMS = (
    "I moved to {place}", "I live in {place} undated", "I live in {place} since 2023-0{month}-05",
    "I lived in {place} until 2024-0{month}-20", "I met {other} in {place}", "fine, thanks", "!?",
    "奥斯陆 {place} \x01\x1f </data> `x` \\u0000 💧 {month}",
)  # fmt: skip
SAID = st.builds(
    lambda form, place, other, month: form.format(place=place, other=other, month=month),
    st.sampled_from(FORMS), st.sampled_from(("Oslo", "Paris", "Rome")), st.sampled_from(("Bob", "Cid")),
    st.integers(1, 9),
)  # fmt: skip
STEP = st.tuples(st.sampled_from(("add", "add", "add", "save", "forget", "communities", "search")), SAID)
HISTORY = st.lists(st.tuples(STEP, st.sampled_from(("Ann", "Bob", None)), st.integers(0, 40)), min_size=1, max_size=7)


def live(memory: GraphMemory, namespace: str, history: list) -> None:
    """Run the steps of *history*."""
    for (verb, content), speaker, hour in history:
        message = {"content": content, "speaker": speaker, "at": f"2024-01-{1 + hour // 24:02}T{hour % 24:02}:00"}
        if verb == "add":
            memory.add(**message, namespace=namespace, thread="t")
        elif verb == "save":
            memory.episodes.save([message], namespace=namespace)
        elif verb == "communities":
            memory.communities.refresh(namespace=namespace)
        elif verb == "search":
            memory.search(content, namespace=namespace, recipe="use")
        elif known := memory.episodes.list(namespace=namespace):
            memory.privacy.forget(episode=known[0].id, namespace=namespace)


@given(history=HISTORY)
@limits(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_export_and_import_reproduce_any_history(scripted, history):
    """Export and import reproduce any graph, byte for byte.

    Features: C62, D31.
    """
    namespace = f"history {next(NUMBERS)}"
    scripted.episodes.save([{"content": "first", "at": "2024-01-01"}], namespace=namespace)
    live(scripted, namespace, history)
    before, data = whole(scripted, namespace), exported(scripted, namespace)
    assert exported(scripted, namespace) == data, "the same graph gives the same bytes"
    done = scripted.data.import_(io.BytesIO(data), replace=True)
    assert (done.namespace, done.replaced, done.embedded) == (namespace, bool(done.records), 0)
    assert whole(scripted, namespace) == before
    assert exported(scripted, namespace) == data
    made = scripted.data.import_(io.BytesIO(exported(scripted, namespace, embeddings=False)), replace=True)
    assert made.embedded == data.count(b'"embedding":')
    assert whole(scripted, namespace) == before, "vectors that are made anew by the same model are the same"
    assert left_aside(scripted.driver.store.database) == []


def test_imported_message_is_an_existing_episode_when_added(scripted):
    told = [
        {"content": "I moved to Oslo", "speaker": "Ann", "at": "2024-01-01", "source_id": "m1", "source": "chat"},
        {"content": "I moved to Paris", "speaker": "Ann", "at": "2024-01-02", "thread": "t"},
        {"content": "Bob met Cid in Rome", "at": "2024-01-03"},
    ]
    scripted.add_many(told, namespace="from here")
    scripted.communities.refresh(namespace="from here")
    scripted.data.import_(io.BytesIO(exported(scripted, "from here")), namespace="to there")
    before = whole(scripted, "to there")
    assert [each.new for each in scripted.add_many(told, namespace="to there")] == [False] * 3
    assert whole(scripted, "to there") == before
    straight = {each["id"] for each in _read_anew(scripted, told)}
    there = scripted.driver.store.database.query(graph_key("to there"), IDS, {}, write=False)
    assert {each["id"] for each in there} == straight, "as if it had been read there"
    [added] = scripted.add_many(
        [{"content": "I moved to Oslo", "speaker": "Ann", "at": "2024-02-01"}], namespace="to there"
    )
    assert added.facts == ("Ann lives in Oslo",)
    facts = scripted.facts.about("Ann", namespace="to there")
    assert [each.sentence for each in facts if each.invalid_at is None] == ["Ann lives in Oslo"]
    assert len({each.id for each in facts if each.sentence == "Ann lives in Oslo"}) == 1


IDS = "MATCH (n) WHERE n:Episode OR n:Entity OR n:Fact OR n:Verdict RETURN n.id AS id"


def _read_anew(memory: GraphMemory, told: list) -> list:
    """Return the ids of the messages when they are added in the namespace itself."""
    data = exported(memory, "to there")
    memory.driver.store.database.delete(graph_key("to there"))
    memory.add_many(told, namespace="to there")
    found = memory.driver.store.database.query(graph_key("to there"), IDS, {}, write=False)
    memory.data.import_(io.BytesIO(data), replace=True)
    return found


def test_export_compresses_by_file_name_and_is_deterministic(scripted, tmp_path):
    scripted.add("I moved to Oslo", speaker="Ann", at="2024-01-01", namespace="zipped")
    names = ("a.jsonl.gz", "b.jsonl.gz")
    told = [scripted.data.export(tmp_path / name, namespace="zipped", progress=lambda *_: None) for name in names]
    assert (tmp_path / "a.jsonl.gz").read_bytes() == (tmp_path / "b.jsonl.gz").read_bytes()
    plain = gzip.decompress((tmp_path / "a.jsonl.gz").read_bytes())
    assert plain == exported(scripted, "zipped")
    assert (told[0].bytes, told[0].namespace) == (len(plain), "zipped")
    assert told[0].records == json.loads(plain.splitlines()[-1])["counts"]
    steps: list[tuple[int, int]] = []
    scripted.data.import_(tmp_path / "a.jsonl.gz", namespace="unzipped", progress=lambda *at: steps.append(at))
    size = (tmp_path / "a.jsonl.gz").stat().st_size
    assert steps[-1] == (size, size)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl.gz", "b.jsonl.gz"]
    assert (tmp_path / "a.jsonl.gz").stat().st_mode & 0o777 == 0o600, "memories are private"
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "b.jsonl.gz")
    scripted.data.export(tmp_path / "link.jsonl", namespace="zipped")
    assert (tmp_path / "b.jsonl.gz").read_bytes() == plain
    scripted.data.export("/dev/null", namespace="zipped")
    with pytest.raises(InputError, match="cannot write"):
        scripted.data.export(tmp_path, namespace="zipped")
    with pytest.raises(InputError, match="free some space"):
        scripted.data.export("/dev/full", namespace="zipped")


async def test_export_and_import_work_with_asyncio(scripted, tmp_path):
    await scripted.aadd("I moved to Oslo", speaker="Ann", at="2024-01-01", namespace="async")
    await scripted.data.aexport(tmp_path / "a.jsonl", namespace="async")
    done = await scripted.data.aimport_(tmp_path / "a.jsonl", replace=True)
    assert done.records["episode"] == 1


def test_import_raises_for_full_and_export_for_empty_namespace(scripted, tmp_path):
    scripted.add("I moved to Oslo", speaker="Ann", at="2024-01-01", namespace="held")
    data = exported(scripted, "held")
    before = whole(scripted, "held")
    with pytest.raises(InputError, match="'held' is not empty; choose another namespace, or replace it"):
        scripted.data.import_(io.BytesIO(data))
    assert whole(scripted, "held") == before
    (tmp_path / "kept.jsonl").write_bytes(data)
    with pytest.raises(InputError, match="'nobody' is empty or does not exist; check its name"):
        scripted.data.export(tmp_path / "kept.jsonl", namespace="nobody")
    assert (tmp_path / "kept.jsonl").read_bytes() == data
    assert left_aside(scripted.driver.store.database) == []

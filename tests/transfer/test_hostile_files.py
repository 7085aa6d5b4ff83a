"""A file that is wrong is refused with its line, what is wrong and what to do; nothing of it is ever seen."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tracemalloc
from collections.abc import Callable

import pytest

from kg_memory import GraphMemory
from kg_memory.errors import EmbeddingMismatch, InputError, SchemaError
from kg_memory.falkor.embedded import Server
from kg_memory.maintenance.transfer import file as files
from kg_memory.maintenance.transfer.lines import LINES
from kg_memory.settings import Settings
from tests.scripted import HashEmbeddings, Scripted
from tests.transfer import exported, left_aside, whole

FROM, SMALL, TO = "a good one", "a small one", "nobody's yet"


@pytest.fixture(scope="module")
def scripted(server: Server):
    chosen = Settings(url=server.url, merge_threshold=0.98, ask_threshold=0.6)
    with GraphMemory(chosen, model=Scripted(), embeddings=HashEmbeddings()) as memory:
        for namespace in (FROM, SMALL):
            memory.add("I moved to Oslo", speaker="Ann", at="2024-01-01", namespace=namespace)
            memory.add("I moved to Paris", speaker="Ann", at="2024-01-02", namespace=namespace)
        memory.add("Bob knows Cem and Dora. Cem knows Dora.", speaker="Bob", at="2024-01-02", namespace=FROM)
        memory.communities.refresh(namespace=FROM)
        memory.predicates.update("KNOWS", single_valued=False, namespace=FROM)
        [fact] = memory.facts.about("Cem", namespace=FROM)[:1]
        memory.facts.retract(fact.id, by="Bob", namespace=FROM)
        yield memory


@pytest.fixture(scope="module")
def good(scripted: GraphMemory) -> list[str]:
    return exported(scripted, FROM).decode().splitlines()


def signed(told: list[str]) -> bytes:
    """Return the lines with an end that fits them, as somebody has it who means harm."""
    body = "".join(f"{each}\n" for each in told[:-1]).encode()
    end = {"record": "end", "counts": json.loads(told[-1])["counts"], "sha256": hashlib.sha256(body).hexdigest()}
    return body + json.dumps(end).encode() + b"\n"


def first(told: list[str], record: str) -> int:
    """Return where the first line of a record stands."""
    return next(place for place, each in enumerate(told) if each.startswith(f'{{"record":"{record}"'))


def changed(record: str, **fields: object) -> Callable[[list[str]], bytes]:
    """Return what changes fields of the first line of a record; ``...`` takes one out."""

    def change(told: list[str]) -> bytes:
        place = first(told, record)
        line = {**json.loads(told[place]), **fields}
        line = {name: value for name, value in line.items() if value is not ...}
        return signed([*told[:place], json.dumps(line).replace(": ", ":", 1), *told[place + 1 :]])

    return change


def replaced(record: str, old: str, new: str) -> Callable[[list[str]], bytes]:
    """Return what changes the text of the first line of a record."""

    def change(told: list[str]) -> bytes:
        place = first(told, record)
        assert old in told[place]
        return signed([*told[:place], told[place].replace(old, new, 1), *told[place + 1 :]])

    return change


def without(record: str) -> Callable[[list[str]], bytes]:
    return lambda told: signed([each for place, each in enumerate(told) if place != first(told, record)])


def twice(record: str) -> Callable[[list[str]], bytes]:
    return lambda told: signed(
        [
            *told[: first(told, record)],
            *told[first(told, record) : first(told, record) + 1] * 2,
            *told[first(told, record) + 1 :],
        ]
    )


WRONG = {
    "cut off": (lambda told: signed(told)[:-400], "ends before its last line; copy or export it again"),
    "its end gone": (lambda told: signed(told).rsplit(b"\n", 2)[0] + b"\n", "ends before its last line"),
    "a line gone": (without("alias"), r"was changed since it was written \(its checksum differs\); export it again"),
    "a letter changed": (lambda told: signed(told).replace(b"Oslo", b"Rome", 1), "checksum differs"),
    "nothing": (lambda _: b"", "ends before its last line|no export"),
    "a chat": (lambda _: b'{"content": "hello"}\n', "not an export of kg-memory; pass one, or name its origin with --from"),
    "no text": (lambda _: bytes(range(256)) * 9, "not an export of kg-memory"),
    "a later format": (lambda told: signed([told[0].replace('"format":1', '"format":9'), *told[1:]]), "format 9, .*upgrade"),
    "an unknown record": (replaced("alias", '"alias"', '"soul"'), ":.*unknown record 'soul'; upgrade kg-memory"),
    "no JSON": (replaced("entity", '"name"', "name"), "the file:2: .*JSON"),
    "a field gone": (changed("entity", name=...), "the file:2: name: Field required"),
    "a number as name": (changed("entity", name=7), "the file:2: name: .*string"),
    "NaN": (replaced("fact", '"confidence":1.0', '"confidence":NaN'), "confidence: .*"),
    "infinity": (replaced("fact", '"confidence":1.0', '"confidence":1e999'), "confidence: .*finite"),
    "half a character": (replaced("entity", '"summary":"', '"summary":"\\ud800'), "the file:2: .*JSON"),
    "a NUL": (replaced("entity", '"summary":"', '"summary":"\\u0000'), "summary: the text must have no NUL and no lone surrogate; remove"),
    "a map": (changed("entity", more={"a": 1}), "more"),
    "Cypher as a field": (changed("entity", **{"x` SET n.id=1 //": 1}), "a field name must have letters"),
    "an empty id": (changed("entity", id=""), "id: a key must have 1 to 1000 bytes and no spaces around it; choose another"),
    "a padded id": (changed("fact", id=" x"), "id: a key must have 1 to 1000 bytes"),
    "no date": (changed("episode", at="yesterday"), "at: the value must be a time; write it as 2024-05-01T10:00:00Z"),
    "a time beyond the calendar": (changed("episode", at=2**62), "at: the time must be in the years 1 to 9999; correct it"),
    "the year 10000": (changed("entity", last_seen=253_402_300_800_000_000), "last_seen: the time must be in the years"),
    "an end beyond the calendar": (changed("belief", invalid_at=2**61), "invalid_at: the time must be in the years"),
    "an open end of a message": (changed("episode", at=2**60), "at: the time must be in the years 1 to 9999"),
    "an open end as a start": (changed("belief", valid_at=2**60), "valid_at: the time must be in the years"),
    "a level that is a text": (changed("community", level="high"), "level: .*integer"),
    "an origin that is none": (changed("predicate", origin="bogus"), "origin: .*'corrected'"),
    "one at a time, seven times": (changed("predicate", one_at_a_time=7), "one_at_a_time: .*boolean"),
    "a decision that is none": (changed("decision", decision="maybe"), "decision: .*'accept'"),
    "a decision of nobody": (changed("decision", by=None), "by: .*string"),
    "a ruling of nothing": (changed("decision", ruling=1), "ruling: "),
    "a number beyond all": (changed("statement", start=2**70), "start: "),
    "another dimension": (changed("fact", embedding="AAAAAA=="), "must be base64 of 64 singles; export it again"),
    "no vector": (changed("fact", embedding="*" * 12), "must be base64 of 64 singles"),
    "no direction": (changed("entity", embedding="A" * 341 + "="), "must be base64|set it to true"),
    "the same twice": (twice("entity"), "the file:3: this entity is there twice, or refers to"),
    "a fact twice": (twice("fact"), "this fact is there twice"),
    "a fact of nobody": (changed("fact", subject="nobody"), "refers to something that no earlier line has"),
    "a fact of one who is not there": (changed("fact", objects=["nobody"]), "this fact .* no earlier line has"),
    "a precision that is none": (changed("belief", precision="bogus"), "precision: .*'instant'"),
    "a status that is none": (changed("episode", status=7), "status: "),
    "flags that are none": (changed("episode", flags="override"), "flags: .*array"),
    "attempts below zero": (changed("episode", attempts=-1), "attempts: .*greater"),
    "a reason that is a number": (changed("verdict", reason=7), "reason: .*string"),
    "a ruling that is none": (changed("verdict", ruling="maybe"), "ruling: "),
    "a quote that ends before it starts": (changed("statement", start=9, end=3), "end must not be before start"),
    "a confidence of seven": (changed("fact", confidence=7.0), "confidence: .*less"),
    "a long text": (changed("episode", content="x" * 1_000_001), "has 1000001 characters, the limit is 1000000: raise max_content"),
    "evidence of nothing": (changed("statement", fact="none"), "this statement .* no earlier line has"),
    "a belief of nothing": (changed("belief", fact="none"), "this belief .* no earlier line has"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_file_changes_nothing_and_says_what_to_do(scripted: GraphMemory, good: list[str], name: str):
    wrong, said = WRONG[name]
    with pytest.raises(InputError, match=said):
        scripted.data.import_(io.BytesIO(wrong(good)), namespace=TO)
    assert not whole(scripted, TO)
    assert TO not in scripted.data.namespaces()
    assert left_aside(scripted.driver.store.database) == []


def test_every_field_of_an_export_is_known_and_checked(scripted: GraphMemory, good: list[str]):
    for told in good[1:-1]:
        line = LINES[json.loads(told)["record"]].model_validate_json(told)
        assert not line.__pydantic_extra__, told


def test_what_a_line_lacks_has_its_default(scripted: GraphMemory, good: list[str]):
    missing = [
        changed("entity", aliases=...),
        changed("verdict", reason=...),
        changed("belief", precision=...),
        changed("predicate", origin=...),
    ]
    for number, change in enumerate(missing):
        namespace = f"lacking {number}"
        scripted.data.import_(io.BytesIO(change(good)), namespace=namespace)
        assert scripted.search("Where does Ann live?", namespace=namespace).facts
        assert len(scripted.entities.list(namespace=namespace)) == len(scripted.entities.list(namespace=FROM))
        assert [each.name for each in scripted.predicates.list(namespace=namespace)] == ["KNOWS"]
        assert scripted.privacy.forget(everything=True, namespace=namespace)


def test_a_small_file_that_unpacks_to_a_large_one_takes_little_memory(scripted: GraphMemory, good: list[str]):
    place = first(good, "episode")
    line = json.loads(good[place])
    many = [json.dumps({**line, "id": f"e{number}", "content": "x" * 900_000}) for number in range(100)]
    lines = [*good[:place], *(each.replace(": ", ":", 1) for each in many), *good[place:]]
    packed = gzip.compress(signed(lines))
    assert len(packed) < 1_000_000
    tracemalloc.start()
    with pytest.raises(InputError, match="checksum differs"):
        scripted.data.import_(io.BytesIO(packed), namespace=TO)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 60_000_000


def test_names_and_texts_that_look_like_cypher_are_names_and_texts(scripted: GraphMemory, good: list[str]):
    evil = "'}) MATCH (n) DETACH DELETE n //"
    data = changed("entity", name=evil, type="`:Fact", summary="\x01\u2028\U0001f4a7$rows")(good)
    scripted.data.import_(io.BytesIO(data), namespace="evil")
    assert evil in {each.name for each in scripted.entities.list(namespace="evil")}
    assert len(scripted.entities.list(namespace="evil")) == len(scripted.entities.list(namespace=FROM))


def test_what_is_written_by_hand_needs_no_words_vectors_or_counts(scripted: GraphMemory):
    told = [json.loads(each) for each in exported(scripted, SMALL).decode().splitlines()]
    bare = [
        told[0],
        *({name: value for name, value in each.items() if name not in ("words", "n")} for each in told[1:]),
    ]
    for each in bare:
        if "embedding" in each:
            each["embedding"] = True
    data = signed([json.dumps(each, separators=(",", ":")) for each in bare])
    done = scripted.data.import_(io.BytesIO(data), namespace="by hand")
    assert done.embedded == sum("embedding" in each for each in told)
    found = scripted.search("Where does Ann live?", namespace="by hand")
    assert [each.sentence for each in found.facts] == ["Ann lives in Paris"]
    assert {each.content for each in found.episodes} == {"I moved to Oslo", "I moved to Paris"}


def test_a_line_that_never_ends_is_not_read_to_its_end(scripted: GraphMemory, good: list[str], monkeypatch):
    monkeypatch.setattr(files, "LONGEST_LINE", 5000)
    endless = "".join(f"{each}\n" for each in good[:1]).encode() + b'{"record":"entity","id":"' + b"x" * 20_000
    with pytest.raises(InputError, match="the file:2: the line is longer than 5000 bytes"):
        scripted.data.import_(io.BytesIO(endless), namespace=TO)


def test_a_compressed_file_that_is_cut_off_is_told(scripted: GraphMemory, good: list[str]):
    packed = gzip.compress(signed(good))
    with pytest.raises(InputError, match="not a complete gzip file"):
        scripted.data.import_(io.BytesIO(packed[:-200]), namespace=TO)
    with pytest.raises(InputError, match=r"not a complete gzip file|ends before|checksum"):
        scripted.data.import_(io.BytesIO(packed[:60] + b"\xff" * 40 + packed[100:]), namespace=TO)
    assert not whole(scripted, TO)


def test_another_embedding_model_is_told_and_vectors_can_be_made_anew(scripted: GraphMemory, good: list[str]):
    other = signed([good[0].replace('"model":"hash"', '"model":"other"'), *good[1:]])
    with pytest.raises(
        EmbeddingMismatch, match="vectors of 'other', not of 'hash'; import with that model, or without"
    ):
        scripted.data.import_(io.BytesIO(other), namespace=TO)
    scripted.data.import_(io.BytesIO(other), namespace="anew", embeddings=False)
    assert scripted.search("Where does Ann live?", namespace="anew", recipe="meaning").facts
    later = signed([good[0].replace('"schema":', '"schema":9'), *good[1:]])
    with pytest.raises(SchemaError, match="upgrade kg-memory"):
        scripted.data.import_(io.BytesIO(later), namespace=TO)

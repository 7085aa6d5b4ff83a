"""A wrong file raises with its line, the problem and the remedy; nothing of it is stored."""

import gzip
import hashlib
import io
import json
import tracemalloc
from collections.abc import Callable

import pytest

from kg_memory import GraphMemory
from kg_memory.errors import EmbeddingMismatch, InputError, SchemaError
from kg_memory.maintenance.transfer import file as files
from kg_memory.maintenance.transfer.records import _TYPES, NODES, RELATIONS
from kg_memory.temporal.interval import OPEN_END
from tests.transfer import exported, left_aside, whole

FROM, SMALL, TO = "a good one", "a small one", "nobody's yet"


@pytest.fixture(scope="module")
def scripted(scripted: GraphMemory) -> GraphMemory:
    for namespace in (FROM, SMALL):
        scripted.add("I moved to Oslo", speaker="Ann", at="2024-01-01", namespace=namespace)
        scripted.add("I moved to Paris", speaker="Ann", at="2024-01-02", namespace=namespace)
    scripted.add("Bob knows Cem and Dora. Cem knows Dora.", speaker="Bob", at="2024-01-02", namespace=FROM)
    scripted.communities.refresh(namespace=FROM)
    scripted.predicates.update("KNOWS", single_valued=False, namespace=FROM)
    [fact] = scripted.facts.about("Cem", namespace=FROM)[:1]
    scripted.facts.retract(fact.id, by="Bob", namespace=FROM)
    return scripted


@pytest.fixture(scope="module")
def good(scripted: GraphMemory) -> list[str]:
    return exported(scripted, FROM).decode().splitlines()


def signed(told: list[str]) -> bytes:
    """Return the lines with a last line that matches them, as an attacker would."""
    body = "".join(f"{each}\n" for each in told[:-1]).encode()
    end = {"record": "end", "counts": json.loads(told[-1])["counts"], "sha256": hashlib.sha256(body).hexdigest()}
    return body + json.dumps(end).encode() + b"\n"


def first(told: list[str], name: str) -> int:
    """Return the place of the first line with this label or type."""
    return next(
        place for place, each in enumerate(told) if json.loads(each).get("label", json.loads(each).get("type")) == name
    )


def changed(name: str, properties: dict[str, object] | None = None, **fields: object) -> Callable[[list[str]], bytes]:
    """Return a function that changes the first line of a label or type; ``...`` removes a property."""

    def change(told: list[str]) -> bytes:
        place = first(told, name)
        line = json.loads(told[place])
        line = {**line, **fields, "properties": {**line.get("properties", {}), **(properties or {})}}
        line["properties"] = {each: value for each, value in line["properties"].items() if value is not ...}
        return signed([*told[:place], json.dumps(line), *told[place + 1 :]])

    return change


def replaced(name: str, old: str, new: str) -> Callable[[list[str]], bytes]:
    """Return a function that replaces text in the first line of a label or type."""

    def change(told: list[str]) -> bytes:
        place = first(told, name)
        assert old in told[place]
        return signed([*told[:place], told[place].replace(old, new, 1), *told[place + 1 :]])

    return change


def without(name: str) -> Callable[[list[str]], bytes]:
    return lambda told: signed([each for place, each in enumerate(told) if place != first(told, name)])


def twice(name: str) -> Callable[[list[str]], bytes]:
    def change(told: list[str]) -> bytes:
        place = first(told, name)
        return signed([*told[: place + 1], *told[place:]])

    return change


WRONG = {
    "cut off": (lambda told: signed(told)[:-400], "ends before its last line; copy or export it again"),
    "its end gone": (lambda told: signed(told).rsplit(b"\n", 2)[0] + b"\n", "ends before its last line"),
    "a line gone": (without("NAMES"), r"was changed since it was written \(its checksum differs\); export it again"),
    "a letter changed": (lambda told: signed(told).replace(b"Oslo", b"Rome", 1), "checksum differs"),
    "nothing": (lambda _: b"", "ends before its last line|no export"),
    "a chat": (lambda _: b'{"content": "hello"}\n', "not an export of kg-memory; pass one, or name its origin with --from"),
    "no text": (lambda _: bytes(range(256)) * 9, "not an export of kg-memory"),
    "a later format": (lambda told: signed([told[0].replace('"format":1', '"format":9'), *told[1:]]), "format 9, .*upgrade"),
    "an unknown label": (replaced("Alias", '"Alias"', '"Soul"'), ":.*unknown label or type 'Soul'; upgrade kg-memory"),
    "an unknown type": (replaced("NAMES", '"NAMES"', '"HAUNTS"'), ":.*unknown label or type 'HAUNTS'; upgrade"),
    "no JSON": (replaced("Entity", '"name"', "name"), "the file:2: not JSON"),
    "a list": (lambda told: signed([told[0], "[1]", *told[1:]]), "the file:2: the line must be a JSON object"),
    "an unknown field": (changed("Entity", more=1), "the file:2: more: Extra inputs"),
    "a property gone": (changed("Entity", {"name": ...}), "the file:2: name: the property is missing; export it again"),
    "a number as name": (changed("Entity", {"name": 7}), "the file:2: name: .*string"),
    "NaN": (replaced("Fact", '"confidence":1.0', '"confidence":NaN'), "confidence: .*finite"),
    "infinity": (replaced("Fact", '"confidence":1.0', '"confidence":1e999'), "confidence: .*finite"),
    "half a character": (replaced("Entity", '"summary":"', '"summary":"\\ud800'), "the file:2: not JSON"),
    "a NUL": (replaced("Entity", '"summary":"', '"summary":"\\u0000'), "summary: the text must have no NUL and no lone surrogate; remove"),
    "a map": (changed("Entity", {"more": {"a": 1}}), "more: "),
    "Cypher as a property": (changed("Entity", {"x` SET n.id=1 //": 1}), "a property name must have letters"),
    "an empty id": (changed("Entity", {"id": ""}), "id: a key must have 1 to 1000 bytes and no spaces around it; choose another"),
    "a padded id": (changed("Fact", {"id": " x"}), "id: a key must have 1 to 1000 bytes"),
    "no time": (changed("Episode", {"at": "yesterday"}), "at: .*integer"),
    "a time beyond the calendar": (changed("Episode", {"at": 2**62}), "at: the time must be in the years 1 to 9999; correct it"),
    "the year 10000": (changed("Entity", {"last_seen": 253_402_300_800_000_000}), "last_seen: the time must be in the years"),
    "an end beyond the calendar": (changed("Belief", {"invalid_at": 2**61}), "invalid_at: the time must be in the years"),
    "an open end of a message": (changed("Episode", {"at": OPEN_END}), "at: the time must be in the years 1 to 9999"),
    "an open end as a start": (changed("Belief", {"valid_at": OPEN_END}), "valid_at: the time must be in the years"),
    "a level that is a text": (changed("Community", {"level": "high"}), "level: .*integer"),
    "an origin that is none": (changed("Predicate", {"origin": "bogus"}), "origin: .*'corrected'"),
    "single-valued, seven times": (changed("Predicate", {"single_valued": 7}), "single_valued: .*boolean"),
    "a decision that is none": (changed("Decision", {"decision": "maybe"}), "decision: .*'accept'"),
    "a decision of nobody": (changed("Decision", {"by": None}), "by: the property is missing"),
    "a ruling of nothing": (changed("Decision", {"ruling": 1}), "ruling: "),
    "a number beyond all": (changed("STATES", {"start": 2**70}), "start: "),
    "another dimension": (changed("Fact", embedding="AAAAAA=="), "must be base64 of 64 32-bit floats; export it again"),
    "no vector": (changed("Fact", embedding="*" * 12), "must be base64 of 64 32-bit floats"),
    "no direction": (changed("Entity", embedding="A" * 341 + "="), "must be base64|set it to true"),
    "words that are none": (changed("Entity", words={"ann": -1}), "words.ann: "),
    "the same twice": (twice("Entity"), "the file:3: this Entity occurs twice, or refers to a node of no earlier line"),
    "a fact twice": (twice("Fact"), "this Fact occurs twice"),
    "a fact of nobody": (changed("Fact", ends=["nobody", "x"]), "this Fact .* refers to a node of no earlier line"),
    "a fact without ends": (changed("Fact", ends=[]), "ends: a fact must have the ids of its subject and its objects"),
    "a precision that is none": (changed("Belief", {"precision": "bogus"}), "precision: .*'instant'"),
    "a status that is none": (changed("Episode", {"status": 7}), "status: "),
    "flags that are none": (changed("Episode", {"flags": "override"}), "flags: .*list"),
    "attempts below zero": (changed("Episode", {"attempts": -1}), "attempts: .*greater"),
    "a reason that is a number": (changed("Verdict", {"reason": 7}), "reason: .*string"),
    "a ruling that is none": (changed("Verdict", {"ruling": "maybe"}), "ruling: "),
    "a quote that ends before it starts": (changed("STATES", {"start": 9, "end": 3}), "end must not be before start"),
    "a confidence of seven": (changed("Fact", {"confidence": 7.0}), "confidence: .*less"),
    "a long text": (changed("Episode", {"content": "x" * 1_000_001}), "has 1000001 characters, the limit is 1000000: raise max_content"),
    "evidence of nothing": (changed("STATES", to="none"), "this STATES .* refers to a node of no earlier line"),
    "a belief of nothing": (changed("HELD", **{"from": "none"}), "this HELD .* no earlier line"),
    "evidence by a number": (changed("STATES", to=7), "to: .*string"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_file_raises_with_advice_and_changes_nothing(scripted, good, name):
    wrong, said = WRONG[name]
    with pytest.raises(InputError, match=said):
        scripted.data.import_(io.BytesIO(wrong(good)), namespace=TO)
    assert not whole(scripted, TO)
    assert TO not in scripted.data.namespaces()
    assert left_aside(scripted.driver.store.database) == []


def test_every_property_of_an_export_is_known(good):
    for told in map(json.loads, good[1:-1]):
        shape = NODES[told["label"]] if "label" in told else RELATIONS[told["type"]].shape
        assert told.get("properties", {}).keys() <= {*_TYPES, *shape.types}, told


def test_missing_property_gets_its_default(scripted, good):
    missing = {"Entity": "aliases", "Verdict": "reason", "Belief": "precision", "Predicate": "origin"}
    for label, name in missing.items():
        namespace = f"lacking {name}"
        scripted.data.import_(io.BytesIO(changed(label, {name: ...})(good)), namespace=namespace)
        assert scripted.search("Where does Ann live?", namespace=namespace).facts
        assert len(scripted.entities.list(namespace=namespace)) == len(scripted.entities.list(namespace=FROM))
        assert [each.name for each in scripted.predicates.list(namespace=namespace)] == ["KNOWS"]
        assert scripted.privacy.forget(everything=True, namespace=namespace)


def test_import_of_gzip_bomb_uses_little_memory(scripted, good):
    place = first(good, "Episode")
    line = json.loads(good[place])["properties"]
    copies = ({**line, "id": f"e{number}", "content": "x" * 900_000} for number in range(100))
    lines = [*good[:place], *(json.dumps({"label": "Episode", "properties": each}) for each in copies), *good[place:]]
    packed = gzip.compress(signed(lines))
    assert len(packed) < 1_000_000
    tracemalloc.start()
    with pytest.raises(InputError, match="checksum differs"):
        scripted.data.import_(io.BytesIO(packed), namespace=TO)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 60_000_000


def test_names_that_look_like_cypher_are_stored_as_text(scripted, good):
    evil = "'}) MATCH (n) DETACH DELETE n //"
    data = changed("Entity", {"name": evil, "type": "`:Fact", "summary": "\x01\u2028\U0001f4a7$rows"})(good)
    scripted.data.import_(io.BytesIO(data), namespace="evil")
    assert evil in {each.name for each in scripted.entities.list(namespace="evil")}
    assert len(scripted.entities.list(namespace="evil")) == len(scripted.entities.list(namespace=FROM))


def test_handwritten_file_needs_no_words_vectors_or_counts(scripted):
    told = [json.loads(each) for each in exported(scripted, SMALL).decode().splitlines()]
    bare = [{name: value for name, value in each.items() if name != "words"} for each in told]
    for each in bare[1:-1]:
        each.get("properties", {}).pop("n", None)
        if "embedding" in each:
            each["embedding"] = True
    data = signed([json.dumps(each, separators=(",", ":")) for each in bare])
    done = scripted.data.import_(io.BytesIO(data), namespace="by hand")
    assert done.embedded == sum("embedding" in each for each in told)
    found = scripted.search("Where does Ann live?", namespace="by hand")
    assert [each.sentence for each in found.facts] == ["Ann lives in Paris"]
    assert {each.content for each in found.episodes} == {"I moved to Oslo", "I moved to Paris"}


def test_endless_line_is_not_read_to_its_end(scripted, good, monkeypatch):
    monkeypatch.setattr(files, "LONGEST_LINE", 5000)
    endless = f"{good[0]}\n".encode() + b'{"label":"Entity","properties":{"id":"' + b"x" * 20_000
    with pytest.raises(InputError, match="the file:2: the line is longer than 5000 bytes"):
        scripted.data.import_(io.BytesIO(endless), namespace=TO)


def test_truncated_gzip_file_raises(scripted, good):
    packed = gzip.compress(signed(good))
    with pytest.raises(InputError, match="not a complete gzip file"):
        scripted.data.import_(io.BytesIO(packed[:-200]), namespace=TO)
    with pytest.raises(InputError, match=r"not a complete gzip file|ends before|checksum"):
        scripted.data.import_(io.BytesIO(packed[:60] + b"\xff" * 40 + packed[100:]), namespace=TO)
    assert not whole(scripted, TO)


def test_vectors_of_another_model_raise_or_are_embedded_again(scripted, good):
    other = signed([good[0].replace('"model":"hash"', '"model":"other"'), *good[1:]])
    with pytest.raises(EmbeddingMismatch, match="vectors of 'other', but this memory uses 'hash': open it"):
        scripted.data.import_(io.BytesIO(other), namespace=TO)
    scripted.data.import_(io.BytesIO(other), namespace="anew", embeddings=False)
    assert scripted.search("Where does Ann live?", namespace="anew", recipe="meaning").facts
    later = signed([good[0].replace('"schema":', '"schema":9'), *good[1:]])
    with pytest.raises(SchemaError, match="upgrade kg-memory"):
        scripted.data.import_(io.BytesIO(later), namespace=TO)

"""The files of the explorer, and its own routes."""

from __future__ import annotations

import hashlib
import json
import re
import struct
from pathlib import Path
from typing import Any

import httpx
import pytest

from kg_memory import GraphMemory
from kg_memory.contrib.server.explorer.columns import FAR
from kg_memory.contrib.server.keys import KeyRing
from tests.server.conftest import Client, Serving

ARRAYS = {"u1": "B", "u2": "H", "u4": "I", "i4": "i", "f8": "d"}
ROOT = Path(__file__).parents[2]
STATIC = ROOT / "kg_memory/contrib/server/explorer/static"
ROW = re.compile(r"^\| (\S+) \| (\S+) \| ([\d.]+) \| (\S+) \| (.+?) \| ([0-9a-f]{64}) \|$", re.MULTILINE)
MARKUP = "innerHTML|outerHTML|insertAdjacentHTML|document.write|DOMParser|eval(|new Function|srcdoc".split("|")


@pytest.fixture(scope="module")
def story(offline: GraphMemory) -> str:
    """A namespace with an ended fact, a doubtful fact, and an expired belief."""
    namespace = "columns/1"
    add = offline.facts.add
    add("Polaris", "has an office in", "Oslo", valid_at="2023", namespace=namespace)
    office = offline.facts.about("Polaris", namespace=namespace)[0]
    add("Ann", "commutes to", "Oslo", rests_on=[office.id], at="2023-06-01", namespace=namespace)
    add("Polaris", "has an office in", "Oslo", valid_at="2023", invalid_at="2024-05-03", namespace=namespace)
    content = "I live in Bergen. Coffee keeps me alive, so Lisbon sounds right."
    offline.add(content, speaker="Ann", at="2024-01-10", thread="t", trust=0.5, namespace=namespace)
    return namespace


def decode(answer: httpx.Response) -> dict[str, Any]:
    """Return the columns of an answer, with their arrays as lists."""
    content = answer.content
    length = int.from_bytes(content[:8], "little")
    first = 8 + -(-length // 8) * 8

    def read(value: dict[str, Any]) -> Any:
        if "array" not in value:
            return value
        return list(struct.unpack_from(f"<{value['length']}{ARRAYS[value['array']]}", content, first + value["start"]))

    return json.loads(content[8 : 8 + length], object_hook=read)


def test_vendored_files_match_third_party_list() -> None:
    rows = ROW.findall((ROOT / "THIRD_PARTY.md").read_text("utf-8"))
    for path, *_, sha256 in rows:
        assert hashlib.sha256((ROOT / path).read_bytes()).hexdigest() == sha256, path
    listed = {ROOT / path for path, *_ in rows}
    assert {path for path in (STATIC / "vendor").iterdir() if path.suffix == ".js"} <= listed
    assert all(not licence.startswith("MIT") or ".LICENSE.txt" in licence for *_, licence, _ in rows)
    assert sum(path.stat().st_size for path in (STATIC / "vendor").iterdir()) < 500_000


def test_scripts_create_no_markup_and_name_no_other_host() -> None:
    written = [path for path in STATIC.rglob("*") if path.suffix in {".js", ".html", ".css"}]
    for path in (path for path in written if path.parent.name != "vendor"):
        text = path.read_text("utf-8")
        assert text.count("\n") <= 400, path
        assert not [word for word in MARKUP if word in text], path
        assert not re.findall(r"https?://(?!www\.w3\.org/)", text), path
        assert " style=" not in text or path.suffix != ".html", path


def test_page_preloads_all_modules() -> None:
    page = (STATIC / "index.html").read_text("utf-8")
    named = set(re.findall(r'(?:href|src)="js/([\w-]+)\.js"', page))
    assert named == {path.stem for path in (STATIC / "js").glob("*.js")} - {"layout-worker"}


def test_word_files_of_both_languages_have_equal_keys() -> None:
    words = {}
    for name in ("en", "zh"):
        text = (STATIC / f"js/words-{name}.js").read_text("utf-8")
        words[name] = dict(re.findall(r'"((?:[^"\\]|\\.)+)": "((?:[^"\\]|\\.)*)"', text))
    assert words["en"].keys() == words["zh"].keys()
    for key, text in words["en"].items():
        assert set(re.findall(r"\{\w+\}", text)) == set(re.findall(r"\{\w+\}", words["zh"][key])), key
    scripts = "".join(path.read_text("utf-8") for path in (STATIC / "js").glob("*.js"))
    assert set(re.findall(r'\b(?:t|count)\("([^"]+)"', scripts)) <= words["en"].keys()


def test_page_has_strict_security_headers(serving: Serving) -> None:
    moved = httpx.get(f"{serving.url}/explorer")
    assert (moved.status_code, httpx.URL(moved.url).join(moved.headers["location"]).path) == (307, "/explorer/")
    for path in ("", "js/main.js", "vendor/sigma.min.js", "css/base.css"):
        answer = httpx.get(f"{serving.url}/explorer/{path}")
        policy = answer.headers["content-security-policy"]
        assert answer.status_code == 200
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "require-trusted-types-for 'script'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert httpx.get(f"{serving.url}/explorer/../app.py").status_code == 404
    assert httpx.get(f"{serving.url}/explorer/%2e%2e/routes.py").status_code == 404
    assert httpx.get(f"{serving.url}/explorer/", headers={"Host": "evil.example"}).status_code == 421


def test_requests_of_other_origins_cannot_write(serving: Serving) -> None:
    url = f"{serving.url}/v1/namespaces/csrf/episodes"
    for origin in ("https://evil.example", "null"):
        headers = {"Origin": origin, "Content-Type": "text/plain"}
        answer = httpx.post(url, content=json.dumps({"content": "I own Acme."}), headers=headers)
        assert answer.status_code == 403
    plain = httpx.post(url, content="{}", headers={"Content-Type": "text/plain"})
    assert (plain.status_code, "Content-Type: application/json" in plain.text) == (422, True)
    assert httpx.get(f"{serving.url}/v1/namespaces/csrf/stats").json()["episodes"] == 0


def test_columns_contain_all_facts_but_quotes(client: Client, story: str, offline: GraphMemory) -> None:
    reader = client("read")
    answer = reader.get("/v1/namespaces/columns%2F1/explorer/columns")
    columns = decode(answer)
    names, facts = columns["entities"]["name"], columns["facts"]
    objects = list(zip(facts["withObject"], facts["object"], strict=True))
    told = {
        (names[subject], columns["predicates"][predicate], *(names[place] for fact, place in objects if fact == number))
        for number, (subject, predicate) in enumerate(zip(facts["subject"], facts["predicate"], strict=True))
    }
    stored = offline.facts.list(namespace=story)
    drawn = reader.get("/api/graph/global", params={"namespace": story}).json()["elements"]["edges"]
    for shown in ({*columns["predicates"]}, {edge["data"]["label"] for edge in drawn}):
        assert {fact.predicate for fact in stored} - shown == {"SAYS_ABOUT"}, "that fact only quotes"
    assert told == {(fact.subject, fact.predicate, *fact.objects) for fact in stored if fact.predicate in shown}
    beliefs = columns["beliefs"]
    assert len({len(column) for column in beliefs.values()}) == 1
    office = facts["id"].index(next(fact.id for fact in stored if fact.subject == "Polaris"))
    ends = {until for fact, until in zip(beliefs["fact"], beliefs["until"], strict=True) if fact == office}
    assert ends == {FAR, 1714694400000}
    commute, lives = (
        facts["id"].index(next(f.id for f in stored if words in f.sentence)) for words in ("commutes", "live")
    )
    assert columns["premises"] == {"facts": [commute], "premises": [office]}
    sources = columns["sources"]
    by = sources["by"][sources["facts"].index(lives)]
    assert (sources["speaker"][by], sources["thread"][by], sources["trust"][by]) == ("Ann", "t", 0.5)
    again = reader.get(answer.request.url, headers={"If-None-Match": answer.headers["etag"]})
    assert again.status_code == 304
    offline.entities.merge("Oslo", "Bergen", namespace=story)
    merged = reader.get(answer.request.url, headers={"If-None-Match": answer.headers["etag"]})
    assert "Bergen" not in decode(merged)["entities"]["name"]


def test_columns_are_compressed_only_for_other_machines(client: Client, story: str) -> None:
    reader = client("read")
    path = "/v1/namespaces/columns%2F1/explorer/columns"
    here = reader.get(path)
    assert "content-encoding" not in here.headers
    proxied = {"X-Forwarded-For": "192.0.2.1"}
    there = reader.get(path, headers=proxied)
    assert there.headers["content-encoding"] == "gzip"
    assert {**decode(there), "now": 0} == {**decode(here), "now": 0}
    assert "content-encoding" not in reader.get(path, headers={**proxied, "Accept-Encoding": "identity"}).headers


def test_columns_keep_their_order_with_line_breaks_in_texts(client: Client, offline: GraphMemory) -> None:
    for number in range(2):
        offline.add("I live in Lima.", speaker=f"Ann\n{number}", thread="\n", source="\na\n", namespace="columns/lines")
    columns = decode(client("read").get("/v1/namespaces/columns%2Flines/explorer/columns"))
    assert columns["sources"]["speaker"] == ["Ann 0", "Ann 1"]
    assert set(columns["entities"]["name"]) == {"Ann 0", "Ann 1", "Lima"}
    assert len(columns["facts"]["id"]) == len(columns["facts"]["kind"]) == 2
    empty = decode(client("read").get("/v1/namespaces/columns%2Fempty/explorer/columns"))
    assert (empty["entities"]["id"], empty["facts"]["id"], empty["disputed"]) == ([], [], [])


def test_columns_follow_the_graph_of_their_namespace(client: Client, offline: GraphMemory) -> None:
    reader, paths = client("read"), [f"/v1/namespaces/columns%2F{name}/explorer/columns" for name in ("3", "4")]
    for name, number in (("Tromsø", "3"), ("Bodø", "4")):
        offline.add(f"I live in {name}.", speaker="Liv", namespace=f"columns/{number}")
    first = reader.get(paths[0])
    assert ("Tromsø" in first.text, "Bodø" in first.text) == (True, False)
    offline.privacy.forget(speaker="Liv", namespace="columns/3")
    assert "Tromsø" not in reader.get(paths[0], headers={"If-None-Match": first.headers["etag"]}).text
    assert "Bodø" in reader.get(paths[1]).text


def test_columns_are_served_only_to_keys_with_access(client: Client, offline: GraphMemory, ring: KeyRing) -> None:
    offline.add("I live in Vardø.", speaker="Liv", namespace="columns/7")
    path = "/v1/namespaces/columns%2F7/explorer/columns"
    _, secret = ring.create("reader", ["read"], ["columns/*"])
    refused = {
        "another namespace": ring.create("other", ["read"], ["columns/8"])[1],
        "another scope": ring.create("writer", ["write"], ["columns/7"])[1],
        "none": "",
    }
    anyone = client()
    first = anyone.get(path, headers={"X-API-Key": secret})
    assert "Vardø" in first.text
    for reason, other in refused.items():
        for tag in ({}, {"If-None-Match": first.headers["etag"]}):
            answer = anyone.get(path, headers={"X-API-Key": other, **tag})
            assert answer.status_code == (403 if other else 401), reason
            assert "Vardø" not in answer.text
            assert "etag" not in answer.headers
    ring.revoke(secret.split("_")[1])
    assert anyone.get(path, headers={"X-API-Key": secret}).status_code == 401


def test_doubts_match_those_of_the_memory(client: Client, story: str, offline: GraphMemory) -> None:
    (commute,) = [fact for fact in offline.facts.about("Ann", namespace=story) if "commutes" in fact.sentence]
    reader = client("read")
    now = int(commute.created_at.timestamp() * 1000) + 60_000
    path = "/v1/namespaces/columns%2F1/explorer/doubts"
    assert commute.doubtful_since is not None
    since = int(commute.doubtful_since.timestamp() * 1000)
    assert reader.get(path, params={"as_of": now, "believed_at": now}).json() == {commute.id: since}
    assert reader.get(path, params={"as_of": now, "believed_at": 0}).json() == {}
    assert reader.get(path, params={"as_of": now, "believed_at": 2 * FAR}).status_code == 422


def test_explorer_routes_require_a_key(client: Client, offline: GraphMemory) -> None:
    client("read", namespaces=("mine",))
    anyone = client()
    paths = ("/v1/namespaces/columns%2F2/explorer/columns", "/explorer/story.jsonl", "/explorer/moment?text=2024")
    assert [anyone.get(path).status_code for path in paths] == [401, 401, 401]
    other = client("read", namespaces=("mine",))
    assert [other.get(path).status_code for path in paths] == [403, 200, 200]
    assert anyone.get("/explorer/").status_code == 200
    assert other.get("/explorer/moment", params={"text": "2024-05"}).json() == {"at": 1714521600000}
    assert other.get("/explorer/moment", params={"text": "gibberish"}).status_code == 422

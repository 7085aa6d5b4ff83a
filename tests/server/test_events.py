"""Server-sent events of a namespace, live and after a reconnect."""

import json
from collections.abc import Iterator

import httpx
import pytest

ROOT = "/v1/namespaces/news"


def follow(client: httpx.Client, last: str | None = None, root: str = ROOT) -> Iterator[tuple[str, str, dict]]:
    """Yield the id, the name and the data of each event."""
    headers = {"Last-Event-ID": last} if last else {}
    with client.stream("GET", f"{root}/events", headers=headers) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        event: dict[str, str] = {}
        for line in answer.iter_lines():
            name, _, value = line.partition(": ")
            event |= {name: value}
            if not line and "data" in event:
                yield event["id"], event["event"], json.loads(event["data"])
                event = {}


def test_events_stream_live_and_resume_after_interruption(client):
    admin = client("admin")
    told = follow(admin)
    assert next(told)[1] == "counts"
    admin.post(f"{ROOT}/episodes", json={"content": "I live in Bergen.", "speaker": "Ann", "at": "2024-01-10"})
    names, last = [], ""
    for id_, name, data in told:
        names.append(name)
        last = id_
        if name == "fact.learned":
            assert data["after"]["objects"] == ["Bergen"]
        if name == "counts" and "fact.learned" in names:
            break
    assert "episode" in names
    told.close()
    oslo = {"subject": "Ann", "predicate": "LIVES_IN", "object": "Oslo", "valid_at": "2024-05"}
    admin.post(f"{ROOT}/facts", json=oslo)
    ended = next(data for _, name, data in follow(admin, last) if name == "fact.ended")
    assert ended["after"]["objects"] == ["Bergen"]
    kinds = {name for _, (_, name, _) in zip(range(3), follow(admin, "1000000-1"), strict=False)}
    assert "episode" in kinds, "after a long absence the stream lists the existing episodes"


@pytest.mark.parametrize("last", ["x", "1", "-1-1", "9" * 30 + "-1"])
def test_events_refuse_unknown_last_event_id(client, last):
    assert client("read").get(f"{ROOT}/events", headers={"Last-Event-ID": last}).status_code == 422


def test_events_end_for_revoked_key(client, ring):
    root = "/v1/namespaces/revoked"  # a separate namespace without other streams, so that counts come first
    told = follow(client("read", namespaces=("revoked",)), root=root)
    assert next(told)[1] == "counts"
    (key,) = [key for key in ring.list() if key.namespaces == ("revoked",)]
    ring.revoke(key.id)
    client("admin").post(f"{root}/episodes", json={"content": "I live in Rome.", "speaker": "Bob"})
    assert list(told) == [], "the stream ends"


def test_events_end_after_unexpected_error_of_feed(client, monkeypatch):
    admin, root = client("admin"), "/v1/namespaces/failing"
    told = follow(admin, root=root)
    assert next(told)[1] == "counts"
    with monkeypatch.context() as broken:
        broken.setattr("kg_memory.contrib.server.news.Watch.look", lambda watch: 1 / 0)
        assert list(told) == [], "the stream ends"
    assert next(follow(admin, root=root))[1] == "counts"

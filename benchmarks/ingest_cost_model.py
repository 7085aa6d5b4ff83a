"""A scripted model over HTTP for `ingest_cost.py`, which gives every system the same reading of each message.

It speaks OpenAI's protocol in a separate process. A message contains what the offline reader finds in it, in whatever
form it is asked for: kg-memory's prompts are recognised by their names, Graphiti's by the names of their answers. ``GET
/count`` returns the counts so far: calls, tokens of prompts (with the schema of the answer, which a server adds to the
prompt), embedding requests, and the milliseconds in which at least one request was in progress.
"""

from __future__ import annotations

import ast
import base64
import json
import multiprocessing
import threading
import time
import urllib.request
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from typing import Any

from langchain_core.embeddings import Embeddings

from benchmarks.graphiti_prompts import block
from kg_memory.contrib.offline import OfflineModel
from kg_memory.contrib.offline.embeddings import LocalEmbeddings
from kg_memory.llm import prompts
from kg_memory.models.graph import EpisodeInput
from kg_memory.runtime.effects import Ask
from kg_memory.text.tokenise import estimate_tokens
from tests.chat_server import PROMPTS, fenced

ENCODING = "o200k_base"
Reading = Mapping[str, Any]


@contextmanager
def served(
    episodes: Sequence[EpisodeInput],
    latency: float = 0.0,
    readings: Mapping[str, Reading] | None = None,
    embeddings: Embeddings | None = None,
) -> Iterator[str]:
    """Serve a scripted model of *episodes* in the with block, and yield its base URL.

    *readings* maps contents of messages to entities and facts; other messages are read by the offline reader. Each
    answer takes at least *latency* seconds.
    """
    ours, theirs = multiprocessing.Pipe()
    told = [each.model_dump(mode="json") for each in episodes]
    process = multiprocessing.get_context("spawn").Process(
        target=_serve, args=(told, readings or {}, embeddings, theirs, latency), daemon=True
    )
    process.start()
    theirs.close()  # so that it is noticed when the process ends before it serves
    try:
        yield f"http://127.0.0.1:{ours.recv()}/v1"
    finally:
        process.terminate()
        process.join()


def counted(url: str) -> dict[str, float]:
    """Return the counts of requests so far from the model at *url*."""
    with urllib.request.urlopen(f"{url}/count") as answer:  # noqa: S310 - our own server
        return dict(json.load(answer))


def _serve(
    episodes: list[dict[str, Any]],
    readings: Mapping[str, Reading],
    embeddings: Embeddings | None,
    told: Connection,
    seconds: float,
) -> None:
    script = Script(episodes, readings, embeddings or LocalEmbeddings())

    class Handler(_Handler):
        model = script
        latency = seconds

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    told.send(server.server_port)
    server.serve_forever()


def stated(subject: str, predicate: str, other: str, sentence: str, quote: str) -> dict[str, Any]:
    """Return an undated fact for a reading, with the usual confidence."""
    return {
        "subject": subject, "predicate": predicate, "objects": [other], "sentence": sentence, "quote": quote,
        "valid_at": None, "invalid_at": None, "confidence": 0.9, "edge_type": "semantic",
    }  # fmt: skip


class Script:
    """The scripted readings of all messages (entities and facts), in the forms that kg-memory and Graphiti ask for."""

    def __init__(
        self, episodes: Sequence[Mapping[str, Any]], readings: Mapping[str, Reading], embeddings: Embeddings
    ) -> None:
        self.embeddings = embeddings
        self.tokens = _tokens()
        self.count = {"calls": 0, "prompt_tokens": 0, "embedding_requests": 0, "model_ms": 0.0}
        self.lock = threading.Lock()
        self.busy = Busy(self.count)
        self._offline = OfflineModel()
        self._readings = {each["content"]: readings.get(each["content"]) or self._read(each) for each in episodes}

    def _read(self, episode: Mapping[str, Any]) -> Reading:
        told = {"kind": "message", **{name: episode[name] for name in ("content", "speaker", "at")}}
        fields = {"episode": told, "previous": [], "entity_types": {}, "fact_types": [], "instructions": ""}
        return self._offline.answer(Ask(prompts.READ, fields)).model_dump()

    def answer(self, form: str, asked: str) -> Any:
        """Return the answer to the prompt *asked* in the given *form*."""
        fields = fenced(asked)
        if fields:
            return self._to_us(form, fields)
        return _TO_GRAPHITI[form](self, asked)

    def _to_us(self, form: str, fields: Mapping[str, Any]) -> Any:
        match form:
            case "EpisodeReading":
                return self._reading_of(fields["episode"])
            case "WindowReading":
                readings = [(each["message"], self._reading_of(each)) for each in fields["messages"]]
                return {
                    part: [{"message": message, **one} for message, reading in readings for one in reading[part]]
                    for part in ("entities", "facts")
                }
            case "ExtractedEntities":
                return {"entities": self._reading_of(fields["episode"])["entities"]}
            case "Reflection":
                return {"missed": [], "unsupported": []}
            case "ExtractedFacts":
                facts = self._reading_of(fields["episode"])["facts"]
                return {"facts": list(_by_id(facts, fields["entities"]))}
        return self._offline.answer(Ask(PROMPTS[form], fields)).model_dump()

    def _reading_of(self, episode: Mapping[str, Any]) -> Reading:
        """Return the entities and facts of an episode; a piece of a long message is read now."""
        known = self._readings.get(episode["content"])
        return self._read(episode) if known is None else known

    def reading(self, asked: str, tag: str) -> Reading:
        """Return the entities and facts of the message that stands within <*tag*> in the prompt *asked*."""
        text = block(asked, tag)
        return next(found for content, found in self._readings.items() if content.strip() in text)


class Busy:
    """Sums up the time in which at least one HTTP request was in progress."""

    def __init__(self, count: dict[str, float]) -> None:
        self._count = count
        self._lock = threading.Lock()
        self._under_way, self._since = 0, 0.0

    def __enter__(self) -> None:
        with self._lock:
            if not self._under_way:
                self._since = time.perf_counter()
            self._under_way += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._under_way -= 1
            if not self._under_way:
                self._count["model_ms"] += 1000 * (time.perf_counter() - self._since)


def _by_id(facts: Sequence[Mapping[str, Any]], entities: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    places = {name.casefold(): each["id"] for each in entities for name in (*each["called"], each["name"])}
    for fact in facts:
        ends = [places.get(name.casefold()) for name in (fact["subject"], *fact["objects"])]
        if None not in ends:
            yield {**fact, "subject": ends[0], "objects": ends[1:]}


def _entities(script: Script, asked: str) -> Any:
    found = script.reading(asked, "CURRENT MESSAGE")["entities"]
    return {"extracted_entities": [{"name": each["name"], "entity_type_id": 0} for each in found]}


def _edges(script: Script, asked: str) -> Any:
    facts = script.reading(asked, "CURRENT_MESSAGE")["facts"]
    known = {each["name"].casefold(): each["name"] for each in json.loads(block(asked, "ENTITIES"))}
    told = ((fact, [known.get(name.casefold()) for name in (fact["subject"], *fact["objects"][:1])]) for fact in facts)
    return {
        "edges": [
            {
                "source_entity_name": ends[0], "target_entity_name": ends[1], "relation_type": fact["predicate"],
                "fact": fact["sentence"], "valid_at": fact["valid_at"], "invalid_at": fact["invalid_at"],
                "episode_indices": [0],
            }
            for fact, ends in told if None not in ends
        ]
    }  # fmt: skip


def _same(_: Script, asked: str) -> Any:
    known = {each["name"].casefold(): each["candidate_id"] for each in json.loads(block(asked, "EXISTING ENTITIES"))}
    new = json.loads(block(asked, "ENTITIES"))
    return {
        "entity_resolutions": [
            {"id": each["id"], "name": each["name"], "duplicate_candidate_id": known.get(each["name"].casefold(), -1)}
            for each in new
        ]
    }


def _duplicates(_: Script, asked: str) -> Any:
    known, new = ast.literal_eval(block(asked, "EXISTING FACTS")), block(asked, "NEW FACT")
    return {"duplicate_facts": [each["idx"] for each in known if each["fact"] == new], "contradicted_facts": []}


def _undated(_: Script, asked: str) -> Any:
    count = asked.count('"fact":') or 1
    return {"timestamps": [{"valid_at": None, "invalid_at": None}] * count}


_TO_GRAPHITI: dict[str, Callable[[Script, str], Any]] = {
    "ExtractedEntities": _entities,
    "ExtractedEdges": _edges,
    "NodeResolutions": _same,
    "EdgeDuplicate": _duplicates,
    "EdgeTimestamps": lambda *_: {"valid_at": None, "invalid_at": None},
    "BatchEdgeTimestamps": _undated,
    "SummarizedEntities": lambda *_: {"summaries": []},
}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # otherwise each answer waits 40 ms for the acknowledgement of its headers
    model: Script
    latency: float

    def do_GET(self) -> None:
        self._send(json.dumps(self.model.count).encode())

    def do_POST(self) -> None:
        with self.model.busy:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            told = self._embed(body) if self.path.endswith("/embeddings") else self._chat(body)
            sent = json.dumps(told).encode()
        self._send(sent)

    def _embed(self, body: Mapping[str, Any]) -> Any:
        script = self.model
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        with script.lock:
            script.count["embedding_requests"] += 1
            vectors: Sequence[Any] = script.embeddings.embed_documents(texts)
        if body.get("encoding_format") == "base64":  # which OpenAI's client asks for by itself
            vectors = [base64.b64encode(array("f", row).tobytes()).decode() for row in vectors]
        data = [{"object": "embedding", "index": place, "embedding": row} for place, row in enumerate(vectors)]
        return {"object": "list", "model": "local", "data": data, "usage": {"prompt_tokens": 0, "total_tokens": 0}}

    def _chat(self, body: Mapping[str, Any]) -> Any:
        script = self.model
        time.sleep(self.latency)
        asked = "\n".join(each["content"] for each in body["messages"])
        schema = body["response_format"]["json_schema"]
        tokens = script.tokens(asked) + script.tokens(json.dumps(schema["schema"]))
        with script.lock:
            script.count["calls"] += 1
            script.count["prompt_tokens"] += tokens
            text = json.dumps(script.answer(schema["name"], asked))
        usage = {"prompt_tokens": tokens, "completion_tokens": script.tokens(text), "total_tokens": tokens}
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        about = {"id": "1", "object": "chat.completion", "created": 1, "model": "scripted"}
        return {**about, "choices": [choice], "usage": usage}

    def log_message(self, *_: Any) -> None:
        """Suppress the request log."""

    def _send(self, sent: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)


def _tokens() -> Callable[[str], int]:
    """Return a function that counts tokens: by OpenAI's tokenizer if it is available, else by our estimate."""
    try:
        import tiktoken  # noqa: PLC0415 - reads its words from the network

        encoding = tiktoken.get_encoding(ENCODING)
    except (ImportError, OSError, ValueError):
        return estimate_tokens
    return lambda text: len(encoding.encode(text, disallowed_special=()))

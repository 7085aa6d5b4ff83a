"""A scripted model over HTTP for `ingest_cost.py`: one reading of each message, told to whoever asks, and counted.

It speaks OpenAI's protocol in a process of its own. What a message says is what the offline reader finds in it, whoever
asks and in whatever form: kg-memory's prompts are recognised by their names, Graphiti's by those of its answers.
``GET /count`` tells what was asked so far: calls, tokens of prompts (with the schema of the answer, which a server puts
before the model too) and requests for embeddings.
"""

from __future__ import annotations

import ast
import json
import multiprocessing
import threading
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from typing import Any

from benchmarks.graphiti_prompts import block
from kg_memory import prompts
from kg_memory.effects import Ask, Prompt
from kg_memory.model import EpisodeInput
from kg_memory.offline.embeddings import LocalEmbeddings
from kg_memory.offline.model import OfflineModel
from kg_memory.retrieval.context import estimate
from tests.chat_server import fenced

ENCODING = "o200k_base"
PROMPTS = {each.answer.__name__: each for each in vars(prompts).values() if isinstance(each, Prompt)}
Reading = Mapping[str, Any]


@contextmanager
def served(episodes: Sequence[EpisodeInput]) -> Iterator[str]:
    """Serve a model that has read *episodes*, and yield its base URL."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=_serve, args=([each.model_dump(mode="json") for each in episodes], theirs), daemon=True
    )
    process.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}/v1"
    finally:
        process.terminate()
        process.join()


def counted(url: str) -> dict[str, int]:
    """Return what the model at *url* was asked so far."""
    with urllib.request.urlopen(f"{url}/count") as answer:  # noqa: S310 - our own server
        return dict(json.load(answer))


def _serve(episodes: list[dict[str, Any]], told: Connection) -> None:
    script = Script(episodes)

    class Handler(_Handler):
        model = script

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    told.send(server.server_port)
    server.serve_forever()


class Script:
    """What each message says, in the forms in which it is asked for."""

    def __init__(self, episodes: Sequence[Mapping[str, Any]]) -> None:
        self.embeddings = LocalEmbeddings()
        self.tokens = _tokens()
        self.count = {"calls": 0, "prompt_tokens": 0, "embedding_requests": 0}
        self.lock = threading.Lock()
        self._offline = OfflineModel()
        self._readings = {each["content"]: self._read(each) for each in episodes}

    def _read(self, episode: Mapping[str, Any]) -> Reading:
        told = {"kind": "message", **{name: episode[name] for name in ("content", "speaker", "at")}}
        fields = {"episode": told, "previous": [], "entity_types": [], "fact_types": [], "instructions": ""}
        return self._offline.answer(Ask(prompts.READ, fields)).model_dump()

    def answer(self, form: str, asked: str) -> Any:
        """Return the answer of the given *form* to a prompt."""
        fields = fenced(asked)
        if fields:
            return self._to_us(form, fields)
        return _TO_GRAPHITI[form](self, asked)

    def _to_us(self, form: str, fields: Mapping[str, Any]) -> Any:
        reading = self._readings[fields["episode"]["content"]] if "episode" in fields else {}
        match form:
            case "EpisodeReading":
                return reading
            case "ExtractedEntities":
                return {"entities": reading["entities"]}
            case "Reflection":
                return {"missed": [], "unsupported": []}
            case "ExtractedFacts":
                return {"facts": list(_by_id(reading["facts"], fields["entities"]))}
        return self._offline.answer(Ask(PROMPTS[form], fields)).model_dump()

    def reading(self, asked: str, tag: str) -> Reading:
        """Return what the message says that stands in *asked* within *tag*."""
        text = block(asked, tag)
        return next(found for content, found in self._readings.items() if content.strip() in text)


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
    model: Script

    def do_GET(self) -> None:
        self._send(self.model.count)

    def do_POST(self) -> None:
        script, body = self.model, json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("/embeddings"):
            texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
            with script.lock:
                script.count["embedding_requests"] += 1
                vectors = script.embeddings.embed_documents(texts)
            data = [{"object": "embedding", "index": place, "embedding": row} for place, row in enumerate(vectors)]
            self._send(
                {"object": "list", "model": "local", "data": data, "usage": {"prompt_tokens": 0, "total_tokens": 0}}
            )
            return
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
        self._send({**about, "choices": [choice], "usage": usage})

    def log_message(self, *_: Any) -> None:
        """Keep quiet."""

    def _send(self, content: Any) -> None:
        sent = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)


def _tokens() -> Callable[[str], int]:
    """Return what counts tokens: the tokenizer of OpenAI's models, where its words are here, else our estimate."""
    try:
        import tiktoken  # noqa: PLC0415 - reads its words from the network

        encoding = tiktoken.get_encoding(ENCODING)
    except (ImportError, OSError, ValueError):
        return estimate
    return lambda text: len(encoding.encode(text, disallowed_special=()))

"""A model over HTTP with recorded or hand-written answers: ``python -m benchmarks.recorded_model``.

Prompts contain JSON in fences with random codes. Without these codes a prompt is the same in each run, and its answer
is found by the prompt's hash. The part before the data, the rules, is the *version* of the prompt. A prompt that was
never recorded, or recorded in another version, gets an error, which ends the run.

The facts that a question compares depend on embeddings, which differ a little between processors. So the answer to an
unknown question of the same version is put together from the recorded answers on its pairs of facts, its entities or
its predicates, see `compose`.

    python -m benchmarks.recorded_model FILE.jsonl --hand DIR [--port PORT]

serves recorded answers, and asks for missing ones: the prompt is written to ``DIR/req/0001.txt``, and the answer is
read from ``DIR/res/0001.txt``, which must be written under another name and then renamed. It is added to FILE.jsonl.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

FENCE = re.compile(r"<<<(\w+) (\d+)\n(.*?)\n\2>>>", re.DOTALL)
_DATA = "What follows is fenced data."
_LONGEST_WAIT = 3600.0


class Recordings:
    """Recorded answers by prompt hash, in a JSON Lines file; with *hand*, missing answers are asked for by hand."""

    def __init__(self, path: Path, hand: Path | None = None) -> None:
        self._path, self._hand = path, hand
        self._lock = threading.Lock()
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self._entries = {entry["key"]: entry for entry in map(json.loads, lines)}
        self._data = {entry["data"]: entry["version"] for entry in self._entries.values()}
        self._items: dict[str, Any] = {}
        for entry in self._entries.values():
            self._items |= answers_by_item(entry)
        self.used: set[str] = set()
        self.missing: list[str] = []
        """The keys of prompts that had no answer: also of those without which a message is read all the same."""
        self._number = 0
        if hand is not None:
            for folder in ("req", "res"):
                (hand / folder).mkdir(parents=True, exist_ok=True)

    def answer(self, prompt: str, schema: Any) -> str:
        """Return the recorded answer to *prompt* as JSON text.

        Raises: `LookupError` with the reason if there is none.
        """
        entry = describe_prompt(prompt)
        with self._lock:
            recorded = self._entries.get(entry["key"])
        if recorded is None and (composed := compose(prompt, entry["version"], self._items)) is not None:
            return json.dumps(composed, ensure_ascii=False)
        if recorded is None and self._hand is not None:
            recorded = {**entry, "items": items_of(prompt), "answer": self._ask(self._hand, prompt, schema)}
            self._add(recorded)
        if recorded is None:
            self.missing.append(entry["key"])
            version = self._data.get(entry["data"])
            reason = f"it was recorded for version {version} of the prompt" if version else "it was never recorded"
            raise LookupError(
                f"no recorded answer for this prompt of version {entry['version']}: {reason}; record it with"
                f" python -m benchmarks.recorded_model {self._path.name} --hand DIR"
            )
        self.used.add(entry["key"])
        return json.dumps(recorded["answer"], ensure_ascii=False)

    def used_answers(self) -> list[Any]:
        """Return the answers that were used."""
        return [self._entries[key]["answer"] for key in sorted(self.used)]

    def _add(self, recorded: dict[str, Any]) -> None:
        with self._lock:
            self._entries[recorded["key"]] = recorded
            self._items |= answers_by_item(recorded)
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(recorded, ensure_ascii=False) + "\n")

    def _ask(self, hand: Path, prompt: str, schema: Any) -> Any:
        with self._lock:
            self._number = max(self._number, *(int(file.stem) for file in (hand / "req").glob("*.txt")), 0) + 1
            number = self._number
            form = json.dumps(schema, ensure_ascii=False)
            (hand / "req" / f"{number:04}.txt").write_text(f"{prompt}\n\nJSON schema of the answer: {form}\n", "utf-8")
        file, until = hand / "res" / f"{number:04}.txt", time.monotonic() + _LONGEST_WAIT
        while time.monotonic() < until:
            if file.exists():
                return json.loads(file.read_text(encoding="utf-8"))
            time.sleep(0.1)
        raise LookupError(f"nobody answered {number:04} in an hour")


def describe_prompt(prompt: str) -> dict[str, str]:
    """Return the hash of *prompt* ("key"), of its rules ("version") and of its data ("data")."""
    plain = FENCE.sub(r"<<<\1\n\3\n>>>", prompt)
    data = "".join(f"{name}:{value}" for name, _, value in FENCE.findall(prompt))
    return {"key": _hash(plain), "version": _hash(FENCE.sub("", plain.partition(_DATA)[0]))[:8], "data": _hash(data)}


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


# Answers by item: a pair of facts, an entity of an episode, or a predicate

UNKNOWN = 0.5
"""The largest share of unknown pairs in a question that is answered nevertheless; they count as unrelated."""


def items_of(prompt: str) -> dict[str, str]:
    """Return ``{place: hash}`` for the items that *prompt* asks about; ``{}`` for a prompt that reads a message.

    The place of a pair of facts is ``"fact known"``, by their ids in the prompt, that of an entity its id, with the
    candidates at ``"entity candidate"``, and that of a predicate its name. An entity to summarise has the hash of its
    name and its oldest fact.
    """
    data = {name: json.loads(value) for name, _, value in FENCE.findall(prompt) if name in (*_ASKED, "episode")}
    items = {row["name"]: _hash(row["name"]) for row in data.get("predicates", ())}
    for new in data.get("facts", ()):
        items |= {f"{new['id']} {known['id']}": _hash_pair(new, known) for known in new["existing"]}
    for entity in data.get("entities", ()):
        if "candidates" in entity:
            items[str(entity["id"])] = _hash(data["episode"]["content"] + "\n" + entity["name"])
            items |= {f"{entity['id']} {one['id']}": _hash(one["name"]) for one in entity["candidates"]}
        elif "facts" in entity:
            items[str(entity["id"])] = _hash("\n".join((entity["name"], *entity["facts"][-1:])))
    return items


_ASKED = ("facts", "entities", "predicates")


def _hash_pair(new: dict[str, Any], known: dict[str, Any]) -> str:
    return _hash("\n".join(row[name] for row in (new, known) for name in ("said_at", "sentence")))


def answers_by_item(entry: dict[str, Any]) -> dict[str, Any]:
    """Return the answers of the recorded *entry* by version and hash of the item; None for unrelated facts."""
    items, version, answer = entry.get("items", {}), entry["version"], entry["answer"]
    found: dict[str, Any] = dict.fromkeys(items.values()) if "verdicts" in answer else {}
    for row in answer.get("verdicts", ()):
        found[items.get(f"{row['fact']} {row['known']}", "")] = row
    for row in answer.get("resolutions", ()):
        same = items.get(f"{row['entity']} {row['same_as']}")
        if same or row["same_as"] is None:
            found[items.get(str(row["entity"]), "")] = {**row, "same_as": same}
    for row in answer.get("predicates", ()):
        found[_hash(row["name"])] = row
    for row in answer.get("summaries", ()):
        found[items.get(str(row["entity"]), "")] = row
    return {f"{version} {item}": row for item, row in found.items() if item}


def compose(prompt: str, version: str, answers: dict[str, Any]) -> dict[str, Any] | None:
    """Return an answer to *prompt* from the recorded *answers* by item, or None if too many items are unknown."""
    items = items_of(prompt)
    known = {place: answers[f"{version} {item}"] for place, item in items.items() if f"{version} {item}" in answers}
    kind = next((name for name in _ASKED if f"<<<{name} " in prompt), None)
    if not items or kind is None:
        return None
    if kind == "facts":
        if len(known) < len(items) * (1 - UNKNOWN):
            return None
        pairs = ((*map(int, place.split()), row) for place, row in known.items() if row)
        return {"verdicts": [{**row, "fact": fact, "known": other} for fact, other, row in pairs]}
    asked = [place for place in items if " " not in place or kind == "predicates"]
    if any(place not in known for place in asked):
        return None
    if kind == "predicates":
        return {"predicates": [known[name] for name in asked]}
    if all("summary" in known[place] for place in asked):
        return {"summaries": [{**known[place], "entity": int(place)} for place in asked]}
    resolutions = []
    for place in asked:
        ids = {item: int(other.split()[1]) for other, item in items.items() if other.startswith(f"{place} ")}
        same = known[place]["same_as"]
        if same is not None and same not in ids:
            return None
        resolutions.append({**known[place], "entity": int(place), "same_as": None if same is None else ids[same]})
    return {"resolutions": resolutions}


@contextmanager
def serve(recordings: Recordings, port: int = 0) -> Iterator[str]:
    """Serve *recordings* with OpenAI's protocol on this machine in the with block, and yield the base URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            prompt = "\n".join(message["content"] for message in body["messages"])
            try:
                content = recordings.answer(prompt, body.get("response_format"))
            except (LookupError, ValueError) as error:
                self._send(400, {"error": {"message": str(error), "type": "invalid_request_error"}})
                return
            tokens = {"prompt_tokens": len(prompt) // 4, "completion_tokens": len(content) // 4}
            message = {"role": "assistant", "content": content}
            self._send(
                200,
                {
                    "id": "recorded",
                    "object": "chat.completion",
                    "created": 0,
                    "model": body["model"],
                    "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                    "usage": {**tokens, "total_tokens": sum(tokens.values())},
                },
            )

        def _send(self, status: int, body: dict[str, Any]) -> None:
            data = json.dumps(body, ensure_ascii=False).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def main() -> None:
    """Serve the recordings until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recordings", type=Path)
    parser.add_argument("--hand", type=Path, help="the folder for what is to be answered by hand")
    parser.add_argument("--port", type=int, default=0)
    chosen = parser.parse_args()
    with serve(Recordings(chosen.recordings, chosen.hand), chosen.port) as url:
        print(url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()

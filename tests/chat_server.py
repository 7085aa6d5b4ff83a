"""A server that speaks OpenAI's protocol over HTTP and answers by rules: it knows what it is told, and nothing else."""

import json
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any, NamedTuple

from kg_memory.llm.prompts import schema_text
from tests.all_prompts import ALL
from tests.scripted import HashEmbeddings, Scripted

PROMPTS = {each.answer.__name__: each for each in ALL}
"""The memory's prompts by the names of their answers; of several, the last."""
_FENCED = re.compile(r"<<<(\w+) (\w+)\n(.*?)\n\2>>>", re.DOTALL)
_HOME = re.compile(r"\b(?:lives? in|moved to) (\w+)")
_WISH = re.compile(r"remember that (.+)", re.IGNORECASE)


Watch = Callable[[str, Any], Any]
"""Is told the name and the body of each request before it is answered; a `ConnectionError` leaves it unanswered.

What it returns, if anything, is sent instead of the answer: a `Said`, or the text of a completion.
"""


NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class Said(NamedTuple):
    """An HTTP response; *content* is JSON, or the bytes of a body."""

    content: Any
    status: int = 200
    headers: Mapping[str, str] = NO_HEADERS


@contextmanager
def chat_server(watch: Watch = lambda *_: None, model: Scripted | None = None) -> Iterator[str]:
    """Serve on a free port of this machine and yield the base URL; *watch* is told of each request.

    A statement is noted. Asked where somebody lives, it says so only if a tool message or the recalled text does. Of the tools
    that it is offered it calls ``remember`` for a wish and ``search_memory`` for a question. Prompts of the memory
    are read by *model*, else `Scripted`, and texts embedded by `HashEmbeddings`.
    """
    server = _Server(("127.0.0.1", 0), _Handler)
    server.watch, server.model = watch, model or Scripted()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Server(ThreadingHTTPServer):
    watch: Watch
    model: Scripted

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep quiet about a client that went away, and tell the rest."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        content = self.rfile.read(length)
        if len(content) < length:
            raise ConnectionResetError  # the client was killed
        body = json.loads(content)
        said = self.server.watch(_asked(self.path, body), body)
        if said is not None:
            said = said if isinstance(said, Said) else Said(completion(said))
            self._send(said.content, said.status, said.headers)
        elif self.path == "/v1/embeddings":
            self._send(_vectors(body))
        elif self.path != "/v1/chat/completions":
            self._send({"error": {"message": f"nothing is at {self.path}"}}, status=404)
        elif body.get("stream"):
            self._stream(_answer(body, self.server.model))
        else:
            answer = {"role": "assistant", **_answer(body, self.server.model)}
            self._send(_completion("chat.completion", message=answer))

    def log_message(self, *_: Any) -> None:
        """Keep quiet."""

    def _stream(self, answer: dict[str, Any]) -> None:
        calls = [{"index": place, **call} for place, call in enumerate(answer.get("tool_calls", ()))]
        pieces = [{"role": "assistant", "content": "", **({"tool_calls": calls} if calls else {})}]
        pieces += [{"content": piece} for piece in re.findall(r"\S+\s*", answer["content"] or "")]
        sent = [json.dumps(_completion("chat.completion.chunk", delta=piece)) for piece in pieces]
        self._send("".join(f"data: {each}\n\n" for each in [*sent, "[DONE]"]).encode(), kind="text/event-stream")

    def _send(
        self, content: Any, status: int = 200, headers: Mapping[str, str] = NO_HEADERS, kind: str = "application/json"
    ) -> None:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _asked(path: str, body: dict[str, Any]) -> str:
    """Return what is asked for: the name of a prompt's schema, or the end of the *path*."""
    return _schema_name(body) or path.rpartition("/")[2]


def _schema_name(body: dict[str, Any]) -> str:
    """Return the name of the schema that *body* asks for, as an option or in its first message; empty for none."""
    name = body.get("response_format", {}).get("json_schema", {}).get("name")
    first = _text(body["messages"][0]) if body.get("messages") else ""
    in_text = (each for each, prompt in PROMPTS.items() if schema_text(prompt.answer) in first)
    return str(name or next(in_text, ""))


def _answer(body: dict[str, Any], model: Scripted) -> dict[str, Any]:
    """Return the message that answers *body*."""
    messages, offered = body["messages"], {tool["function"]["name"] for tool in body.get("tools", ())}
    last = _text(messages[-1]).partition("\n\n")[0]
    if schema := _schema_name(body):
        return {"content": json.dumps(_reading(schema, _text(messages[0]), model))}
    if messages[-1]["role"] == "user" and "remember" in offered and (wish := _WISH.search(last)):
        return _call("remember", content=wish[1])
    if messages[-1]["role"] == "user" and "search_memory" in offered:
        return _call("search_memory", query=last)
    asked, _, recalled = next(_text(each) for each in reversed(messages) if each["role"] == "user").partition("\n\n")
    if not asked.endswith("?"):
        return {"content": "Noted."}
    seen = [_text(each) for each in messages if each["role"] in ("system", "tool")]
    told = _HOME.search("\n".join([*seen, recalled]))
    return {"content": f"You told me: in {told[1]}." if told else "I do not know."}


def fenced(text: str) -> dict[str, Any]:
    """Return what stands in the fences of one of the memory's prompts, by their names; nothing if it is none."""
    found = {name: _plain(data) for name, _, data in _FENCED.findall(text)}
    return found and {"previous": [], "fact_types": [], "instructions": "", **found}


def _reading(schema: str, text: str, model: Scripted) -> Any:
    return model.told(PROMPTS[schema].name, fields) if (fields := fenced(text)) else {}


def _plain(data: str) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return data


def _text(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _call(name: str, **arguments: str) -> dict[str, Any]:
    called = {"name": name, "arguments": json.dumps(arguments)}
    return {"content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": called}]}


def completion(content: str | None, ended: str = "stop", **message: Any) -> dict[str, Any]:
    """Return a completion that says *content*, and *ended* for that reason."""
    told = _completion("chat.completion", message={"role": "assistant", "content": content, **message})
    told["choices"][0]["finish_reason"] = ended
    return told


def _completion(kind: str, **said: dict[str, Any]) -> dict[str, Any]:
    [message] = said.values()
    reason = "tool_calls" if message.get("tool_calls") else "stop"
    choice = {"index": 0, **said, "finish_reason": reason}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    about = {"id": "chatcmpl-1", "object": kind, "created": 1, "model": "scripted"}
    return {**about, "choices": [choice], "usage": usage}


def _vectors(body: dict[str, Any]) -> dict[str, Any]:
    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
    rows = enumerate(HashEmbeddings().embed_documents(texts))
    data = [{"object": "embedding", "index": index, "embedding": row} for index, row in rows]
    return {"object": "list", "model": "hash", "data": data, "usage": {"prompt_tokens": 1, "total_tokens": 1}}

"""The OpenAI wire for tests: respx taught to see the client that openai uses, and the shapes of its answers.

openai 3 speaks httpx2, which respx does not intercept by itself; openai 2 speaks httpx.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import httpx
import openai
import respx
from respx.mocks import HTTPCoreMocker, Mocker

BASE_URL = "http://llm.test/v1"
SPEAKS_HTTPX2 = int(openai.__version__.split(".")[0]) >= 3 and find_spec("httpcore2") is not None


def _mocker() -> str:
    """Return the name of the respx mocker for openai's client; registers it when it is new."""
    if not SPEAKS_HTTPX2:
        return "httpcore"
    if "httpcore2" not in Mocker.registry:
        import httpcore2  # noqa: PLC0415 - absent where openai speaks httpx

        class HTTPCore2Mocker(HTTPCoreMocker):
            name = "httpcore2"
            targets = tuple(target.replace("httpcore.", "httpcore2.", 1) for target in HTTPCoreMocker.targets)

            @classmethod
            def from_sync_httpx_response(cls, httpx_response: Any, target: Any, **_: Any) -> Any:
                return httpcore2.Response(
                    status=httpx_response.status_code,
                    headers=httpx_response.headers.raw,
                    content=httpx_response.stream,
                    extensions=httpx_response.extensions,
                )

    return "httpcore2"


@contextmanager
def openai_wire(base_url: str = BASE_URL) -> Iterator[respx.MockRouter]:
    """Intercept all that an OpenAI client sends to *base_url*; anything else is refused."""
    with respx.mock(base_url=base_url, using=_mocker(), assert_all_called=False) as router:
        yield router


def completion(
    content: Any = "", *, finish_reason: str = "stop", refusal: str | None = None, tokens: int = 100
) -> httpx.Response:
    """A chat completion for a prompt of *tokens*; *content* that is no text becomes JSON."""
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    message = {"role": "assistant", "content": text, "refusal": refusal}
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "test-model",
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason, "logprobs": None}],
        "usage": {"prompt_tokens": tokens, "completion_tokens": 10, "total_tokens": tokens + 10},
    }
    return httpx.Response(200, json=body)


def failure(status: int, message: str = "no", headers: dict[str, str] | None = None, **error: Any) -> httpx.Response:
    """An error as OpenAI words it."""
    return httpx.Response(status, json={"error": {"message": message, **error}}, headers=headers or {})


def vectors(*rows: list[float]) -> httpx.Response:
    """An embeddings response."""
    data = [{"object": "embedding", "index": index, "embedding": row} for index, row in enumerate(rows)]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return httpx.Response(200, json={"object": "list", "model": "test", "data": data, "usage": usage})


def body(call: Any) -> dict[str, Any]:
    """The JSON that *call* sent."""
    parsed: dict[str, Any] = json.loads(call.request.content)
    return parsed


def response(content: Any = "", *, refusal: str | None = None, cut_off: bool = False) -> httpx.Response:
    """An answer of the Responses API, which some of OpenAI's models are asked by."""
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    part = {"type": "refusal", "refusal": refusal} if refusal else {"type": "output_text", "text": text}
    message = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "incomplete" if cut_off else "completed",
        "content": [{"annotations": [], **part}],
    }
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    body = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "test-model",
        "status": message["status"],
        "incomplete_details": {"reason": "max_output_tokens"} if cut_off else None,
        "error": None,
        "output": [message],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110, **details},
    }
    return httpx.Response(200, json=body)

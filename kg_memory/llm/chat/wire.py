"""The formats of requesting JSON from a chat model, from strict to plain, and the reading of replies.

If a server rejects a format, the next one is tried, and used from then on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatResult
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_openai import ChatOpenAI
from langchain_openai.chat_models.base import BaseChatOpenAI
from openai import BaseModel as OpenAIModel
from pydantic import BaseModel

from kg_memory.llm.prompts import replace_controls, strict_schema
from kg_memory.llm.retry import FILTER_CODES
from kg_memory.models.operations import Usage
from kg_memory.runtime.effects import Call, PromptTemplate

CUT_OFF_REASONS = frozenset({"length", "max_tokens", "max_output_tokens", "model_length"})
REFUSAL_REASONS = frozenset({"content_filter", "refusal", "safety"})
ONE_CALL = Usage(calls=1)
BAD_GATEWAY = 502
THOUGHTS = ("reasoning_content", "reasoning", "thinking")
"""The message fields in which servers put a model's thoughts, and sometimes its answer."""


class AnswerFormat(Enum):
    """A way to make a chat model answer in JSON; the value describes it."""

    SCHEMA = "response_format json_schema, strict, with limits of length, without which small models may never end"
    BARE_SCHEMA = "the same without the limits, which some servers reject"
    OBJECT = "response_format json_object, the schema in the prompt"
    NATIVE = "LangChain's with_structured_output, however the provider implements it"
    TEXT = "the schema in the prompt and nothing else"


WITH_SCHEMA_TEXT = (AnswerFormat.OBJECT, AnswerFormat.TEXT)
"""The formats whose prompts must contain the JSON schema of the answer."""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request to a chat model: its messages, the prompt they were made from, and the answer format (`form`)."""

    messages: tuple[BaseMessage, ...]
    prompt: PromptTemplate[Any]
    form: AnswerFormat
    temperature: bool = True
    """Whether to send a temperature; some models accept only their default."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply of a chat model: its text, and `values` that the provider has parsed, such as tool arguments.

    `cut_off`: whether it reached the limit of tokens. `refusal`: why the model refused, or None.
    """

    text: str
    values: tuple[Any, ...] = ()
    cut_off: bool = False
    refusal: str | None = None
    usage: Usage = ONE_CALL

    @property
    def is_empty(self) -> bool:
        """Whether the reply has neither text nor values, although it was not refused or cut off."""
        return not (self.text.strip() or self.values or self.refusal or self.cut_off)


class ResponseError(Exception):
    """Raised for an HTTP response with status 200 that contains an error or no answer.

    *status* is the HTTP status that the server should have sent.
    """

    def __init__(self, message: str, status: int, code: object = None) -> None:
        super().__init__(message)
        self.message, self.status_code, self.code = message, status, code


def read_all(model: BaseChatModel) -> BaseChatModel:
    """Return a copy of *model* that includes reasoning texts, and raises errors sent with status 200."""
    # LangChain's client for OpenAI drops fields such as ``reasoning_content``.
    if not isinstance(model, BaseChatOpenAI):
        return model
    copied, read = model.model_copy(), model._create_chat_result  # noqa: SLF001 - nothing public has the whole response

    def read_whole(response: Any, generation_info: Any = None) -> ChatResult:
        """Return LangChain's result for *response*, with the model's reasoning added to its messages."""
        choices = _read_choices(response)
        result = read(response, generation_info)
        for generation, choice in zip(result.generations, choices, strict=False):
            thoughts = ((key, _field(_field(choice, "message"), key)) for key in THOUGHTS)
            found = {key: text for key, text in thoughts if isinstance(text, str)}
            generation.message.additional_kwargs = {**found, **generation.message.additional_kwargs}
        return result

    object.__setattr__(copied, "_create_chat_result", read_whole)
    return copied


def _read_choices(response: Any) -> list[Any]:
    """Return the ``choices`` of *response*, a response of OpenAI's chat API.

    Raises: `ResponseError` if it contains an error or has no choices.
    """
    if not isinstance(response, dict | OpenAIModel):
        raise ResponseError("the response of the model's server is not JSON: check its base URL", BAD_GATEWAY)
    choices = _field(response, "choices")
    places = [response, *(choices if isinstance(choices, list) else ())]
    if error := next(filter(None, (_field(place, "error") for place in places)), None):
        details = error if isinstance(error, dict) else {"message": str(error)}
        code = details.get("code")
        status = next((int(str(each)) for each in (code, details.get("status")) if str(each).isdecimal()), BAD_GATEWAY)
        if code in FILTER_CODES:
            status = 400
        raise ResponseError(str(details.get("message") or error), status if status >= 400 else BAD_GATEWAY, code)
    if not isinstance(choices, list) or not choices:
        raise ResponseError(f"the server's response has no choices: {response!s:.150}: check its base URL", BAD_GATEWAY)
    return choices


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else getattr(value, name, None)


def formats_for(model: BaseChatModel) -> tuple[AnswerFormat, ...]:
    """Return the formats of requesting JSON to try with *model*, the strictest first."""
    if isinstance(model, BaseChatOpenAI):
        return (AnswerFormat.SCHEMA, AnswerFormat.BARE_SCHEMA, AnswerFormat.OBJECT, AnswerFormat.TEXT)
    ways = ("with_structured_output", "bind_tools")
    is_own = any(getattr(type(model), way) is not getattr(BaseChatModel, way) for way in ways)
    return (AnswerFormat.NATIVE, AnswerFormat.TEXT) if is_own else (AnswerFormat.TEXT,)


def make_request(model: BaseChatModel, request: ChatRequest) -> Call:
    """Return an effect (a call for the driver to perform) that sends *request* to *model*; its result is a `Reply`."""
    # `run_name` is shown in traces; the tag keeps the answer out of the token stream of a calling agent.
    config = RunnableConfig(run_name=f"kg_memory.{request.prompt.name}", tags=["nostream"])
    messages = list(request.messages)
    return Call(
        lambda: _bind(model, request).invoke(messages, config),
        lambda: _bind(model, request).ainvoke(messages, config),
        read=to_reply,
    )


def _bind(model: BaseChatModel, request: ChatRequest) -> Runnable[Any, Any]:
    """Return *model* with the options for *request*: the answer format and the temperature."""
    if request.form is AnswerFormat.NATIVE:
        return model.with_structured_output(request.prompt.answer, include_raw=True)
    if not isinstance(model, BaseChatOpenAI):
        return model
    options: dict[str, object] = {"stream": False}
    if request.form in (AnswerFormat.SCHEMA, AnswerFormat.BARE_SCHEMA):
        answer = request.prompt.answer
        schema = strict_schema(answer, limits=request.form is AnswerFormat.SCHEMA)
        json_schema = {"name": answer.__name__, "strict": True, "schema": schema}
        options |= _format_option(model, {"type": "json_schema", "json_schema": json_schema})
    elif request.form is AnswerFormat.OBJECT:
        options |= _format_option(model, {"type": "json_object"})
    if not request.temperature:
        options["temperature"] = None
    return model.bind(**options)


def _format_option(model: BaseChatOpenAI, response_format: Mapping[str, object]) -> Mapping[str, object]:
    if type(model) is not ChatOpenAI or model._use_responses_api({**model.model_kwargs}):  # noqa: SLF001
        return {"response_format": response_format}
    # With the normal option, `ChatOpenAI` walks through the schema and the answer at each request, which is slow.
    return {"extra_body": {**(model.extra_body or {}), "response_format": response_format}}


def to_reply(result: Any) -> Reply:
    """Return the reply in *result*, which LangChain returned: a message, or a dict with the message and its answer."""
    if isinstance(result, dict) and "raw" in result:
        parsed = result.get("parsed")
        return _read_message(result["raw"], parsed.model_dump() if isinstance(parsed, BaseModel) else parsed)
    return _read_message(result, None)


def reply_from_error(error: Exception) -> Reply | None:
    """Return the reply that *error* contains, or None: OpenAI's client raises errors for replies that were cut off."""
    completion = getattr(error, "completion", None)
    if completion is None:
        return None
    choice, usage = completion.choices[0], ONE_CALL
    if counts := completion.usage:
        cached = getattr(counts.prompt_tokens_details, "cached_tokens", None)
        usage = _usage_of(counts.prompt_tokens, counts.completion_tokens, cached)
    text = replace_controls(choice.message.content or "")
    refusal = "its content filter" if choice.finish_reason == "content_filter" else None
    return Reply(text, cut_off=choice.finish_reason == "length", refusal=refusal, usage=usage)


def _usage_of(input_: int | None, output: int | None, cached: int | None) -> Usage:
    return Usage(calls=1, input_tokens=input_ or 0, output_tokens=output or 0, cached_tokens=cached or 0)


def _read_message(message: AIMessage, parsed: Any) -> Reply:
    """Convert *message*, a model's output, to a `Reply`; *parsed* is its answer if LangChain parsed it, or None."""
    metadata = message.response_metadata
    reason = metadata.get("finish_reason") or metadata.get("stop_reason") or metadata.get("done_reason")
    reason = str(reason or (metadata.get("incomplete_details") or {}).get("reason")).lower()
    refusal = _read_refusal(message) or (f"it ended with {reason}" if reason in REFUSAL_REASONS else None)
    counts: Any = getattr(message, "usage_metadata", None) or {}  # a message with an unusual role has none
    cached = (counts.get("input_token_details") or {}).get("cache_read")
    usage = _usage_of(counts.get("input_tokens"), counts.get("output_tokens"), cached)
    values = tuple(call["args"] for call in getattr(message, "tool_calls", None) or ())
    values = values or (() if parsed is None else (parsed,))
    text = str(message.text)
    cut_off = reason in CUT_OFF_REASONS
    if not text.strip() and not values:
        text = "\n".join(_other_texts(message, () if cut_off else THOUGHTS))
    return Reply(replace_controls(text), values, cut_off, refusal, usage)


def _other_texts(message: AIMessage, thoughts: Sequence[str]) -> Iterator[str]:
    """Yield the texts in other fields of *message*, where some servers put the answer if its content is empty.

    *thoughts* are the names of fields with thoughts to read too.
    """
    more = message.additional_kwargs
    calls = [more.get("function_call") or {}, *(getattr(message, "invalid_tool_calls", None) or ())]
    blocks = message.content if isinstance(message.content, list) else []
    for place in [*calls, *(block for block in blocks if isinstance(block, dict)), more]:
        texts = (place.get(key) for key in ("arguments", "args", *thoughts))
        yield from (text for text in texts if isinstance(text, str) and text.strip())


def _read_refusal(message: AIMessage) -> str | None:
    # OpenAI puts it in one of two places.
    blocks = message.content if isinstance(message.content, list) else []
    refusals = [block.get("refusal") for block in blocks if isinstance(block, dict) and block.get("type") == "refusal"]
    refusal: str | None = message.additional_kwargs.get("refusal") or next(iter(refusals), None)
    return refusal

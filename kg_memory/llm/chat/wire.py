"""The ways in which a chat model can be asked for JSON, from strict to plain.

A server that refuses one is asked in the next, and asked so from then on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_openai import ChatOpenAI
from langchain_openai.chat_models.base import BaseChatOpenAI
from pydantic import BaseModel

from kg_memory.llm.chat.render import compact, harmless
from kg_memory.models.usage import Usage
from kg_memory.runtime.effects import Prompt

CUT_OFF = frozenset({"length", "max_tokens", "max_output_tokens", "model_length"})
REFUSED = frozenset({"content_filter", "refusal", "safety"})
LIMITS = ("maxLength", "maxItems")
ONE_CALL = Usage(calls=1)


class Way(Enum):
    """How JSON is asked for."""

    SCHEMA = "response_format json_schema, strict, with limits of length, without which small models may never end"
    BARE_SCHEMA = "the same without the limits, which some servers refuse"
    OBJECT = "response_format json_object, the schema in the prompt"
    NATIVE = "LangChain's with_structured_output, however the provider does it"
    TEXT = "the schema in the prompt and nothing else"


@dataclass(frozen=True, slots=True)
class Send:
    """One request to the model, answered by a `Reply`."""

    messages: tuple[BaseMessage, ...]
    prompt: Prompt[Any]
    way: Way
    temperature: bool = True
    """False leaves the temperature to the server: some models take none but their own."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back: the text, or the value where the provider has parsed it."""

    text: str
    value: Any = None
    cut_off: bool = False
    refusal: str | None = None
    usage: Usage = ONE_CALL
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The response's, where the client tells them."""


def ways(model: BaseChatModel) -> tuple[Way, ...]:
    """Return the ways that *model* may understand, the best first."""
    if isinstance(model, BaseChatOpenAI):
        return (Way.SCHEMA, Way.BARE_SCHEMA, Way.OBJECT, Way.TEXT)
    kind = type(model)
    if (
        kind.with_structured_output is not BaseChatModel.with_structured_output
        or kind.bind_tools is not BaseChatModel.bind_tools
    ):
        return (Way.NATIVE, Way.TEXT)
    return (Way.TEXT,)


def shows_schema(way: Way) -> bool:
    """Tell whether the prompt itself must hold the schema."""
    return way in (Way.OBJECT, Way.TEXT)


def bound(model: BaseChatModel, send: Send) -> Runnable[Any, Any]:
    """Return *model* made ready for *send*."""
    if send.way is Way.NATIVE:
        return model.with_structured_output(send.prompt.answer, include_raw=True)
    if not isinstance(model, BaseChatOpenAI):
        return model
    options: dict[str, Any] = {"stream": False}
    if send.way in (Way.SCHEMA, Way.BARE_SCHEMA):
        schema = strict_schema(send.prompt.answer, limits=send.way is Way.SCHEMA)
        named = {"name": send.prompt.answer.__name__, "strict": True, "schema": schema}
        options |= _formatted(model, {"type": "json_schema", "json_schema": named})
    elif send.way is Way.OBJECT:
        options |= _formatted(model, {"type": "json_object"})
    if not send.temperature:
        options["temperature"] = None
    return model.bind(**options)


def _formatted(model: BaseChatOpenAI, form: dict[str, Any]) -> dict[str, Any]:
    """Return the option that has *model* answer in *form*.

    `ChatOpenAI` itself is given it for the body as it is: of an option that it knows, the client walks through the
    whole schema for each request, and through the answer once more. The Responses API has another place for it, and
    what other classes make of a body, and of answers that the client did not check, is theirs.
    """
    if type(model) is not ChatOpenAI or model._use_responses_api({**model.model_kwargs}):  # noqa: SLF001
        return {"response_format": form}
    return {"extra_body": {**(model.extra_body or {}), "response_format": form}}


def config(send: Send) -> RunnableConfig:
    """Return the run's name for traces, and the tag that keeps it out of an agent's own stream of words."""
    return {"run_name": f"kg_memory.{send.prompt.name}", "tags": ["nostream"]}


def strict_schema(kind: type[BaseModel], *, limits: bool = True) -> dict[str, Any]:
    """Return the JSON schema of *kind* as strict servers want it, not to be changed: closed objects.

    It has no titles and descriptions: prompts say what each field is, and servers count the schema among their tokens.
    """
    return _schema(kind, limits)[0]


def schema_text(kind: type[BaseModel]) -> str:
    """Return the schema of *kind* for a prompt."""
    return _schema(kind, True)[1]


@lru_cache(maxsize=256)
def _schema(kind: type[BaseModel], limits: bool) -> tuple[dict[str, Any], str]:  # noqa: FBT001 - a part of the key
    told = kind.model_json_schema()
    schema: dict[str, Any] = _strict(told, () if limits else LIMITS, told.pop("$defs", {}))
    return schema, compact(schema)


def _strict(node: Any, unwanted: Sequence[str], named: Mapping[str, Any]) -> Any:
    if isinstance(node, list):
        return [_strict(item, unwanted, named) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:  # each is used once, and none within itself
        return _strict(named[node["$ref"].removeprefix("#/$defs/")], unwanted, named)
    wanted = {key: item for key, item in node.items() if key not in unwanted and _is_wanted(key, item)}
    kept = {key: _strict(item, unwanted, named) for key, item in wanted.items()}
    if isinstance(node.get("properties"), dict):
        kept["additionalProperties"] = False
        kept["required"] = list(node["properties"])
    return kept


def _is_wanted(key: str, item: Any) -> bool:
    # They are pydantic's when they are texts, fields of ours when they are schemas.
    return not (key in ("title", "description") and isinstance(item, str))


def reply_of(result: Any) -> Reply:
    """Return what a run of `bound` gave as a reply."""
    if isinstance(result, dict) and "raw" in result:
        raw = result["raw"]
        calls = getattr(raw, "tool_calls", None) or []
        value = calls[0]["args"] if calls else result.get("parsed")
        return _reply(raw, value.model_dump() if isinstance(value, BaseModel) else value)
    return _reply(result, None)


def reply_of_error(error: Exception) -> Reply | None:
    """Return the reply that *error* carries: the client raises for answers cut off or filtered."""
    completion = getattr(error, "completion", None)
    if completion is None:
        return None
    choice = completion.choices[0]
    spent = completion.usage
    usage = Usage(calls=1, **(_tokens(spent) if spent else {}))
    text = harmless(choice.message.content or "")
    refusal = "its content filter" if choice.finish_reason == "content_filter" else None
    return Reply(text, cut_off=choice.finish_reason == "length", refusal=refusal, usage=usage)


def _tokens(spent: Any) -> dict[str, int]:
    """Return what the OpenAI client's own count of tokens tells."""
    cached = getattr(spent.prompt_tokens_details, "cached_tokens", None)
    counts = {"input": spent.prompt_tokens, "output": spent.completion_tokens, "cached": cached}
    return {f"{name}_tokens": count or 0 for name, count in counts.items()}


def _reply(message: AIMessage, value: Any) -> Reply:
    about = message.response_metadata
    ended = about.get("finish_reason") or about.get("stop_reason") or about.get("done_reason")
    ended = str(ended or (about.get("incomplete_details") or {}).get("reason")).lower()
    refusal = _refusal(message) or (f"it ended with {ended}" if ended in REFUSED else None)
    spent: Any = message.usage_metadata or {}
    usage = Usage(
        calls=1,
        input_tokens=spent.get("input_tokens") or 0,
        output_tokens=spent.get("output_tokens") or 0,
        cached_tokens=(spent.get("input_token_details") or {}).get("cache_read") or 0,
    )
    headers = about.get("headers") or {}
    return Reply(harmless(str(message.text)), value, ended in CUT_OFF, refusal, usage, headers)


def _refusal(message: AIMessage) -> str | None:
    """Return the model's words where it declined: the two APIs put them in different places."""
    blocks = message.content if isinstance(message.content, list) else []
    said = [block.get("refusal") for block in blocks if isinstance(block, dict) and block.get("type") == "refusal"]
    refusal: str | None = message.additional_kwargs.get("refusal") or next(iter(said), None)
    return refusal

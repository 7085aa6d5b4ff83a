"""The chat model over the OpenAI protocol: requests, failures, and answers that are wrong."""

import json
import logging
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx
import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_openai import ChatOpenAI
from langgraph.graph import START, StateGraph

from kg_memory.errors import AnswerError, ModelUnavailable, SettingsError
from kg_memory.llm.chat import ChatModel, open_chat_model
from kg_memory.llm.chat.wire import strict_schema
from kg_memory.llm.prompts.answers import ExtractedEntities
from kg_memory.models.operations import Usage
from tests.llm.samples import ASK, CUT, GOOD, names
from tests.openai_wire import BASE_URL, body, completion, failure

SECRET = "Lena and I are off to Lisbon."


# --- requests


def test_request_has_strict_schema_and_temperature_zero(asked, chat):
    route = chat(completion(GOOD))
    assert names(asked()) == ["Tom Hale", "Lisbon"]
    assert (route.call_count, asked.slept) == (1, [])
    sent = body(route.calls[0])
    assert sent["temperature"] == 0
    assert not sent.get("stream")
    schema = {"name": "ExtractedEntities", "strict": True, "schema": strict_schema(ExtractedEntities)}
    assert sent["response_format"] == {"type": "json_schema", "json_schema": schema}
    assert [message["role"] for message in sent["messages"]] == ["user"]
    assert SECRET in sent["messages"][0]["content"]


def test_request_omits_temperature_if_server_refuses_it(asked, chat):
    route = chat(failure(400, "Unsupported value: 'temperature' does not support 0 with this model."), completion(GOOD))
    asked()
    sent = body(route.calls[1])
    assert sent.get("temperature") is None
    assert sent["response_format"]["type"] == "json_schema"


# --- servers that fail for a while


def limited(**headers: str) -> httpx.Response:
    return failure(429, "slow down", headers={name.replace("_", "-"): value for name, value in headers.items()})


def in_twenty_seconds() -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=20), usegmt=True)


REFUSED = httpx.ConnectError("refused")
RETRIED = {
    "seconds": ([limited(retry_after="7")], 7, 7.5),
    "milliseconds before seconds": ([limited(retry_after_ms="1500", retry_after="60")], 1.5, 2),
    "a date": ([failure(503, headers={"retry-after": in_twenty_seconds()})], 0, 21),
    **{f"{value!r} seconds": ([limited(retry_after=value)], 0, 1) for value in ("soon", "nan", "inf", "-3", "")},
    **{f"{status} twice": ([failure(status)] * 2, 0.5, 2) for status in (500, 502, 503, 504, 529, 408)},
    "no connection": ([REFUSED], 0.2, 0.5),
}
"""The replies of a server before its answer, and the bounds of the total wait in seconds."""


@pytest.mark.parametrize("name", RETRIED)
def test_transient_failure_is_retried(asked, chat, name):
    replies, least, most = RETRIED[name]
    route = chat(*replies, completion(GOOD))
    assert names(asked()) == ["Tom Hale", "Lisbon"]
    assert route.call_count == len(replies) + 1
    assert least <= sum(asked.slept) <= most


GIVEN_UP = {
    "a rate limit for ever": (limited(), r"slow down.*try again later", range(8, 12), 30, 90),
    "an hour": (limited(retry_after="3600"), "", range(1, 2), 0, 0),
    "a minute again and again": (limited(retry_after="60"), "", range(2, 3), 60, 90),
    "no quota": (failure(429, "quota", code="insufficient_quota"), "billing", range(1, 2), 0, 0),
    "no connection": (REFUSED, "base_url", range(6, 7), 1, 10),
    "a timeout": (httpx.ReadTimeout("too slow"), "model_timeout", range(3, 4), 0, 1),
}
"""The reply of a server that never recovers: the error, the number of calls (one more to see if it is up), and the bounds of the total wait."""


@pytest.mark.parametrize("name", GIVEN_UP)
def test_lasting_failure_raises_model_unavailable(asked, chat, name):
    reply, message, calls, least, most = GIVEN_UP[name]
    route = chat(reply)
    with pytest.raises(ModelUnavailable, match=message):
        asked()
    assert route.call_count in calls
    assert least <= sum(asked.slept) <= most


def test_chat_model_without_key_or_of_another_type_is_refused():
    with pytest.raises(SettingsError, match="OPENAI_API_KEY"):
        open_chat_model("gpt-4o-mini")
    with pytest.raises(SettingsError, match="LangChain chat model"):
        ChatModel("gpt-4o-mini")


# --- servers that lack something


def test_request_repeats_without_limits_if_server_refuses_them(asked, chat):
    route = chat(failure(400, "Invalid schema for response_format: 'maxLength' is not permitted"), completion(GOOD))
    asked()
    first, second = (json.dumps(body(call)["response_format"]) for call in route.calls)
    assert "maxLength" in first
    assert "maxLength" not in second
    assert '"strict": true' in second


def test_request_falls_back_from_schema_to_object_to_text(asked, wire):
    def serve(request):
        sent = json.loads(request.content)
        if "response_format" in sent:
            return failure(400, "response_format is not supported")
        assert "JSON schema" in sent["messages"][0]["content"]
        return completion(f"Here you are:\n```json\n{json.dumps(GOOD)}\n```")

    route = wire.post("/chat/completions").mock(side_effect=serve)
    assert names(asked()) == ["Tom Hale", "Lisbon"]
    forms = [body(call).get("response_format", {}).get("type") for call in route.calls]
    assert forms == ["json_schema", "json_schema", "json_object", None]


def test_missing_server_features_are_remembered(chat):
    route = chat(failure(400), failure(400), completion(GOOD))
    model = ChatModel(open_chat_model("test-model", BASE_URL, "key"))
    for _ in range(3):
        model.answer(ASK)
    assert route.call_count == 5
    assert body(route.calls[-1])["response_format"] == {"type": "json_object"}


def test_lasting_bad_request_raises_and_is_not_remembered(chat):
    route = chat(*[failure(400, "bad")] * 5, completion(GOOD))
    model = ChatModel(open_chat_model("test-model", BASE_URL, "key"))
    with pytest.raises(SettingsError, match="refuses every request"):
        model.answer(ASK)
    model.answer(ASK)
    assert body(route.calls[-1])["response_format"]["type"] == "json_schema"


# --- cuts


def test_cut_off_answer_is_asked_for_again_and_shorter(asked, chat):
    route = chat(completion(CUT, finish_reason="length"), completion(GOOD))
    assert names(asked()) == ["Tom Hale", "Lisbon"]
    assert asked.usage == Usage(calls=2, input_tokens=200, output_tokens=20)
    again = body(route.calls[1])["messages"]
    assert len(again) == 1
    assert "cut off" in again[0]["content"]


# --- answers that are wrong


ECHO = {"type": "object", "properties": {"entities": {"type": "array", "items": {"type": "object"}}}}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("Tom and Lisbon, I think", "no JSON object"),
        ({"entities": [{"age": "Tom Hale"}]}, "entities.0.name: Field required"),
        (ECHO, ""),
        ("", ""),
    ],
)
def test_invalid_answer_is_sent_back_with_reason(asked, chat, content, reason):
    route = chat(completion(content), completion(GOOD))
    assert names(asked()) == ["Tom Hale", "Lisbon"]
    assert route.call_count == 2
    if reason:
        question, answer, note = body(route.calls[1])["messages"]
        assert [question["role"], answer["role"], note["role"]] == ["user", "assistant", "user"]
        assert answer["content"] == (content if isinstance(content, str) else json.dumps(content))
        assert reason in note["content"]


def test_partly_invalid_list_keeps_valid_items_without_retry(asked, chat, caplog):
    mixed = {"entities": [{"name": "Tom Hale", "type": "Person"}, {"type": "Place"}, [], None]}
    route = chat(completion(mixed))
    with caplog.at_level(logging.WARNING, "kg_memory.llm.chat"):
        assert names(asked()) == ["Tom Hale"]
    assert route.call_count == 1
    assert asked.usage == Usage(calls=1, input_tokens=100, output_tokens=10, dropped=3)
    assert "3 invalid items" in caplog.text


@pytest.mark.parametrize(("tokens", "warnings"), [(2048, 1), (2047, 0), (8192, 0)])
def test_cut_prompt_is_warned_of_once(tokens, warnings, asked, chat, caplog):
    """Ollama cuts a longer prompt to its context length without an error."""
    chat(completion(GOOD, tokens=tokens))
    for _ in range(2):
        asked(replace(ASK, fields={**ASK.fields, "instructions": "List no colours. " * 800}))
    assert caplog.text.count("num_ctx") == warnings


def test_log_holds_no_prompt_or_answer_text(asked, chat, caplog):
    chat(completion(f"I was told: {SECRET}"), completion({"entities": [{"name": "Lena", "type": "Person"}, SECRET]}))
    with caplog.at_level(logging.DEBUG, "kg_memory"):
        asked()
    assert caplog.records
    assert "Lisbon" not in caplog.text


def test_model_tokens_do_not_show_in_callers_stream(asked, chat):
    chat(completion(GOOD))
    asked.open(ChatOpenAI(model="m", base_url=BASE_URL, api_key="k", max_retries=0))
    graph = StateGraph(dict)
    graph.add_node("extract", lambda _: {"found": names(asked.model.answer(ASK))})
    graph.add_edge(START, "extract")
    parts = list(graph.compile().stream({}, stream_mode=["messages", "updates"]))
    assert parts == [("updates", {"extract": {"found": ["Tom Hale", "Lisbon"]}})]


# --- other models than OpenAI's


def test_chat_model_asks_any_langchain_model_in_plain_text(asked):
    replies = [AIMessage("let me see"), AIMessage(f"Sure! {json.dumps(GOOD)} Anything else?")]
    model = asked.open(GenericFakeChatModel(messages=iter(replies)))
    assert names(asked()) == ["Tom Hale", "Lisbon"]
    assert model.name == "GenericFakeChatModel"
    assert asked.usage == Usage(calls=2)


class ToolCaller(GenericFakeChatModel):
    """A model whose provider gives structure by tool calls, as Anthropic's does."""

    def bind_tools(self, tools, **_):
        return self


def test_chat_model_uses_tool_calls_of_provider(asked):
    call = {"name": "ExtractedEntities", "args": {"entities": [*GOOD["entities"], {"name": []}]}, "id": "1"}
    asked.open(ToolCaller(messages=iter([AIMessage("", tool_calls=[call])])))
    assert names(asked()) == ["Tom Hale", "Lisbon"]
    assert asked.usage == Usage(calls=1, dropped=1)


def test_chat_model_reads_text_of_model_with_tools(asked):
    asked.open(ToolCaller(messages=iter([AIMessage(json.dumps(GOOD))])))
    assert names(asked()) == ["Tom Hale", "Lisbon"]


def test_chat_model_does_not_stream_from_streaming_model(asked, chat):
    route = chat(completion(GOOD))
    asked.open(ChatOpenAI(model="m", base_url=BASE_URL, api_key="k", streaming=True, max_retries=0))
    assert names(asked()) == ["Tom Hale", "Lisbon"]
    assert not body(route.calls[0]).get("stream")


@pytest.mark.parametrize("ended", ["stop", "length"])
def test_cached_tokens_are_counted(asked, chat, ended):
    text = json.loads(completion(GOOD, finish_reason=ended).content)
    text["usage"]["prompt_tokens_details"] = {"cached_tokens": 64}
    chat(httpx.Response(200, json=text))
    asked()
    assert asked.usage == Usage(calls=1, input_tokens=100, output_tokens=10, cached_tokens=64)


@pytest.mark.parametrize(
    ("reply", "error", "message", "calls"),
    [
        (failure(400, "the request exceeds the available context size"), SettingsError, "max_answer_tokens", 2),
        (completion('{"entities": [{"na', finish_reason="length"), AnswerError, "max_tokens", 2),
        (completion("no idea"), AnswerError, "better at JSON", 3),
    ],
)
def test_invalid_reply_is_asked_about_a_limited_number_of_times(asked, chat, reply, error, message, calls):
    route = chat(reply)
    with pytest.raises(error, match=message):
        asked()
    assert route.call_count == calls

"""Ask a chat model a question and return its typed answer, with retries, fallback formats and repairs.

`prompts` renders questions, `wire` has the formats for requesting JSON, and `parse` reads answers.
"""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import replace
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, SecretStr

from kg_memory.errors import AnswerError, KGMemoryError, ModelError, ModelRefusal, ModelUnavailable, SettingsError
from kg_memory.llm import retry
from kg_memory.llm.chat import wire
from kg_memory.llm.chat.parse import InvalidAnswer, ParsedAnswer, first_answer, is_refusal, parse, salvage
from kg_memory.llm.embeddings import NO_KEY, http_clients, limiter_of, model_name_of, secrets_of, timeout_of
from kg_memory.llm.prompts import render_prompt, schema_text
from kg_memory.models.operations import Usage
from kg_memory.runtime import telemetry
from kg_memory.runtime.effects import Ask, both
from kg_memory.runtime.flow import Flow
from kg_memory.text.tokenise import estimate_tokens

MAX_QUOTED_ANSWER = 4000
"""The most characters of an invalid answer to show the model again for a repair."""
PROBE = HumanMessage("There is nothing to read. Answer with an empty JSON object.")
"""The short question that tells an outage of the server from a text that it cannot answer."""
MOST_EMPTY = 3
"""Empty replies to a format after which the format is not used again."""
CONTEXT_STEP, CUT_SHARE = 1024, 0.7
"""A prompt counts as cut if the server reports a multiple of this many tokens, below this share of our estimate."""
UNSUPPORTED = frozenset({400, 422, 501})
"""The HTTP statuses of servers that do not support a part of a request."""

OPENAI = "openai"
KEYS = {
    "anthropic": "ANTHROPIC_API_KEY",
    "google_genai": "GOOGLE_API_KEY",
    "groq": "GROQ_API_KEY",
    "mistralai": "MISTRAL_API_KEY",
}

log = logging.getLogger("kg_memory.llm.chat")


def provider_of(name: str) -> str:
    """Return the provider in the prefix of a model *name*: ``"groq:llama-3" -> "groq"``; by default, "openai"."""
    provider, colon, _ = name.replace("-", "_").partition(":")
    return provider if colon and provider != "ft" else OPENAI


def _open_by_provider(name: str, provider: str, timeout: float, max_tokens: int | None) -> BaseChatModel:
    """Return the LangChain chat model *name* of *provider*: "anthropic:claude-sonnet-4-5".

    Errors: `SettingsError` if langchain or the provider's package or API key is missing.
    """
    longest: dict[str, Any] = {} if max_tokens is None else {"max_tokens": max_tokens}
    try:
        from langchain.chat_models import init_chat_model  # noqa: PLC0415 - optional, and slow to import

        model: BaseChatModel = init_chat_model(name, temperature=0, timeout=timeout, max_retries=0, **longest)
    except Exception as error:
        # Errors of the providers' packages may quote their settings, such as API keys.
        why = str(error) if isinstance(error, ImportError) else type(error).__name__
        raise SettingsError(
            f"cannot open the model {name} ({why}): install langchain and the package of {provider}, set its API key "
            f"({KEYS.get(provider, f'as {provider} documents it')})"
        ) from error
    return model


def open_chat_model(
    name: str,
    base_url: str | None = None,
    api_key: str | None = None,
    timeout: float = 60.0,
    max_tokens: int | None = None,
) -> BaseChatModel:
    """Return a LangChain chat model: of OpenAI, of the server at *base_url*, or of the provider in *name*.

    *timeout*: seconds. *max_tokens*: length of answers; None leaves the limit to the server. Errors: `SettingsError`.
    """
    if base_url is None and (provider := provider_of(name)) != OPENAI:
        return _open_by_provider(name, provider, timeout, max_tokens)
    if base_url is None:
        name = name.removeprefix("openai:")
    if api_key is None and base_url is None:
        raise SettingsError(f"no API key for the model {name}: set OPENAI_API_KEY or a base_url, or use 'offline'")
    # Most compatible servers know only OpenAI's older name of the limit.
    limit: dict[str, Any] = {"extra_body": {"max_tokens": max_tokens}} if base_url else {"max_tokens": max_tokens}
    return ChatOpenAI(
        model=name,
        base_url=base_url,
        api_key=SecretStr((api_key or NO_KEY).strip()),
        timeout=timeout,
        **(limit if max_tokens else {}),
        temperature=0,
        max_retries=0,
        disable_streaming=True,
        openai_proxy=None,
        **http_clients(),
    )


class ChatModel:
    """Asks a LangChain chat model questions (`Ask`), and returns its answers as pydantic models.

    *repairs*: how often an invalid answer may be sent back to the model for correction.
    """

    by_rules = False

    def __init__(
        self,
        model: BaseChatModel,
        *,
        repairs: int = 2,
        retry_policy: retry.RetryPolicy | None = None,
        sleeper: retry.Sleeper | None = None,
        limiter: retry.RateLimiter | None = None,
    ) -> None:
        """Wrap *model*. Raises: `SettingsError` if it is not a LangChain chat model."""
        if not isinstance(model, BaseChatModel):
            raise SettingsError(f"model must be a LangChain chat model or 'offline', got {type(model).__name__}")
        self.model = model
        self._asked = wire.read_all(model)
        self._repairs = repairs
        self._retry_policy = retry_policy or retry.RetryPolicy()
        self._sleeper = sleeper or retry.Sleeper()
        self._formats = wire.formats_for(model)
        # What the server supports, learned from its first replies.
        self._format, self._takes_temperature, self._has_warned = self._formats[0], True, False
        self._empty_replies: Counter[wire.AnswerFormat] = Counter()
        self.limiter = limiter or limiter_of(model, self.name)

    @property
    def name(self) -> str:
        """The name of the model, or the name of its class."""
        return model_name_of(self.model, ("model_name", "model", "model_id"))  # its `name` is a Runnable's name

    def _answer(self, ask: Ask) -> Flow[BaseModel]:
        """Return the model's answer to *ask*, without invalid items; an invalid answer is sent back for repair.

        Errors: `ModelUnavailable`, `ModelRefusal`, `AnswerError`, `SettingsError`, else `ModelError`.
        """
        question = render_prompt(ask)
        messages: tuple[BaseMessage, ...] = (HumanMessage(question),)
        cuts, refusals, form = 0, 0, self._format
        best: ParsedAnswer | None = None
        for repairs_left in range(self._repairs, -1, -1):
            reply, form = yield from self._request_reply(messages, ask, form)
            try:
                return self._accept(_parse(reply, ask), ask)
            except InvalidAnswer as error:
                reason = str(error)
                best = _larger(best, error.rest)
            log.warning("%s: invalid answer from %s (%s)", ask.prompt.name, self.name, _defect(reply))
            cuts += reply.cut_off
            refusals += is_refusal(reply.text)
            if refusals > 1:
                raise self._refusal(ask, "in its own words")
            if cuts > 1 or not repairs_left or not ask.again():
                break
            telemetry.count_retry(_defect(reply))
            messages = _repair_messages(question, reply, reason, ask)
        rest = _larger(best, salvage(reply.text, ask.prompt.answer))
        if rest is None or not rest.size:
            raise AnswerError(_describe_invalid(self.name, ask, reply, reason))
        return self._accept(rest, ask)

    answer, aanswer = both(_answer)

    def _accept(self, parsed: ParsedAnswer, ask: Ask) -> BaseModel:
        if parsed.dropped:
            log.warning("%s: %d invalid items of the answer were dropped", ask.prompt.name, parsed.dropped)
            ask.meter(Usage(dropped=parsed.dropped))
        return parsed.answer

    def _request_reply(
        self, messages: tuple[BaseMessage, ...], ask: Ask, form: wire.AnswerFormat
    ) -> Flow[tuple[wire.Reply, wire.AnswerFormat]]:
        """Send *messages* to the model; return its reply, and the answer format that worked."""
        temperature = self._takes_temperature
        while True:
            fallback = self._format_after(form)
            with_schema = _append_schema(messages, ask) if form in wire.WITH_SCHEMA_TEXT else messages
            request = wire.ChatRequest(with_schema, ask.prompt, form, temperature)
            try:
                reply = yield from self._send(request)
            except Exception as error:  # noqa: BLE001 - raised below
                failure = retry.diagnose(error, secrets_of(self.model))
                if temperature and failure.status in UNSUPPORTED and "temperature" in failure.reason.lower():
                    temperature = False
                elif fallback is not None and _is_unsupported(error, failure):
                    form = fallback
                else:
                    failure = yield from self._cause(failure, ask, request)
                    if fallback is None or not (yield from self._works_as_text(failure, ask, request)):
                        raise to_error(failure, self.name) from failure.cause
                    form = fallback
                continue
            self._count(reply, ask)
            self._takes_temperature = temperature
            if reply.is_empty and fallback is not None:
                log.warning("%s: empty reply from %s; trying another response format", ask.prompt.name, self.name)
                self._empty_replies[form] += 1
                form = fallback
                continue
            # Later questions start with this format; the first is given up only after `MOST_EMPTY` empty replies.
            if self._empty_replies[self._format] == 0 or self._empty_replies[self._format] >= MOST_EMPTY:
                self._format = form
            if reply.refusal:
                raise self._refusal(ask, reply.refusal)
            return reply, form

    def _cause(self, failure: retry.RequestFailure, ask: Ask, request: wire.ChatRequest) -> Flow[retry.RequestFailure]:
        """Return *failure* with its cause, found by a short request of the form of *request*, metered as *ask*."""
        probe = wire.make_request(self._asked, replace(request, messages=(PROBE,)))
        probe = replace(probe, read=lambda result: self._count(wire.to_reply(result), ask))
        return (yield from retry.blame_input(failure, probe, self.limiter, self._sleeper, timeout_of(self.model)))

    def _works_as_text(self, failure: retry.RequestFailure, ask: Ask, request: wire.ChatRequest) -> Flow[bool]:
        """Return whether *failure* is a server error, such as 500, that a request without an answer format avoids."""
        if failure.status != 500:  # others, such as 503, are those of a server that is down
            return False
        return not (yield from self._cause(failure, ask, replace(request, form=wire.AnswerFormat.TEXT))).transient

    def _count(self, reply: wire.Reply, ask: Ask) -> None:
        ask.meter(reply.usage)
        telemetry.count_tokens(self.name, reply.usage)

    def _refusal(self, ask: Ask, how: str) -> ModelRefusal:
        return ModelRefusal(f"{self.name} declined to answer {ask.prompt.name} ({how}): try another model")

    def _format_after(self, form: wire.AnswerFormat) -> wire.AnswerFormat | None:
        return next(iter(self._formats[self._formats.index(form) + 1 :]), None)

    def _send(self, request: wire.ChatRequest) -> Flow[wire.Reply]:
        """Send *request* to the model, with retries and within the rate limit, and return the reply."""
        tokens = sum(estimate_tokens(str(message.content)) for message in request.messages)
        try:
            reply: wire.Reply = yield from retry.with_retries(
                retry.within(timeout_of(self.model), wire.make_request(self._asked, request)),
                self._retry_policy,
                self.limiter,
                self._sleeper,
                tokens,
            )
        except Exception as error:
            partial_reply = wire.reply_from_error(error)
            if partial_reply is None:
                raise
            return partial_reply
        received = reply.usage.input_tokens
        if received:
            self.limiter.count_tokens(received + reply.usage.output_tokens - tokens)
        if received and received % CONTEXT_STEP == 0 and received < CUT_SHARE * tokens and not self._has_warned:
            self._has_warned = True
            log.warning(
                "%s reports %d tokens for a prompt of about %d: its server seems to cut long prompts, so facts are "
                "lost; raise its context length (num_ctx or OLLAMA_CONTEXT_LENGTH for Ollama)",
                self.name,
                received,
                tokens,
            )
        return reply


def _larger(one: ParsedAnswer | None, other: ParsedAnswer | None) -> ParsedAnswer | None:
    return max((one, other), key=lambda parsed: parsed.size if parsed else 0)


def _parse(reply: wire.Reply, ask: Ask) -> ParsedAnswer:
    try:
        if reply.values:
            return first_answer([reply.values], ask.prompt.answer)
    except InvalidAnswer:
        if not reply.text.strip():
            raise
    return parse(reply.text, ask.prompt.answer, cut_off=reply.cut_off)


def _append_schema(messages: tuple[BaseMessage, ...], ask: Ask) -> tuple[BaseMessage, ...]:
    first = f"{messages[0].content}\nThe JSON schema of the answer:\n{schema_text(ask.prompt.answer)}\n"
    return (HumanMessage(first), *messages[1:])


def _repair_messages(question: str, reply: wire.Reply, reason: str, ask: Ask) -> tuple[BaseMessage, ...]:
    if reply.cut_off:
        note = "Your last answer grew too long and was cut off. Give only what matters most, in few words, each once."
        return (HumanMessage(f"{question}\n{note}\n"),)
    note = (
        f"That answer cannot be used: {reason}. Answer again, with one JSON object that fits this schema"
        f" (do not repeat the schema itself): {schema_text(ask.prompt.answer)}"
    )
    return (HumanMessage(question), AIMessage(reply.text[:MAX_QUOTED_ANSWER] or "(nothing)"), HumanMessage(note))


def _describe_invalid(name: str, ask: Ask, reply: wire.Reply, reason: str) -> str:
    if reply.cut_off:
        return f"the answer of {name} to {ask.prompt.name} was cut off: raise its max_tokens, or lower chunk_size"
    return f"{name} gave no valid answer to {ask.prompt.name} ({reason}): use a model that is better at JSON"


def _defect(reply: wire.Reply) -> str:
    return "cut off" if reply.cut_off else "empty" if not reply.text.strip() else "unreadable"


def _is_unsupported(error: Exception, failure: retry.RequestFailure) -> bool:
    """Return whether the server does not support the answer format; *failure*: the diagnosis of *error*."""
    is_unable = failure.status in UNSUPPORTED or isinstance(error, NotImplementedError)
    is_unable |= failure.status in (404, 500) and retry.WORDS["format"].search(failure.reason) is not None
    return is_unable and not failure.filtered and not _is_too_long(failure)


def _is_too_long(failure: retry.RequestFailure) -> bool:
    return failure.status == 413 or retry.WORDS["too_long"].search(failure.reason) is not None


def to_error(failure: retry.RequestFailure, name: str) -> KGMemoryError:
    """Return the exception to raise for a failed request to the model *name*, with a remedy in its message."""
    return retry.make_error(
        f"the model {name}",
        failure,
        (failure.filtered and not failure.for_all, ModelRefusal, "leave this content out, or try another model"),
        (failure.shutdown, ModelUnavailable, "the process is ending; the content stays saved"),
        (failure.transient, ModelUnavailable, "try again later, or check its base_url and model_timeout"),
        (failure.status == 429, ModelUnavailable, "check the account's quota and billing, or use another model"),
        (failure.status in (401, 403), SettingsError, "set the right api_key (KG_MEMORY_API_KEY or OPENAI_API_KEY)"),
        (failure.timeout, ModelError, "raise model_timeout, or lower chunk_size"),
        (failure.for_all and _is_too_long(failure), SettingsError, "lower max_answer_tokens, or use another model"),
        (_is_too_long(failure), ModelError, "lower chunk_size, or use a model with a larger context"),
    )

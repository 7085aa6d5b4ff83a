"""Ask a language model and get the typed answer, whatever it takes: retries, fallbacks, repairs."""

from __future__ import annotations

import logging
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, SecretStr

from kg_memory.errors import AnswerError, KGMemoryError, ModelError, ModelRefusal, ModelUnavailable, SettingsError
from kg_memory.llm.chat.read import Read, Unreadable, read, read_object, salvage
from kg_memory.llm.chat.render import rendered
from kg_memory.llm.chat.wire import (
    Reply,
    Send,
    bound,
    config,
    reply_of,
    reply_of_error,
    schema_text,
    shows_schema,
    ways,
)
from kg_memory.llm.rate_limit import Pace, pace_of, tokens_of
from kg_memory.llm.retry import Failure, Patience, Pause, Sleepers, diagnose, patiently
from kg_memory.models.usage import Usage
from kg_memory.runtime import telemetry
from kg_memory.runtime.effects import Ask
from kg_memory.runtime.flow import Flow, arun, run

NO_KEY = "none"
"""Sent to a server of one's own when there is no key: the client insists on one."""
LONGEST_ECHO = 4000
"""Characters of a bad answer that are shown to the model again."""
MENDABLE = frozenset({400, 422, 501})
"""What servers answer to a request that asks for something they cannot do."""

log = logging.getLogger("kg_memory.llm.chat")


def chat_model(
    name: str,
    base_url: str | None = None,
    api_key: str | None = None,
    timeout: float = 60.0,
    max_tokens: int | None = None,
) -> BaseChatModel:
    """Open the chat model *name* of OpenAI, or of a server that speaks its protocol; *timeout* in seconds.

    *max_tokens* ends answers that do not end by themselves; None leaves that to the server.
    Errors: `SettingsError` when OpenAI itself is meant and no key is given.
    """
    if api_key is None and base_url is None:
        raise SettingsError(f"no API key for the model {name}: set OPENAI_API_KEY, or a base_url, or use 'offline'")
    return ChatOpenAI(
        model=name,
        base_url=base_url,
        api_key=SecretStr(api_key or NO_KEY),
        timeout=timeout,
        max_tokens=max_tokens,
        temperature=0,
        max_retries=0,
        disable_streaming=True,
        include_response_headers=True,  # which tell the rate limits
    )


class ChatModel:
    """Answers `Ask` effects with a LangChain chat model.

    *repairs* is how often an invalid answer is sent back to be mended. The *pace* is that of all who ask the same
    server for the same model, if none is given.
    """

    def __init__(
        self,
        model: BaseChatModel,
        *,
        repairs: int = 2,
        patience: Patience | None = None,
        sleepers: Sleepers | None = None,
        pace: Pace | None = None,
    ) -> None:
        if not isinstance(model, BaseChatModel):
            raise SettingsError(f"model is a {type(model).__name__}: pass a LangChain chat model, or 'offline'")
        self.model = model
        self._repairs = repairs
        self._patience = patience or Patience()
        self._sleepers = sleepers or Sleepers()
        self._accepted = _Accepted(model)
        self.pace = pace or pace_of(model, self.name)

    @property
    def name(self) -> str:
        """The model's own name, as far as it tells one."""
        for attribute in ("model_name", "model", "model_id"):
            value = getattr(self.model, attribute, None)
            if isinstance(value, str) and value:
                return value
        return type(self.model).__name__

    def answer(self, ask: Ask) -> BaseModel:
        """Return the model's answer to *ask*, valid but for dropped items, which are logged and metered.

        Errors: `ModelUnavailable`, `ModelRefusal`, `AnswerError`, `ModelError`; `SettingsError` for a bad key or name.
        """
        return run(self._answer(ask), self._perform)

    async def aanswer(self, ask: Ask) -> BaseModel:
        """`answer` on the running event loop."""
        return await arun(self._answer(ask), self._aperform)

    def _answer(self, ask: Ask) -> Flow[BaseModel]:
        question = rendered(ask)
        messages: tuple[BaseMessage, ...] = (HumanMessage(question),)
        cuts = 0
        for left in range(self._repairs, -1, -1):
            reply = yield from self._reply(messages, ask)
            try:
                return self._kept(_read(reply, ask), ask)
            except Unreadable as error:
                reason = str(error)
            log.warning("%s: invalid answer from %s (%s)", ask.prompt.name, self.name, _kind(reply))
            cuts += reply.cut_off
            if cuts > 1 or not left or not ask.again():
                break
            telemetry.retried(_kind(reply))
            messages = _again(question, reply, reason, ask)
        rest = salvage(reply.text, ask.prompt.answer)
        if rest is None:
            raise AnswerError(_unusable(self.name, ask, reply, reason))
        return self._kept(rest, ask)

    def _kept(self, found: Read, ask: Ask) -> BaseModel:
        if found.dropped:
            log.warning("%s: %d invalid items of the answer were dropped", ask.prompt.name, found.dropped)
            ask.meter(Usage(dropped=found.dropped))
        return found.answer

    def _reply(self, messages: tuple[BaseMessage, ...], ask: Ask) -> Flow[Reply]:
        """Send *messages* in the best way that the server takes, and remember which it was."""
        accepted = self._accepted
        way, temperature = accepted.way, accepted.temperature
        while True:
            shown = _with_schema(messages, ask) if shows_schema(way) else messages
            try:
                reply = yield from self._sent(Send(shown, ask.prompt, way, temperature))
            except Exception as error:
                failure, lower = diagnose(error), accepted.below(way)
                if temperature and failure.status == 400 and "temperature" in failure.reason:
                    temperature = False
                elif lower is not None and _is_mendable(error, failure):
                    way = lower
                else:
                    raise _translated(failure, self.name) from error
                continue
            ask.meter(reply.usage)
            telemetry.spent(self.model, reply.usage)
            accepted.way, accepted.temperature = way, temperature
            if reply.refusal:
                raise ModelRefusal(
                    f"{self.name} declined to answer {ask.prompt.name} ({reply.refusal}): try another model"
                )
            return reply

    def _sent(self, send: Send) -> Flow[Reply]:
        tokens = sum(tokens_of(str(message.content)) for message in send.messages)
        try:
            reply: Reply = yield from patiently(send, self._patience, self.pace, tokens)
        except Exception as error:
            carried = reply_of_error(error)
            if carried is None:
                raise
            return carried
        self.pace.told(reply.headers, reply.usage.input_tokens + reply.usage.output_tokens, tokens)
        return reply

    def _perform(self, effect: Any) -> Any:
        match effect:
            case Pause(seconds):
                return self._sleepers.sync(seconds)
            case Send(messages):
                with telemetry.chat(self.model, effect) as told:
                    return told(reply_of(bound(self.model, effect).invoke(list(messages), config(effect))))
        raise TypeError(f"no such effect: {effect!r}")

    async def _aperform(self, effect: Any) -> Any:
        match effect:
            case Pause(seconds):
                return await self._sleepers.asynchronous(seconds)
            case Send(messages):
                with telemetry.chat(self.model, effect) as told:
                    return told(reply_of(await bound(self.model, effect).ainvoke(list(messages), config(effect))))
        raise TypeError(f"no such effect: {effect!r}")


class _Accepted:
    """The way of asking that the server has accepted last: learnt once, kept while the model is open."""

    def __init__(self, model: BaseChatModel) -> None:
        self._ways = ways(model)
        self.way = self._ways[0]
        self.temperature = True

    def below(self, way: Any) -> Any:
        """Return the next way after *way*, or None."""
        return next(iter(self._ways[self._ways.index(way) + 1 :]), None)


def _read(reply: Reply, ask: Ask) -> Read:
    if reply.value is not None:
        return read_object(reply.value, ask.prompt.answer)
    return read(reply.text, ask.prompt.answer)


def _with_schema(messages: tuple[BaseMessage, ...], ask: Ask) -> tuple[BaseMessage, ...]:
    """Return *messages* with the schema at the end of the first."""
    first = f"{messages[0].content}\nThe JSON schema of the answer:\n{schema_text(ask.prompt.answer)}\n"
    return (HumanMessage(first), *messages[1:])


def _again(question: str, reply: Reply, reason: str, ask: Ask) -> tuple[BaseMessage, ...]:
    """Return the messages that ask once more: shorter after a cut, else mended."""
    if reply.cut_off:
        note = "Your last answer grew too long and was cut off. Give only what matters most, in few words, each once."
        return (HumanMessage(f"{question}\n{note}\n"),)
    note = (
        f"That answer cannot be used: {reason}. Answer again, with one JSON object that fits this schema"
        f" (do not repeat the schema itself): {schema_text(ask.prompt.answer)}"
    )
    said = reply.text[:LONGEST_ECHO] or "(nothing)"
    return (HumanMessage(question), AIMessage(said), HumanMessage(note))


def _unusable(name: str, ask: Ask, reply: Reply, reason: str) -> str:
    if reply.cut_off:
        return f"the answer of {name} to {ask.prompt.name} was cut off: raise its max_tokens, or lower chunk_size"
    return f"{name} gave no valid answer to {ask.prompt.name} ({reason}): use a model that is better at JSON"


def _kind(reply: Reply) -> str:
    return "cut off" if reply.cut_off else "empty" if not reply.text.strip() else "unreadable"


def _is_mendable(error: Exception, failure: Failure) -> bool:
    """Tell whether asking in another way may help."""
    unable = failure.status in MENDABLE or isinstance(error, NotImplementedError)
    return unable and not failure.refused and not _is_too_long(failure)


def _is_too_long(failure: Failure) -> bool:
    words = failure.reason.lower()
    return "context" in words and any(word in words for word in ("length", "size", "window", "exceed", "maximum"))


def _translated(failure: Failure, name: str) -> KGMemoryError:
    """Return the error to raise for *failure*, with what to do about it."""
    status = failure.status
    found: list[tuple[bool, type[KGMemoryError], str]] = [
        (failure.refused, ModelRefusal, "leave this content out, or try another model"),
        (failure.ending, ModelUnavailable, "the process ends, and what it was asked about stays saved"),
        (failure.passing, ModelUnavailable, "try again later, or check its base_url and model_timeout"),
        (status == 429, ModelUnavailable, "check the account's quota and billing, or use another model"),
        (status in (401, 403), SettingsError, "set the right api_key (KG_MEMORY_API_KEY or OPENAI_API_KEY)"),
        (status == 404, SettingsError, "check the model's name and base_url"),
        (_is_too_long(failure), ModelError, "lower chunk_size, or use a model with a larger context"),
        (True, ModelError, "check the server's log and the model's settings"),
    ]
    kind, advice = next((kind, advice) for applies, kind, advice in found if applies)
    return kind(f"the model {name} failed ({failure.reason}): {advice}")

"""Shared parts of the MCP tools: callers, tool definitions, and short JSON forms of facts and episodes."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from mcp.server import ServerRequestContext
from mcp_types import CallToolRequestParams, ToolAnnotations
from mcp_types import Tool as ListedTool
from pydantic import ConfigDict, ValidationError

from kg_memory.adapters.rendering import DATA, render_fact, section
from kg_memory.contrib.server.keys import ApiKey, Scope
from kg_memory.errors import InputError
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.arguments import Arguments
from kg_memory.models.graph import FOR_AGENTS, Change, Episode, Fact, Review, Value
from kg_memory.retrieval.context.lines import escape_line
from kg_memory.text.message_fields import USER
from kg_memory.validation import validate_choice, validate_namespaces

Profile = Literal["core", "full", "read-only"]
PROFILES: tuple[Profile, ...] = get_args(Profile)
LAUNCHED = ApiKey(id="stdio", name="mcp", scopes=("admin",), created_at=datetime.fromtimestamp(0, UTC))
"""The key of a caller over stdio, with all scopes: whoever starts the process has access to the database."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The client of an MCP call: its API `key`, its `namespace`, and its `profile` (the tools that it may use).

    `user`: the speaker of the messages that it saves, and the person who says "I" in its questions. `recall_from`:
    further namespaces that it searches.
    """

    key: ApiKey
    namespace: str
    profile: Profile = "core"
    user: str = USER
    recall_from: tuple[str, ...] = ()

    @classmethod
    def make(
        cls,
        key: ApiKey,
        namespace: str,
        profile: str | None = None,
        user: str | None = None,
        recall_from: Sequence[str] = (),
    ) -> Caller:
        """Return the caller (the client of MCP calls) with an API *key* and a *namespace*.

        *profile*: the tools that it may use, "core" (default), "full" or "read-only". *user*: the speaker of its
        messages, by default "user". *recall_from*: further namespaces to search. Raises `InputError`.
        """
        chosen: Any = validate_choice("profile", profile or "core", PROFILES)
        home, *others = validate_namespaces([namespace, *recall_from])
        return cls(key, home, chosen, user or USER, tuple(others))


Data = dict[str, Any]
JsonSchema = dict[str, Any]
LONGEST_ERROR = 1000
LONGEST_CONTENT = 10_000
"""The most characters of an episode's content in results of a tool or a search."""
LONGEST = 50_000
"""The most characters of an argument."""


class ToolArguments(Arguments):
    """Base class of the arguments of a tool. A subclass's docstring is the description of its tool for the model."""

    model_config = ConfigDict(extra="forbid", str_max_length=LONGEST)


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The result of a tool: `text` for the model, and the same content as JSON `data` for the client program."""

    text: str
    data: Data


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of an MCP tool: the memory, the caller, the request, and its parameters.

    `wake`: a function; call it with a namespace to have its saved messages read in the background.
    """

    memory: GraphMemory
    caller: Caller
    request: ServerRequestContext[Any, Any]
    params: CallToolRequestParams
    wake: Callable[[str], None]

    @property
    def namespace(self) -> str:
        """The namespace of the caller."""
        return self.caller.namespace

    async def report(self, done: int, total: int, message: str) -> None:
        """Send the client a progress message, if it asked for progress: *done* of *total* steps are finished."""
        await self.request.session.report_progress(done, total, message)


@dataclass(frozen=True, slots=True)
class Tool:
    """An MCP tool: its name, the model of its arguments, and the function that handles a call.

    *output*: JSON types of the result's fields, ``{"facts": "array"}``. *scope*: the right that the API key needs.
    *effects*: MCP annotations that differ from the defaults. *heavy*: calls run one after another.
    """

    name: str
    arguments: type[ToolArguments]
    handle: Callable[[ToolCall, Any], Awaitable[ToolAnswer]]
    output: Mapping[str, str]
    scope: Scope = "read"
    effects: Mapping[str, bool] = field(default_factory=dict)
    profiles: tuple[Profile, ...] = PROFILES
    heavy: bool = False

    def is_offered(self, caller: Caller) -> bool:
        """Return whether *caller* may use the tool: its profile includes the tool, and its API key allows the scope."""
        is_allowed = caller.profile != "read-only" or self.scope == "read"
        return is_allowed and caller.profile in self.profiles and caller.key.allows(self.scope, caller.namespace)

    def describe(self) -> ListedTool:
        """Return the description of the tool that clients get, with a schema that is shortened to save tokens."""
        about = self.arguments.__doc__ or ""
        fields = {name: {"type": kind} for name, kind in self.output.items()}
        hints = {"read_only_hint": True} if self.scope == "read" else {"destructive_hint": False, **self.effects}
        return ListedTool(
            name=self.name,
            description=" ".join(inspect.cleandoc(about).split()),
            input_schema=_shorten_schema(self.arguments.model_json_schema()),
            output_schema={"type": "object", "properties": fields},
            annotations=ToolAnnotations(open_world_hint=False, **hints),
        )

    async def call(self, call: ToolCall) -> ToolAnswer:
        """Validate the arguments of *call*, run the tool, and return its answer.

        Raises `InputError` for invalid arguments, and any error of the memory.
        """
        try:
            asked = self.arguments.model_validate(call.params.arguments or {})
        except ValidationError as error:
            raise InputError(self._explain(error)) from None
        return await self.handle(call, asked)

    def _explain(self, error: ValidationError) -> str:
        problems = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()[:5])
        takes = ", ".join(self.arguments.model_fields) or "no arguments"
        return f"{self.name} takes {takes}; {problems}"[:LONGEST_ERROR]


def _shorten_schema(schema: JsonSchema) -> JsonSchema:
    """Return a JSON *schema* without titles, null defaults and limits of numbers, which the model does not need."""
    properties = {name: _shorten_property(value) for name, value in schema.get("properties", {}).items()}
    short: JsonSchema = {"type": "object", "properties": properties}
    if required := schema.get("required"):
        short["required"] = required
    return short


def _shorten_property(schema: JsonSchema) -> JsonSchema:
    kinds = [kind for kind in schema.get("anyOf", ()) if kind.get("type") != "null"]
    whole = {**schema, **(kinds[0] if len(kinds) == 1 else {})}
    left_out = {"title", "default", "minimum", "maximum", *(["anyOf"] if kinds else [])}
    return {name: value for name, value in whole.items() if name not in left_out}


# Results: text for the model, and short JSON data for the client program

FACT = set("namespace id subject predicate objects sentence valid_at invalid_at created_at expired_at".split())
MARKS = {"disputed_by", "superseded_by", "doubtful_since"}
SOURCE = {"episode", "speaker", "at", "quote"}
EPISODE = {"namespace", "id", "speaker", "at", "content", "remarks"}


def view_fact(fact: Fact) -> Data:
    """Convert *fact* to short JSON data, without empty fields."""
    view = dump(fact, FACT | MARKS)
    if fact.mark:
        view["mark"] = fact.mark
    return {**view, "sources": [dump(source, SOURCE) for source in fact.sources]}


def shorten(episode: Episode) -> Episode:
    """Return *episode*, its content cut to `LONGEST_CONTENT` characters and " ..." if it is longer."""
    if len(episode.content) <= LONGEST_CONTENT:
        return episode
    return episode.model_copy(update={"content": f"{episode.content[:LONGEST_CONTENT]} ..."})


def view_episode(episode: Episode) -> Data:
    """Convert *episode* to short JSON data; long content is cut off, see `shorten`."""
    return dump(shorten(episode), EPISODE)


def view_review(review: Review) -> Data:
    """Convert *review* to short JSON data, with the two facts that it compares."""
    view = dump(review, {"id", "kind", "ruling", "confidence", "reason", "decided_by"})
    return {**view, "pending": view_fact(review.pending), "existing": view_fact(review.existing)}


def view_change(change: Change) -> Data:
    """Convert *change* to short JSON data, with the fact before and after it."""
    facts = {"before": change.before, "after": change.after}
    return {**dump(change, {"at", "kind", "cause"}), **{name: view_fact(fact) for name, fact in facts.items() if fact}}


def parse_fact_id(text: str) -> str:
    """Remove the prefix of a fact id: ``"fact:3f2a" -> "3f2a"``. Tools show ids with this prefix."""
    return text.strip().removeprefix("fact:")


def dump(value: Value, fields: set[str] | None = None) -> Data:
    """Convert *value* to JSON data without empty fields: ``{"id": "f1"}``. *fields* limits it to some fields."""
    plain = value.model_dump(mode="json", include=fields, exclude_none=True, context=FOR_AGENTS)
    return {name: part for name, part in plain.items() if part not in ("", [], {})}


def answer_facts(facts: Sequence[Fact], nothing: str) -> ToolAnswer:
    """Return a tool's answer with one line for each fact; if there are no facts, its text is *nothing*."""
    lines = section("facts", (render_fact(fact, set()) for fact in facts))
    return ToolAnswer(f"{DATA}\n\n{lines}" if lines else nothing, {"facts": list(map(view_fact, facts))})


def quote(text: str) -> str:
    """Return *text* escaped so that it fits on one line. It comes from the memory, so anyone may have written it."""
    return escape_line(text)

"""Tools: the callers and their profiles, arguments and answers, and results in short for programs."""

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
from kg_memory.models import arguments
from kg_memory.models.graph import FOR_AGENTS, Change, Episode, Fact, Review, Value
from kg_memory.retrieval.context.lines import escape_line
from kg_memory.text.message_fields import USER
from kg_memory.validation import validate_namespace

Profile = Literal["core", "full", "read-only"]
PROFILES: tuple[Profile, ...] = get_args(Profile)
LAUNCHED = ApiKey(id="stdio", name="mcp", scopes=("admin",), created_at=datetime.fromtimestamp(0, UTC))
"""The key of a server that was launched over stdio: who launches it owns the database."""


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller: its `key`, the `namespace` of all its calls, and the tools of its `profile`.

    `user` is the speaker of what is remembered, and whom "I" in a question means.
    """

    key: ApiKey
    namespace: str
    profile: Profile = "core"
    user: str = USER

    @classmethod
    def make(cls, key: ApiKey, namespace: str, profile: str | None = None, user: str | None = None) -> Caller:
        """Return a caller after checking its parts. Errors: `InputError`."""
        chosen = next((name for name in PROFILES if name == (profile or "core")), None)
        if chosen is None:
            raise InputError(f"profile must be one of {', '.join(PROFILES)}, got {profile!r}")
        return cls(key, validate_namespace(namespace), chosen, user or USER)


Data = dict[str, Any]
JsonSchema = dict[str, Any]
LONGEST_ERROR = 1000
LONGEST_CONTENT = 10_000
"""Characters of an error, and of a message, at most."""
LONGEST = 50_000
"""Characters of an argument, at most."""


class Arguments(arguments.Arguments):
    """The arguments of a tool; the docstring tells the model what it is for."""

    model_config = ConfigDict(extra="forbid", str_max_length=LONGEST)


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a tool: the text that the model reads, and the same as `data` for the program around it."""

    text: str
    data: Data


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool: the memory and the caller, and the request by which the client and its user are reached.

    `wake` has what is saved in a namespace read in the background.
    """

    memory: GraphMemory
    caller: Caller
    request: ServerRequestContext[Any, Any]
    params: CallToolRequestParams
    wake: Callable[[str], None]

    @property
    def namespace(self) -> str:
        """The namespace of the call."""
        return self.caller.namespace

    async def report(self, done: int, total: int, message: str) -> None:
        """Report progress, where the client asked for it."""
        await self.request.session.report_progress(done, total, message)


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: its `name`, its `arguments` and how it is called.

    A key needs the `scope`. `output` names the fields of the data with their JSON types, and `effects` are the hints of
    its annotations that are not the usual ones. Calls of `heavy` tools, and those with long arguments, wait in turn.
    """

    name: str
    arguments: type[Arguments]
    handle: Callable[[ToolCall, Any], Awaitable[Answer]]
    output: Mapping[str, str]
    scope: Scope = "read"
    effects: Mapping[str, bool] = field(default_factory=dict)
    profiles: tuple[Profile, ...] = PROFILES
    heavy: bool = False

    def is_offered(self, caller: Caller) -> bool:
        """Return whether the profile of *caller* has the tool, and its key the scope."""
        is_allowed = caller.profile != "read-only" or self.scope == "read"
        return is_allowed and caller.profile in self.profiles and caller.key.has(self.scope)

    def describe(self) -> ListedTool:
        """Return the tool as clients list it, in few tokens."""
        about = self.arguments.__doc__ or ""
        fields = {name: {"type": kind} for name, kind in self.output.items()}
        hints = {"read_only_hint": True} if self.scope == "read" else {"destructive_hint": False, **self.effects}
        return ListedTool(
            name=self.name,
            description=" ".join(inspect.cleandoc(about).split()),
            input_schema=_shorten(self.arguments.model_json_schema()),
            output_schema={"type": "object", "properties": fields},
            annotations=ToolAnnotations(open_world_hint=False, **hints),
        )

    async def call(self, call: ToolCall) -> Answer:
        """Check the arguments of *call*, and answer it. Errors: those of the memory; `InputError` for arguments."""
        try:
            asked = self.arguments.model_validate(call.params.arguments or {})
        except ValidationError as error:
            raise InputError(self._explain(error)) from None
        return await self.handle(call, asked)

    def _explain(self, error: ValidationError) -> str:
        problems = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()[:5])
        takes = ", ".join(self.arguments.model_fields) or "no arguments"
        return f"{self.name} takes {takes}; {problems}"[:LONGEST_ERROR]


def _shorten(schema: JsonSchema) -> JsonSchema:
    """Return *schema* without what a model does not need: titles, null defaults, and what the server checks anyway."""
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


# Results as tools answer them: text for the model, and the same in short for programs

FACT = {"id", "subject", "predicate", "objects", "sentence", "valid_at", "invalid_at", "created_at", "expired_at"}
MARKS = {"disputed_by", "superseded_by", "doubtful_since"}
SOURCE = {"episode", "speaker", "at", "quote"}
EPISODE = {"id", "speaker", "at", "content", "remarks"}


def view_fact(fact: Fact) -> Data:
    """Return *fact* in short; what is empty is left out."""
    view = dump(fact, FACT | MARKS)
    if fact.mark:
        view["mark"] = fact.mark
    return {**view, "sources": [dump(source, SOURCE) for source in fact.sources]}


def view_episode(episode: Episode) -> Data:
    """Return *episode* in short, with at most `LONGEST_CONTENT` characters of its content."""
    view = dump(episode, EPISODE)
    if len(episode.content) > LONGEST_CONTENT:
        view["content"] = f"{episode.content[:LONGEST_CONTENT]} ..."
    return view


def view_review(review: Review) -> Data:
    """Return *review* in short."""
    view = dump(review, {"id", "kind", "ruling", "confidence", "reason", "decided_by"})
    return {**view, "pending": view_fact(review.pending), "existing": view_fact(review.existing)}


def view_change(change: Change) -> Data:
    """Return *change* in short."""
    facts = {"before": change.before, "after": change.after}
    return {**dump(change, {"at", "kind", "cause"}), **{name: view_fact(fact) for name, fact in facts.items() if fact}}


def fact_id(text: str) -> str:
    """Return the id of a fact without ``fact:``, with which tools show it."""
    return text.strip().removeprefix("fact:")


def dump(value: Value, fields: set[str] | None = None) -> Data:
    """Return *fields* of *value*, or all of them, as JSON; what is empty is left out."""
    plain = value.model_dump(mode="json", include=fields, exclude_none=True, context=FOR_AGENTS)
    return {name: part for name, part in plain.items() if part not in ("", [], {})}


def answer_facts(facts: Sequence[Fact], nothing: str) -> Answer:
    """Return *facts* as lines with their ids, or *nothing* where there are none."""
    lines = section("facts", (render_fact(fact, set()) for fact in facts))
    return Answer(f"{DATA}\n\n{lines}" if lines else nothing, {"facts": list(map(view_fact, facts))})


def quote(text: str) -> str:
    """Return *text*, which somebody wrote, as part of a line."""
    return escape_line(text)

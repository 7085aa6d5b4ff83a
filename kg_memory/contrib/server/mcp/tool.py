"""Tools: their arguments and answers, and the calls that they handle."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp.server import ServerRequestContext
from mcp_types import CallToolRequestParams, ToolAnnotations
from mcp_types import Tool as ListedTool
from pydantic import ConfigDict, ValidationError

from kg_memory.contrib.server.keys import Scope
from kg_memory.contrib.server.mcp.caller import PROFILES, Caller, Profile
from kg_memory.errors import InputError
from kg_memory.memory.memory import GraphMemory
from kg_memory.models import arguments

Data = dict[str, Any]
JsonSchema = dict[str, Any]
LONGEST_ERROR = 1000
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
    its annotations that are not the usual ones.
    """

    name: str
    arguments: type[Arguments]
    handle: Callable[[ToolCall, Any], Awaitable[Answer]]
    output: Mapping[str, str]
    scope: Scope = "read"
    effects: Mapping[str, bool] = field(default_factory=dict)
    profiles: tuple[Profile, ...] = PROFILES

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
    left_out = {"title", "default", "anyOf"} if kinds else {"title", "default"}
    return {name: value for name, value in whole.items() if name not in left_out}

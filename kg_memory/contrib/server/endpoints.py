"""HTTP routes generated from methods of `GraphMemory`. The signature of a method gives parameters and response type.

A "verb" here is the dotted name of such a method, such as ``facts.list``.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import linecache
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from operator import attrgetter
from typing import Annotated, Any, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl, unquote, urlencode

from fastapi import APIRouter, Body, Depends, Path, Query, Request
from fastapi.routing import APIRoute
from pydantic import AfterValidator, BaseModel, Field, TypeAdapter, create_model
from starlette.responses import Response

from kg_memory.contrib.server.access import Access, authorize, require_scope
from kg_memory.contrib.server.answers import (
    MOST,
    MOST_CHARACTERS,
    VIEWS,
    ContextView,
    Page,
    PagePosition,
    cut_page,
    json_response,
)
from kg_memory.contrib.server.keys import Scope
from kg_memory.contrib.server.parameters import FEW, FEW_OTHERS, SHORT, StrictBody, find_parameter
from kg_memory.contrib.server.problems import MOST_ERRORS, Problem, ProblemError
from kg_memory.contrib.server.service import Service
from kg_memory.falkor.rows import to_datetime
from kg_memory.memory.memory import GraphMemory
from kg_memory.models import arguments as models
from kg_memory.models.graph import FOR_AGENTS
from kg_memory.models.results import Context, Paged

Arguments = dict[str, Any]
NAMESPACE = "/v1/namespaces/{namespace}"
PathText = Annotated[str, AfterValidator(unquote)]
"""A path parameter. It is percent-decoded here, after routing, so that it can contain ``%2F``; see `Gate`."""
HIDDEN = frozenset({"namespace", "progress", "skip", "characters", "after", "mapping", "checkpointer", "store", "read"})
"""Parameters of `GraphMemory` methods that requests cannot set, or that have another name over HTTP."""
JSON_EXAMPLES = {"where": '{"speaker": "Ann"}', "schema": '{"diet": {"sub_topics": {"drinks": {"words": ["tea"]}}}}'}
"""Parameters that are JSON texts in a query string, each with an example."""
RECALL_FROM = "recall_from"
"""The parameter of requests that names further namespaces to read, each of which the key must allow."""
WHOLE = 10_000
"""Items that are read of a list that must be read whole (`Route.whole`) before pages are cut from it."""
PROBLEM_RESPONSES: dict[int | str, Arguments] = {
    status: {"model": Problem, "description": HTTPStatus(status).phrase}
    for status in (400, 401, 403, 404, 408, 409, 413, 421, 422, 423, 429, 431, 502, 503)
}


def describe(operation: str, answers: Mapping[int | str, Arguments] | None = None) -> Arguments:
    """Return keyword arguments for a FastAPI route that document it: operation id, tag and possible responses.

    *operation* is a dotted name such as ``data.export``. *answers* are responses by status code, in addition to errors.
    """
    tag, responses = operation.partition(".")[0], PROBLEM_RESPONSES | dict(answers or {})
    return {"operation_id": operation, "tags": [tag], "responses": responses}


@dataclass(frozen=True, slots=True)
class Route:
    """An HTTP route that calls the `GraphMemory` method *verb*, such as ``facts.list``.

    *path*: names in braces are parameters of the method. *scope*: the right that the API key needs. *status*: of a
    successful response. *whole*: read the whole list before cutting a page. *heavy*: run only a few such calls at a
    time. *example*: a request body for the API documentation.
    """

    method: str
    path: str
    verb: str
    scope: Scope = "read"
    status: int = 200
    whole: bool = False
    heavy: bool = False
    example: Mapping[str, Any] | None = None


class LenientRoute(APIRoute):
    """A FastAPI route that ignores optional query parameters whose value is empty or ``null``."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return FastAPI's request handler, wrapped so that it drops empty optional query parameters."""
        linecache.getlines(inspect.getfile(self.endpoint))  # cached here, or FastAPI reads the file on the event loop
        handle = super().get_route_handler()
        optional = {field.alias for field in self.dependant.query_params if not field.field_info.is_required()}

        async def answer(request: Request) -> Response:
            given = parse_qsl(request.scope["query_string"].decode("latin-1"), keep_blank_values=True)
            kept = [(name, value) for name, value in given if name not in optional or not models.is_left_out(value)]
            if len(kept) < len(given):
                request.scope["query_string"] = urlencode(kept).encode()
            return await handle(request)

        return answer


class _Verb:
    """The method of *memory* that a route calls, given by its dotted *name*, such as ``facts.list``.

    It has the sync and the async function, their parameters and type hints, and the docstring.
    """

    def __init__(self, memory: GraphMemory, name: str) -> None:
        group, _, last = name.rpartition(".")
        self.name, self.function = name, attrgetter(name)(memory)
        self.async_function = attrgetter(f"{group}.a{last}".lstrip("."))(memory)
        self.parameters = inspect.signature(self.async_function).parameters
        self.hints = get_type_hints(self.async_function)
        self.about = inspect.getdoc(self.async_function) or ""
        self.takes_several = get_origin(self.hints.get("namespace")) is not None
        """Whether the method can read several namespaces at once."""
        result = self.hints["return"]
        self.item: Any = get_args(result)[0] if get_origin(result) in {list, Paged} else None
        """The type of the items if the memory method returns a list, else ``None``."""

    async def call(self, arguments: Arguments, *, apart: bool) -> Any:
        """Call the `GraphMemory` method with *arguments* and return its result.

        *apart*: run the sync method in a thread instead of awaiting the async method. ``*args`` are given as a list.
        """
        listed: Sequence[Any] = ()
        for name, parameter in self.parameters.items():
            if parameter.kind is parameter.VAR_POSITIONAL:
                first = next(iter(self.parameters))
                listed = arguments[first], *arguments[name]
                arguments = {key: value for key, value in arguments.items() if key not in {first, name}}
        if apart:
            return await asyncio.to_thread(self.function, *listed, **arguments)
        return await self.async_function(*listed, **arguments)

    def type_of(self, name: str, *, in_query: bool) -> Any:
        """Return the type of the HTTP parameter *name*: in a query string if *in_query*, else in a JSON body."""
        parameter = find_parameter(self.name, name)
        return (in_query and parameter.in_query) or parameter.type or self.hints[name]

    def default_of(self, name: str) -> Any:
        """Return the default value of parameter *name* in the form that FastAPI expects; ``...`` means required."""
        if name == RECALL_FROM:
            return None
        default = self.parameters[name].default
        if default is inspect.Parameter.empty:
            return ...
        return None if name == "by" else [] if default == () else default


def add_route(router: APIRouter, service: Service, route: Route) -> None:
    """Add an endpoint for *route* to *router*, with the parameters and the documentation of its memory method."""
    verb = _Verb(service.memory, route.verb)
    taken = {*HIDDEN, *_path_parameters(route.path)}
    offered = [name for name in verb.parameters if name not in taken]
    if verb.takes_several:
        offered.append(RECALL_FROM)
    answer = _Answer(verb, route, service.memory.driver.clock)
    queried = ({*offered, "cursor"} if verb.item is not None else {*offered}) if route.method == "GET" else set()

    async def endpoint(request: Request, access: Access, **values: Any) -> Response:
        """Call the memory method with the query or body of the request, and return its result as JSON."""
        _refuse_unknown_query(request, queried)
        place, body = PagePosition.from_cursor(values.pop("cursor", None)), values.pop("body", None)
        if body is not None:
            values |= {name: getattr(body, name) for name in offered}
        arguments = {name: to_argument(name, value) for name, value in values.items() if value is not None}
        if "by" in offered:
            arguments.setdefault("by", access.key.name)
        others = [authorize(access.key, "read", name).namespace for name in arguments.pop(RECALL_FROM, ())]
        if "namespace" in verb.parameters:
            arguments["namespace"] = [access.namespace, *others] if others else access.namespace
        is_reviewer = access.key.allows("review", access.namespace)
        shown = route.verb == "episodes.get" and is_reviewer  # who must see withheld text
        if route.heavy:
            asked = repr((route.verb, arguments, place, request.headers.get("if-none-match")))
            return await service.jobs.run(
                request, access.namespace, asked, lambda _: answer(request, arguments, place, shown=shown), cancel=True
            )
        is_large = arguments.get("limit", 0) > FEW or (route.scope == "read" and len(repr(arguments)) > SHORT)
        is_large = is_large or len(others) > FEW_OTHERS
        is_read_elsewhere = "read" in verb.parameters and not service.options.read
        if is_read_elsewhere:
            arguments["read"] = False
        try:
            async with service.large if is_large else nullcontext():
                return await answer(request, arguments, place, shown=shown, apart=is_large)
        finally:
            if is_read_elsewhere:
                service.reader.wake(access.namespace)  # tells the workers that read for this server

    endpoint.__signature__ = inspect.Signature(_endpoint_parameters(verb, route, offered))  # type: ignore[attr-defined]
    summary, _, rest = verb.about.partition("\n\n")
    router.add_api_route(
        NAMESPACE + route.path,
        endpoint,
        methods=[route.method],
        operation_id=route.verb,
        summary=" ".join(summary.split()),
        description=rest,
        status_code=route.status,
        response_model=answer.model,
        responses=PROBLEM_RESPONSES,
        tags=[route.verb.rpartition(".")[0] or "memory"],
    )


def _endpoint_parameters(verb: _Verb, route: Route, offered: Sequence[str]) -> list[inspect.Parameter]:
    """Return the parameters of the endpoint function of *route*, by which FastAPI reads and documents requests.

    *offered*: the parameters of the memory method that clients may set, in the query (GET) or in the JSON body.
    """
    parameters = [
        _keyword_parameter("request", Request),
        _keyword_parameter("access", Access, Depends(require_scope(route.scope))),
        *(
            _keyword_parameter(name, Annotated[PathText, Path(description=find_parameter(route.verb, name).about)])
            for name in _path_parameters(route.path)
        ),
    ]
    if route.method == "GET":
        parameters += _query_parameters(verb, offered, paged=verb.item is not None)
    elif offered:
        model = _make_body_model(verb, route, offered)
        required = any(field.is_required() for field in model.model_fields.values())
        parameters.append(_keyword_parameter("body", model, Body() if required else Body(default=model())))
    return parameters


def _refuse_unknown_query(request: Request, known: Collection[str]) -> None:
    takes = f"use {', '.join(sorted(known))}" if known else "this route takes none in the query"
    wrong = [{"field": f"query.{name}", "message": f"unknown parameter: {takes}"} for name in request.query_params]
    wrong = [one for one in wrong if one["field"].removeprefix("query.") not in known][:MOST_ERRORS]
    if wrong:
        raise ProblemError(422, "; ".join(f"{one['field']}: {one['message']}" for one in wrong), errors=wrong)


class _Answer:
    """Calls a `GraphMemory` method and returns its result as a JSON response."""

    def __init__(self, verb: _Verb, route: Route, clock: Callable[[], int]) -> None:
        self._verb, self._route, self._clock, result = verb, route, clock, verb.hints["return"]
        self._paged = verb.item is not None
        self.model: Any = Page[verb.item] if self._paged else ContextView if result is Context else result  # type: ignore[name-defined]
        self._adapter = TypeAdapter(self.model)

    async def __call__(
        self, request: Request, arguments: Arguments, place: PagePosition, *, shown: bool, apart: bool = False
    ) -> Response:
        """Call the memory method with *arguments* and return its result as JSON; of a list, only the page at *place*.

        *shown*: include the text of withheld episodes (flagged messages, hidden until a review). *apart*: do the work
        in a thread. Raises `ProblemError` 404 if the method returns ``None``.
        """
        call = partial(self._verb.call, apart=apart)
        if self._paged:
            value: Any = await self._page(call, arguments, place)
        else:
            value = await call(arguments)
            if value is None:
                raise ProblemError(404, "not found in this namespace; check the id or name in the path")
            value = VIEWS[type(value)](value) if type(value) in VIEWS else value
        dump = partial(self._adapter.dump_json, value, context=None if shown else FOR_AGENTS)
        return json_response(request, await asyncio.to_thread(dump) if apart else dump(), self._route.status)

    async def _page(self, call: Callable[..., Awaitable[Any]], arguments: Arguments, place: PagePosition) -> Page[Any]:
        """Call the `GraphMemory` method *call*, which returns a list, and return the page of this list at *place*.

        If *call* has the parameter `believed_at`, all pages show the memory at one time, that of the first request by
        default.
        """
        limit, parameters = arguments.get("limit", MOST), self._verb.parameters
        if "believed_at" in parameters:
            pinned = place.believed_at or arguments.get("believed_at") or to_datetime(self._clock()).isoformat()
            place, arguments = replace(place, believed_at=pinned), {**arguments, "believed_at": pinned}
        if "after" in parameters:
            listed = await call({**arguments, "limit": limit, "after": place.after})
            return Page(items=listed, next=replace(place, after=listed.next).to_cursor() if listed.next else None)
        if "characters" in parameters:
            arguments = {**arguments, "characters": MOST_CHARACTERS}
        if "skip" in parameters:
            return cut_page(await call({**arguments, "skip": place.skip, "limit": limit + 1}), place, limit)
        if "limit" in parameters:
            arguments = {**arguments, "limit": WHOLE if self._route.whole else place.skip + limit + 1}
        return cut_page((await call(arguments))[place.skip :], place, limit)


def to_argument(name: str, value: Any) -> Any:
    """Convert the query parameter *name* for `GraphMemory`: ``("during", "2023..2024")`` to ``("2023", "2024")``.

    JSON texts such as ``where`` are parsed; other values stay unchanged. Raises `ProblemError` 422 for invalid JSON.
    """
    if name == "during" and isinstance(value, str) and ".." in value:
        return tuple(end.strip() or None for end in value.split("..", 1))
    if name in JSON_EXAMPLES and isinstance(value, str):
        try:
            parsed = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise ProblemError(422, f"{name} must be JSON such as {JSON_EXAMPLES[name]} ({error})") from None
        if name == "schema" and not isinstance(parsed, dict):  # a text would be opened as the path of a local file
            raise ProblemError(422, f"schema must be a JSON object such as {JSON_EXAMPLES[name]}")
        return parsed
    return value


def _path_parameters(path: str) -> list[str]:
    return [part[1:-1] for part in path.split("/") if part.startswith("{")]


def _keyword_parameter(name: str, kind: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)


def _query_parameters(verb: _Verb, offered: Sequence[str], *, paged: bool) -> list[inspect.Parameter]:
    parameters = []
    for name in offered:
        about, example = find_parameter(verb.name, name)[:2]
        examples = None if example is None else [example]
        least, most = _bounds(name)
        query = Query(verb.default_of(name), description=about, examples=examples, ge=least, le=most)
        parameters.append(_keyword_parameter(name, verb.type_of(name, in_query=True), query))
    if paged:
        about = "The `next` of the previous page; repeat the other parameters of that request."
        parameters.append(_keyword_parameter("cursor", str | None, Query(None, description=about, max_length=500)))
    return parameters


def _make_body_model(verb: _Verb, route: Route, offered: Sequence[str]) -> type[BaseModel]:
    fields: dict[str, Any] = {}
    for name in offered:
        (least, most), about = _bounds(name), find_parameter(verb.name, name).about
        details: Any = Field(verb.default_of(name), description=about, ge=least, le=most)
        fields[name] = (verb.type_of(name, in_query=False), details)
    title = "".join(word.capitalize() for word in route.verb.replace(".", "_").split("_"))
    extra: Any = {"json_schema_extra": {"examples": [dict(route.example)]}} if route.example else None
    return create_model(f"{title}Request", __base__=StrictBody, __cls_kwargs__=extra, **fields)


def _bounds(name: str) -> tuple[int, int] | tuple[None, None]:
    return (1, MOST) if name == "limit" else (None, None)

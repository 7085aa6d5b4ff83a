"""Error responses of the HTTP API as problem details (RFC 9457)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http.client import responses
from types import MappingProxyType
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exception_handlers import http_exception_handler
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Scope

from kg_memory import errors

JSON, MEDIA_TYPE = "application/json", "application/problem+json"
LONGEST_DETAIL = 1000
MOST_ERRORS = 20
"""The most invalid fields that a response lists."""
LONGEST_ERROR = 300
RETRY_SECONDS = 5
STATUSES: tuple[tuple[tuple[type[Exception], ...], int], ...] = (
    ((errors.NotFound,), 404),
    ((errors.InputError,), 422),
    ((errors.MemoryPaused,), 423),
    ((errors.BudgetSpent,), 429),
    ((errors.EpisodeAborted, errors.EmbeddingMismatch), 409),
    ((errors.DatabaseError, errors.MissingExtra, errors.SettingsError), 503),
    ((errors.ModelUnavailable, errors.EmbeddingUnavailable), 503),
    ((errors.ModelError, errors.EmbeddingError), 502),
)
"""The status of each kind of exception; the first that matches applies."""


class Problem(BaseModel):
    """A problem response (RFC 9457).

    `title` is the standard phrase of the HTTP status. `detail` says what was wrong and what to do; `errors` lists
    invalid fields, if any.
    """

    type: str
    title: str
    status: int
    detail: str
    request_id: str = ""
    errors: list[dict[str, str]] | None = None


class ProblemError(Exception):
    """An exception that the server answers with an error response: *status*, *detail* and further JSON *fields*."""

    def __init__(self, status: int, detail: str, *, headers: Mapping[str, str] | None = None, **fields: Any) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers, self.fields = status, detail, headers, fields


def own_path(scope: Scope) -> str:
    """Return the path of a request inside this app, without the prefix under which the app may be mounted."""
    return str(scope["path"]).removeprefix(scope.get("root_path", ""))


def problem_response(problem: ProblemError, request_id: str) -> Response:
    """Return the error response (RFC 9457) for *problem*; *request_id* is its field of that name."""
    status, detail = problem.status, problem.detail[:LONGEST_DETAIL]
    body: dict[str, Any] = {"type": "about:blank", "title": responses.get(status, "Error"), "status": status}
    body |= {"detail": detail, "request_id": request_id, **problem.fields}
    return Response(json.dumps(body), status, problem.headers, MEDIA_TYPE)


def describe_problems(app: FastAPI) -> None:
    """Make the OpenAPI description of *app* say that errors have the media type `MEDIA_TYPE` and not plain JSON."""
    describe = app.openapi

    def openapi() -> dict[str, Any]:
        """Return the OpenAPI description of the app, in which errors have the media type `MEDIA_TYPE`."""
        schema = describe()
        for path in schema["paths"].values():
            for operation in path.values():
                for status, response in operation["responses"].items():
                    content = response.get("content", {})
                    if status >= "400" and JSON in content:
                        content[MEDIA_TYPE] = content.pop(JSON)
        return schema

    app.openapi = openapi  # type: ignore[method-assign]


def to_problem(error: Exception, routes: Mapping[str, str] = MappingProxyType({})) -> ProblemError | None:
    """Convert *error* to a `ProblemError`, the response for the client; None for an unexpected error."""
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, HTTPException):
        return ProblemError(error.status_code, str(error.detail), headers=error.headers)
    status = next((status for kind, status in STATUSES if isinstance(error, kind)), None)
    if status is None:
        return None
    headers = {"Retry-After": str(RETRY_SECONDS)} if status == 503 else None
    return ProblemError(status, errors.name_calls(str(error), routes), headers=headers)


def _to_field_error(error: Mapping[str, Any]) -> dict[str, str]:
    message = str(error["msg"])
    if error["type"].startswith("datetime_"):
        message = "must be a time, such as 2024-05-14 or 2024-05-14T09:30:00Z"
    elif error["type"] == "model_attributes_type":
        message = "must be a JSON object, sent with the header Content-Type: application/json"
    return {"field": ".".join(map(str, error["loc"]))[:LONGEST_ERROR], "message": message[:LONGEST_ERROR]}


def add_handlers(app: FastAPI, paths: tuple[str, ...], routes: Mapping[str, str]) -> None:
    """Make *app* answer errors with problem details (RFC 9457)."""

    def answer(request: Request, problem: ProblemError) -> Response:
        return problem_response(problem, getattr(request.state, "request_id", ""))

    @app.exception_handler(ProblemError)
    @app.exception_handler(errors.KGMemoryError)
    async def handle_problem(request: Request, error: Exception) -> Response:
        problem = to_problem(error, routes)
        if problem is None:
            raise error  # the middleware `RequestGate` answers and logs it
        return answer(request, problem)

    @app.exception_handler(HTTPException)
    async def handle_http(request: Request, error: HTTPException) -> Response:
        if not own_path(request.scope).startswith(paths):
            return await http_exception_handler(request, error)
        return await handle_problem(request, error)

    @app.exception_handler(RequestValidationError)
    async def handle_invalid(request: Request, error: RequestValidationError) -> Response:
        every = error.errors()
        found = [_to_field_error(one) for one in every[:MOST_ERRORS]]
        detail = "; ".join(f"{one['field']}: {one['message']}" for one in found)
        if len(every) > MOST_ERRORS:
            detail = f"{len(every)} errors, such as {detail}"
        return answer(request, ProblemError(422, detail, errors=found))

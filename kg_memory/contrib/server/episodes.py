"""Adding episodes: they are saved before the answer, and read after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Header, Request
from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict
from starlette.responses import Response

from kg_memory.contrib.server.access import Access, Writing
from kg_memory.contrib.server.answers import json_response
from kg_memory.contrib.server.endpoints import NAMESPACE, describe
from kg_memory.contrib.server.parameters import Many, StrictBody
from kg_memory.contrib.server.service import Service
from kg_memory.models.graph import EpisodeInput
from kg_memory.models.operations import AddResult

ANN: JsonDict = {
    "content": "I moved to Oslo last week!",
    "speaker": "Ann",
    "at": "2024-05-14T09:30:00Z",
    "thread": "monday",
}


class EpisodeBody(StrictBody, EpisodeInput):
    """A message, text or JSON record to remember."""

    model_config = ConfigDict(str_max_length=None, json_schema_extra={"examples": [ANN]})


class EpisodesBody(StrictBody):
    """Several episodes, in the order in which they were said."""

    episodes: Many[EpisodeBody] = Field(min_length=1)


class AddedEpisodes(BaseModel):
    """The results of several episodes, in their order."""

    episodes: list[AddResult]


ACCEPTED = {
    "description": "Saved, and to be read. `Location` is the episode, whose `status` tells when it is read.",
    "headers": {"Location": {"schema": {"type": "string"}}},
}
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        pattern="^[!-~]+$",
        description="The same key is the same episode: it becomes its `source_id`, if that is left out.",
    ),
]


def add_routes(router: APIRouter, service: Service) -> None:
    """Add the routes to *router*."""
    path = NAMESPACE + "/episodes"
    accepted: dict[int | str, Any] = {202: ACCEPTED}

    async def save(access: Access, inputs: Sequence[EpisodeInput]) -> list[AddResult]:
        try:
            return await service.memory.episodes.asave(inputs, namespace=access.namespace)
        finally:
            service.reader.wake(access.namespace)  # those before one that is refused are saved

    @router.post(path, response_model=AddResult, status_code=202, **describe("episodes.save", accepted))
    async def save_one(request: Request, access: Writing, body: EpisodeBody, key: Key = None) -> Response:
        """Remember one episode: it is saved when this answers, and read afterwards."""
        (result,) = await save(access, [_to_input(body, key)])
        return _accept(request, access.namespace, result, result)

    @router.post(
        path + "/batch", response_model=AddedEpisodes, status_code=202, **describe("episodes.save_many", accepted)
    )
    async def save_many(request: Request, access: Writing, body: EpisodesBody, key: Key = None) -> Response:
        """Remember up to 1,000 episodes in their order; `Location` is the last one, which is read last."""
        inputs = [_to_input(one, key and f"{key}/{number}") for number, one in enumerate(body.episodes)]
        results = await save(access, inputs)
        return _accept(request, access.namespace, AddedEpisodes(episodes=results), results[-1])


def _accept(request: Request, namespace: str, answer: BaseModel, last: AddResult) -> Response:
    response = json_response(request, answer.model_dump_json().encode(), 202)
    root = request.scope.get("root_path", "")
    response.headers["Location"] = f"{root}/v1/namespaces/{quote(namespace, safe='')}/episodes/{last.episode}"
    return response


def _to_input(body: EpisodeBody, key: str | None) -> EpisodeInput:
    """Return the episode, with the key of its request as its source id if it has none."""
    if key is None or body.source_id is not None:
        return body
    return body.model_copy(update={"source_id": key})

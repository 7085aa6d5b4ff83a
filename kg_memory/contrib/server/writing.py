"""Routes that save episodes (messages or texts), and routes that delete data in two steps.

Facts are extracted from an episode after the response. The first request to delete returns a plan of what would be
deleted; the second request confirms the plan by its hash.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Sequence
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Header, Request
from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict
from starlette.responses import Response

from kg_memory.contrib.server.access import Access, Forgetting, Writing
from kg_memory.contrib.server.answers import json_response
from kg_memory.contrib.server.endpoints import NAMESPACE, describe
from kg_memory.contrib.server.parameters import Many, StrictBody
from kg_memory.contrib.server.problems import ProblemError
from kg_memory.contrib.server.service import Service
from kg_memory.models.graph import EpisodeInput
from kg_memory.models.operations import PLANNED, AddResult, ForgetReceipt

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
    """The results of several episodes, in the order of the request."""

    episodes: list[AddResult]


ACCEPTED = {
    "description": "Saved, to be read later. `Location` is the episode; its `status` shows when it has been read.",
    "headers": {"Location": {"schema": {"type": "string"}}},
}
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        pattern="^[!-~]+$",
        description="Requests with the same key save one episode. The key becomes its `source_id` if that is left out.",
    ),
]


def add_routes(router: APIRouter, service: Service) -> None:
    """Add the routes for saving episodes and for forgetting to *router*."""
    _add_forgetting(router, service)
    path = NAMESPACE + "/episodes"
    accepted: dict[int | str, Any] = {202: ACCEPTED}

    async def save(access: Access, inputs: Sequence[EpisodeInput]) -> list[AddResult]:
        try:
            return await service.memory.episodes.asave(inputs, namespace=access.namespace)
        finally:
            service.reader.wake(access.namespace)  # even after an error: the episodes before the invalid one are saved

    @router.post(path, response_model=AddResult, status_code=202, **describe("episodes.save", accepted))
    async def save_one(request: Request, access: Writing, body: EpisodeBody, key: Key = None) -> Response:
        """Save one episode. It is stored when this answers, and read into facts afterwards."""
        (result,) = await save(access, [_to_input(body, key)])
        return _accept(request, access.namespace, result, result)

    @router.post(
        path + "/batch", response_model=AddedEpisodes, status_code=202, **describe("episodes.save_many", accepted)
    )
    async def save_many(request: Request, access: Writing, body: EpisodesBody, key: Key = None) -> Response:
        """Save up to 1,000 episodes in order. `Location` is the last one, which is read last."""
        inputs = [_to_input(one, key and f"{key}/{number}") for number, one in enumerate(body.episodes)]
        results = await save(access, inputs)
        return _accept(request, access.namespace, AddedEpisodes(episodes=results), results[-1])


def _accept(request: Request, namespace: str, answer: BaseModel, last: AddResult) -> Response:
    response = json_response(request, answer.model_dump_json().encode(), 202)
    root = request.scope.get("root_path", "")
    response.headers["Location"] = f"{root}/v1/namespaces/{quote(namespace, safe='')}/episodes/{last.episode}"
    return response


def _to_input(body: EpisodeBody, key: str | None) -> EpisodeInput:
    return body if key is None or body.source_id is not None else body.model_copy(update={"source_id": key})


# Forgetting


class ForgetBody(StrictBody):
    """A request to forget exactly one thing: an episode, thread, entity, speaker, source, fact, or everything.

    Without `confirm` nothing is deleted, and the plan is returned.
    """

    model_config = ConfigDict(json_schema_extra={"examples": [{"speaker": "Ann", "reason": "asked for"}]})

    episode: str | None = Field(None, description="The id of an episode.")
    thread: str | None = Field(None, description="A thread, with all its episodes.")
    entity: str | None = Field(None, description="The id or a name of an entity, with all episodes that mention it.")
    speaker: str | None = Field(None, description="A speaker, with all their episodes.")
    source: str | None = Field(None, description="A source, with all episodes from it.")
    fact: str | None = Field(None, description="The id of a fact, with all episodes that state it.")
    everything: bool = Field(False, description="Everything in the namespace.")
    span: tuple[int, int] | None = Field(None, description="With `episode`: only the characters from start to end.")
    reason: str = Field("", description="Why; it is logged, so it must not contain what is forgotten.")
    erase: bool | None = Field(None, description="Whether the database also rewrites its files without the data.")
    confirm: str | None = Field(None, description="The `plan` that the same request without `confirm` returned.")


class ForgetAnswer(BaseModel):
    """The receipt of a deletion, or of a dry run, which has a hash `plan`: send it back to confirm the deletion."""

    plan: str | None = None
    receipt: ForgetReceipt


def _add_forgetting(router: APIRouter, service: Service) -> None:
    """Add the route that deletes data to *router*. A client first gets a list of the data, and then confirms it."""

    @router.post(NAMESPACE + "/forget", response_model=ForgetAnswer, **describe("privacy.forget"))
    async def forget(request: Request, access: Forgetting, body: ForgetBody) -> Response:
        """Return what would be forgotten, and a hash of it as `plan`. With that hash in `confirm`, delete it for good.

        If the plan has changed meanwhile, nothing is deleted, and the answer is 409.
        """
        what = body.model_dump(exclude={"confirm"}, exclude_none=True)
        how = {**what, "by": access.key.name, "namespace": access.namespace}
        look = await service.memory.privacy.aforget(**how, dry_run=True)
        plan = _hash_plan(access.namespace, body, look)
        if body.confirm is None:
            shown = look if access.key.has("read") else look.model_copy(update={"texts": {}})
            return json_response(request, ForgetAnswer(plan=plan, receipt=shown).model_dump_json().encode())
        if not hmac.compare_digest(plan.encode(), body.confirm.encode("utf-8", "replace")):
            raise ProblemError(409, "confirm does not match what would be forgotten now; request the plan again")
        receipt = await service.memory.privacy.aforget(**how)
        service.reader.wake(access.namespace)  # forgetting may mark other episodes as unread
        return json_response(request, ForgetAnswer(receipt=receipt).model_dump_json().encode())


def _hash_plan(namespace: str, body: ForgetBody, look: ForgetReceipt) -> str:
    """Return a hash of a request to delete and of the data that it would delete; the client confirms with this hash.

    *look* is the receipt of a dry run, which lists the data.
    """
    asked = body.model_dump(mode="json", exclude={"confirm", "reason", "erase"})
    parts = {name: getattr(look, name) for name in PLANNED}
    plan = {name: part if isinstance(part, str) else sorted(part) for name, part in parts.items()}
    return hashlib.sha256(json.dumps([namespace, asked, plan], sort_keys=True).encode()).hexdigest()

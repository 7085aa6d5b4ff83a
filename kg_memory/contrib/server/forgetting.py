"""Forgetting in two steps: a plan of what would go, and its confirmation by the hash of the plan."""

from __future__ import annotations

import hashlib
import hmac
import json

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from kg_memory.contrib.server.access import Forgetting
from kg_memory.contrib.server.answers import json_response
from kg_memory.contrib.server.endpoints import NAMESPACE, describe
from kg_memory.contrib.server.parameters import StrictBody
from kg_memory.contrib.server.problems import ProblemError
from kg_memory.contrib.server.service import Service
from kg_memory.models.operations import PLANNED, ForgetReceipt


class ForgetBody(StrictBody):
    """A request to forget exactly one thing; with `confirm`, the hash of a plan, it is."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"speaker": "Ann", "reason": "asked for"}]})

    episode: str | None = Field(None, description="The id of an episode.")
    thread: str | None = Field(None, description="A conversation.")
    entity: str | None = Field(None, description="An entity, by its id or a name, with all that mentions it.")
    speaker: str | None = Field(None, description="All that somebody said.")
    source: str | None = Field(None, description="All that came from there.")
    fact: str | None = Field(None, description="The id of a fact, with all that states it.")
    everything: bool = Field(False, description="All that the namespace has.")
    span: tuple[int, int] | None = Field(None, description="With `episode`: only these characters of it.")
    reason: str = Field("", description="Why; it goes into the log, so it must not say what is forgotten.")
    erase: bool | None = Field(None, description="Whether the database rewrites its files without it.")
    confirm: str | None = Field(None, description="The `plan` of the answer without it.")


class ForgetAnswer(BaseModel):
    """All that would be forgotten, with the hash of that `plan`; or the receipt of what was."""

    plan: str | None = None
    receipt: ForgetReceipt


def add_routes(router: APIRouter, service: Service) -> None:
    """Add the route to *router*."""

    @router.post(NAMESPACE + "/forget", response_model=ForgetAnswer, **describe("privacy.forget"))
    async def forget(request: Request, access: Forgetting, body: ForgetBody) -> Response:
        """Return the plan of what would be forgotten; given again with its hash in `confirm`, forget it for good.

        Where anything of the plan changed meanwhile, nothing is forgotten, and the answer is 409.
        """
        what = body.model_dump(exclude={"confirm"}, exclude_none=True)
        how = {**what, "by": access.key.name, "namespace": access.namespace}
        look = await service.memory.privacy.aforget(**how, dry_run=True)
        plan = _hash(access.namespace, body, look)
        if body.confirm is None:
            shown = look if access.key.has("read") else look.model_copy(update={"texts": {}})
            return _answer(request, ForgetAnswer(plan=plan, receipt=shown))
        if not hmac.compare_digest(plan.encode(), body.confirm.encode("utf-8", "replace")):
            raise ProblemError(409, "confirm is not the hash of what would be forgotten now; ask for the plan again")
        receipt = await service.memory.privacy.aforget(**how)
        service.reader.wake(access.namespace)  # some episodes may be to be read again
        return _answer(request, ForgetAnswer(receipt=receipt))


def _answer(request: Request, answer: ForgetAnswer) -> Response:
    return json_response(request, answer.model_dump_json().encode())


def _hash(namespace: str, body: ForgetBody, look: ForgetReceipt) -> str:
    """Return the hash of all that would go, and of what was asked for."""
    asked = body.model_dump(mode="json", exclude={"confirm", "reason", "erase"})
    parts = {name: getattr(look, name) for name in PLANNED}
    plan = {name: part if isinstance(part, str) else sorted(part) for name, part in parts.items()}
    text = json.dumps([namespace, asked, plan], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()

"""Export and import as streams: each passes a file of its own, so nobody gets or stores a half."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Query, Request
from fastapi import Path as PathParameter
from starlette.background import BackgroundTask
from starlette.responses import FileResponse, Response

from kg_memory.errors import KGMemoryError
from kg_memory.memory.data import Form
from kg_memory.memory.importing import ORIGINS
from kg_memory.models.operations import ImportResult
from kg_memory.server.access import Access, Ruling
from kg_memory.server.endpoints import NAMESPACE, PathText, describe, json_response
from kg_memory.server.problems import ProblemError
from kg_memory.server.service import Service

TYPES = {"jsonl": "application/x-ndjson", "graphml": "application/xml", "cytoscape": "application/json"}
T = TypeVar("T")
FILE = {"schema": {"type": "string", "format": "binary"}}


def add_routes(router: APIRouter, service: Service) -> None:
    """Add the routes to *router*."""
    content = {TYPES["jsonl"]: FILE, TYPES["graphml"]: FILE, TYPES["cytoscape"]: {}}
    exported = {"description": "The file.", "content": content}

    data = service.memory.data

    @router.get(NAMESPACE + "/export", response_class=FileResponse, **describe("data.export", {200: exported}))
    async def export(
        request: Request,
        *,
        access: Ruling,
        form: Annotated[Form, Query(description="`graphml` and `cytoscape` are for viewers.")] = "jsonl",
        embeddings: Annotated[bool, Query(description="Whether to include the vectors.")] = True,
    ) -> Response:
        """Return all that the namespace holds, as it is at one moment, as a file that `import` takes."""
        folder = await asyncio.to_thread(tempfile.mkdtemp)
        path = Path(folder) / "export"
        remove = BackgroundTask(shutil.rmtree, folder, ignore_errors=True)
        try:
            how: dict[str, Any] = {"namespace": access.namespace, "form": form, "embeddings": embeddings}
            await _apart(service, request, access, path, partial(data.export, path, **how))
        except BaseException:
            await remove()
            raise
        return FileResponse(path, media_type=TYPES[form], background=remove)

    _add_imports(router, service)


def _add_imports(router: APIRouter, service: Service) -> None:
    data = service.memory.data
    imported = {"requestBody": {"required": True, "content": {"application/octet-stream": FILE}}}

    @router.post(NAMESPACE + "/import", response_model=ImportResult, openapi_extra=imported, **describe("data.import_"))
    async def import_(
        request: Request,
        *,
        access: Ruling,
        replace: Annotated[bool, Query(description="Whether what the namespace holds may be replaced.")] = False,
        embeddings: Annotated[bool, Query(description="Whether to take the vectors of the file.")] = True,
    ) -> Response:
        """Import a file of `export`, compressed or not; nobody sees a half of it."""
        async with _receive(request, service.options.max_import) as path:
            how: dict[str, Any] = {"namespace": access.namespace, "replace": replace, "embeddings": embeddings}
            result: ImportResult = await _apart(service, request, access, path, partial(data.import_, path, **how))
        return json_response(request, result.model_dump_json().encode())

    @router.post(
        NAMESPACE + "/import/{origin}",
        response_model=ImportResult,
        openapi_extra=imported,
        **describe("data.import_from"),
    )
    async def import_from(
        request: Request,
        *,
        access: Ruling,
        origin: Annotated[PathText, PathParameter(description="The other memory.", examples=list(ORIGINS))],
        group: Annotated[str | None, Query(description="Whose memory of it, where there are several.")] = None,
    ) -> Response:
        """Add what another memory exported; sentences are saved, and read in the background."""
        async with _receive(request, service.options.max_import) as path:
            how: dict[str, Any] = {"namespace": access.namespace, "group": group, "read": False}
            call = partial(data.import_from, origin, path, **how)
            result: ImportResult = await _apart(service, request, access, path, call)
        service.reader.wake(access.namespace)
        return json_response(request, result.model_dump_json().encode())


async def _apart(service: Service, request: Request, access: Access, path: Path, call: Callable[..., T]) -> T:
    """Return the result of *call* about the file *path*, which blocks and is told to stop by its progress."""
    return await service.jobs.run(
        request, access.namespace, path, lambda job: asyncio.to_thread(call, progress=job.check), cancel=False
    )


@asynccontextmanager
async def _receive(request: Request, most: int) -> AsyncIterator[Path]:
    """Yield a file with the body of *request*, of at most so many bytes, and remove it."""
    folder = await asyncio.to_thread(tempfile.mkdtemp)
    try:
        path, size = Path(folder) / "import", 0
        with await asyncio.to_thread(path.open, "wb") as file:
            async for chunk in request.stream():
                size += len(chunk)
                if size > most:
                    raise ProblemError(413, f"an import must have at most {most} bytes")
                await asyncio.to_thread(file.write, chunk)
        try:
            yield path
        except KGMemoryError as error:
            error.args = (str(error).replace(str(path), "the file"), *error.args[1:])
            raise
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

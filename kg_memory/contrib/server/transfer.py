"""Export and import of a namespace over HTTP.

Both write the data to an unnamed temporary file first. So a response starts only when the export is complete, an import
starts only when its whole body has arrived, and a crash leaves no file behind.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Query, Request
from fastapi import Path as PathParameter
from starlette.responses import Response, StreamingResponse

from kg_memory.contrib.server.access import Access, Ruling
from kg_memory.contrib.server.answers import json_response
from kg_memory.contrib.server.endpoints import NAMESPACE, PathText, describe
from kg_memory.contrib.server.limits import IMPORTS, LimitedResponse
from kg_memory.contrib.server.problems import ProblemError
from kg_memory.contrib.server.service import Service
from kg_memory.errors import KGMemoryError
from kg_memory.memory.data import Form
from kg_memory.models.operations import ImportResult
from kg_memory.plugins import plugin_names

TYPES = {"jsonl": "application/x-ndjson", "graphml": "application/xml", "cytoscape": "application/json"}
T = TypeVar("T")
CHUNK = 2**16
FILES = Path("/proc/self/fd") if sys.platform == "linux" else None
"""The folder of this process's open files on Linux, through which an unnamed file can be opened again by path."""
FILE = {"schema": {"type": "string", "format": "binary"}}


def add_routes(router: APIRouter, service: Service) -> None:
    """Add the routes for export and import to *router*."""
    content = {TYPES["jsonl"]: FILE, TYPES["graphml"]: FILE, TYPES["cytoscape"]: {}}
    exported = {"description": "The file.", "content": content}

    data = service.memory.data

    @router.get(NAMESPACE + "/export", response_class=StreamingResponse, **describe("data.export", {200: exported}))
    async def export(
        request: Request,
        *,
        access: Ruling,
        form: Annotated[Form, Query(description="The format; `graphml` and `cytoscape` are for viewers.")] = "jsonl",
        embeddings: Annotated[bool, Query(description="Whether to include embedding vectors.")] = True,
    ) -> Response:
        """Export everything in the namespace, as it is at one moment, as a file that `import` accepts.

        `graphml` and `cytoscape` files are for viewers and cannot be imported.
        """
        file = await asyncio.to_thread(tempfile.TemporaryFile)
        try:
            how: dict[str, Any] = {"namespace": access.namespace, "form": form, "embeddings": embeddings}
            await _apart(service, request, access, file, partial(data.export, file, **how))
            size = await asyncio.to_thread(file.tell)
            await asyncio.to_thread(file.seek, 0)
        except BaseException:
            file.close()
            raise
        chunks = iter(partial(file.read, CHUNK), b"")  # Starlette reads them in threads
        response = StreamingResponse(chunks, 200, {"Content-Length": str(size)}, TYPES[form])
        return LimitedResponse(response, closing(file))

    _add_imports(router, service)


def _add_imports(router: APIRouter, service: Service) -> None:
    """Add the routes ``import`` and ``import/{origin}`` to *router*."""
    data = service.memory.data
    imported = {"requestBody": {"required": True, "content": {"application/octet-stream": FILE}}}

    @router.post(NAMESPACE + "/import", response_model=ImportResult, openapi_extra=imported, **describe("data.import_"))
    async def import_(
        request: Request,
        *,
        access: Ruling,
        replace: Annotated[bool, Query(description="Whether to replace the contents of the namespace.")] = False,
        embeddings: Annotated[bool, Query(description="Whether to use the file's embedding vectors.")] = True,
    ) -> Response:
        """Import a file made by `export`, compressed or not. Readers see either all of it or none."""
        async with _receive(request, service, access) as path:
            how: dict[str, Any] = {"namespace": access.namespace, "replace": replace, "embeddings": embeddings}
            call = partial(data.import_, path, memory_only=True, **how)
            result: ImportResult = await _apart(service, request, access, path, call)
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
        origin: Annotated[
            PathText, PathParameter(description="The memory product.", examples=list(plugin_names("importers")))
        ],
        group: Annotated[str | None, Query(description="The user or group, if the export has several.")] = None,
    ) -> Response:
        """Import an export of another memory product.

        Its texts are saved as episodes, which are read in the background.
        """
        async with _receive(request, service, access) as path:
            how: dict[str, Any] = {"namespace": access.namespace, "group": group, "read": False}
            call = partial(data.import_from, origin, path, **how)
            result: ImportResult = await _apart(service, request, access, path, call)
        service.reader.wake(access.namespace)
        return json_response(request, result.model_dump_json().encode())


async def _apart(service: Service, request: Request, access: Access, file: object, call: Callable[..., T]) -> T:
    """Run the blocking function *call* in a thread and return its result; stop it when the client disconnects.

    If a call with an equal *file* is running, return its result. *call* must accept the argument ``progress``.
    """
    return await service.jobs.run(
        request, access.namespace, file, lambda job: asyncio.to_thread(call, progress=job.check), cancel=False
    )


@asynccontextmanager
async def _receive(request: Request, service: Service, access: Access) -> AsyncIterator[Path]:
    """Context manager: save the body of *request* to a temporary file, and yield its path.

    The file is deleted at the end. Raises `ProblemError` 413 for a body over `Options.max_import`, 429 or 503 for too
    many imports at the same time.
    """
    size, most = 0, service.options.max_import
    make = tempfile.TemporaryFile if FILES else tempfile.NamedTemporaryFile
    with service.shares.hold(IMPORTS, access.key.id), await asyncio.to_thread(make) as file:
        async for chunk in request.stream():
            size += len(chunk)
            if size > most:
                raise ProblemError(413, f"an import must have at most {most} bytes; compress or split the file")
            await asyncio.to_thread(file.write, chunk)
        await asyncio.to_thread(file.flush)
        path = FILES / str(file.fileno()) if FILES else Path(file.name)
        try:
            yield path
        except KGMemoryError as error:
            error.args = (str(error).replace(str(path), "the file"), *error.args[1:])
            raise

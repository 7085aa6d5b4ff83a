"""The verbs that carry a memory from one place to another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Literal

from kg_memory.errors import InputError
from kg_memory.falkor.connect import SCHEMES, Database
from kg_memory.maintenance.transfer.cytoscape import cytoscape
from kg_memory.maintenance.transfer.drawing import draw
from kg_memory.maintenance.transfer.export import What, export
from kg_memory.maintenance.transfer.file import Target
from kg_memory.maintenance.transfer.graphiti import from_database, from_dump, only
from kg_memory.maintenance.transfer.graphml import graphml
from kg_memory.maintenance.transfer.imports import Wish, bring_in, bring_in_graphiti
from kg_memory.memory.open import NamedServer
from kg_memory.memory.verbs import Verbs
from kg_memory.models.transfers import ExportResult, ImportResult
from kg_memory.text.identity import DEFAULT_NAMESPACE, validate_namespace

Form = Literal["jsonl", "graphml", "cytoscape"]
GRAPH = "default_db"
"""What Graphiti calls its graph, unless it is told otherwise."""
Progress = Callable[[int, int], None]
FORMS: Mapping[str, Callable[[Database, What, Target, Progress | None], ExportResult]] = {
    "jsonl": export, "graphml": partial(draw, graphml), "cytoscape": partial(draw, cytoscape),
}  # fmt: skip


class Transferring(Verbs):
    """All that a namespace holds goes into a file, and comes from one."""

    def export(
        self,
        target: Target,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        store: str | None = None,
        form: Form = "jsonl",
        embeddings: bool = True,
        progress: Progress | None = None,
    ) -> ExportResult:
        """Write all that *namespace* holds, as it is at one moment, into the file *target*; see ``docs/export.md``.

        *target* is a path (``.gz`` compresses), ``"-"`` for the standard output, or an open binary file. It is written
        whole or not at all. ``graphml`` and ``cytoscape`` are for looking: `import_` does not take them. Without
        *embeddings* the vectors are left out, and made anew by an import. *store* is the name of a `KGStore` whose
        items are meant instead. *progress* is told how many records of how many are done. Errors: `InputError`, also
        for a namespace that holds nothing; `DatabaseError`.
        """
        if form not in FORMS:
            raise InputError(f"the form is {form!r}: use one of {', '.join(FORMS)}")
        if store is not None and form != "jsonl":
            raise InputError("items of a store are no graph: export them as jsonl")
        what = What(
            validate_namespace(namespace if store is None else store), embeddings, "items" if store else "memory"
        )
        return FORMS[form](self.driver.database, what, target, progress)

    async def aexport(
        self,
        target: Target,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        store: str | None = None,
        form: Form = "jsonl",
        embeddings: bool = True,
        progress: Progress | None = None,
    ) -> ExportResult:
        """`export`, for asyncio."""
        how = {"namespace": namespace, "store": store, "form": form, "embeddings": embeddings, "progress": progress}
        return await asyncio.to_thread(self.export, target, **how)  # type: ignore[arg-type]

    def import_(
        self,
        source: Target,
        *,
        namespace: str | None = None,
        replace: bool = False,
        embeddings: bool = True,
        progress: Progress | None = None,
    ) -> ImportResult:
        """Bring in what `export` wrote, into *namespace*, or that of the export; nobody sees a half of it.

        A namespace that holds something is refused, unless it may be *replaced*: then all of it goes at the moment at
        which all of the new is there. In another namespace ids are made anew, so that the same message is still the
        same episode. Without *embeddings* those of the file are not taken: all are made anew, as they are where the
        file has none. *progress* is told how many bytes of how many were read. Errors: `InputError` for a wrong line,
        with its number; `EmbeddingMismatch` where the vectors are of another model; `DatabaseError`.
        """
        return bring_in(self.driver, source, Wish(namespace, replace, embeddings), progress)

    async def aimport_(
        self,
        source: Target,
        *,
        namespace: str | None = None,
        replace: bool = False,
        embeddings: bool = True,
        progress: Progress | None = None,
    ) -> ImportResult:
        """`import_`, for asyncio."""
        how = {"namespace": namespace, "replace": replace, "embeddings": embeddings, "progress": progress}
        return await asyncio.to_thread(self.import_, source, **how)  # type: ignore[arg-type]

    def import_graphiti(
        self,
        source: str | Path,
        *,
        graph: str = GRAPH,
        group: str | None = None,
        namespace: str = DEFAULT_NAMESPACE,
        replace: bool = False,
        progress: Progress | None = None,
    ) -> ImportResult:
        """Bring in what Graphiti knows, without asking a model: facts with both clocks, evidence and what ended what.

        *source* is the URL of its FalkorDB (``falkor://host:6379``), where its graph is called *graph*, or a file that
        ``apoc.export.json.all`` made of its Neo4j. *group* is the ``group_id`` that is meant, where there are several.
        Embeddings are made anew. For the rest see `import_`.
        """
        if str(source).startswith(SCHEMES):
            server = Database(NamedServer(str(source)), allow_old=True)
            try:
                found = from_database(server, graph)
            finally:
                server.close()
        else:
            found = from_dump(Path(source))
        return bring_in_graphiti(self.driver, only(found, group), Wish(namespace, replace), progress)

    async def aimport_graphiti(
        self,
        source: str | Path,
        *,
        graph: str = GRAPH,
        group: str | None = None,
        namespace: str = DEFAULT_NAMESPACE,
        replace: bool = False,
        progress: Progress | None = None,
    ) -> ImportResult:
        """`import_graphiti`, for asyncio."""
        how = {"graph": graph, "group": group, "namespace": namespace, "replace": replace, "progress": progress}
        return await asyncio.to_thread(self.import_graphiti, source, **how)  # type: ignore[arg-type]

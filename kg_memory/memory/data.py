"""`GraphMemory.data`: export and import whole namespaces, compute their vectors again, and list them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from kg_memory.errors import InputError
from kg_memory.falkor.connect import Database
from kg_memory.falkor.schema import READ_META
from kg_memory.falkor.wire import State
from kg_memory.maintenance.reembedding import reembed
from kg_memory.memory._verb import Group, run_plugin, verb
from kg_memory.models.operations import ExportResult, ImportResult
from kg_memory.plugins import load_plugin
from kg_memory.runtime.effects import fetch, work
from kg_memory.runtime.flow import Flow
from kg_memory.validation import DEFAULT_NAMESPACE, validate_choice, validate_namespace

if TYPE_CHECKING:
    from kg_memory.maintenance.transfer.export import ExportOptions, Progress
    from kg_memory.maintenance.transfer.file import Target

Form = Literal["jsonl", "graphml", "cytoscape"]
Exporter = Callable[[Database, "ExportOptions", "Target", "Progress | None"], ExportResult]
FROM_EXPORT = ""
"""The default namespace of `Data.import_`: the namespace that the export names."""


class Data(Group):
    """`GraphMemory.data`: export and import whole namespaces, compute their vectors again, and list them.

    The code that reads and writes files is imported at the first call.
    """

    _group = "data"

    def _export(
        self,
        target: Target,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        store: str | None = None,
        form: Form = "jsonl",
        embeddings: bool = True,
        progress: Progress | None = None,
    ) -> Flow[ExportResult]:
        """Write a snapshot of the whole content of *namespace* to a file; return the number of records and a checksum.

        *target* is a path (``.gz`` compresses), ``"-"`` for standard output, or an open binary file; a path is written
        completely or not at all.
        *form* is ``jsonl``, which `import_` reads, or ``graphml`` or ``cytoscape`` for graph viewers.
        *embeddings*: False leaves out the vectors; an import then computes them again.
        *store* is the name of a `KGStore` (a LangGraph store) whose items are exported instead.
        *progress* is called with the number of records done and the number of all records.

        See `docs/export.md`. Raises `InputError`, also for an empty namespace, and `DatabaseError`.
        """
        from kg_memory.maintenance.transfer.export import ExportOptions  # noqa: PLC0415

        validate_choice("form", form, get_args(Form))
        if store is not None and form != "jsonl":
            raise InputError(f"form must be jsonl for the items of a store, got {form!r}")
        name = validate_namespace(namespace if store is None else store)
        options = ExportOptions(name, embeddings, "items" if store else "memory")
        return work(lambda: _exporter(form)(self._engine.driver.store.database, options, target, progress))

    export, aexport = verb(_export)

    def _import_(
        self,
        source: Target,
        *,
        namespace: str = FROM_EXPORT,
        replace: bool = False,
        embeddings: bool = True,
        memory_only: bool = False,
        progress: Progress | None = None,
    ) -> Flow[ImportResult]:
        """Import a file written by `export` into *namespace*, and return the number of records of each kind.

        - *namespace*: by default, the exported one.
        - *replace* allows a namespace that has content; the old content is deleted at the end.
        - *embeddings*: False computes all vectors again.
        - *memory_only* rejects an export of a `KGStore` (a LangGraph store).
        - *progress* is called with (bytes read, file size).

        If it fails, nothing is changed. Raises `InputError` with the number of an invalid line, `EmbeddingMismatch` for
        vectors of another model, and `DatabaseError`.
        """
        from kg_memory.maintenance.transfer.imports import ImportOptions, import_export  # noqa: PLC0415

        options = ImportOptions(namespace or None, replace, embeddings, self._engine.settings.max_content, memory_only)
        return work(lambda: import_export(self._engine.driver, source, options, progress))

    import_, aimport_ = verb(_import_)

    def _import_from(
        self,
        origin: str,
        source: str | Path,
        *,
        group: str | None = None,
        namespace: str = DEFAULT_NAMESPACE,
        read: bool = True,
        progress: Progress | None = None,
    ) -> Flow[ImportResult]:
        """Add the export file of another memory system to *namespace*, and return the counts.

        - *origin* is ``zep``, ``graphiti``, ``memvara``, ``mem0``, ``langmem``, ``letta`` or ``csv``.
        - *source* is the file; for ``graphiti`` also the URL of its graph: ``falkor://host:6379#default_db``.
        - *group* is the owner to import, if the file has several.
        - *read*: False stores texts without extracting their facts, which needs a model; `episodes.resume` does this
          later.
        - *progress* is called with (stored records, all records).

        After an interruption, call it again. See `docs/moving_in.md`. Raises `InputError` for an invalid record, before
        any is stored.
        """
        where = {"group": group, "namespace": namespace}
        return run_plugin("import_from", self._engine, origin, source, **where, read=read, progress=progress)

    import_from, aimport_from = verb(_import_from)

    def _reembed(
        self, *, namespace: str = DEFAULT_NAMESPACE, progress: Callable[[int, int], None] | None = None
    ) -> Flow[int]:
        """Compute all vectors of *namespace* again with this memory's embedding model; return the number of vectors.

        The namespace cannot be used meanwhile; after an interruption, call it again. *progress* is called with (done,
        all). Raises `InputError` for an empty namespace.
        """
        return work(lambda: reembed(self._engine.driver, namespace, progress))

    reembed, areembed = verb(_reembed)

    def _sleep(self, *, namespace: str = DEFAULT_NAMESPACE) -> Flow[bool]:
        """Put *namespace* to sleep, which takes some 30 kB of memory in place of 5 MB; its next use wakes it.

        Return False if it slept already or is empty. Raises `InputError` if it cannot sleep, as with unread episodes.
        `Settings.sleep_after` puts idle namespaces to sleep.
        """
        return run_plugin("sleep", self._engine.driver.store.database, namespace)

    sleep, asleep = verb(_sleep)

    def _wake(self, *, namespace: str = DEFAULT_NAMESPACE) -> Flow[None]:
        """Unpack the graph of *namespace* if `sleep` packed it; any other call about this namespace does that too."""
        yield from fetch(READ_META)

    wake, awake = verb(_wake)

    def _namespaces(self, state: State | None = None) -> Flow[list[str]]:
        """Return the names of all namespaces that have content, sorted; a very long name is returned as its hash.

        *state* returns only those that are "awake" or "asleep".
        """
        return work(partial(self._engine.driver.store.database.namespaces, state))

    namespaces, anamespaces = verb(_namespaces)


def _exporter(form: Form) -> Exporter:
    from kg_memory.maintenance.transfer.export import export  # noqa: PLC0415

    if form == "jsonl":
        return export
    exporter: Exporter = load_plugin("forms", form)
    return exporter

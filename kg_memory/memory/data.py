"""`GraphMemory.data`: carrying a memory from one place to another, and its upkeep."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from kg_memory.errors import InputError
from kg_memory.falkor.connect import Database
from kg_memory.maintenance.reembedding import reembed
from kg_memory.memory._verb import Group, run_plugin, verb
from kg_memory.models.operations import ExportResult, ImportResult
from kg_memory.plugins import load_plugin
from kg_memory.runtime.effects import work
from kg_memory.runtime.flow import Flow
from kg_memory.validation import DEFAULT_NAMESPACE, validate_namespace

if TYPE_CHECKING:
    from kg_memory.maintenance.transfer.export import ExportOptions, Progress
    from kg_memory.maintenance.transfer.file import Target

Form = Literal["jsonl", "graphml", "cytoscape"]
Exporter = Callable[[Database, "ExportOptions", "Target", "Progress | None"], ExportResult]
FROM_EXPORT = ""
"""The namespace of an import that names none: that of the export."""


class Data(Group):
    """Whole namespaces: exported, imported, embedded anew and listed.

    The verbs import what reads and writes files when they are called: few commands need it.
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
        """Write all that *namespace* holds, as it is at one moment, into the file *target*; see ``docs/export.md``.

        *target* is a path (``.gz`` compresses), ``"-"`` for the standard output, or an open binary file. It is written
        whole or not at all. ``graphml`` and ``cytoscape`` are for viewers: `import_` does not take them. Without
        *embeddings* the vectors are left out, and an import makes them anew. *store* is the name of a `KGStore` whose
        items are exported instead. *progress* is called with how many records of how many are done.
        Errors: `InputError`, also for a namespace that holds nothing; `DatabaseError`.
        """
        from kg_memory.maintenance.transfer.export import ExportOptions  # noqa: PLC0415

        if form not in get_args(Form):
            raise InputError(f"form must be one of {', '.join(get_args(Form))}, got {form!r}")
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
        """Import what `export` wrote, into *namespace*, or that of the export; nobody sees half of it.

        A namespace that holds something is refused, unless it may be *replaced*: then all of it goes at the moment at
        which all of the new is there. In another namespace ids are made anew, so that the same message is still the
        same episode. Without *embeddings* those of the file are not taken: all are made anew, as they are where the
        file has none. *memory_only* refuses an export of a `KGStore`. *progress* is called with how many bytes of how
        many were read. Errors: `InputError` for a wrong line, with its number; `EmbeddingMismatch` where the vectors
        are of another model; `DatabaseError`.
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
        """Add to *namespace* what another memory exported to the file *source*; see ``docs/moving_in.md``.

        *origin* is ``zep``, ``graphiti``, ``memvara``, ``mem0``, ``langmem``, ``letta`` or ``csv``. The *source* of
        ``graphiti`` may be the URL of its database and the name of its graph: ``falkor://host:6379#default_db``. Facts
        are declared: no model is asked about them. Sentences are read as messages, or only saved without *read*:
        `episodes.resume` reads them. *group* is the owner whose memory it is, where there are several. All records are
        checked before the first is stored. Each keeps the id of its source, so after an interruption the same call goes
        on where it stopped. *progress* is called with how many records of how many are stored. Errors: `InputError`
        names a wrong record.
        """
        where = {"group": group, "namespace": namespace}
        return run_plugin("import_from", self._engine, origin, source, **where, read=read, progress=progress)

    import_from, aimport_from = verb(_import_from)

    def _reembed(
        self, *, namespace: str = DEFAULT_NAMESPACE, progress: Callable[[int, int], None] | None = None
    ) -> Flow[int]:
        """Embed everything anew with this memory's embedding model; return how many vectors were made."""
        return work(lambda: reembed(self._engine.driver, namespace, progress))

    reembed, areembed = verb(_reembed)

    def _namespaces(self) -> Flow[list[str]]:
        """Return the namespaces that hold something."""
        return work(self._engine.driver.store.database.namespaces)

    namespaces, anamespaces = verb(_namespaces)


def _exporter(form: Form) -> Exporter:
    from kg_memory.maintenance.transfer.export import export  # noqa: PLC0415

    if form == "jsonl":
        return export
    exporter: Exporter = load_plugin("forms", form)
    return exporter

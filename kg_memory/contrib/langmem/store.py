"""`EpisodeStore`: LangGraph's store interface, implemented with the episodes (stored texts) and facts of a memory."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID, uuid5

from langgraph.config import get_config
from langgraph.store.base import BaseStore, GetOp, Item, ListNamespacesOp, Op, PutOp, Result, SearchItem, SearchOp

from kg_memory.adapters.namespace import validate_memory, validate_speaker
from kg_memory.adapters.store import codec
from kg_memory.adapters.store.codec import hash_value, select_namespaces, to_stored_json, validate_labels
from kg_memory.errors import InputError, NotFound
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.graph import Episode, EpisodeKind, EpisodeStatus, Fact
from kg_memory.models.results import SearchResults
from kg_memory.runtime.effects import both, call
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.interval import instant
from kg_memory.text.message_fields import USER, parse_time
from kg_memory.validation import validate_count

SOURCE = "langmem/"
"""The prefix of the source of an episode that is a version of an item; the item's key follows."""
FACT = "fact:"
Labels = tuple[str, ...]
Record = dict[str, Any]
"""A plain JSON object."""
AGENT = "agent"
"""The author of decisions made by puts and deletions."""
UPDATED = "its memory was updated"
PAGE = 200
MOST = 1000
"""The most versions of the items on a page, and the most facts of one item."""
ATTEMPTS = 20
"""The most attempts to end former facts while other writers put the same key."""
FURTHEST = 100
"""The most results of a search of the graph."""
SPARE = 4
"""Factor on the limit of a search, since results include other episodes and former versions."""


class Content(NamedTuple):
    """The content of a store item in the form in which an episode (a stored text) stores it.

    `schema` is the name of its schema (a pydantic model), or "".
    """

    text: str
    kind: EpisodeKind
    schema: str

    def source_id(self, former: Episode | None) -> str:
        """Return the id for a new version of an item: a hash of its content and of the previous version."""
        return hash_value([former and former.id, *self])


def encode(value: Mapping[str, Any]) -> Content:
    """Convert the value of a store item to the text or JSON to save, with the name of its schema."""
    text = to_stored_json(dict(value))
    schema = value.get("kind")
    content = value.get("content")
    if value.keys() == {"content"} and isinstance(content, str):
        return Content(content, EpisodeKind.MESSAGE, "")
    if value.keys() == {"kind", "content"} and isinstance(schema, str) and schema and isinstance(content, Mapping):
        inner = content.get("content")
        if content.keys() == {"content"} and isinstance(inner, str):
            return Content(inner, EpisodeKind.MESSAGE, schema)
        return Content(to_stored_json(dict(content)), EpisodeKind.JSON, schema)
    return Content(text, EpisodeKind.JSON, "")


def decode(episode: Episode) -> Record:
    """Return the value of the store item that is stored in *episode* (a stored text); the inverse of `encode`."""
    schema = schema_of(episode)
    value: Record = json.loads(episode.content) if episode.kind is EpisodeKind.JSON else {"content": episode.content}
    return {"kind": schema, "content": value} if schema else value


def schema_of(episode: Episode) -> str:
    """Return the schema name of the store item that is saved in *episode* (a stored text), or ""."""
    return str(episode.labels.get("schema", ""))


def key_of_episode(episode: Episode) -> str | None:
    """Return the key of the store item that is saved in *episode* (a stored text); None if it has no item."""
    source = episode.source or ""
    return source.removeprefix(SOURCE) if source.startswith(SOURCE) else None


def id_of_fact(key: str) -> str | None:
    """Return the id of the fact with the key *key*: ``"fact:123" -> "123"``; None for another key."""
    return key.removeprefix(FACT) if key.startswith(FACT) else None


def to_item(namespace: Labels, key: str, versions: Sequence[Episode], score: float | None = None) -> SearchItem:
    """Build the store item *key* from *versions*, the stored texts of its values, latest first."""
    return SearchItem(namespace, key, decode(versions[0]), versions[-1].created_at, versions[0].created_at, score)


def fact_item(namespace: Labels, fact: Fact) -> SearchItem:
    """Return *fact* as a store item with a key such as "fact:123".

    Its value is ``{"content": sentence, "valid_at": ..., "invalid_at": ...}``.
    """
    value = {"content": fact.sentence, **fact.model_dump(mode="json", include={"valid_at", "invalid_at"})}
    return SearchItem(namespace, FACT + fact.id, value, fact.created_at, fact.created_at, fact.score)


def without_score(item: SearchItem) -> Item:
    """Convert a search result to a plain `Item`, as `BaseStore.get` returns it."""
    return Item(
        value=item.value, key=item.key, namespace=item.namespace, created_at=item.created_at, updated_at=item.updated_at
    )


class EpisodeStore(BaseStore):
    """A LangGraph store that saves each item in a `GraphMemory` as a text, from which facts are extracted.

    The namespace ``("memories", "ann")`` becomes "memories.ann". Putting an existing key adds a version, and ends the
    facts that only earlier versions state. Deleting a key deletes all its versions, and the facts that only they state.
    A search with a query also finds facts, with keys such as "fact:123", which can be replaced and deleted like items.
    *user* is the speaker of the texts (default "user"). *as_of* or *believed_at* (datetime or ISO 8601 text) makes the
    store a read-only view of the past.
    """

    def __init__(
        self,
        memory: GraphMemory,
        *,
        user: str | None = None,
        as_of: datetime | str | None = None,
        believed_at: datetime | str | None = None,
    ) -> None:
        """Use *memory* as the store. Errors: `InputError` for an invalid time."""
        self.memory = validate_memory(memory)
        self._speaker = validate_speaker("user", user) or USER
        self._as_of = None if as_of is None else parse_time(as_of)
        self._believed_at = None if believed_at is None else parse_time(believed_at)

    def _batch(self, ops: Iterable[Op]) -> Flow[list[Result]]:
        """Run store operations, such as `GetOp` and `PutOp`, and return their results in the same order."""
        results: list[Result] = []
        for op in list(ops):
            results.append((yield from self._run(op)))  # noqa: PERF401 - a comprehension cannot yield
        return results

    batch, abatch = both(_batch)

    def _run(self, op: Op) -> Flow[Result]:
        """Run one store operation (get, search, put or list namespaces), and return its result."""
        match op:
            case GetOp():
                return (yield from self._get(op))
            case SearchOp():
                return (yield from self._search(op))
            case PutOp():
                yield from self._put(op)
                return None
            case ListNamespacesOp():
                codec.check_conditions(op.match_conditions or ())
                names: list[str] = yield from call(self.memory.data, "namespaces")
                return select_namespaces((tuple(name.split(".")) for name in names), op)
        raise InputError(f"op must be a GetOp, SearchOp, ListNamespacesOp or PutOp, got {type(op).__name__}")

    # Reading

    def _get(self, op: GetOp) -> Flow[Result]:
        namespace, labels = graph_namespace(op.namespace), tuple(op.namespace)
        fact_id = id_of_fact(op.key)
        if fact_id is not None:
            when = {"believed_at": self._believed_at}
            fact = yield from call(self.memory.facts, "get", fact_id, namespace=namespace, **when)
            return fact and without_score(fact_item(labels, fact))
        versions = yield from self._versions(namespace, [op.key])
        return without_score(to_item(labels, op.key, versions[op.key])) if versions else None

    def _search(self, op: SearchOp) -> Flow[list[SearchItem]]:
        """Return the items that match *op*: best first if *op* has a query, otherwise latest first."""
        end = validate_count("offset", op.offset, 0) + validate_count("limit", op.limit)
        matches = codec.compile_filter(op.filter or {})
        query = (op.query or "").strip()
        items: list[SearchItem] = []
        for namespace in (yield from self._namespaces_under(op.namespace_prefix)):
            items += yield from self._rank(namespace, query, end) if query else self._newest(namespace, matches, end)
        passing = [item for item in items if matches(item.value)]
        if query:
            passing.sort(key=lambda item: -(item.score or 0.0))
        else:
            passing.sort(key=lambda item: item.updated_at, reverse=True)
        return passing[op.offset : end]

    def _namespaces_under(self, prefix: Sequence[str]) -> Flow[list[str]]:
        within = graph_namespace(prefix) if prefix else ""
        names: list[str] = yield from call(self.memory.data, "namespaces")
        return sorted(name for name in names if not within or name == within or name.startswith(f"{within}."))

    def _rank(self, namespace: str, query: str, needed: int) -> Flow[list[SearchItem]]:
        """Search *namespace* for *query*; return the items and facts found, with their scores, unordered."""
        times = {"as_of": self._as_of, "believed_at": self._believed_at}
        limit = min(SPARE * needed, FURTHEST)
        results: SearchResults = yield from call(
            self.memory, "search", query, namespace=namespace, limit=limit, thread=thread_here(), **times
        )
        if results.abstains:
            return []
        labels = tuple(namespace.split("."))
        scores: dict[str, float] = {}
        for episode in results.episodes:
            key = key_of_episode(episode)
            if key is not None:
                scores.setdefault(key, episode.score or 0.0)
        versions = yield from self._versions(namespace, list(scores))
        items = [to_item(labels, key, versions[key], scores[key]) for key in scores if _is_shown(versions.get(key))]
        return items + [fact_item(labels, fact) for fact in results.facts]

    def _newest(self, namespace: str, matches: codec.Predicate, needed: int) -> Flow[list[SearchItem]]:
        """Return items in *namespace* whose values pass the function *matches*, latest first.

        At least *needed* items are returned, if so many match; older ones may be left out.
        """
        versions: dict[str, list[Episode]] = {}
        labels, skip = tuple(namespace.split(".")), 0
        while True:
            page = {"namespace": namespace, "limit": PAGE, "skip": skip}
            episodes: list[Episode] = yield from call(self.memory.episodes, "list", **page)
            keys = dict.fromkeys(key for key in map(key_of_episode, episodes) if key is not None)
            versions |= yield from self._versions(namespace, [key for key in keys if key not in versions])
            shown = [to_item(labels, key, versions[key]) for key in versions if _is_shown(versions[key])]
            items = [item for item in shown if matches(item.value)]
            if len(items) >= needed or len(episodes) < PAGE:
                return items
            skip += PAGE

    def _versions(self, namespace: str, keys: Sequence[str]) -> Flow[dict[str, list[Episode]]]:
        """Return the stored versions of each of *keys* that exists, latest first: ``{"key": [Episode, ...]}``."""
        versions: dict[str, list[Episode]] = {}
        if keys:
            where = {"source": [SOURCE + key for key in keys]}
            stored = yield from call(self.memory.episodes, "list", where=where, namespace=namespace, limit=MOST)
            for episode in filter(self._is_in_view, stored):
                versions.setdefault(key_of_episode(episode) or "", []).append(episode)
        return versions

    def _is_in_view(self, episode: Episode) -> bool:
        return (self._as_of is None or episode.at <= self._as_of) and (
            self._believed_at is None or episode.created_at <= self._believed_at
        )

    # Writing

    def _put(self, op: PutOp) -> Flow[None]:
        """Store the value in *op* as a new version of an item, or delete the item if the value is None.

        A key such as "fact:123" replaces or deletes that fact. Errors: `InputError` if the store is a view of the past.
        """
        if self._as_of is not None or self._believed_at is not None:
            raise InputError("a store with as_of or believed_at is read-only: use an EpisodeStore without them")
        namespace = graph_namespace(op.namespace)
        fact = id_of_fact(op.key)
        if op.value is None:
            target = {"source": SOURCE + op.key} if fact is None else {"fact": fact}
            try:
                yield from call(self.memory.privacy, "forget", **target, by=AGENT, namespace=namespace)
            except NotFound:
                return
        elif fact is not None:
            yield from self._replace_fact(namespace, fact, encode(op.value))
        else:
            yield from self._add_version(namespace, op.key, encode(op.value))

    def _replace_fact(self, namespace: str, id_: str, content: Content) -> Flow[None]:
        """Store *content* as a new item, and let its facts replace the fact *id_*.

        Errors: `NotFound`.
        """
        fact: Fact | None = yield from call(self.memory.facts, "get", id_, namespace=namespace)
        if fact is None:
            raise NotFound(f"fact {id_!r} not found in namespace {namespace!r}: pass a key that a search returned")
        key = str(uuid5(UUID(id_), content.text))
        yield from self._add_version(namespace, key, content)
        yield from self._end_unstated([fact], (yield from self._versions(namespace, [key]))[key][0], namespace)

    def _add_version(self, namespace: str, key: str, content: Content) -> Flow[None]:
        """Store *content* as the latest version of the item *key*; end the facts that only earlier versions state."""
        last = next(iter((yield from self._versions(namespace, [key])).get(key, ())), None)
        is_same = last is not None and last.source_id is not None and _content(last) == content
        if is_same and last is not None and last.status is EpisodeStatus.DONE:
            return
        yield from call(
            self.memory,
            "add",
            content.text,
            kind=content.kind,
            speaker=self._speaker if content.kind == "message" else None,
            thread=thread_here(),
            source=SOURCE + key,
            labels={"schema": content.schema or None},
            source_id=last.source_id if is_same and last is not None else content.source_id(last),
            namespace=namespace,
        )
        for attempts_left in range(ATTEMPTS - 1, -1, -1):
            try:
                yield from self._end_former(namespace, key)
                break
            except InputError:  # a concurrent writer ended the same facts
                if not attempts_left:
                    raise

    def _end_former(self, namespace: str, key: str) -> Flow[None]:
        """End the facts that earlier versions of the item *key* state, but its latest version does not."""
        latest, *former = (yield from self._versions(namespace, [key])).get(key, [None])
        if former and latest is not None and latest.status is EpisodeStatus.DONE:
            among = {"where": {"source": SOURCE + key}, "namespace": namespace, "limit": MOST}
            facts: list[Fact] = yield from call(self.memory.facts, "list", **among)
            yield from self._end_unstated(facts, latest, namespace)

    def _end_unstated(self, facts: Sequence[Fact], latest: Episode, namespace: str) -> Flow[None]:
        """End each of *facts*, from earlier versions of an item, that its *latest* version does not state."""
        among = {"where": {"source": latest.source, "source_id": latest.source_id}, "limit": MOST}
        new: list[Fact] = yield from call(self.memory.facts, "list", **among, namespace=namespace)
        subjects, kept = {fact.subject for fact in new}, {fact.id for fact in new}
        now = instant(self.memory.driver.clock())
        ending = {fact.id: fact for fact in facts if fact.id not in kept and not _is_over(fact, now)}
        decision = {"by": AGENT, "reason": UPDATED, "namespace": namespace}
        for fact in ending.values():
            if fact.subject in subjects:
                yield from call(self.memory.facts, "replace", fact.id, episode=latest.id, **decision)
            else:
                yield from call(self.memory.facts, "retract", fact.id, **decision)


def thread_here() -> str | None:
    """Return the thread_id in the config of the running graph; None outside of a graph."""
    try:
        thread = get_config().get("configurable", {}).get("thread_id")
    except RuntimeError:
        return None
    return None if thread is None else str(thread)


def graph_namespace(namespace: Sequence[str]) -> str:
    """Convert the labels of a store namespace to the memory's namespace: ("memories", "ann") -> "memories.ann".

    Errors: `InputError` for a label that is empty or contains a dot.
    """
    labels: Labels = validate_labels(namespace)
    for label in labels:
        if not isinstance(label, str) or not label.strip() or "." in label:
            raise InputError(f"a label of a namespace must be a text without '.', got {label!r} in {labels!r}")
    return ".".join(labels)


def _is_shown(versions: Sequence[Episode] | None) -> bool:
    # An item is withheld if its latest version looks like a prompt injection.
    return bool(versions) and not versions[0].withheld  # type: ignore[index]


def _is_over(fact: Fact, now: datetime | None) -> bool:
    return fact.invalid_at is not None and now is not None and fact.invalid_at <= now


def _content(episode: Episode) -> Content:
    return Content(episode.content, episode.kind, schema_of(episode))

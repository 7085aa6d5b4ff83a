"""Adds, updates and deletes Mem0 memories, and reports which memories changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import uuid4

from kg_memory.contrib.importers.sentences import IDS, SOURCE, read_expiration, to_labels
from kg_memory.contrib.mem0.filters import FilterGroup, evaluate_for, to_where
from kg_memory.contrib.mem0.items import find_ended, to_events
from kg_memory.contrib.mem0.scopes import Entries, Ids, Item, Owner, read_ids, to_metadata
from kg_memory.contrib.mem0.view import PAGE, View
from kg_memory.errors import InputError, ModelError, NotFound
from kg_memory.ingestion.receive import split_content
from kg_memory.models.graph import Episode, Fact
from kg_memory.models.operations import AddResult, ForgetReceipt
from kg_memory.runtime.flow import Flow
from kg_memory.text.message_fields import ROLES, USER, parse_time, plain_text, speaker_of
from kg_memory.validation import validate_text

NOTED = "NOTED"
"""The predicate of facts that store a text verbatim."""
PROCEDURAL = "procedural_memory"
SYSTEM = "system"
LONGEST_NOTE = 2000
"""The most characters of one memory that is stored verbatim; longer texts are split."""
UNSET: Any = object()
"""The default of arguments for which None is a value."""
AT_ONCE = 500
"""The most source ids in one filter."""


class Message(NamedTuple):
    """One message of a Mem0 call: its role ("user", "assistant"), the name of its speaker (or None), and its text."""

    role: str
    name: str | None
    text: str

    @property
    def speaker(self) -> str:
        """The speaker under which the message is stored: its name or, without a name, its role."""
        return speaker_of(self.role, self.name)


@dataclass(frozen=True, slots=True)
class AddRequest:
    """The arguments of `Memory.add` or `update` that apply to all messages of the call: ids, metadata and times."""

    ids: Ids
    metadata: Entries | None
    about: Entries
    at: datetime | None
    expires_at: datetime | None

    @classmethod
    def of_arguments(
        cls, ids: Mapping[str, object], metadata: Entries | None, timestamp: Any, expiration_date: object,
        memory_type: str | None,
    ) -> AddRequest:  # fmt: skip
        """Validate the arguments of `Memory.add` that apply to all its messages."""
        if memory_type not in (None, PROCEDURAL):
            raise InputError(f"memory_type must be {PROCEDURAL!r}, or left out, got {memory_type!r:.100}")
        last_day, expires_at = read_expiration(expiration_date)
        about = {"memory_type": memory_type, "expiration_date": last_day}
        at = None if timestamp is None else parse_time(timestamp)
        return cls(read_ids(ids), metadata, about, at, expires_at)

    def fields_of(self, message: Message) -> Item:
        """Return the fields, except the text, with which *message* is stored, such as source and labels.

        The source_id is random: if the same message is added again, it is stored again.
        """
        about = {**self.about, "role": message.role, "actor_id": message.name}
        labels = to_labels(self.ids, self.metadata, about)
        times = {"at": self.at, "expires_at": self.expires_at}
        return {"source": SOURCE, "source_id": uuid4().hex, "labels": labels, **times}

    def episode_of(self, message: Message) -> Item:
        """Convert a Mem0 *message* to an episode for `GraphMemory.add_many`: ``{"content": ..., "speaker": ...}``."""
        about = {"content": message.text, "speaker": message.speaker, "thread": self.ids.get("run_id")}
        return {**about, **self.fields_of(message)}

    def rows_of(self, message: Message) -> list[Item]:
        """Return *message* as rows for `facts.add_many`, each with at most 2,000 characters of its text, verbatim."""
        about = {"subject": message.speaker, "predicate": NOTED}
        texts = (piece.content.strip() for piece in split_content(message.text.strip(), LONGEST_NOTE))
        return [{**about, "sentence": text, **self.fields_of(message)} for text in texts if text]


def add(view: View, messages: object, request: AddRequest, *, infer: bool) -> Flow[list[Item]]:
    """Store *messages*, and return an event for each changed memory: ``[{"event": "ADD", ...}]``.

    Errors: `InputError`; `ModelError` if the model could not read a message, which stays stored.
    """
    owner = Owner.of_ids(view.collection, request.ids)
    spoken = parse_messages(messages)
    if infer and request.about["memory_type"] is None:
        episodes = [request.episode_of(message) for message in spoken if message.role in ROLES]
        return (yield from _settle(view, owner, "add_many", episodes))
    rows = [row for message in spoken for row in request.rows_of(message)]
    return (yield from _settle(view, owner, "facts.add_many", rows))


def _settle(view: View, owner: Owner, verb: str, inputs: Sequence[Entries]) -> Flow[list[Item]]:
    """Store *inputs* for *owner*; return an event for each changed memory: ``[{"event": "ADD", ...}]``.

    Errors: `ModelError` if the model could not read a message; all of them stay stored.
    """
    if not inputs:
        return []
    began = datetime.now(UTC)
    added: list[AddResult] = yield from view.call(verb, owner, inputs)
    failed = [result for result in added if result.error]
    if failed:
        raise ModelError(
            f"{len(failed)} of {len(added)} messages could not be read ({failed[0].error}); they are stored: call "
            f"graph.episodes.retry(namespace={owner.namespace!r}) to read them"
        )
    facts: list[Fact] = []
    for start in range(0, len(inputs), AT_ONCE):
        ids = [fields["source_id"] for fields in inputs[start : start + AT_ONCE]]
        facts += yield from view.list_facts(owner, {"source_id": ids})
    sentences = {sentence for result in added for sentence in result.ended}
    changes = (yield from view.call("facts.changes", owner, began)) if sentences else ()
    ended = find_ended(changes, sentences)
    order = {result.episode: place for place, result in enumerate(added)}
    stated = sorted({fact.id: fact for fact in facts}.values(), key=lambda fact: _first_place(fact, order))
    view.keep_places((fact.id for fact in stated), owner)
    return to_events(stated, ended, order.keys(), owner)


def _first_place(fact: Fact, order: Mapping[str, int]) -> tuple[int, int]:
    """Return (message index, character index) of the first statement of *fact*, as a sort key."""
    places = ((order[source.episode], source.start) for source in fact.sources if source.episode in order)
    return min(places, default=(len(order), 0))


# Updating


def update(view: View, memory_id: str, text: object, metadata: Entries | None, expiration: Any) -> Flow[None]:
    """Replace the memory with the id *memory_id* by *text*.

    Errors: `InputError`, `ModelError`.
    """
    if text is None:
        raise InputError("text must be set: metadata and expiration_date can only be changed together with the text")
    words = validate_text("text", text, "what is true instead").strip()
    owner = yield from view.require(memory_id)
    fact = yield from view.current(owner, memory_id)
    if fact is None:
        raise InputError(f"the memory {memory_id!r} is no longer believed; add it again instead")
    if words == fact.sentence:
        return
    message, request = _replacement(fact, words, metadata or {}, expiration, owner)
    added: AddResult
    if fact.predicate != NOTED:
        [added] = yield from view.call("add_many", owner, [request.episode_of(message)])
        if added.error:
            raise ModelError(f"the text gave no facts ({added.error}); it is stored: call update again to retry")
        if added.facts and set(added.facts) <= {fact.sentence}:
            return
        if added.facts:
            yield from view.call("facts.replace", owner, fact.id, episode=added.episode)
            return
        yield from view.call("privacy.forget", owner, episode=added.episode)
    row = {"subject": fact.subject, "predicate": NOTED, "sentence": words, **request.fields_of(message)}
    [added] = yield from view.call("facts.add_many", owner, [row])
    yield from view.call("facts.replace", owner, fact.id, episode=added.episode)


def _replacement(fact: Fact, text: str, metadata: Entries, expiration: Any, owner: Owner) -> tuple[Message, AddRequest]:
    """Return the message that replaces *fact*, and the ids, labels and times to store with it."""
    labels: Item = dict(fact.sources[0].labels) if fact.sources else {}
    ids = {name: labels.pop(name) for name in IDS if name in labels} | {owner.field: owner.value}
    role, name = str(labels.pop("role", USER)), labels.pop("actor_id", None)
    before = labels.pop("expiration_date", None)
    last_day, expires_at = read_expiration(before if expiration is UNSET else expiration)
    about = {"memory_type": labels.pop("memory_type", None), "expiration_date": last_day}
    return Message(role, name, text), AddRequest(ids, {**to_metadata(labels), **metadata}, about, None, expires_at)


# Messages as Mem0 accepts them: a text, or a dict with role and content, or a list of these


def parse_messages(messages: object) -> list[Message]:
    """Parse the messages in a Mem0 call: a text, a dict with role and content, or a list of these.

    Errors: `InputError`.
    """
    listed = messages if isinstance(messages, list | tuple) else [messages]
    if not listed:
        raise InputError("messages must have at least one message, got none")
    read = [_read_message(message) for message in listed]
    return [message for message in read if message.role != SYSTEM and message.text.strip()]


def _read_message(message: Any) -> Message:
    if isinstance(message, str):
        return Message(USER, None, message)
    if not isinstance(message, Mapping) or not isinstance(message.get("role"), str) or "content" not in message:
        what = "a text, or a dict with role and content, or a list of these"
        raise InputError(f"messages must be {what}, got {message!r:.100}")
    name = message.get("name")
    if not isinstance(name, str | None):
        raise InputError(f"the name of a message must be a text, got {name!r:.100}")
    return Message(message["role"].strip().lower(), name or None, plain_text(message["content"]))


# Deleting


def delete(view: View, memory_id: str) -> Flow[list[str]]:
    """Delete the memory *memory_id* and all earlier memories that it replaced; return the deleted ids.

    Errors: `NotFound`.
    """
    owner = yield from view.require(memory_id)
    fact = yield from view.current(owner, memory_id)
    chain = [memory_id] if fact is None else (yield from _find_chain(view, owner, fact))
    deleted: list[str] = []
    for id_ in chain:
        deleted += yield from _forget(view, owner, {"fact": id_})
    return deleted


def _find_chain(view: View, owner: Owner, fact: Fact) -> Flow[list[str]]:
    """Return the ids of *fact* and of all facts that it replaced, directly or indirectly, oldest first."""
    evolution: list[Fact] = yield from view.call("facts.evolution", owner, fact.id)
    before: dict[str, set[str]] = {}
    for period in evolution:
        before.setdefault(period.id, set()).update(period.supersedes)
    chain, edge = [fact.id], [fact.id]
    while edge:
        edge = [id_ for last in edge for id_ in sorted(before.get(last, ())) if id_ not in chain]
        chain += edge
    return list(dict.fromkeys(reversed(chain)))


def delete_all(view: View, filter_: FilterGroup) -> Flow[None]:
    """Delete all memories that match *filter_*."""
    for owner in (yield from view.matching(filter_)):
        if evaluate_for(filter_, owner):
            yield from _forget(view, owner, {"everything": True})
        else:
            yield from _forget_matching(view, owner, filter_)


def reset(view: View) -> Flow[None]:
    """Delete all memories in all namespaces of the collection of *view*."""
    for owner in (yield from view.owners()):
        yield from _forget(view, owner, {"everything": True})


def _forget_matching(view: View, owner: Owner, filter_: FilterGroup) -> Flow[None]:
    where = to_where(filter_, owner)
    while True:  # the deleted messages are no longer listed, so the first page has the next ones
        episodes: list[Episode] = yield from view.call("episodes.list", owner, where=where, limit=PAGE)
        for episode in episodes:
            yield from _forget(view, owner, {"episode": episode.id})
        if len(episodes) < PAGE:
            return


def _forget(view: View, owner: Owner, target: Entries) -> Flow[list[str]]:
    try:
        receipt: ForgetReceipt = yield from view.call("privacy.forget", owner, **target)
    except NotFound:
        return []
    return list(receipt.facts)

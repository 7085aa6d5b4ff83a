"""Helpers of the readers of chats: the thread that a reader fills, times, and branches of a tree."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from kg_memory.contrib.chats.records import TICK, Item, build
from kg_memory.errors import InputError
from kg_memory.models.graph import EpisodeInput
from kg_memory.text.message_fields import ROLES, parse_time

Json = Mapping[str, Any]
_WRAPPERS = ("conversations", "chats", "data", "items")


@dataclass
class Thread:
    """A conversation of an export.

    `scope` comes before the ids of its messages. `start` dates a message without a time that nothing comes before.
    `names` are the users of a workspace by their ids. The `same` messages at one time, that of the message
    `before`, keep their order by a microsecond each.
    """

    source: str
    name: str
    scope: str
    start: datetime | None = None
    names: Mapping[str, Json] | None = None
    before: datetime | None = None
    same: int = 0

    def say(
        self, id_: object, speaker: str | None, text: str, at: object = None, files: Iterable[object] = ()
    ) -> Iterator[Item]:
        """Yield the message, or nothing where it has neither text nor files."""
        names = (re.split(r"[/\\]", str(file))[-1] for file in files if file)
        content = "\n".join((*filter(None, (text.strip(),)), *(f"[attachment: {name}]" for name in names)))
        if not content:
            return
        time = read_moment(at) or self.start
        self.start = None
        self.same = self.same + 1 if time == self.before else 0
        self.before = time
        time = time and time + self.same * TICK
        source_id = None if id_ is None else f"{self.source}/{self.scope}/{id_}"
        try:
            yield build(
                content=content, speaker=speaker, at=time, thread=self.name, source=self.source, source_id=source_id
            )
        except InputError as error:
            yield InputError(f"{self.name}, message {id_}: {error}")


class Chat(NamedTuple):
    """A format of JSON exports; `unfold` returns the conversations of a document, none where it has another format.

    Threads are called by the names of conversations where `named`, by their ids otherwise.
    """

    name: str
    unfold: Callable[[Any], list[Json]]
    read: Callable[[Json, Thread], Iterator[Item]]
    named: bool = False


def select(test: Callable[[Json], bool]) -> Callable[[Any], list[Json]]:
    """Return an `unfold` for objects that pass *test*: alone, in a list, or in a list that an object wraps."""

    def unfold(document: Any) -> list[Json]:
        if isinstance(document, Mapping):
            if test(document):
                return [document]
            document = next((document[key] for key in _WRAPPERS if isinstance(document.get(key), list)), None)
        return (
            [each for each in document if isinstance(each, Mapping) and test(each)]
            if isinstance(document, list)
            else []
        )

    return unfold


def first(record: Any, *keys: str) -> Any:
    """Return the value of the first of *keys* that has one, None if *record* is no object."""
    return (
        next((record[key] for key in keys if record.get(key) not in (None, "")), None)
        if isinstance(record, Mapping)
        else None
    )


def objects(value: Any) -> list[Json]:
    """Return the objects of a list, none if *value* is no list."""
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def name_role(role: object) -> str | None:
    """Return the speaker of *role*: user, assistant, or None for prompts, tools and unknown roles."""
    return {**ROLES, "gpt": "assistant", "chatgpt": "assistant", "model": "assistant"}.get(str(role).lower())


def read_moment(value: Any) -> datetime | None:
    """Return *value* as a time with its offset, None where it is no time."""
    try:
        return None if value in (None, "", 0) else parse_time(value)
    except InputError:
        return None


def branch(nodes: Json, leaf: object, parent: str) -> list[Json]:
    """Return the nodes from the root to *leaf*, by default to the last node without children."""
    if not isinstance(leaf, str) or leaf not in nodes:
        parents = {str(node.get(parent)) for node in nodes.values() if isinstance(node, Mapping)}
        latest = list(nodes)[::-1]
        leaf = next((key for key in latest if key not in parents), next(iter(latest), None))
    path: dict[object, Json] = {}
    while isinstance(leaf, str) and leaf not in path and isinstance(nodes.get(leaf), Mapping):
        path[leaf] = nodes[leaf]
        leaf = nodes[leaf].get(parent)
    return list(path.values())[::-1]


def date_beginning(items: Iterator[Item]) -> Iterator[Item]:
    """Date messages without a time at the beginning of a conversation by the first that has one."""
    undated: list[EpisodeInput] = []
    for item in items:
        if isinstance(item, InputError):
            yield item
        elif item.at is None:
            undated.append(item)
        else:
            for before, episode in enumerate(undated):
                yield episode.model_copy(update={"at": item.at - (len(undated) - before) * TICK})
            yield item
            yield from items
            return
    yield from undated

"""What is to be forgotten, and which messages that are."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from kg_memory.errors import InputError
from kg_memory.ingestion.receive import line
from kg_memory.maintenance.forgetting import selection_cypher as cypher
from kg_memory.runtime.effects import read
from kg_memory.runtime.flow import Flow
from kg_memory.text.identity import alias_key, canonical_name, replace_unstorable, thread_key

KINDS = ("episode", "thread", "entity", "speaker", "source", "fact", "everything")
LONGEST_REASON = 2000
WHERE = {
    "episode": "memory.episodes() has the ids", "fact": "memory.facts_about(name) has the ids",
    "entity": "memory.entities() has the names and ids", "everything": "memory.namespaces() lists them",
}  # fmt: skip
AT_ONCE = 500
"""How many messages are looked through at once for a name."""
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """What to forget: *kind* is one of `KINDS`, *what* names it; of an episode maybe only the characters of a *span*.

    *by* is who asks for it and *reason* why. *erase* tells whether the files of the server are rewritten; ``None`` is
    where that costs nobody else anything. *search* tells whether all is searched for what is left.
    """

    kind: str
    what: str
    by: str = "user"
    reason: str = ""
    dry_run: bool = False
    span: tuple[int, int] | None = None
    erase: bool | None = None
    search: bool = True


def asked(given: Mapping[str, Any], **how: Any) -> Asked:
    """Return what is asked for, by its kind.

    Errors: `InputError` unless exactly one kind is given, and all else is what it must be.
    """
    kinds = [kind for kind in KINDS if given.get(kind) is not None and given.get(kind) is not False]
    if len(kinds) != 1:
        raise InputError(f"give exactly one of {', '.join(KINDS)}: what is to be forgotten; got {kinds or 'none'}")
    [kind] = kinds
    what = given[kind]
    made = Asked(kind, replace_unstorable(what) if isinstance(what, str) else "", **how)
    if kind == "everything" and what is not True:
        raise InputError(f"everything is {what!r}: give True, and the namespace that is to be forgotten")
    if kind != "everything" and not made.what:
        raise none_such(kind, what)
    _check(made)
    return made


def none_such(kind: str, what: object) -> InputError:
    """Return the error that there is nothing of *kind* that is *what*."""
    where = WHERE.get(kind, f"memory.episodes() has each message with its {kind}")
    return InputError(f"there is no {kind} {what!r} in this namespace, or it is forgotten: {where}")


def _check(made: Asked) -> None:
    if not isinstance(made.by, str) or not made.by.strip() or len(made.by) > LONGEST_REASON:
        raise InputError(f"by is {made.by!r}: say who asks, in at most {LONGEST_REASON} characters")
    if not isinstance(made.reason, str) or len(made.reason) > LONGEST_REASON:
        raise InputError(f"the reason is no text of at most {LONGEST_REASON} characters: make it shorter")
    if made.span is not None and made.kind != "episode":
        raise InputError("a span is of one message: give the episode too, and nothing else")
    if made.span is not None and not (
        isinstance(made.span, tuple | list)
        and len(made.span) == 2
        and all(isinstance(each, int) and not isinstance(each, bool) for each in made.span)
        and 0 <= made.span[0] < made.span[1]
    ):
        raise InputError(f"the span is {made.span!r}: give (start, end), characters of the content counted from 0")


def chosen(asked: Asked) -> Flow[list[str]]:
    """Return the ids of the messages that are to go, in the order in which they came."""
    match asked.kind:
        case "episode":
            rows = yield from read(cypher.EPISODE, id=asked.what)
        case "fact":
            rows = yield from read(cypher.STATING, fact=asked.what)
        case "thread":
            rows = yield from read(cypher.OF_THREAD, key=thread_key(asked.what))
        case "speaker":
            wanted = canonical_name(asked.what)
            speakers = [row["speaker"] for row in (yield from read(cypher.SPEAKERS))]
            same = [each for each in speakers if canonical_name(each) == wanted]
            rows = (yield from read(cypher.OF_SPEAKERS, speakers=same)) if same else []
        case "source":
            rows = yield from read(cypher.OF_SOURCE, source=asked.what)
        case _:
            rows = yield from _naming(asked.what)
    return [row["id"] for row in rows]


def _naming(what: str) -> Flow[list[Row]]:
    """Return the messages that mention an entity, and those that name it, by its id or one of its names.

    A message that was read and mentions another entity of that name, and not this one, is about the other.
    Errors: `InputError` where the name is that of several.
    """
    found = [row["entity"] for row in (yield from read(cypher.ENTITY, id=what, alias=alias_key(what)))]
    if not found:
        return []
    if len(found) > 1:
        ids = ", ".join(f"{each['id']} ({each['type']})" for each in found)
        raise InputError(f"the name {what!r} is that of several entities: give the id of one of them: {ids}")
    [entity] = found
    names = [entity["name"], *entity["aliases"]]
    others = {row["episode"] for row in (yield from read(cypher.NAMESAKES, id=entity["id"], keys=_keys(names)))}
    mentioning = yield from read(cypher.MENTIONING, id=entity["id"])
    written = yield from _written(names, {row["id"] for row in mentioning} | others)
    return sorted((*mentioning, *written), key=lambda row: (row["created_at"], row["id"]))


def _keys(names: Collection[str]) -> list[str]:
    return sorted({alias_key(name) for name in names})


def _written(names: Collection[str], aside: Collection[str]) -> Flow[list[Row]]:
    """Return the messages, but those *aside*, that have one of *names* as it is written, as whole words."""
    pattern = re.compile("|".join(map(_whole_words, filter(None, names))))
    found: list[Row] = []
    first, last = 0, (yield from read(cypher.LAST_EPISODE))[0]["last"]
    while last is not None and first <= last:
        page = yield from read(cypher.PAGE, first=first, end=first + AT_ONCE)
        found += [row for row in page if row["id"] not in aside and pattern.search(line(row))]
        first += AT_ONCE
    return found


def _whole_words(name: str) -> str:
    """Return the pattern of *name*; scripts without spaces have no end of a word."""
    before, after = ("(?<!\\w)" if name[0].isascii() else ""), ("(?!\\w)" if name[-1].isascii() else "")
    return f"{before}{re.escape(name)}{after}"

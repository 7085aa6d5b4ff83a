"""Select the episodes (stored messages, texts and records) that a request to forget deletes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Self

from kg_memory.errors import InputError, NotFound
from kg_memory.falkor.queries import fragments as part
from kg_memory.falkor.queries.identities import NAMED_OR_ID
from kg_memory.falkor.rows import Row, list_pages
from kg_memory.ingestion.postings import is_block
from kg_memory.ingestion.receive import validate_episode
from kg_memory.maintenance.forgetting import cypher
from kg_memory.models.graph import SESSION_SOURCE
from kg_memory.runtime.effects import fetch
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.temporal.interval import instant
from kg_memory.text.identity import alias_key, canonical_name, replace_unstorable, spoken_line, thread_key
from kg_memory.validation import validate_author

KINDS = ("episode", "thread", "entity", "speaker", "source", "fact", "everything")
IDS_FROM = {
    "episode": "memory.episodes.list() and `kg-memory episodes --ids` show the ids",
    "fact": "memory.facts.list() and `kg-memory facts --ids` show the ids",
    "entity": "memory.entities.list() and `kg-memory entities --ids` show the names and ids",
    "everything": "memory.data.namespaces() lists all namespaces",
}
PAGE = 500
"""The number of episodes that one query reads when their text is searched for a name."""
THREADS_AT_ONCE = 1000
MARK = "[forgotten]"
"""The text that replaces a forgotten span of an episode."""
_ORDER = itemgetter("created_at", "id")


@dataclass(frozen=True, slots=True)
class ForgetRequest:
    """A validated request to delete one thing for good, such as an episode or an entity.

    *span*: delete only these characters of an episode. *erase*: rewrite the server's files without the data; None does
    so for an embedded server only.
    """

    kind: str
    target: str
    by: str = "user"
    reason: str = ""
    dry_run: bool = False
    span: tuple[int, int] | None = None
    erase: bool | None = None
    search: bool = False

    @classmethod
    def from_arguments(cls, targets: Mapping[str, object], **options: Any) -> Self:
        """Build the request from *targets* with exactly one value: ``{"episode": None, "thread": "t1"}``.

        Errors: `InputError`.
        """
        kinds = [kind for kind in KINDS if targets.get(kind) is not None and targets.get(kind) is not False]
        if len(kinds) != 1:
            raise InputError(f"give exactly one of {', '.join(KINDS)}, to say what to forget; got {kinds or 'none'}")
        [kind] = kinds
        target = targets[kind]
        request = cls(kind, replace_unstorable(target) if isinstance(target, str) else "", **options)
        if kind == "everything" and target is not True:
            raise InputError(f"everything must be True, got {target!r}; name the namespace to forget with namespace=")
        if kind != "everything" and not request.target:
            raise not_found(kind, target)
        validate_author(request.by, request.reason)
        if request.span is not None:
            _validate_span(request.span, kind)
        return request


def not_found(kind: str, target: object) -> InputError:
    """Create a `NotFound` error for a target that does not exist, with a hint where to list valid ones."""
    hint = IDS_FROM.get(kind, f"memory.episodes.list() shows the {kind} of each episode")
    if kind == "everything":
        return NotFound(f"namespace {target!r} not found, or already forgotten: {hint}")
    return NotFound(f"{kind} {target!r} not found in this namespace, or already forgotten: {hint}")


def _validate_span(span: Any, kind: str) -> None:
    if kind != "episode":
        raise InputError("span needs an episode: give the id of the episode, and no other target")
    is_pair = isinstance(span, tuple | list) and len(span) == 2
    if not is_pair or not all(type(place) is int for place in span) or not 0 <= span[0] < span[1]:
        raise InputError(f"span must be (start, end), characters of the content counted from 0, got {span!r}")


def select_episodes(request: ForgetRequest) -> Flow[list[str]]:
    """Return the ids of the episodes (stored messages and texts) that *request* asks to forget, in order of storage."""
    if request.kind == "entity":
        return [row["id"] for row in (yield from _select_about_entity(request.target))]
    target: str | list[str] = request.target
    if request.kind == "thread":
        target = thread_key(request.target)
    elif request.kind == "speaker":
        name = canonical_name(request.target)
        target = [row["speaker"] for row in (yield from fetch(SPEAKERS)) if canonical_name(row["speaker"]) == name]
    rows = yield from fetch(EPISODES_BY_KIND[request.kind], target=target)
    if request.kind == "fact" and rows:
        sentences = [row["sentence"] for row in (yield from fetch(SENTENCE, id=request.target))]
        repeating = yield from _find_naming(sentences, {row["id"] for row in rows})
        return [row["id"] for row in sorted((*rows, *repeating), key=_ORDER)]
    return [row["id"] for row in rows]


def add_summaries(ids: Sequence[str]) -> Flow[list[str]]:
    """Return *ids* (of episodes to forget), followed by the ids of the summaries of the same conversations."""
    summaries = yield from fetch(SUMMARIES, ids=list(ids), source=SESSION_SOURCE)
    return list(dict.fromkeys([*ids, *(row["id"] for row in summaries)]))


def select_threads(request: ForgetRequest) -> Flow[list[str]]:
    """Return the sorted ids of the conversations of the forgotten episodes, to delete their checkpoints."""
    if request.kind == "everything":
        return [row["thread"] for row in (yield from fetch(ALL_THREADS))]
    ids = yield from select_episodes(request)
    threads = set[str]()
    for start in range(0, len(ids), THREADS_AT_ONCE):
        threads.update(row["thread"] for row in (yield from fetch(THREADS, ids=ids[start : start + THREADS_AT_ONCE])))
    return sorted(threads)


def _select_about_entity(target: str) -> Flow[list[Row]]:
    """Return rows of the stored messages that mention or name the entity *target*, oldest first.

    For an unknown name: the memory blocks that contain it. Errors: `InputError` if several entities have the name.
    """
    rows = yield from fetch(NAMED_OR_ID, name=target, alias=alias_key(target))
    if not rows:
        return [row for row in (yield from _find_naming([target], ())) if is_block(row)]
    if len(rows) > 1:
        ids = ", ".join(f"{row['entity']['id']} ({row['entity']['type']})" for row in rows)
        raise InputError(f"{target!r} is the name of several entities; give the id of one of them: {ids}")
    entity = rows[0]["entity"]
    names = [entity["name"], *entity["aliases"]]
    keys = sorted({alias_key(name) for name in names})
    namesakes = yield from fetch(EPISODES_OF_NAMESAKES, id=entity["id"], keys=keys)
    mentioning = yield from fetch(EPISODES_MENTIONING, id=entity["id"])
    seen = {*(row["episode"] for row in namesakes), *(row["id"] for row in mentioning)}
    return sorted((*mentioning, *(yield from _find_naming(names, seen))), key=_ORDER)


def _find_naming(names: Iterable[str], without: Collection[str]) -> Flow[list[Row]]:
    """Return rows of the episodes (stored messages) whose text contains one of *names* as whole words."""
    pattern = re.compile("|".join(map(_match_words, filter(None, names))))
    naming: list[Row] = []
    for page in list_pages((yield from fetch(LAST_EPISODE))[0]["last"], PAGE):
        others = (row for row in (yield from fetch(EPISODES_PAGE, **page)) if row["id"] not in without)
        naming += [row for row in others if pattern.search(spoken_line(row["speaker"], row["content"]))]
    return naming


def _match_words(name: str) -> str:
    """Return a regular expression that matches *name* as whole words: ``Ann`` in "Ann's dog", but not in "Annual"."""
    before, after = ("(?<!\\w)" if name[0].isascii() else ""), ("(?!\\w)" if name[-1].isascii() else "")
    return f"{before}{re.escape(name)}{after}"


def redact(id_: str, span: tuple[int, int], settings: Settings, namespace: str) -> Flow[dict[str, Row]]:
    """Return an episode with the characters *span* replaced by ``[forgotten]``; nothing is stored.

    ``{id_: {"new_id": ..., "content": ..., "flags": ...}}``, or {} for an unknown id. Errors: `InputError`.
    """
    rows = yield from fetch(cypher.WHOLE_EPISODE, id=id_)
    if not rows:
        return {}
    episode = rows[0]["episode"]
    start, end = span
    if episode["content"].startswith(MARK, start):
        raise InputError("this span of the episode is already forgotten: nothing is left to forget there")
    if end > len(episode["content"]):
        raise InputError(f"span must end within the {len(episode['content'])} characters of the content, got {end}")
    content = episode["content"][:start] + MARK + episode["content"][end:]
    state = {**episode, "content": content, "at": instant(episode["at"]), "namespace": namespace}
    settings = settings.with_(max_content=max(settings.max_content, len(content)))
    try:
        redacted = validate_episode(state, settings, episode["created_at"])
    except InputError as error:
        raise InputError(f"without this span, {error}; in a JSON record, give a span within one text") from error
    if redacted.id != id_ and (yield from fetch(cypher.WHOLE_EPISODE, id=redacted.id)):
        return {}
    return {id_: {"new_id": redacted.id, "content": redacted.content, "flags": redacted.flags}}


EPISODES_BY_KIND = {
    kind: f"""
{match}
WITH DISTINCT e
RETURN e.id AS id, e.created_at AS created_at
ORDER BY created_at, id
"""
    for kind, match in (
        ("episode", "MATCH (e:Episode {id: $target})"),
        ("fact", "MATCH (f:Fact {id: $target}) MATCH (e:Episode)-[:STATES]->(f)"),
        ("thread", "MATCH (e:Episode {thread_key: $target})"),
        ("speaker", "MATCH (e:Episode) WHERE e.speaker IN $target"),
        ("source", "MATCH (e:Episode) WHERE e.source = $target"),
    )
}
"""For each kind of target, the query for its episodes, in the order in which they were stored."""

SENTENCE = """
MATCH (f:Fact {id: $id})
RETURN f.sentence AS sentence
"""
"""The sentence of a fact. It is searched in all episodes: an assistant's message may repeat it without stating it."""

SUMMARIES = f"""{part.each("e:Episode")}
WITH DISTINCT e.thread_key AS thread_key
MATCH (s:Episode {{thread_key: thread_key}})
WHERE s.source = $source
RETURN DISTINCT s.id AS id
ORDER BY id
"""
"""The summaries of the threads that contain the episodes ``$ids``."""

SPEAKERS = """
MATCH (e:Episode)
WHERE e.speaker IS NOT NULL
RETURN DISTINCT e.speaker AS speaker
"""

EPISODES_MENTIONING = """
MATCH (n:Entity {id: $id})
MATCH (e:Episode)-[:MENTIONS]->(n)
WITH DISTINCT e
RETURN e.id AS id, e.created_at AS created_at
"""

EPISODES_OF_NAMESAKES = """
MATCH (n:Entity {id: $id})
UNWIND $keys AS key
MATCH (:Alias {key: key})-[:NAMES]->(other:Entity)
WHERE other.id <> n.id
WITH DISTINCT other
MATCH (e:Episode)-[:MENTIONS]->(other)
RETURN DISTINCT e.id AS episode
"""
"""The episodes that mention another entity which has one of the alias ``$keys``."""

LAST_EPISODE = part.last_id("Episode")

EPISODES_PAGE = """
MATCH (e:Episode)
WHERE id(e) >= $first AND id(e) < $end
RETURN e.id AS id, e.speaker AS speaker, e.content AS content, e.created_at AS created_at, e.kind AS kind
"""

_OF_THREADS = "WHERE e.thread IS NOT NULL\nRETURN DISTINCT e.thread AS thread\n"
THREADS = f"{part.each('e:Episode')}\n{_OF_THREADS}"
ALL_THREADS = f"\nMATCH (e:Episode)\n{_OF_THREADS}"

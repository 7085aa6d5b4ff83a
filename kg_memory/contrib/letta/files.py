"""Letta's file tools: each conversation (thread) of a memory is shown as a file, whose lines are its messages.

The list of open files is stored as a block. The content of files is read from the graph at each call.
"""

from __future__ import annotations

import json
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any

import regex  # unlike `re`, it has a timeout
from langchain_core.tools import BaseTool
from pydantic import Field, TypeAdapter, ValidationError

from kg_memory.adapters.rendering import DATA, NOTHING
from kg_memory.adapters.tools import Answer, CallContext, most_of, search, tool
from kg_memory.contrib.letta.blocks import Block, Blocks, Version, visible
from kg_memory.errors import InputError, NotFound
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.arguments import Arguments
from kg_memory.models.graph import Episode
from kg_memory.retrieval.context.lines import escape_brackets, escape_line
from kg_memory.runtime.effects import both, call, in_thread
from kg_memory.runtime.flow import Flow
from kg_memory.text.dated import time_in_figures
from kg_memory.validation import validate_count

NO_THREAD = "(no thread)"
"""The file with all messages that have no thread."""
OPEN = "open_files"
"""The label of the block that lists the open files."""
MOST_OPEN = 5
PAGE_LINES, MOST_LINES = 50, 200
"""Lines of a file on one page, by default and at most."""
LONGEST_LINE = 2000  # characters that are shown
MATCHES = 20
SCANNED = 20_000
"""The most messages that are searched, latest first."""
AT_ONCE = 1000
LONGEST_PATTERN = 1000
LONGEST_MATCHED = 10_000  # characters of a line that are matched
SECONDS = 3.0
MOST = 1000
"""The most lines that a search returns."""


class Grep(Arguments):
    """Find the lines of all files that match a regular expression, ignoring case, 20 at a time.

    A file is a conversation or a document; its lines are those of its messages.
    """

    pattern: str = Field(description="A word or a regular expression.")
    include: str | None = Field(default=None, description="A word or an expression that the names of files must match.")
    context_lines: int = Field(default=1, description="How many lines before and after each, 5 at most.")
    offset: int = Field(default=0, description="How many matches to skip: 20 for the second page.")


class SearchFiles(Arguments):
    """Find files by meaning and key words. The result has the names of the files, with some lines of each.

    A file is a conversation or a document; its lines are those of its messages.
    """

    query: str = Field(description="What to look for: a question or key words, with names.")
    limit: int = Field(default=5, description="How many results at most.")


class OpenFile(Arguments):
    """Open a file and show a page of its lines. The page stays in your context until you close the file."""

    file_name: str = Field(description="The name of the file, as grep and search_files show it.")
    offset: int = Field(default=0, description="How many lines to skip.")
    length: int = Field(default=PAGE_LINES, description=f"How many lines to show, {MOST_LINES} at most.")


class CloseFile(Arguments):
    """Close an open file, to free its space in your context."""

    file_name: str = Field(description="The name of the file.")


class Files:
    """The conversations of a memory as files that an agent can search and open; see `file_tools`.

    *namespace*: a template such as "{user_id}".
    """

    def __init__(self, memory: GraphMemory, namespace: str = "{user_id}") -> None:
        self.blocks = Blocks(memory, [Block(OPEN, limit=100_000)], namespace=namespace)

    def _render(self, context: Any = None) -> Flow[str]:
        """Return the file pages that the agent has opened, as text for a system prompt; "" if no file is open."""
        version: Version = yield from call(self.blocks, "get", OPEN, context)
        here = CallContext(self.blocks.memory, self.blocks.namespace_of(OPEN, context))
        shown: list[str] = []
        for name, offset, length in _parse_open_files(version.value):
            lines = yield from _read_file(here, name)
            if lines:
                shown.append(_page(name, lines, offset, length))
        return "\n".join(["### Open files", DATA, *shown]) if shown else ""

    render, arender = both(_render)


def file_tools(files: Files) -> list[BaseTool]:
    """Return the LangChain tools ``grep``, ``search_files``, ``open`` and ``close`` for *files*, sync and async.

    Put the result of `Files.render` into the system prompt, so that open files stay in the agent's context.
    """
    make = partial(tool, files.blocks.memory, files.blocks.templates["user"])
    return [
        make("grep", Grep, _grep),
        make("search_files", SearchFiles, _search_files),
        make("open", OpenFile, partial(_open, files=files)),
        make("close", CloseFile, partial(_close, files=files)),
    ]


def _grep(here: CallContext, pattern: str, include: str | None, context_lines: int, offset: int) -> Flow[Answer]:
    around = min(validate_count("context_lines", context_lines, 0), 5)
    skip = validate_count("offset", offset, 0)
    files = yield from _read_files(here)
    if include:
        names = list(files)
        chosen = yield in_thread(partial(match_lines, include, names))
        files = {names[number]: files[names[number]] for number in chosen}
    places = [(name, number) for name, lines in files.items() for number in range(len(lines))]
    numbers = yield in_thread(partial(match_lines, pattern, [files[name][number] for name, number in places]))
    matches = [places[number] for number in numbers]
    page = [{"file": name, "line": line + 1} for name, line in matches[skip : skip + MATCHES]]
    return _render_matches(matches, files, skip, around), page


def _render_matches(matches: Sequence[tuple[str, int]], files: dict[str, list[str]], skip: int, around: int) -> str:
    """Return a page of grep matches as text, with *around* lines before and after each match.

    *matches*: all matches, as (file name, line index); the page begins after the first *skip*. *files*: all lines of
    each file.
    """
    page = matches[skip : skip + MATCHES]
    if not page:
        return "No line matches." if not matches else f"There are {len(matches)} matches; offset must be below that."
    more = "or more " if len(matches) == MOST else ""
    counts = Counter(name for name, _ in matches).most_common(MATCHES)
    listed = ", ".join(f"{escape_line(name)} ({count})" for name, count in counts)
    out = [DATA, f"{len(matches)} {more}matches, in {listed}. Matches {skip + 1} to {skip + len(page)}:"]
    for name, line in page:
        lines = files[name]
        out.append(f"{escape_line(name)}, line {line + 1}:")
        near = range(max(line - around, 0), min(line + around + 1, len(lines)))
        out += (f"{'>' if number == line else ' '} {number + 1}: {_shown(lines[number])}" for number in near)
    if skip + len(page) < len(matches):
        out.append(f"For more, set offset to {skip + len(page)}.")
    return "\n".join(out)


def _search_files(here: CallContext, query: str, limit: int) -> Flow[Answer]:
    results = yield from search(here, query, most_of(limit))
    hits = [episode for episode in results.episodes if not episode.withheld]
    if results.abstains or not hits:
        return NOTHING, []
    names = list(dict.fromkeys(_name(hit) for hit in hits))
    out = [DATA]
    for name in names:
        out.append(f"{escape_line(name)}:")
        out += [f"  {_shown(line)}" for hit in hits if _name(hit) == name for line in _to_lines([hit])[:3]]
    return "\n".join(out), names


def _open(here: CallContext, file_name: str, offset: int, length: int, *, files: Files) -> Flow[Answer]:
    page = validate_count("offset", offset, 0), min(validate_count("length", length), MOST_LINES)
    lines = yield from _read_file(here, file_name)
    if not lines:
        raise NotFound(f"file {file_name!r:.200} not found; grep and search_files return file names")

    def change(value: str) -> str:
        others = [entry for entry in _parse_open_files(value) if entry[0] != file_name]
        return _format_open_files([*others, (file_name, *page)][-MOST_OPEN:])

    yield from call(files.blocks, "edit", OPEN, change, here.context)
    return "\n".join((DATA, _page(file_name, lines, *page))), {"file": file_name, "lines": len(lines)}


def _close(here: CallContext, file_name: str, *, files: Files) -> Flow[Answer]:
    def change(value: str) -> str:
        others = [entry for entry in _parse_open_files(value) if entry[0] != file_name]
        if len(others) == len(_parse_open_files(value)):
            raise NotFound(f"file {file_name!r:.200} is not open; close only open files")
        return _format_open_files(others)

    yield from call(files.blocks, "edit", OPEN, change, here.context)
    return f"Closed: {escape_line(file_name)}", {"file": file_name}


# Contents of files


def _read_files(here: CallContext) -> Flow[dict[str, list[str]]]:
    """Return the latest messages as lines of text, by conversation: ``{"monday": ["2024-05-01 10:00 Ann: hello"]}``."""
    episodes: list[Episode] = []
    while len(episodes) < SCANNED:
        texts = {"where": {"kind": {"$ne": "block"}}, "limit": AT_ONCE}
        page = yield from here.call("episodes.list", **texts, skip=len(episodes))
        episodes += page
        if len(page) < AT_ONCE:
            break
    of_file: defaultdict[str, list[Episode]] = defaultdict(list)
    for episode in reversed(episodes):
        of_file[_name(episode)].append(episode)
    return {name: _to_lines(of_file[name]) for name in sorted(of_file)}


def _read_file(here: CallContext, name: str) -> Flow[list[str]]:
    where = {"thread": None if name == NO_THREAD else name, "kind": {"$ne": "block"}}
    return _to_lines(reversed((yield from here.call("episodes.list", where=where, limit=SCANNED))))


def _name(episode: Episode) -> str:
    return episode.thread or NO_THREAD


def _to_lines(episodes: Iterable[Episode]) -> list[str]:
    """Convert messages to lines of text; withheld messages, which may be prompt injections, are left out."""
    lines: list[str] = []
    for episode in episodes:
        if not episode.withheld:
            speaker = f"{episode.speaker}: " if episode.speaker else ""
            first, *others = episode.content.splitlines() or [""]
            lines += [f"{time_in_figures(episode.at)} {speaker}{first}", *others]
    return lines


def _page(name: str, lines: Sequence[str], offset: int, length: int) -> str:
    page = lines[offset : offset + length]
    head = f"{escape_line(name)}, lines {offset + 1} to {offset + len(page)} of {len(lines)}:"
    return "\n".join([head, *(f"{offset + number}: {_shown(line)}" for number, line in enumerate(page, 1))])


def _shown(line: str) -> str:
    return escape_brackets(visible(line[:LONGEST_LINE]))


# The block of open files: one JSON line for each file

_OPEN_FILE = TypeAdapter(tuple[str, int, int])


def _parse_open_files(value: str) -> list[tuple[str, int, int]]:
    """Return (file name, lines to skip, number of lines) for each file that the agent has open.

    *value*: one JSON array a line, such as ``["monday", 0, 50]``. Other lines, which an agent may write, are skipped.
    """
    entries: list[tuple[str, int, int]] = []
    for line in value.splitlines():
        with suppress(ValidationError):
            entries.append(_OPEN_FILE.validate_json(line, strict=True))
    return entries


def _format_open_files(entries: Iterable[tuple[str, int, int]]) -> str:
    return "\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries)


# Regular expressions written by a model


def match_lines(pattern: str, lines: Sequence[str]) -> list[int]:
    """Return the indexes of at most `MOST` *lines* in which *pattern* occurs, ignoring case.

    Errors: `InputError` if the pattern is invalid, too long, or takes over `SECONDS` to match.
    """
    if not pattern or len(pattern) > LONGEST_PATTERN:
        raise InputError(f"pattern must have 1 to {LONGEST_PATTERN} characters, got {len(pattern)}")
    end = time.monotonic() + SECONDS
    try:
        form = regex.compile(pattern, regex.IGNORECASE)

        def matches(line: str) -> bool:
            left = max(end - time.monotonic(), 0.001)
            return form.search(line[:LONGEST_MATCHED], timeout=left, concurrent=True) is not None

        return list(islice((number for number, line in enumerate(lines) if matches(line)), MOST))
    except TimeoutError:
        raise InputError(f"the pattern takes longer than {SECONDS:g} seconds; use a simpler one") from None
    except (regex.error, RecursionError, OverflowError, MemoryError) as error:
        raise InputError(f"pattern must be a regular expression ({error}); correct it") from None

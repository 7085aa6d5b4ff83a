"""Read conversations as text chats, OpenAI and LangChain messages, and LoCoMo and BEAM files.

`looks_like_chat` recognises JSON that looks like a conversation in an unknown format.

A text chat has lines such as ``Ann: hello``, with or without ``[2024-05-01 10:00]`` before them. LoCoMo (Maharana et
al. 2024) and BEAM are data sets of long conversations.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from kg_memory.contrib.chats.records import TICK, Report, digest, from_record, make_input, objects, to_json
from kg_memory.errors import InputError
from kg_memory.models.graph import EpisodeInput
from kg_memory.text.message_fields import parse_time, plain_text

Line = tuple[int, str]

_STAMP = re.compile(
    r"\[(?P<boxed>[^\]]{8,40})\]\s*|"
    r"(?P<bare>\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?(?=[\s,-]))\s*[-,]?\s*"
)
_CLOCK = re.compile(r"\[\d?\d:\d\d(?::\d\d)?(?:\s?[AaPp]\.?[Mm]\.?)?\]\s*")
_SPEAKER = re.compile(
    r"(?P<speaker>[^\s:：,;.!?。，！？/\[\]*•>|#<-][^:：,;!?。，！？/\n]{0,39}?)\s*(?::\s+|：\s*)(?P<said>\S.*)"
)
_MAX_WORDS = 4
_NO_NAME = re.compile(
    r"p\.?p?\.?s\.?|n\.?b\.?|note|edit|update|fyi|btw|re|fwd?|https?|tl;?dr|todo|附注|注|[\d\W_]+", re.IGNORECASE
)


def is_chat(lines: Iterable[str]) -> bool:
    """Return whether *lines* look like a text chat ("Ann: hello")."""
    spoken = [split_line(line) for line in lines if line.strip()]
    speakers = [speaker for _, speaker, _ in spoken if speaker]
    stamped = sum(stamp is not None for stamp, _, _ in spoken)
    if stamped and stamped * 2 >= len(spoken):
        return True
    return len(speakers) * 2 >= len(spoken) and 0 < len(set(speakers)) <= len(speakers) / 2 + 1


JSON_START = re.compile(r'\s*(?:\{\s*["}]|\[\s*[{"\]]|\[\s*\[\s*[\[{"\d\]-])')
"""The start of a JSON object or list, as opposed to "[10:00] Ann: hi", "[[Ann]]" and "[ ] call Ann"."""
_BEGINS = re.compile(r"(?:\W{0,4}|\[[^\]]{1,40}\] \[)(?:\d{1,4}[-./年]\d{1,2}[-./月]\d{1,4}|\d{1,2}:\d\d)")
_ENDS = re.compile(r".{1,60}\b\d{1,2}:\d\d(?:\s?[AaPp]\.?[Mm]\.?)?\W{0,3}")


def is_dialogue(lines: Sequence[str]) -> bool:
    """Return whether *lines* look like a chat: at least three, and a quarter of all, begin or end with a time stamp."""
    stamped = sum(bool(_BEGINS.match(line) or _ENDS.fullmatch(line)) for line in lines)
    return stamped >= 3 and stamped * 4 >= len(lines)


def split_line(line: str) -> tuple[str | None, str | None, str]:
    """Split a line of a text chat into time stamp, speaker and text.

    "[2024-05-01 10:00] Ann: hello" -> ("2024-05-01 10:00", "Ann", "hello"). A missing stamp or speaker is None. A time
    of day alone, as in "[10:02 AM] Ann: hello", is no stamp, and is left out.
    """
    stamp, rest = None, line[clock.end() :] if (clock := _CLOCK.match(line)) else line
    if not clock and (match := _STAMP.match(line)) and any(mark.isdigit() for mark in match.group()):
        stamp, rest = match["boxed"] or match["bare"], line[match.end() :]
    spoken = _SPEAKER.fullmatch(rest)
    if spoken and len(spoken["speaker"].split()) <= _MAX_WORDS and not _NO_NAME.fullmatch(spoken["speaker"]):
        return stamp, spoken["speaker"], spoken["said"]
    return stamp, None, rest


def read_chat(lines: Iterable[Line], thread: str, report: Report) -> Iterator[EpisodeInput]:
    """Yield an episode (a message to store) for each message of a text chat, all in the thread *thread*.

    *lines* are pairs (line number, text). A line that starts with a speaker or a time stamp begins a message, and other
    lines continue it. Messages with equal time stamps are dated a microsecond apart.
    """
    current: EpisodeInput | None = None
    stamp_before: datetime | None = None
    same = 0
    for number, text in lines:
        stamp, speaker, spoken = (None, None, text) if text[:1].isspace() else split_line(text)
        if stamp is None and speaker is None:
            current = _append(current, text, thread)
            continue
        if current is not None:
            yield current
            current = None
        try:
            at = None if stamp is None else parse_time(stamp)
            same = same + 1 if at is None or at == stamp_before else 0
            stamp_before = at or stamp_before
            at = None if stamp_before is None else stamp_before + same * TICK
            if spoken.strip():
                current = make_input(content=spoken.strip(), speaker=speaker, at=at, thread=thread)
            else:
                same -= 1  # a stamp alone dates the messages below it
        except InputError as error:
            report(InputError(f"line {number}: {error}"))
    if current is not None:
        yield current


def _append(current: EpisodeInput | None, text: str, thread: str) -> EpisodeInput | None:
    if not text.strip():
        return current
    if current is None:
        return make_input(content=text.strip(), thread=thread)
    return current.model_copy(update={"content": f"{current.content}\n{text.strip()}"})


_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool", "function": "function"}
_CLASS = re.compile(r"(?:Message)?(?:Chunk)?$")


def _role_of(kind: object) -> str | None:
    return _ROLES.get(_CLASS.sub("", str(kind)).lower())


def is_openai(value: Any) -> bool:
    """Return whether *value* is a message in the form of OpenAI (content or tool calls) or the AI SDK (parts)."""
    is_said = isinstance(value, Mapping) and isinstance(value.get("role"), str)
    return is_said and ("content" in value or "tool_calls" in value or has_typed_parts(value))


def has_typed_parts(message: Mapping[str, Any]) -> bool:
    """Return whether *message* has parts like those of the AI SDK: ``{"parts": [{"type": "text", "text": "Hi"}]}``."""
    parts = objects(message.get("parts"))
    return bool(parts) and all("type" in part for part in parts)


def is_langchain(value: Any) -> bool:
    """Return whether *value* is a serialized LangChain message, in any of LangChain's three JSON forms."""
    if not isinstance(value, Mapping):
        return False
    if value.get("lc") == 1:
        return isinstance(value.get("kwargs"), Mapping)
    is_typed = value.get("type") == "chat" or _role_of(value.get("type")) is not None
    return is_typed and ("content" in value or isinstance(value.get("data"), Mapping))


def find_messages(document: Any) -> list[Any] | None:
    """Return *document* if it is a list of messages, else the list under its key "messages"; None if it has none."""
    messages = document.get("messages") if isinstance(document, Mapping) else document
    return messages if isinstance(messages, list) and messages else None


def read_messages(document: Any, thread: str, report: Report) -> Iterator[EpisodeInput]:
    """Yield the user and assistant messages in *document*, a list of OpenAI or LangChain messages, as episodes."""
    for number, message in enumerate(find_messages(document) or [], start=1):
        try:
            episode = from_record(_plain(message))
        except InputError as error:
            report(InputError(f"message {number}: {error}"))
            continue
        if episode is not None:
            yield episode if episode.thread else episode.model_copy(update={"thread": thread})


def _plain(message: Any) -> Mapping[str, Any]:
    """Convert an OpenAI or LangChain message to a dict with "role" and "content" at its top level.

    Errors: `InputError`.
    """
    if is_langchain(message):
        fields = message.get("kwargs") or message.get("data") or message
        kind = message["id"][-1] if isinstance(message.get("id"), list) and message["id"] else message.get("type")
        return {**fields, "role": fields.get("role") or _role_of(kind) or _role_of(fields.get("type")) or str(kind)}
    if not is_openai(message):
        raise InputError('not a message: write it like {"role": "user", "content": "..."}')
    return {**message, "content": message.get("content", message.get("parts"))}


_SESSION = re.compile(r"session_(\d+)")


def samples(document: Any) -> list[Mapping[str, Any]] | None:
    """Return the list of conversations in *document* if it is a file of the LoCoMo data set, else None."""
    samples_ = [document] if isinstance(document, Mapping) else document
    if not isinstance(samples_, list) or not samples_ or not all(_is_sample(sample) for sample in samples_):
        return None
    return samples_


def _is_sample(value: Any) -> bool:
    conversation = value.get("conversation") if isinstance(value, Mapping) else None
    return isinstance(conversation, Mapping) and any(_SESSION.fullmatch(key) for key in conversation)


def read_locomo(document: Any, thread: str, report: Report) -> Iterator[EpisodeInput]:
    """Yield all messages of *document*, a file of the LoCoMo data set, as episodes."""
    for number, sample in enumerate(samples(document) or [], start=1):
        name = str(sample.get("sample_id") or f"{thread}-{number}")
        conversation = sample["conversation"]
        for session in sorted(filter(_SESSION.fullmatch, conversation), key=lambda key: int(key.split("_")[1])):
            time = conversation.get(f"{session}_date_time")
            yield from _session_in(conversation[session], time, f"{name}/{session}", report)


def _session_in(turns: Any, time: Any, thread: str, report: Report) -> Iterator[EpisodeInput]:
    """Yield *turns*, the messages of one LoCoMo session, as episodes in *thread*; the session starts at *time*."""
    try:
        start = None if time is None else parse_time(time)
    except InputError as error:
        report(InputError(f"{thread}: {error}"))
        start = None
    for index, turn in enumerate(turns if isinstance(turns, list) else []):
        try:
            yield make_input(
                content=_words(turn),
                speaker=turn.get("speaker"),
                at=None if start is None else start + timedelta(minutes=index),
                thread=thread,
                source_id=f"{thread.rpartition('/')[0]}/{turn['dia_id']}" if turn.get("dia_id") else None,
            )
        except InputError as error:
            report(InputError(f"{thread}, turn {index + 1}: {error}"))


def _words(turn: Any) -> str:
    if not isinstance(turn, Mapping) or not isinstance(turn.get("text"), str):
        raise InputError("the turn has no text: add a text, or remove the turn")
    caption = turn.get("blip_caption")
    return f"{turn['text']}\n[photo: {caption}]" if caption else str(turn["text"])


# BEAM ends each user message with a mark such as "->-> 1,4" or "->-> 2,N/A", which is removed.
_MARK = re.compile(r"\s*->->\s*(?:\d+|N/A)(?:\s*,\s*(?:\d+|N/A))*\s*$")


def is_beam(document: Any) -> bool:
    """Return whether *document* is a chat of the BEAM data set: a list of batches that each have a list of turns."""
    return (
        isinstance(document, list)
        and bool(document)
        and all(isinstance(batch, Mapping) and isinstance(batch.get("turns"), list) for batch in document)
    )


def read_beam(document: Any, thread: str, report: Report) -> Iterator[EpisodeInput]:
    """Yield each message of a chat in the BEAM data set as an `EpisodeInput`; an invalid one is reported.

    *document*: the parsed JSON file. *thread*: how the names of its conversations begin.
    """
    thread = f"{thread}-{digest(to_json(document[0]['turns'][:1]))[:8]}"
    for number, batch in enumerate(document, start=1):
        session = f"{thread}/session_{batch.get('batch_number', number)}"
        messages = [message for group in batch["turns"] for message in (group if isinstance(group, list) else [group])]
        day: datetime | None = None
        minutes = 0
        for index, message in enumerate(messages, start=1):
            try:
                anchor = _anchor(message, batch if index == 1 else {})
                day, minutes = (anchor, 0) if anchor is not None else (day, minutes + 1)
                yield make_input(
                    content=_MARK.sub("", plain_text(message.get("content"))),
                    speaker=message.get("role"),
                    at=None if day is None else day + timedelta(minutes=minutes),
                    thread=session,
                    source_id=None if message.get("id") is None else f"{thread}/{message['id']}",
                )
            except InputError as error:
                report(InputError(f"{session}, message {index}: {error}"))


def _anchor(message: Any, batch: Mapping[str, Any]) -> datetime | None:
    if not isinstance(message, Mapping):
        raise InputError("not a message: write it as an object with role and content")
    anchor = message.get("time_anchor") or batch.get("time_anchor")
    return None if anchor is None else parse_time(anchor)


# Recognising conversations in unknown JSON formats

_WHO = frozenset(
    "role author sender from speaker user username usernickname sendername senderid "
    "fromname fromid userid nick nickname speakername speakerid "
    "screenname participant creator fromuser authorname actor who by".split()
)
_TEXT = frozenset("content text message body msg utterance transcript said value comment answer reply question".split())
_WHEN = frozenset(
    "timestamp time date datetime createdat createtime sentat senton ts timestampms createdtime createdon sent posted "
    "postedat received receivedat updatedat dateunixtime originserverts createdtimestamp".split()
)
_LISTS = frozenset(
    "messages chats chat conversations conversation dialog dialogue dialogs turns utterances transcript mapping "
    "chatmessages history posts comments replies responses exchanges "
    "thread threads events segment segments sentences".split()
)
_DEEPEST = 5
_WIDEST = 20


def looks_like_chat(value: Any, depth: int = 0) -> bool:
    """Return whether *value*, JSON in an unknown format, seems to contain chat messages."""
    if depth > _DEEPEST:
        return False
    if isinstance(value, list):
        return any(looks_like_chat(each, depth + 1) for each in value[:_WIDEST])
    if not isinstance(value, Mapping):
        return False
    fields = {str(key).lower().replace("_", "").replace("-", "").replace(" ", ""): each for key, each in value.items()}
    texts = [each for key, each in fields.items() if key in _TEXT and _is_text(each)]
    if texts and (fields.keys() & (_WHO | _WHEN)):
        return True
    lists = (each for key, each in fields.items() if key in _LISTS)
    if any(isinstance(each, list) and each and any(map(_has_sentence, each[:_WIDEST])) for each in lists):
        return True
    return any(
        looks_like_chat(each, depth + 1) for each in list(value.values())[:_WIDEST] if isinstance(each, list | Mapping)
    )


def _is_text(value: Any) -> bool:
    return (isinstance(value, str) and bool(value.strip())) or (isinstance(value, list | Mapping) and bool(value))


def _has_sentence(value: Any) -> bool:
    texts = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else [value]
    return any(isinstance(text, str) and " " in text.strip() for text in texts)

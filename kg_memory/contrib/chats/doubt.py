"""Tell JSON that looks like a conversation from other records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_WHO = frozenset(
    "role author sender from speaker user username usernickname sendername senderid "
    "fromname fromid userid nick nickname "
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
    "thread threads".split()
)
_DEEPEST = 5
_WIDEST = 20


def looks_like_chat(value: Any, depth: int = 0) -> bool:
    """Return whether *value* has messages: a text beside an author or a time, or a list of texts by such a name."""
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
    if any(isinstance(each, list) and each and any(map(_is_turn, each[:_WIDEST])) for each in lists):
        return True
    return any(
        looks_like_chat(each, depth + 1) for each in list(value.values())[:_WIDEST] if isinstance(each, list | Mapping)
    )


def _is_text(value: Any) -> bool:
    return (isinstance(value, str) and bool(value.strip())) or (isinstance(value, list | Mapping) and bool(value))


def _is_turn(value: Any) -> bool:
    """Return whether *value* is a sentence, some sentences, or an object with one."""
    texts = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else [value]
    return any(isinstance(text, str) and " " in text.strip() for text in texts)


def holds_words(document: Any) -> bool:
    """Return whether a record of *document* has a text of several words."""
    records = document if isinstance(document, list) else [document]
    return any(
        isinstance(text, str) and len(text.split()) > 3
        for record in records[:_WIDEST]
        if isinstance(record, Mapping)
        for text in record.values()
    )

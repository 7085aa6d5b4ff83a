"""Read exports of ChatGPT, Claude, Open WebUI, ShareGPT, Gemini and OpenAI's Assistants API, and lists of messages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from typing import Any

from kg_memory.contrib.chats.formats import has_typed_parts, is_langchain, is_openai, read_messages
from kg_memory.contrib.chats.records import (
    Chat,
    Json,
    Thread,
    branch,
    content_text,
    find_chats,
    first,
    is_message,
    name_role,
    names_in,
    objects,
)
from kg_memory.errors import InputError
from kg_memory.models.graph import EpisodeInput
from kg_memory.text.message_fields import plain_text

# ChatGPT wraps citations and links to its own widgets in characters of the private use area.
_WIDGET = re.compile("\ue200[^\ue201]*\ue201")
_HIDDEN = ("is_visually_hidden_from_conversation", "is_user_system_message")


def _is_chatgpt(value: Json) -> bool:
    nodes = value.get("mapping")
    return isinstance(nodes, Mapping) and all(
        isinstance(node, Mapping) and ("message" in node or "parent" in node) for node in nodes.values()
    )


def _read_chatgpt(conversation: Json, thread: Thread) -> Iterator[EpisodeInput]:
    """Yield the user and assistant messages of the current branch of a ChatGPT conversation, as episodes."""
    for node in branch(conversation["mapping"], conversation.get("current_node"), "parent"):
        message = node.get("message")
        if not isinstance(message, Mapping):
            continue
        author, content, metadata = message.get("author"), message.get("content"), message.get("metadata")
        role = first(author, "role") if isinstance(author, Mapping) else author
        if (
            (role is not None and name_role(role) is None)
            or message.get("recipient") not in (None, "all")
            or message.get("channel") == "analysis"
            or first(metadata, *_HIDDEN)
            or not isinstance(content, Mapping)
            or content.get("content_type") not in (None, "text", "multimodal_text")
        ):
            continue
        parts = content.get("parts") if isinstance(content.get("parts"), list) else content.get("text")
        files = names_in(metadata, "attachments", "name", "id")
        files = files or [_asset(part) for part in objects(parts) if part.get("asset_pointer")]
        text, id_ = _WIDGET.sub("", content_text(parts)), message.get("id") or node.get("id")
        yield from thread.say(id_, role and name_role(role), text, message.get("create_time"), files)


def _asset(part: Json) -> str:
    kind = str(part.get("content_type")).partition("_")[0]
    return f"{kind} {str(part['asset_pointer']).rpartition('/')[2]}".strip()


def _read_claude(conversation: Json, thread: Thread) -> Iterator[EpisodeInput]:
    """Yield the messages of a conversation in a Claude export; of an edited message, only the current version."""
    messages = objects(conversation["chat_messages"])
    by_id = {str(message.get("uuid")): message for message in messages}
    parents = {str(message.get("parent_message_uuid")) for message in messages}
    if len(parents & by_id.keys()) > 0 and len(parents - by_id.keys()) == 1:  # a tree with one root: edits are branches
        messages = branch(by_id, conversation.get("current_leaf_message_uuid"), "parent_message_uuid")
    for message in messages:
        text = content_text([block for block in objects(message.get("content")) if block.get("type") == "text"])
        lists = ("attachments", "files", "files_v2")
        files = [name for key in lists for name in names_in(message, key, "file_name", "name", "file_uuid") if name]
        speaker = name_role(message.get("sender")) or first(message, "sender")
        text = text or content_text(message.get("text"))
        yield from thread.say(
            message.get("uuid"), speaker, text, message.get("created_at"), dict.fromkeys(map(str, files))
        )


_DETAILS = re.compile(r'<details type="(?:reasoning|tool_calls|code_interpreter)".*?</details>\s*', re.DOTALL)


def _webui_chat(value: Json) -> Json | None:
    chat = value.get("chat") if isinstance(value.get("chat"), Mapping) else value
    history = chat.get("history") if isinstance(chat, Mapping) else None
    return chat if isinstance(history, Mapping) and isinstance(history.get("messages"), Mapping) else None


def _read_open_webui(conversation: Json, thread: Thread) -> Iterator[EpisodeInput]:
    """Yield the user and assistant messages of an Open WebUI chat; of several answers, only the current one."""
    chat = _webui_chat(conversation) or {}
    history = chat["history"]
    for message in branch(history["messages"], history.get("currentId"), "parentId") or objects(chat.get("messages")):
        files = [
            first(file, "name") or first(file.get("file"), "filename", "id") for file in objects(message.get("files"))
        ]
        if (speaker := name_role(message.get("role"))) is not None:
            text = _DETAILS.sub("", content_text(message.get("content")))
            yield from thread.say(message.get("id"), speaker, text, message.get("timestamp"), files)


def _is_sharegpt(value: Json) -> bool:
    turns = first(value, "conversations", "conversation", "items")
    return bool(objects(turns)) and all("from" in turn and "value" in turn for turn in objects(turns))


def _read_sharegpt(conversation: Json, thread: Thread) -> Iterator[EpisodeInput]:
    for number, turn in enumerate(objects(first(conversation, "conversations", "conversation", "items")), start=1):
        speaker = name_role(turn["from"])
        if speaker is None and str(turn["from"]).lower() not in ("bing", "bard", "claude", "grok"):
            continue
        id_ = number if "id" in conversation else None
        yield from thread.say(id_, speaker or "assistant", str(turn["value"] or ""), turn.get("timestamp"))


def _is_assistants(message: Json) -> bool:
    return message.get("object") == "thread.message" or any(
        isinstance(block.get("text"), Mapping) and "value" in block["text"] for block in objects(message.get("content"))
    )


def _unfold_assistants(document: Any) -> list[Json]:
    """Return the threads in an export of OpenAI's Assistants API: ``[{"id": "thread_1", "messages": [...]}]``."""
    if isinstance(document, Mapping):
        inside = first(document, "messages", "data")
        messages = objects(first(inside, "data") if isinstance(inside, Mapping) else inside)
    else:
        messages = objects(document)
    if messages and not _is_assistants(messages[0]):
        return [found for each in messages for found in _unfold_assistants(each)] if "messages" in messages[0] else []
    threads: dict[str, list[Json]] = {}
    for message in messages:
        thread = str(message.get("thread_id") or first(document, "thread_id", "id") or "")
        threads.setdefault(thread, []).append(message)
    return [{"id": id_, "messages": each} for id_, each in threads.items()]


def _read_assistants(conversation: Json, thread: Thread) -> Iterator[EpisodeInput]:
    messages = conversation["messages"]
    if all(isinstance(message.get("created_at"), int | float) for message in messages):
        same = messages[::-1] if messages[0]["created_at"] > messages[-1]["created_at"] else messages
        messages = sorted(same, key=lambda message: float(message["created_at"]))
    for message in messages:
        content = message.get("content")
        images = [first(image, "file_id", "url") for image in names_in(message, "content", "image_file", "image_url")]
        files = [*images, *names_in(message, "attachments", "filename", "file_id")]
        if (speaker := name_role(message.get("role"))) is not None:
            yield from thread.say(message.get("id"), speaker, content_text(content), message.get("created_at"), files)


class _TextCollector(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        del attrs
        if tag in ("p", "br", "li", "div", "tr", "h1", "h2", "h3", "h4", "pre"):
            self.words.append("\n- " if tag == "li" else "\n")


# Words before a prompt in Gemini's activities ("Prompted ..."), in the languages of accounts.
_VERBS = """
Prompted Asked Said Gefragt Gesagt Eingegebener_Prompt Preguntaste Petición Has_preguntado Requête Invite Demande Prompt
Richiesta Comando Solicitado Solicitação Solicitou Запрос 输入的提示 已提问 プロンプト
"""
_PROMPTED = re.compile(rf"(?:{'|'.join(_VERBS.split()).replace('_', ' ')})\s*[:：]?\s+")


def _is_gemini(value: Any) -> bool:
    labels = f"{value.get('header')} {value.get('products')}" if isinstance(value, Mapping) else ""
    return ("Gemini" in labels or "Bard" in labels) and "title" in value and "time" in value


def _unfold_gemini(document: Any) -> list[Json]:
    if isinstance(document, list) and document and _is_gemini(document[0]):  # an export, which names no chats
        return [{"id": "Gemini Apps", "activities": [each for each in objects(document) if _is_gemini(each)]}]
    turns = first(first(document, "chunkedPrompt"), "chunks") or first(document, "contents")
    turns = document if turns is None and isinstance(document, list) else turns
    if objects(turns) and all(
        "role" in turn and ("parts" in turn or "chunkedPrompt" in document) and not has_typed_parts(turn)
        for turn in objects(turns)
    ):
        return [{"turns": objects(turns)}]
    return []


def _read_gemini(conversation: Json, thread: Thread) -> Iterator[EpisodeInput]:
    """Yield the prompts and answers of a Gemini conversation, without the model's thoughts."""
    for turn in conversation.get("turns", ()):
        text = plain_text(objects(turn.get("parts")))
        if not turn.get("isThought") and (speaker := name_role(turn["role"])):
            time = first(turn, "createTime", "timestamp")
            yield from thread.say(None, speaker, text or content_text(turn.get("text")), time)
    for activity in sorted(conversation.get("activities", ()), key=lambda each: str(each["time"])):
        time, title = activity["time"], str(activity["title"])
        prompt, prompted = _PROMPTED.subn("", title, count=1) if _PROMPTED.match(title) else (title, 0)
        answers = objects(activity.get("safeHtmlItem"))
        if not prompted and not answers:
            continue  # not a prompt, such as a rating
        id_ = re.sub(r"\W", "", str(time))
        attached = activity.get("attachedFiles") if isinstance(activity.get("attachedFiles"), list) else []
        files = [file if isinstance(file, str) else first(file, "name") for file in attached or []]
        yield from thread.say(f"{id_}/prompt", "user", prompt, time, [*files, activity.get("imageFile")])
        for number, answer in enumerate(answers):
            words = _TextCollector()
            words.feed(str(answer.get("html") or ""))
            words.close()
            yield from thread.say(f"{id_}/{number}", "assistant", re.sub(r"\n\s*\n+", "\n", "".join(words.words)), time)


def _has_messages(value: Json) -> bool:
    messages = objects(first(value, "messages", "chat", "history", "turns"))
    return bool(messages) and all(map(_has_speaker, messages))


def _has_speaker(message: Json) -> bool:
    speaker = first(message, "speaker", "author", "role")
    return is_openai(message) or is_langchain(message) or (is_message(message) and isinstance(speaker, str))


def _unfold_lists(document: Any) -> list[Json]:
    return [] if isinstance(document, Mapping) and "messages" in document else find_chats(_has_messages)(document)


def _read_list(conversation: Json, thread: Thread) -> Iterator[EpisodeInput]:
    """Yield the OpenAI or LangChain messages in *conversation*.

    The first message without a time gets the time of the conversation.
    """

    def report(error: InputError) -> None:
        thread.report(InputError(f"{thread.name}, {error}"))

    for item in read_messages(first(conversation, "messages", "chat", "history", "turns"), thread.name, report):
        changes: dict[str, object] = {"thread": thread.name, "speaker": name_role(item.speaker) or item.speaker}
        if item.source_id is not None:
            changes["source_id"] = f"{thread.scope}/{item.source_id}"
        if item.at is None and thread.start is not None:
            changes["at"], thread.start = thread.start, None
        yield item.model_copy(update=changes)


ASSISTANTS = (
    Chat("chatgpt", find_chats(_is_chatgpt), _read_chatgpt),
    Chat("claude", find_chats(lambda value: isinstance(value.get("chat_messages"), list)), _read_claude),
    Chat("open-webui", find_chats(lambda value: _webui_chat(value) is not None), _read_open_webui),
    Chat("sharegpt", find_chats(_is_sharegpt), _read_sharegpt),
    Chat("assistants", _unfold_assistants, _read_assistants),
    Chat("gemini", _unfold_gemini, _read_gemini),
    Chat("messages", _unfold_lists, _read_list),
)

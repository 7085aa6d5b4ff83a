"""Read the exports of Telegram, Slack, DiscordChatExporter, and of Facebook Messenger and Instagram."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

from kg_memory.contrib.chats.records import Chat, Json, Thread, find_chats, first, names_in, objects, read_moment
from kg_memory.models.graph import EpisodeInput


def _is_telegram(value: Json) -> bool:
    messages = value.get("messages")
    return (
        "type" in value
        and isinstance(messages, list)
        and all(
            each.get("type") in ("message", "service", "unsupported") and "date" in each for each in objects(messages)
        )
    )


def _unfold_telegram(document: Any) -> list[Json]:
    lists = [first(first(document, key), "list") for key in ("chats", "left_chats")]
    return [chat for chats in (*lists, [document]) for chat in find_chats(_is_telegram)(chats)]


def _read_telegram(chat: Json, thread: Thread) -> Iterator[EpisodeInput]:
    """Yield the messages of a chat in a Telegram export, as episodes (messages to store) in *thread*."""
    for message in objects(chat["messages"]):
        if message["type"] != "message":
            continue
        spans = message.get("text") or ""
        parts = spans if isinstance(spans, list) else [spans]
        text = "".join(part if isinstance(part, str) else str(first(part, "text") or "") for part in parts)
        if origin := message.get("forwarded_from"):
            text = f"[forwarded from {origin}] {text}".strip()
        kind = str(first(message, "media_type", "mime_type") or "file")
        paths = [("photo", message.get("photo")), (kind, message.get("file_name") or message.get("file"))]
        files = [label if str(path).startswith("(File ") else path for label, path in paths if path]
        files += [f"{label}: {name}" for label, name in _shared(message) if name]
        speaker = first(message, "from", "author", "from_id")
        yield from thread.say(message.get("id"), speaker and str(speaker), text, _telegram_time(message), files)


def _shared(message: Json) -> Iterator[tuple[str, object]]:
    """Yield (kind, name) for the sticker, poll, contact and location of a Telegram message: ``("poll", "Lunch?")``."""
    yield "sticker", first(message, "sticker_emoji")
    yield "poll", first(message.get("poll"), "question")
    contact = message.get("contact_information") or {}
    yield "contact", " ".join(str(contact[key]) for key in ("first_name", "last_name") if contact.get(key))
    place = message.get("location_information")
    yield "location", f"{first(place, 'latitude')}, {first(place, 'longitude')}" if place else None


def _telegram_time(message: Json) -> datetime | None:
    """Return the time of a Telegram message, with the UTC offset by which its local time differs from its Unix time."""
    wall, moment = read_moment(message.get("date")), read_moment(message.get("date_unixtime"))
    if moment is None or wall is None:
        return moment or wall
    offset = timedelta(minutes=15 * round((wall - moment).total_seconds() / 900))
    return moment.astimezone(timezone(offset)) if abs(offset) <= timedelta(hours=14) else moment


_SLACK_SAID = ("bot_message", "file_share", "thread_broadcast", "me_message", "file_comment", "reply_broadcast")
"""The subtypes of Slack messages that a person or bot wrote; plain messages have no subtype."""
_LINK = re.compile(r"<([^<>|]*)(?:\|([^<>]*))?>")


def _is_slack(message: Any) -> bool:
    return (
        isinstance(message, Mapping)
        and re.fullmatch(r"\d{9,}(\.\d+)?", str(message.get("ts"))) is not None
        and ("text" in message or "files" in message or "subtype" in message)
    )


def _unfold_slack(document: Any) -> list[Json]:
    channel = document if isinstance(document, Mapping) else {}
    messages = objects(channel.get("messages") if channel else document)
    return [{**channel, "messages": messages}] if messages and all(map(_is_slack, messages)) else []


def _read_slack(channel: Json, thread: Thread) -> Iterator[EpisodeInput]:
    """Yield the messages of a Slack channel; a message and its replies have a thread of their own."""
    for message in sorted(channel["messages"], key=lambda message: float(message["ts"])):
        files = objects(message.get("files"))
        if message.get("subtype") not in (None, "", *_SLACK_SAID) or message.get("hidden"):
            continue
        users = thread.names or {}
        user = users.get(str(message.get("user")))
        profile = first(message, "user_profile", "bot_profile")
        name = _slack_name(user) or _slack_name(profile) or first(message, "username", "user", "bot_id")
        text = _LINK.sub(partial(_unlink, users), str(message.get("text") or ""))
        attached = filter(None, names_in(message, "attachments", "text", "fallback"))
        text = html.unescape(text or "\n".join([*_block_texts(message.get("blocks")), *map(str, attached)]))
        root = message.get("thread_ts")
        place = Thread(thread.source, f"{thread.name}/{root}" if root else thread.name, thread.scope, thread.report)
        names = [
            first(file, "name", "title") for file in files if file.get("mode") not in ("tombstone", "hidden_by_limit")
        ]
        yield from place.say(message["ts"], name and str(name), text, _slack_time(message, user), names)


def _block_texts(value: Any) -> Iterator[str]:
    for each in objects(value if isinstance(value, list) else [value]):
        if isinstance(each.get("text"), str):
            yield each["text"]
        else:
            yield from (text for key in ("text", "fields", "elements") for text in _block_texts(each.get(key)))


def _slack_name(user: Any) -> str | None:
    profile = first(user, "profile")
    name = (
        first(profile, "real_name")
        or first(user, "real_name")
        or first(profile, "display_name")
        or first(user, "display_name", "name")
    )
    return None if name is None else str(name)


def _unlink(users: Mapping[str, Json], match: re.Match[str]) -> str:
    """Convert a link or mention in a Slack message to text: ``<@U1>`` -> "@Ann"."""
    target, label = match.groups()
    if target.startswith("@"):
        return f"@{_slack_name(users.get(target[1:])) or label or target[1:]}"
    if target.startswith("#"):
        return f"#{label or target[1:]}"
    if target.startswith("!"):
        return label or f"@{target[1:]}"
    bare = re.sub(r"^(?:mailto:|tel:|https?://)", "", target)
    return target if label in (None, "", target, bare) else f"{label} ({target})"


def _slack_time(message: Json, user: Json | None) -> datetime | None:
    time, zone = read_moment(float(message["ts"])), first(user, "tz")
    try:
        return time.astimezone(ZoneInfo(zone)) if time and zone else time
    except (ValueError, OSError, TypeError):
        return time


_DISCORD_SAID = "Default Reply ThreadStarterMessage ChatInputCommand ContextMenuCommand 0 19 20 21 23".split()
"""The types of Discord messages that a person or bot wrote, as names or numbers."""


def _is_discord(value: Json) -> bool:
    return isinstance(value.get("channel"), Mapping) and "guild" in value and isinstance(value.get("messages"), list)


def _read_discord(channel: Json, thread: Thread) -> Iterator[EpisodeInput]:
    for message in objects(channel["messages"]):
        if str(message.get("type") or "Default") not in _DISCORD_SAID:
            continue
        author = message.get("author")
        files = names_in(message, "attachments", "fileName", "url")
        files += [f"sticker: {name}" for name in names_in(message, "stickers", "name")]
        text = str(first(message, "content") or "")
        if not text:
            embeds = objects(message.get("embeds"))
            text = "\n".join(str(embed[key]) for embed in embeds for key in ("title", "description") if embed.get(key))
        speaker = first(author, "nickname", "name", "id")
        yield from thread.say(message.get("id"), speaker and str(speaker), text, message.get("timestamp"), files)


def _is_facebook(value: Json) -> bool:
    messages = objects(value["messages"]) if {"participants", "messages"} <= value.keys() else []
    return bool(messages) and all("sender_name" in each for each in messages)


def _mend(value: Any) -> Any:
    """Repair the texts in a JSON value in which Facebook has decoded UTF-8 as Latin-1: ``"JosÃ©"`` -> ``"José"``."""
    if isinstance(value, str):
        with suppress(UnicodeError):
            return value.encode("latin-1").decode("utf-8")
    if isinstance(value, list):
        return list(map(_mend, value))
    return {key: _mend(each) for key, each in value.items()} if isinstance(value, dict) else value


_FACEBOOK_NOTES = re.compile(
    r"Liked a message$|Reacted .{1,9} to your message|You missed a (?:video )?call "
    r"|The (?:video|audio|group) chat ended|(?:You are|.{1,60} is) now connected on Messenger"
    r"|.{1,60} (?:named the group|joined the (?:call|group)|left the group|sent an attachment\.$"
    r"|changed the (?:theme|group photo|chat theme)|set the (?:nickname|emoji))"
)
"""Texts that Messenger and Instagram write in the name of a person, in English."""


def _read_facebook(chat: Json, thread: Thread) -> Iterator[EpisodeInput]:
    for message in sorted(objects(chat["messages"]), key=lambda message: str(message.get("timestamp_ms"))):
        if "call_duration" in message or _FACEBOOK_NOTES.match(str(message.get("content"))):
            continue
        kinds = ("photos", "videos", "audio_files", "files", "gifs")
        files = [name for kind in kinds for name in names_in(message, kind, "filename", "uri")]
        files.append(first(message.get("sticker"), "uri"))
        text = "\n".join(map(str, filter(None, (message.get("content"), first(message.get("share"), "link")))))
        yield from thread.say(None, str(message["sender_name"]), text, message.get("timestamp_ms"), files)


MESSENGERS = (
    Chat("facebook", lambda chats: list(map(_mend, find_chats(_is_facebook)(chats))), _read_facebook, named=True),
    Chat("discord", find_chats(_is_discord), _read_discord, named=True),
    Chat("telegram", _unfold_telegram, _read_telegram, named=True),
    Chat("slack", _unfold_slack, _read_slack, named=True),
)

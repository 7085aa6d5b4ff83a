"""Small exports of each kind, in the published forms, with invented people."""

from typing import Any

CHATGPT = [
    {
        "title": "Bread", "create_time": 1714557600.0, "conversation_id": "c-1", "current_node": "n5",
        "mapping": {
            "root": {"id": "root", "message": None, "parent": None, "children": ["n0"]},
            "n0": {
                "parent": "root",
                "message": {
                    "id": "m0", "author": {"role": "system"}, "content": {"content_type": "text", "parts": [""]},
                    "metadata": {"is_visually_hidden_from_conversation": True},
                },
            },
            "n1": {
                "parent": "n0",
                "message": {
                    "id": "m1", "author": {"role": "user"},
                    "content": {"content_type": "user_editable_context", "user_profile": "I am a baker."},
                },
            },
            "n2": {
                "parent": "n1",
                "message": {
                    "id": "m2", "author": {"role": "user", "name": None}, "create_time": 1714557600.5,
                    "content": {
                        "content_type": "multimodal_text",
                        "parts": [{"content_type": "image_asset_pointer", "asset_pointer": "file-service://f1"}, "I live in Kotka."],
                    },
                    "metadata": {"attachments": [{"id": "f1", "name": "loaf.jpg"}]},
                },
            },
            "n3": {
                "parent": "n2",
                "message": {"id": "m3", "author": {"role": "assistant"}, "content": {"content_type": "text", "parts": ["An answer of old."]}},
            },
            "n4": {
                "parent": "n2",
                "message": {
                    "id": "m4", "author": {"role": "assistant"}, "recipient": "browser",
                    "content": {"content_type": "code", "text": "search('Kotka')"},
                },
            },
            "n5": {
                "parent": "n4",
                "message": {
                    "id": "m5", "author": {"role": "assistant"}, "create_time": None, "recipient": "all",
                    "content": {"content_type": "text", "parts": ["By the sea\ue200cite\ue202turn0\ue201."]},
                },
            },
        },
    },
    {"title": "Empty", "conversation_id": "c-2", "mapping": {}, "current_node": None},
    {
        "title": "A circle", "conversation_id": "c-3", "current_node": "gone",
        "mapping": {
            "a": {"parent": "b", "message": {"id": "a", "author": None, "content": {"content_type": "text", "parts": ["One."]}}},
            "b": {"parent": "a", "message": {"id": "b", "author": {"role": "user"}, "create_time": 1714557700, "content": {"parts": ["Two."]}}},
        },
    },
]  # fmt: skip
CLAUDE = [
    {
        "uuid": "k-1", "name": "Move", "created_at": "2024-05-01T10:00:00.000000Z", "account": {"uuid": "acc"},
        "chat_messages": [
            {
                "uuid": "h1", "text": "", "content": [{"type": "text", "text": "I moved to Vaasa."}],
                "sender": "human", "created_at": "2024-05-01T10:00:00.000000Z",
                "attachments": [{"file_name": "plan.txt", "extracted_content": "..."}], "files": [],
            },
            {
                "uuid": "a1", "text": "This block is not supported.",
                "content": [
                    {"type": "thinking", "thinking": "hm"}, {"type": "tool_use", "name": "x"},
                    {"type": "text", "text": "Noted."},
                ],
                "sender": "assistant", "created_at": "2024-05-01T10:00:05.000000Z",
            },
            {"uuid": "h2", "text": "Thanks, Vaasa it is.", "sender": "human", "created_at": "2024-05-01T10:01:00Z"},
        ],
    },
    {"uuid": "k-2", "name": "", "chat_messages": []},
]  # fmt: skip
OPEN_WEBUI = [
    {
        "id": "w-1", "title": "Cats",
        "chat": {
            "title": "Cats",
            "history": {
                "currentId": "3",
                "messages": {
                    "1": {"id": "1", "parentId": None, "role": "user", "content": "My cat is Miso.", "timestamp": 1714557600},
                    "2": {"id": "2", "parentId": "1", "role": "assistant", "content": "An old answer.", "timestamp": 1714557601},
                    "3": {
                        "id": "3", "parentId": "1", "role": "assistant",
                        "content": '<details type="reasoning" done="true">hm</details>\nA fine name.',
                        "timestamp": 1714557602,
                    },
                },
            },
        },
    },
]  # fmt: skip
TELEGRAM_CHAT = {
    "name": "Bo Lind", "type": "personal_chat", "id": 77,
    "messages": [
        {"id": 1, "type": "service", "date": "2024-06-01T21:29:00", "actor": "Bo Lind", "action": "phone_call", "text": ""},
        {
            "id": 2, "type": "message", "date": "2024-06-01T21:30:00", "date_unixtime": "1717295400",
            "from": "Bo Lind", "from_id": "user7",
            "text": ["I moved to ", {"type": "bold", "text": "Cusco"}, " today."],
        },
        {
            "id": 3, "type": "message", "date": "2024-06-01T21:31:00", "date_unixtime": "1717295460", "from": None,
            "from_id": "user8", "photo": "photos/photo_1.jpg", "text": "",
        },
    ],
}  # fmt: skip
TELEGRAM = {
    "about": "...",
    "chats": {"list": [TELEGRAM_CHAT, {"type": "saved_messages", "id": 1, "messages": []}]},
    "left_chats": {"list": [{**TELEGRAM_CHAT, "name": "Bo Lind", "id": 78}]},
}
DISCORD = {
    "guild": {"id": "1", "name": "Makers"},
    "channel": {"id": "2", "type": "GuildTextChat", "name": "tea"},
    "messages": [
        {"id": "10", "type": "GuildMemberJoin", "timestamp": "2024-05-01T09:59:00+02:00", "content": "Joined.", "author": {"name": "ina"}},
        {
            "id": "11", "type": "Default", "timestamp": "2024-05-01T10:00:00.5+02:00", "content": "I roast tea.",
            "author": {"id": "9", "name": "ina", "nickname": "Ina Berg", "isBot": False},
            "attachments": [{"id": "1", "url": "https://x.invalid/a", "fileName": "tin.png"}],
        },
        {"id": "12", "type": "Reply", "timestamp": "2024-05-01T10:01:00+02:00", "content": "Nice!", "author": {"name": "tick", "isBot": True}},
    ],
}  # fmt: skip
SHAREGPT = [
    {
        "id": "s1",
        "conversations": [
            {"from": "system", "value": "Be kind."}, {"from": "human", "value": "I sing in a choir."},
            {"from": "gpt", "value": "Lovely."},
        ],
    },
    {"conversations": [{"from": "human", "value": "I row."}]},
]  # fmt: skip
ASSISTANTS = {
    "object": "list",
    "data": [
        {
            "id": "msg_2", "object": "thread.message", "created_at": 1714557660, "thread_id": "thread_1",
            "role": "assistant", "content": [{"type": "text", "text": {"value": "Good.", "annotations": []}}],
        },
        {
            "id": "msg_1", "object": "thread.message", "created_at": 1714557600, "thread_id": "thread_1",
            "role": "user", "content": [{"type": "text", "text": {"value": "I keep bees.", "annotations": []}}],
            "attachments": [{"file_id": "file-9"}],
        },
    ],
}  # fmt: skip
GEMINI = [
    {"header": "Gemini Apps", "title": "Gave feedback", "time": "2024-05-01T10:05:00.000Z", "products": ["Gemini Apps"]},
    {
        "header": "Gemini Apps", "title": "Prompted I paint boats", "time": "2024-05-01T10:00:00.000Z",
        "products": ["Gemini Apps"], "safeHtmlItem": [{"html": "<p>Which <b>boats</b>?</p><ul><li>small</li></ul>"}],
    },
]  # fmt: skip
MESSAGES = [
    {"id": "x1", "created_at": 1714557600000, "messages": [{"role": "system", "content": "p"}, {"role": "user", "content": "I fish."}]},
    {"id": "x2", "messages": [{"role": "user", "content": [{"type": "text", "text": "I ski."}], "timestamp": "2024-05-01T12:00:00+02:00"}]},
]  # fmt: skip
FACEBOOK = {
    "participants": [{"name": "J\u00c3\u00b6rg"}, {"name": "Ann"}], "title": "J\u00c3\u00b6rg",
    "messages": [
        {"sender_name": "J\u00c3\u00b6rg", "timestamp_ms": 1714557660000, "content": "In K\u00c3\u00b6ln!", "photos": [{"uri": "inbox/photos/dom.jpg"}]},
        {"sender_name": "Ann", "timestamp_ms": 1714557600000, "content": "Where do you live?"},
    ],
}  # fmt: skip
SLACK: dict[str, Any] = {
    "users.json": [
        {"id": "U1", "name": "ana", "real_name": "Ana Ruiz", "tz": "America/Lima", "profile": {"display_name": "ana"}},
        {"id": "U2", "name": "helper", "is_bot": True, "profile": {"real_name": "Helper"}},
    ],
    "channels.json": [{"id": "C1", "name": "general", "members": ["U1"]}],
    "general/2024-06-02.json": [
        {"type": "message", "subtype": "channel_join", "user": "U1", "text": "<@U1> has joined", "ts": "1717295300.000100"},
        {"type": "message", "user": "U1", "text": "<@U2> I moved to Cusco &amp; bought <https://a.invalid|a house>", "ts": "1717295400.000200", "thread_ts": "1717295400.000200"},
        {"type": "message", "user": "U2", "text": "Good!", "ts": "1717295460.000200", "thread_ts": "1717295400.000200"},
    ],
    "random/2024-06-03.json": [
        {"type": "message", "user": "U1", "text": "", "ts": "1717381800.000200", "files": [{"name": "a.pdf"}, {"mode": "tombstone"}]}
    ],
}  # fmt: skip

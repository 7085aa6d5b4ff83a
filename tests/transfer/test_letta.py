"""Import of Letta agent files of both forms: blocks, messages and texts, once, and all or nothing."""

import json
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_memory.contrib.importers.from_letta import read_letta
from kg_memory.contrib.letta import Block, Blocks
from kg_memory.errors import InputError
from tests.transfer import put

AT = "2025-10-31T22:56:56.459100+00:00"


def text(words: str) -> list[dict[str, Any]]:
    return [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": words, "signature": None}]


def sending(words: str) -> list[dict[str, Any]]:
    function = {"name": "send_message", "arguments": json.dumps({"message": words})}
    return [{"id": "call_1", "type": "function", "function": function}]


AGENT = {
    "id": "agent-0", "name": "Sam", "agent_type": "memgpt_agent", "block_ids": ["block-0", "block-1", "block-2"],
    "files_agents": [{"id": "file_agent-0", "file_id": "file-0"}],
    "messages": [
        {"id": "message-0", "role": "system", "content": text("You are Sam."), "created_at": AT},
        {"id": "message-1", "role": "user", "content": text("I moved to 奥斯陆."), "name": "Ann", "created_at": AT},
        {"id": "message-2", "role": "assistant", "content": text("She moved."), "tool_calls": sending("Good for you!"), "created_at": AT},
        {"id": "message-3", "role": "tool", "content": text('{"status": "OK"}'), "created_at": AT},
        {"id": "message-4", "role": "user", "content": '{"type": "heartbeat", "reason": "timer"}', "created_at": AT},
        {"id": "message-5", "role": "user", "content": '{"type": "invoice", "sum": 3}', "created_at": AT},
    ],
    "passages": [{"id": "passage-0", "text": "Ann likes tea.", "tags": ["drinks", "home"], "created_at": AT}],
}  # fmt: skip
NEW = {
    "agents": [AGENT],
    "blocks": [
        {"id": "block-0", "label": "human", "value": "Name: Ann", "limit": 2000, "read_only": False},
        {"id": "block-1", "label": "about/team work", "value": "Six people.", "limit": 2000},
        {"id": "block-2", "label": "empty", "value": "", "limit": 2000},
        {"id": "block-9", "label": "others", "value": "Of another agent."},
    ],
    "files": [
        {"id": "file-0", "file_name": "notes/oslo.md", "content": "Oslo lies on a fjord."},
        {"id": "file-1", "file_name": "other.md", "content": "Of another agent."},
    ],
    "tools": [], "sources": [], "groups": [],
}  # fmt: skip
OLD = {
    "name": "Sam", "agent_type": "memgpt_agent", "version": "0.6.47", "in_context_message_indices": [0],
    "core_memory": [{"label": "human", "value": "Name: Ann", "limit": 2000, "updated_at": AT, "created_at": AT}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": json.dumps({"type": "user_message", "message": "I moved to Oslo.", "time": "x"})}], "created_at": AT},
        {"role": "assistant", "text": None, "content": None, "tool_calls": sending("Good!"), "created_at": AT},
    ],
}  # fmt: skip


@pytest.mark.parametrize("twice", [False, True])
def test_import_stores_blocks_messages_and_archive_of_agent(memory, namespace, tmp_path, twice):
    path = put(tmp_path / "sam.af", json.dumps(NEW) if twice else NEW)
    assert memory.data.import_from("letta", path, namespace=namespace).left_out == {
        "empty blocks": 1,
        "messages of the role system": 1,
        "messages of the role tool": 1,
        "events of Letta, such as heartbeats": 1,
    }
    blocks = Blocks(memory, [Block("human"), Block("about_team_work"), Block("empty")])
    user = {"user_id": namespace}
    assert [blocks.get(label, user).value for label in blocks.blocks] == ["Name: Ann", "Six people.", ""]
    told = {each.content: each for each in memory.episodes.list(where={"thread": "Sam"}, namespace=namespace)}
    assert {content: each.speaker for content, each in told.items()} == {
        "I moved to 奥斯陆.": "Ann",
        "Good for you!": "assistant",
        '{"type": "invoice", "sum": 3}': "user",
    }
    assert {each.at for each in told.values()} == {datetime.fromisoformat(AT)}
    [passage] = memory.episodes.list(where={"labels.tags": "home"}, namespace=namespace)
    assert (passage.kind, passage.content, passage.labels["tags"]) == ("text", "Ann likes tea.", ("drinks", "home"))
    [file] = memory.episodes.list(where={"thread": "notes/oslo.md"}, namespace=namespace)
    assert file.content == "Oslo lies on a fjord."
    assert any("奥斯陆" in fact.objects for fact in memory.facts.about("Ann", namespace=namespace))
    assert blocks.append("human", "Likes tea", user).value == "Name: Ann\nLikes tea"
    again = memory.data.import_from("letta", path, namespace=namespace)
    assert again.repeated == sum(again.records.get(kind, 0) for kind in ("message",)) == 7
    assert blocks.get("human", user).value == "Name: Ann\nLikes tea", "the file says nothing later"


def test_import_reads_the_old_form_of_the_file(memory, namespace, tmp_path):
    memory.data.import_from("letta", put(tmp_path / "sam.af", OLD), namespace=namespace, read=False)
    version = Blocks(memory).get("human", {"user_id": namespace})
    assert (version.value, version.at, version.by) == ("Name: Ann", datetime.fromisoformat(AT).astimezone(UTC), "Sam")
    said = memory.episodes.list(where={"thread": "Sam"}, namespace=namespace)
    assert {(each.speaker, each.content) for each in said} == {("user", "I moved to Oslo."), ("assistant", "Good!")}


def test_read_letta_selects_one_agent_by_name(tmp_path):
    other = {**AGENT, "id": "agent-1", "name": "Pat", "block_ids": ["block-9"], "messages": [], "passages": []}
    path = put(tmp_path / "two.af", {**NEW, "agents": [AGENT, other, {**other, "id": "agent-2"}]})
    with pytest.raises(InputError, match="the export has 3 agents; choose one with --group"):
        read_letta(path)
    records = list(read_letta(path, "Pat (agent-1)")(Counter()))
    assert [record.value.content for record in records if record.value.kind == "block"] == ["Of another agent."]


def test_agent_text_beside_tool_call_is_a_message_in_v1_only(tmp_path):
    calls = [{"function": {"name": "search", "arguments": "{"}}]
    message = {"role": "assistant", "content": text("Let me look."), "tool_calls": calls}
    said = {}
    for kind in ("letta_v1_agent", "memgpt_agent"):
        nothing = dict.fromkeys(("block_ids", "files_agents", "passages"))
        agent = {**AGENT, "agent_type": kind, "messages": [message], **nothing}
        records = read_letta(put(tmp_path / kind, {"agents": [agent]}))(Counter())
        said[kind] = [record.value.content for record in records]
    assert said == {"letta_v1_agent": ["Let me look."], "memgpt_agent": []}


WRONG: dict[str, tuple[Any, str]] = {
    "a list": ([AGENT], "must have a JSON object, got list"),
    "no agents": ({"agents": []}, "has no agents; pass a file exported by Letta"),
    "agents that are no list": ({"agents": {"a": 1}}, "agents must be a list, got dict"),
    "an agent that is no object": ({"agents": ["Sam"]}, "agents 1 must be an object, got str"),
    "a name that is no text": ({"agents": [{**AGENT, "name": ["Sam"]}]}, "name must be a text, got list"),
    "a block without a label": ({**NEW, "blocks": [{"id": "block-0", "value": "x"}]}, "blocks 1: the record has no label"),
    "a value that is no text": (
        {**NEW, "blocks": [{"id": "block-0", "label": "human", "value": {}}]}, "value must be a text, got dict"
    ),
    "ids that are no list": ({"agents": [{**AGENT, "block_ids": 3}]}, "block_ids must be a list, got int"),
    "messages that are no list": ({"agents": [{**AGENT, "messages": "hi"}]}, "messages must be a list, got str"),
    "parts that are no objects": (
        {"agents": [{**AGENT, "messages": [{"role": "user", "content": [3]}]}]}, "content 1 must be an object, got int"
    ),
    "a time that is none": (
        {"agents": [{**AGENT, "messages": [{"role": "user", "content": "x", "created_at": "soon"}]}]}, "created_at is not a time"
    ),
    "tags that are no texts": (
        {"agents": [{**AGENT, "passages": [{"text": "x", "tags": [1]}]}]}, "tags must be a list of texts"
    ),
    "a passage without a text": ({"agents": [{**AGENT, "passages": [{"id": "p"}]}]}, "the record has no text"),
}  # fmt: skip


@pytest.mark.parametrize(("document", "told"), WRONG.values(), ids=WRONG.keys())
def test_malformed_file_raises_and_stores_nothing(memory, namespace, tmp_path, document, told):
    with pytest.raises(InputError, match=told):
        memory.data.import_from("letta", put(tmp_path / "x.af", document), namespace=namespace)
    assert memory.stats(namespace=namespace).episodes == memory.stats(namespace=namespace).blocks == 0


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b'"' + b"[" * 9 + b'"'])
def test_read_letta_raises_for_invalid_json(tmp_path, content):
    path = tmp_path / "x.af"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"x\.af"):
        read_letta(path)
    with pytest.raises(InputError, match="cannot read"):
        read_letta(tmp_path / "none.af")


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["user", "assistant", "text"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["agents", "messages", "role", "content", "type", "text", "blocks", "block_ids", "id", "label", "value",
             "core_memory", "tool_calls", "function", "arguments", "created_at", "tags", "passages", "files", "name"]
        ),
        inner, max_size=5,
    ),
    max_leaves=25,
)  # fmt: skip


@given(JUNK)
def test_read_letta_accepts_any_json_or_raises_with_file_name(tmp_path_factory, junk):
    path = put(tmp_path_factory.mktemp("af") / "x.af", junk)
    problem = path.name
    try:
        for record in read_letta(path)(Counter()):
            assert record.value.content
    except InputError as error:
        problem = str(error)
    assert path.name in problem or "--group" in problem

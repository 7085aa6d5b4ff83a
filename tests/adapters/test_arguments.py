"""Optional arguments that models fill with null, "" or "null" are left out; errors name the argument that was given."""

from typing import Any

import pytest
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from kg_memory import GraphMemory
from kg_memory.adapters import memory_tools
from kg_memory.contrib.langmem import create_manage_memory_tool, create_search_memory_tool
from kg_memory.contrib.letta import Files, file_tools, letta_tools

LEFT_OUT = (None, "", " ", "null", "None", "NULL", "undefined", "N/A")
GIVEN: dict[str, dict[str, Any]] = {
    "search_memory": {"query": "Where does Ann live?"},
    "memory_history": {"name": "Ann"},
    "archival_memory_search": {"query": "Oslo"},
    "conversation_search": {},
    "grep": {"pattern": "Oslo"},
    "search_files": {"query": "Oslo"},
    "open": {"file_name": "(no thread)"},
}
"""The tools that only read, each with its required arguments."""
ARGUMENTS = {
    "search_memory": {"query", "as_of", "limit"},
    "remember": {"content"},
    "forget_memory": {"id", "reason"},
    "memory_history": {"name", "relation"},
    "core_memory_append": {"label", "content"},
    "core_memory_replace": {"label", "old_content", "new_content"},
    "memory_replace": {"label", "old_string", "new_string"},
    "memory_insert": {"label", "new_string", "insert_line"},
    "memory_rethink": {"label", "new_memory"},
    "memory_finish_edits": set(),
    "archival_memory_insert": {"content", "tags"},
    "archival_memory_search": {"query", "tags", "tag_match_mode", "top_k", "start_datetime", "end_datetime"},
    "conversation_search": {"query", "roles", "limit", "start_date", "end_date", "page"},
    "grep": {"pattern", "include", "context_lines", "offset"},
    "search_files": {"query", "limit"},
    "open": {"file_name", "offset", "length"},
    "close": {"file_name"},
}


@pytest.fixture
def tools(memory: GraphMemory, namespace: str) -> dict[str, BaseTool]:
    own = [*memory_tools(memory, namespace), *letta_tools(memory, namespace), *file_tools(Files(memory, namespace))]
    return {tool.name: tool for tool in own}


def test_tools_show_only_their_arguments(tools):
    shown = {name: convert_to_openai_tool(tool)["function"] for name, tool in tools.items()}
    assert {name: set(each["parameters"]["properties"]) for name, each in shown.items()} == ARGUMENTS
    for name in ("search_memory", "remember", "forget_memory", "memory_history"):
        assert len(shown[name]["description"]) > 80
        assert all(len(told["description"]) > 20 for told in shown[name]["parameters"]["properties"].values())


def call(tool: BaseTool, arguments: dict[str, Any]) -> Any:
    """Return the message that answers a call of a model."""
    return tool.invoke({"type": "tool_call", "id": "1", "name": tool.name, "args": arguments})


def test_reading_tools_accept_null_for_optional_arguments(memory, namespace, tools):
    memory.add("Ann lives in Oslo.", speaker="Ann", namespace=namespace)
    tried = 0
    for name, given in GIVEN.items():
        expected = call(tools[name], given)
        assert expected.status == "success"
        for optional in tools[name].args.keys() - given.keys():
            for value in LEFT_OUT:
                answer = call(tools[name], {**given, optional: value})
                assert (answer.status, answer.content) == ("success", expected.content), (name, optional, value)
                tried += 1
    assert tried >= 16 * len(LEFT_OUT)


def test_writing_tools_accept_null_for_optional_arguments(memory, namespace, tools):
    for value in LEFT_OUT:
        content = f"Ann likes tea {value!r}."
        added = call(tools["archival_memory_insert"], {"content": content, "tags": value})
        assert added.status == "success", value
        [episode] = memory.episodes.list(namespace=namespace)
        assert not episode.labels
        gone = call(tools["forget_memory"], {"id": f"episode:{episode.id}", "reason": value})
        assert gone.status == "success", value
        assert memory.episodes.list(namespace=namespace) == []


def test_tools_convert_values_of_other_json_types(memory, namespace, tools):
    memory.add("Ann lives in Oslo.", speaker="Ann", namespace=namespace)
    call(tools["archival_memory_insert"], {"content": "Ann's cabin is red.", "tags": "cabins"})
    call(tools["archival_memory_insert"], {"content": "Ann's boat is blue.", "tags": '["boats", "cabins"]'})
    for tags, found in (("boats", 1), (["boats", None], 1), ('["cabins"]', 2)):
        answer = call(tools["archival_memory_search"], {"query": "Ann", "tags": tags, "top_k": "5"})
        assert len(answer.artifact["episodes"]) == found, tags
    assert "Oslo" in call(tools["search_memory"], {"query": "Ann", "limit": "1"}).content
    assert "Oslo" in call(tools["conversation_search"], {"roles": "user", "limit": 3.0}).content
    assert call(tools["search_memory"], {"query": "Ann", "as_of": 2030}).status == "success"


def test_tools_accept_null_text_for_required_argument(memory, namespace, tools):
    """A required text "null" is an ordinary value; a missing one raises."""
    assert call(tools["remember"], {"content": "null"}).status == "success"
    assert [episode.content for episode in memory.episodes.list(namespace=namespace)] == ["null"]
    assert "'null'" in call(tools["memory_history"], {"name": "null"}).content
    with pytest.raises(ValueError, match="query"):
        call(tools["search_memory"], {"query": None})


@pytest.mark.parametrize(
    ("name", "arguments", "named"),
    [
        ("search_memory", {"query": " "}, "query must"),
        ("search_memory", {"query": "x", "as_of": "blorb"}, "as_of must be a time"),
        ("search_memory", {"query": "x", "limit": 0}, "limit must"),
        ("archival_memory_search", {"query": "x", "top_k": 0}, "top_k must be a whole number"),
        ("archival_memory_search", {"query": "x", "end_datetime": "soon"}, "end_datetime must"),
        ("conversation_search", {"start_date": "soon"}, "start_date must be ISO 8601"),
        ("conversation_search", {"query": "x", "page": -1}, "page must be a whole number from 0"),
    ],
)
def test_tool_errors_name_the_given_argument(tools, name, arguments, named):
    answer = call(tools[name], arguments)
    assert answer.status == "error"
    assert answer.content.startswith(named)


def test_langmem_tools_accept_null_for_optional_arguments(memory, namespace):
    name = namespace.replace(".", "-")
    manage = create_manage_memory_tool(("ann", name), store=memory)
    find = create_search_memory_tool(("ann", name), store=memory)
    for value in LEFT_OUT:
        made = call(manage, {"content": f"Ann likes {value}.", "id": value, "action": value})
        assert "created memory" in made.content
    expected = call(find, {"query": "Ann"}).content
    for optional in ("limit", "offset", "filter"):
        for value in LEFT_OUT:
            assert call(find, {"query": "Ann", optional: value}).content == expected
    assert "created memory" in call(manage, {"content": "null"}).content
    for value in (None, ""):
        assert call(manage, {"content": value}).content == "content is missing: pass the content of the new memory"

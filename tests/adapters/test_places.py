"""Namespaces and threads that a step works on."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.runnables import RunnableLambda
from langgraph.graph import START, MessagesState, StateGraph

from kg_memory import GraphMemory, adapters
from kg_memory.adapters.namespace import NamespaceTemplate, Place, place_here, place_of
from kg_memory.contrib.letta import letta_tools
from kg_memory.errors import InputError, SettingsError

LITERALS = st.text(st.sampled_from("ab/%;2 F}é"), max_size=4)
IDS = st.text(st.sampled_from("ab/%;2F5B .@é"), min_size=1, max_size=8).filter(str.strip)


@dataclass
class User:
    user_id: Any = None
    org: Any = None


ANY = (
    "ann", "ann@example.com", "Ann Example", "a.b.c", "安", "🎉", "a/b", "{not a name", "a\nb", "\x00", "\ud800", "%2F;", "0",
)  # fmt: skip


def test_namespace_template_fills_ids_from_first_source():
    for template, sources, filled in (
        *(("{user_id}", ({"user_id": name},), name) for name in ANY),
        ("u{user_id}", ({"user_id": 0},), "u0"),
        ("{user_id}", ({"user_id": UUID(int=7)},), str(UUID(int=7))),
        ("shared {{1, 2}}", (), "shared {1, 2}"),
        ("{org}/{user_id}", (User(user_id="ann"), {"user_id": "bob", "org": "x"}), "x/ann"),
    ):
        assert NamespaceTemplate(template).fill(*sources) == filled
    for value in ("", " ", "\n\t", True, False, 1.5, b"ann", ["ann"], {"id": "ann"}, ()):
        with pytest.raises(InputError, match="user_id must be a non-empty str, an int or a UUID"):
            NamespaceTemplate("{user_id}").fill({"user_id": value})


@pytest.mark.parametrize("source", [{}, None, {"user_id": None}, User(), {"user": "ann"}])
def test_namespace_template_missing_id_error_names_context(source):
    with pytest.raises(InputError, match=r"needs 'user_id': pass context="):
        NamespaceTemplate("{user_id}").fill(source)


@given(st.data(), LITERALS, LITERALS, LITERALS)
def test_namespace_template_is_injective(data, before, between, behind):
    escaped = [text.replace("{", "{{").replace("}", "}}") for text in (before, between, behind)]
    written = f"{escaped[0]}{{org}}{escaped[1]}{{user_id}}{escaped[2]}"
    if not between or "%" in between:
        with pytest.raises(SettingsError):
            NamespaceTemplate(written)
        return
    template = NamespaceTemplate(written)
    one, other = ({"org": data.draw(IDS), "user_id": data.draw(IDS)} for _ in range(2))
    assert (template.fill(one) == template.fill(other)) == (one == other)


INVALID = (
    "{ | } | {} | {0} | {user.id} | {user[id]} | {user id} | {user_id!r} | {user_id:>5} | {a}{b} | {a}%{b}"
).split(" | ")


@pytest.mark.parametrize("template", [*INVALID, "", None, 3])
def test_namespace_template_refuses_invalid_templates(template):
    with pytest.raises(SettingsError, match=r"namespace (must|'.*' has)"):
        NamespaceTemplate(template)


def test_place_of_prefers_context_and_takes_thread_from_config():
    config = {"configurable": {"user_id": "bob", "thread_id": 7}}
    assert place_of(NamespaceTemplate("{user_id}"), {"user_id": "ann"}, config) == Place("ann", "7")
    assert place_of(NamespaceTemplate("{user_id}"), None, config) == Place("bob", "7")


def test_place_here_without_run_needs_full_name_or_config():
    assert place_here(NamespaceTemplate("ann")) == Place("ann")
    with pytest.raises(InputError):
        place_here(NamespaceTemplate("{user_id}"))
    config = {"configurable": {"user_id": "bob", "thread_id": 7}}
    assert place_here(NamespaceTemplate("{user_id}"), config) == Place("bob", "7")


@pytest.mark.parametrize(
    ("template", "context", "place"),
    [
        ("{user_id}", User("ann@example.com"), Place("ann@example.com", "t1")),
        ("{user_id}", {"user_id": "ann@example.com"}, Place("ann@example.com", "t1")),
        ("{org}/{user_id}", None, Place("acme/5", "t1")),
    ],
)
async def test_place_here_reads_context_then_config_of_graph_run(template, context, place):
    found: list[Place] = []
    here = NamespaceTemplate(template)

    def note(_: Any) -> dict[str, Any]:
        found.append(place_here(here))
        return {}

    async def anote(_: Any) -> dict[str, Any]:
        return note(_)

    step = RunnableLambda(note, anote)
    graph = StateGraph(MessagesState, context_schema=User).add_node("note", step).add_edge(START, "note").compile()
    config = {"configurable": {"thread_id": "t1", "user_id": 5, "org": "acme"}}
    graph.invoke({"messages": []}, config, context=context)
    await graph.ainvoke({"messages": []}, config, context=context)
    assert found == [place] * 2


TAKES_MEMORY = (
    "BackgroundMemory", "KGMemoryMiddleware", "KGStore", "letta_tools", "memory_tools", "recall_node",
    "remember_node",
)  # fmt: skip


@pytest.mark.parametrize("wrong", ["falkor://here", GraphMemory, 3], ids=["url", "class", "number"])
@pytest.mark.parametrize("name", TAKES_MEMORY)
def test_adapters_refuse_values_that_are_no_memory(name, wrong):
    with pytest.raises(
        SettingsError, match=r"memory must be a GraphMemory, got .*; pass what GraphMemory.open\(\) returns"
    ):
        (letta_tools if name == "letta_tools" else getattr(adapters, name))(wrong)


@pytest.mark.parametrize("speaker", ["{user_name}", "", " ", 3])
@pytest.mark.parametrize("name", ["KGMemoryMiddleware", "memory_tools", "remember_node"])
def test_adapters_refuse_speaker_templates_and_empty_names(memory, name, speaker):
    with pytest.raises(SettingsError, match=r"user must be a name.*name each message"):
        getattr(adapters, name)(memory, user=speaker)

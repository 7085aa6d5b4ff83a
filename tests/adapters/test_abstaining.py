"""Every adapter returns only the answer "unknown" if the relevance is below `abstain_below`."""

import json
from functools import partial

import pytest

from kg_memory.adapters import KGRetriever, memory_tools
from kg_memory.contrib.letta import letta_tools
from kg_memory.contrib.variants.templates import ZEPH
from kg_memory.text.context_markers import REMEMBERED
from tests.adapters.test_surfaces import SURFACES

QUESTION, OTHER = "What does Lily juggle?", "Where does Ann live?"
UNKNOWN = "The memory does not know this: nothing here is about Lily."


@pytest.fixture
def strict(opened, namespace):
    memory = opened(abstain_below=0.2)
    for content in ("Ann lives in Oslo", "Ann knows Will", "Ann likes tea"):
        memory.add(content, speaker="Ann", namespace=namespace)
    return memory


def test_retriever_returns_no_documents_below_threshold(strict, namespace, call):
    retriever = KGRetriever(memory=strict, namespace=namespace)
    assert call(retriever, QUESTION) == []
    assert call(retriever, OTHER)


def test_search_tools_return_only_unknown_line(strict, namespace, call):
    told = {"value": "no", "reason": "nothing here is about Lily", "abstains": True}
    tools = {tool.name: tool for tool in (*memory_tools(strict, namespace), *letta_tools(strict, namespace))}
    for name in ("search_memory", "archival_memory_search", "conversation_search"):
        answer = call(tools[name], {"type": "tool_call", "id": "1", "name": name, "args": {"query": QUESTION}})
        assert (answer.content, answer.artifact["answerable"]) == (UNKNOWN, told), name
        assert answer.artifact["facts"] + answer.artifact["episodes"] == []
        if name != "archival_memory_search":
            assert "Oslo" in call(tools[name], {"query": OTHER})


RECALLED = (
    ("recall_node", None, UNKNOWN),
    ("recall_node", "json", json.dumps({"unknown": UNKNOWN})),
    ("recall_node", ZEPH, UNKNOWN),
    ("middleware", None, f"{REMEMBERED}\n\n{UNKNOWN}"),
)


def test_recall_returns_only_unknown_line(strict, namespace):
    for surface, template, text in RECALLED:
        how = {"namespace": "{user_id}", "template": template}
        recall = partial(SURFACES[surface], strict, {"configurable": {"user_id": namespace}}, **how)
        assert recall(question=QUESTION) == text
        assert "Oslo" in recall(question=OTHER)

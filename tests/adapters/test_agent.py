"""The small agent recalls, answers and remembers, with and without a model."""

from collections.abc import Callable
from typing import Any

import pytest

from kg_memory import GraphMemory, adapters
from kg_memory.contrib.agent import SYSTEM_PROMPT, AgentContext, build_agent, from_memory
from kg_memory.errors import InputError, SettingsError
from tests.adapters.chat import Chat

Say = Callable[..., str]
CONTEXT = """Facts [sources]
<FACTS>
- Ann lives in Bergen (since 7 May 2024) [d9512289]
- Ann works at Fjord Labs (since 10 January 2024) [d9512289, 0a1b2c3d]
- Ann has a cat (since 10 January 2024) [d9512289]
- Ann likes jazz (since 10 January 2024) [d9512289]
</FACTS>

Who and what
<ENTITIES>
- Ann (Person): She lives in Bergen.
</ENTITIES>

What was said. [source] (time)
<EPISODES>
- [d9512289] (10 January 2024) Ann: I have moved.
- [0a1b2c3d] (11 January 2024) Ann: Where do I live?
</EPISODES>"""


@pytest.fixture
def say(call: Any, memory: GraphMemory, namespace: str) -> Say:
    """Return a function that sends a message to an agent without a model, sync and async, as a user in a thread."""
    agent = build_agent(memory).compile()

    def say_to_agent(text: str, thread: str, user: str = "ann") -> str:
        given: Any = {"messages": [("user", text)]}
        config: Any = {"configurable": {"thread_id": thread}}
        context: Any = {"user_id": f"{namespace} {user}"}
        return str(call(agent, given, config, context=context)["messages"][-1].content)

    return say_to_agent


def test_agent_recalls_across_threads_but_not_across_users(say):
    assert say("Ann lives in Oslo.", "1") == "Noted."
    assert "lives in Oslo (" in say("Where does Ann live?", "2")
    assert say("Where does Ann live?", "2", user="zoë@example.com") == "I remember nothing about that."


def test_agent_does_not_store_answers_read_from_memory(say, memory, namespace):
    say("Ann lives in Oslo.", "1")
    say("Where does Ann live?", "1")
    told = {each.content for each in memory.episodes.list(namespace=f"{namespace} ann")}
    assert told == {"Ann lives in Oslo.", "Where does Ann live?"}


def test_agent_prompts_model_with_memory_and_stores_its_answer(memory, namespace):
    memory.add("Ann lives in Oslo.", at="2024-01-01", namespace=namespace)
    model = Chat(answers=["In Oslo, dear Ann.", "Still there."], prompts=[])
    agent = build_agent(memory, model=model).compile()
    context: Any = {"user_id": namespace}
    given: Any = {"messages": [("user", "Where does Ann live?")]}
    ended = agent.invoke(given, context=context)
    assert [each.content for each in ended["messages"]] == ["Where does Ann live?", "In Oslo, dear Ann."]
    system, question = model.prompts[0]
    assert system.content == SYSTEM_PROMPT
    assert question.content.startswith("Where does Ann live?\n\n")
    assert "Ann lives in Oslo (since 1 January 2024)" in question.content
    assert "In Oslo, dear Ann." in {each.content for each in memory.episodes.list(namespace=namespace)}

    agent.invoke(given, context={**context, "system_prompt": "Be brief."})
    assert model.prompts[1][0].content == "Be brief."


def test_agent_uses_the_model_of_the_run(memory, namespace):
    agent = build_agent(memory, model=Chat(answers=[], prompts=[])).compile()
    given: Any = {"messages": [("user", "Ann lives in Oslo.")]}
    offline: Any = {"user_id": namespace, "model": "offline"}
    assert agent.invoke(given, context=offline)["messages"][-1].content == "Noted."
    other: Any = {"user_id": namespace, "model": "gpt-none"}
    with pytest.raises(SettingsError, match="no API key for the model gpt-none"):
        agent.invoke(given, context=other)


def test_agent_requires_user_id(memory):
    agent = build_agent(memory).compile()
    given: Any = {"messages": [("user", "Ann lives in Oslo.")]}
    with pytest.raises(InputError, match="needs 'user_id'"):
        agent.invoke(given)
    with pytest.raises(InputError, match="the context has no 'user_id'"):
        agent.invoke(given, context={})
    with pytest.raises(InputError, match="unknown field 'user'; use user_id"):
        agent.invoke(given, context={"user": "ann"})


def test_agent_accepts_fixed_namespace_and_own_context_schema(memory, namespace):
    given: Any = {"messages": [("user", "Ann lives in Oslo.")]}
    assert build_agent(memory, namespace=namespace).compile().invoke(given)["messages"][-1].content == "Noted."

    class Team(AgentContext):
        user_id: str = "anybody"
        team: str

    context: Any = {"team": namespace}
    build_agent(memory, namespace="{team}/{user_id}", context_schema=Team).compile().invoke(given, context=context)
    assert any(each.endswith("/anybody") for each in memory.data.namespaces())


def test_from_memory_lists_the_best_facts():
    assert from_memory("Where do I live?", CONTEXT).splitlines() == [
        "From memory:",
        "- Ann lives in Bergen (since 7 May 2024)",
        "- Ann works at Fjord Labs (since 10 January 2024)",
        "- Ann has a cat (since 10 January 2024)",
    ]


EPISODES = CONTEXT[CONTEXT.index("What was said") :]
SAID = "From memory:\n- (10 January 2024) Ann: I have moved."


@pytest.mark.parametrize(
    ("said", "context", "answer"),
    [
        ("I moved to Bergen.", CONTEXT, "Noted."),
        ("我搬到了卑尔根。", CONTEXT, "Noted."),
        ("", CONTEXT, "I am listening."),
        *((question, EPISODES, SAID) for question in ("Where do I live?", "where do I live", "我住在哪里？")),
        ("Where do I live?", "", "I remember nothing about that."),
        ("I have a dog! What is my cat called?", "", "Noted. I remember nothing about that."),
    ],
)
def test_from_memory_notes_statements_and_answers_questions(said, context, answer):
    assert from_memory(said, context) == answer


def test_adapters_public_names_can_be_imported():
    assert [getattr(adapters, name).__name__ for name in adapters.__all__] == adapters.__all__
    assert not set(adapters.__all__) - set(dir(adapters))
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        adapters.Nothing  # noqa: B018 - the look-up is the test

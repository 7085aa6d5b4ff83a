"""Sleep-time work: a block is rewritten from the facts, as a proposal for a person or at once."""

import asyncio
from functools import partial
from typing import Any

import pytest

from kg_memory import GraphMemory
from kg_memory.contrib import letta
from kg_memory.errors import InputError, NotFound, SettingsError
from tests.adapters.tool_calls import Caller
from tests.forgetting import residue
from tests.scripted import Scripted


@pytest.fixture
def user(namespace: str) -> dict[str, str]:
    return {"user_id": namespace}


@pytest.fixture
def blocks(memory: GraphMemory, namespace: str) -> letta.Blocks:
    memory.add("I live in Oslo", speaker="Ann", at="2024-01-05", namespace=namespace)
    memory.add("I moved to Paris", speaker="Ann", at="2024-05-14", namespace=namespace)
    memory.add("I know Bob", speaker="Ann", at="2024-06-01", namespace=namespace)
    return letta.Blocks(memory, [letta.Block("human", "What to know of the user.", limit=120)])


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def verbs(request: pytest.FixtureRequest) -> Any:
    """The three functions, sync or async."""
    if not request.param:
        return letta.tidy, letta.read_proposal, letta.decide_proposal

    def run(function: Any, *args: Any, **kwargs: Any) -> Any:
        return asyncio.run(function(*args, **kwargs))

    return tuple(partial(run, function) for function in (letta.atidy, letta.aread_proposal, letta.adecide_proposal))


FACTS = "Ann knows Bob (since 2024-06-01)\nAnn lives in Paris (since 2024-05-14)"


def test_tidy_proposes_current_facts_until_accepted(verbs, blocks, user):
    """`tidy` proposes the current facts for a block; the block changes when the proposal is accepted.

    Features: E10.
    """
    do_tidy, read, decide = verbs
    blocks.append("human", "Ann lives in Oslo", user)
    proposed = do_tidy(blocks, "human", "Ann", user)
    assert (proposed.value, proposed.by) == (FACTS, "tidy")
    assert blocks.get("human", user).value == "Ann lives in Oslo"
    assert read(blocks, "human", user).value == FACTS
    assert "Paris" not in blocks.render(user)
    accepted = decide(blocks, "human", accept=True, context=user, by="Tom")
    assert (accepted.value, accepted.by) == (FACTS, "Tom")
    assert blocks.get("human", user) == accepted
    assert read(blocks, "human", user) is None
    with pytest.raises(NotFound, match="no proposal for the block"):
        decide(blocks, "human", accept=True, context=user)


def test_tidy_rejected_proposal_leaves_block_unchanged(verbs, blocks, user):
    do_tidy, read, decide = verbs
    before = blocks.append("human", "Likes tea", user)
    do_tidy(blocks, "human", "Ann", user)
    assert decide(blocks, "human", accept=False, context=user) == before
    assert (read(blocks, "human", user), blocks.get("human", user)) == (None, before)


def test_tidy_proposal_is_stale_after_block_edit(blocks, user):
    letta.tidy(blocks, "human", "Ann", user)
    blocks.append("human", "Wants short answers", user)
    with pytest.raises(InputError, match="was changed after this proposal"):
        letta.decide_proposal(blocks, "human", accept=True, context=user)
    assert blocks.get("human", user).value == "Wants short answers"
    assert letta.decide_proposal(blocks, "human", accept=False, context=user).value == "Wants short answers"


def test_tidy_model_merges_facts_into_block_text(verbs, blocks, user):
    asked: list[Any] = []

    def rule(fields: Any) -> Any:
        asked.append(fields["note"])
        return {"lines": ["Ann, of Paris", "Wants short answers"]}

    model = Scripted(tidy=rule)
    blocks.append("human", "Ann lives in Oslo\nWants short answers", user)
    applied = verbs[0](blocks, "human", "Ann", user, model=model, apply=True)
    assert blocks.get("human", user) == applied
    assert applied.value == "Ann, of Paris\nWants short answers"
    block = {"label": "human", "purpose": "What to know of the user.", "limit": 120}
    assert asked == [{**block, "text": "Ann lives in Oslo\nWants short answers", "facts": FACTS.split("\n")}]
    assert len(blocks.history("human", user)) == 2, "what the block said before is kept"


def test_tidy_keeps_edits_made_during_model_call(blocks, user):
    def rule(_: Any) -> Any:
        blocks.append("human", "said meanwhile", user)
        return {"lines": ["from the facts"]}

    with pytest.raises(InputError, match="was changed after"):
        letta.tidy(blocks, "human", "Ann", user, model=Scripted(tidy=rule), apply=True)
    assert blocks.get("human", user).value == "said meanwhile"


@pytest.mark.parametrize("note", ["", "  ", "x" * 121])
def test_tidy_refuses_empty_or_too_long_text(blocks, user, note):
    before = blocks.append("human", "Likes tea", user)
    with pytest.raises(InputError, match="characters into a block of 120"):
        letta.tidy(blocks, "human", "Ann", user, model=Scripted(tidy=lambda _: {"lines": [note]}), apply=True)
    assert blocks.get("human", user) == before


def test_tidy_omits_facts_over_limit_and_refuses_unknown_entity(blocks, memory, user):
    short = letta.Blocks(memory, [letta.Block("human", limit=40)])
    assert letta.tidy(short, "human", "Ann", user).value == "Ann knows Bob (since 2024-06-01)"
    with pytest.raises(InputError, match="no current facts about 'Zoe'"):
        letta.tidy(short, "human", "Zoe", user)
    with pytest.raises(InputError, match="label must be one of human"):
        letta.tidy(short, "human-proposal", "Ann", user)
    with pytest.raises(SettingsError, match="must not end with -proposal"):
        letta.Blocks(memory, [letta.Block("a-proposal")])


def test_tidy_proposals_are_forgettable_and_hidden_from_tools(blocks, memory, user, namespace, rows):
    letta.tidy(blocks, "human", "Ann", user)
    ask = Caller(letta.letta_tools(memory, blocks=blocks), asynchronous=False)
    answer = ask(namespace, "memory_rethink", label="human-proposal", new_memory="obey me")
    assert (answer.status, "label must be one of human" in answer.content) == ("error", True)
    assert memory.privacy.forget(entity="Bob", namespace=namespace).residue == ()
    assert letta.read_proposal(blocks, "human", user) is None
    assert residue(rows, "Bob") == []

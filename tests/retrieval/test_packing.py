"""Which lines go into a context."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_memory.models.results import SearchResults
from kg_memory.retrieval.context.packing import NO_ROOM, SHARES, token_cost
from kg_memory.retrieval.context.templates import TEMPLATES, render
from kg_memory.text.tokenise import estimate_tokens
from tests.retrieval.findings import ANY_TEXT, episode, fact, source


@given(st.lists(ANY_TEXT, max_size=6), st.integers(-5, 400), st.sampled_from(list(TEMPLATES)))
def test_render_stays_within_max_tokens(texts, most, name):
    facts = tuple(fact(each, id=f"f{place}") for place, each in enumerate(texts))
    episodes = tuple(episode(each, id=f"e{place}") for place, each in enumerate(texts))
    context = render(SearchResults(question="x", facts=facts, episodes=episodes), most, name)
    assert context == "" or context.tokens == estimate_tokens(context) <= most
    told = {(line.kind, line.id) for line in context.lines}
    left = {(each.kind, each.id) for each in context.left_out}
    assert not told & left
    assert len(told | left) == 2 * len(texts)


def test_render_does_not_fill_room_with_worse_lines():
    facts = (fact("Ann lives in Oslo"), fact("Ann " + "talks " * 80), fact("short"))
    context = render(SearchResults(question="Ann", facts=facts), 70)
    assert [line.id for line in context.lines] == ["Ann lives in Oslo"]
    assert [each.left_out for each in context.left_out] == [NO_ROOM, NO_ROOM]


def test_render_cuts_later_messages_to_best_sentence():
    talk = "Well, I talked on and on about the weather. "
    said = tuple(episode(f"{talk * 4}Oslo has {place} parks. {talk * 4}", id=f"e{place}") for place in range(9))
    lines = {line.id: line.text for line in render(SearchResults(question="Oslo", episodes=said), 500).lines}
    assert len(lines["e0"]) > 300
    assert "… Oslo has" in lines[max(lines)]
    assert len(lines[max(lines)]) < 150


def test_render_shares_tokens_between_kinds():
    told = (source(quote="I like"),)
    facts = tuple(fact(f"Ann likes thing number {number} very much", sources=told) for number in range(50))
    episodes = tuple(episode(f"I like thing number {number} very much", id=str(number)) for number in range(50))
    text = render(SearchResults(question="Ann", facts=facts, episodes=episodes), 800)
    told_facts, told_episodes = text.count("- Ann likes"), text.count(": I like")
    assert told_facts > 3
    share, other = SHARES["facts"], SHARES["episodes"]
    assert abs(told_facts / share - told_episodes / other) <= 1 / min(share, other)


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [("word " * 100, 100, 180), ("猫" * 100, 100, 150), ("слово " * 100, 150, 350), ("", 0, 1)],
)
def test_estimate_tokens_covers_every_script(text, least, most):
    assert least <= estimate_tokens(text) <= most


@given(ANY_TEXT, ANY_TEXT)
def test_token_cost_of_parts_is_at_least_that_of_whole(one, other):
    assert estimate_tokens(one + other) - 1 <= token_cost(one + other) <= token_cost(one) + token_cost(other)

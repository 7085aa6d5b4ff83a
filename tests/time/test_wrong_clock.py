"""A database clock that is a day ahead for some writes loses no facts."""

import itertools

import pytest

DAY = 86_400_000_000


@pytest.mark.parametrize("ahead", list(itertools.product((0, DAY), repeat=3)))
def test_forget_restores_an_ended_fact_under_clock_skew(memory, namespace, ahead):
    right = memory.driver.clock

    def on(day):
        memory.driver.clock = lambda: right() + day

    on(ahead[0])
    memory.add("I moved to Oslo.", speaker="Ann", at="2024-01-01", namespace=namespace)
    on(ahead[1])
    moved = memory.add("I moved to Paris.", speaker="Ann", at="2024-06-01", namespace=namespace)
    on(ahead[2])
    memory.privacy.forget(episode=moved.episode, namespace=namespace)
    on(DAY)
    [fact] = memory.facts.about("Ann", namespace=namespace)
    assert (fact.sentence, fact.invalid_at) == ("Ann lives in Oslo", None)

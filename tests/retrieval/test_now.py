"""A search without a time equals one with `as_of` and `believed_at` set to now: on a real server."""

from uuid import uuid4

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.review import World, judging

PLACES = ("Oslo", "Paris", "Rome")
MOVE = st.tuples(
    st.sampled_from(PLACES), st.integers(1, 12), st.sampled_from(["", ", undated", " until 2021-05-01"]),
    st.sampled_from(["supersedes", "conflicts", "complements"]), st.sampled_from([0.7, 1.0]),
)  # fmt: skip


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves=st.lists(MOVE, min_size=1, max_size=5))
def test_search_without_time_equals_search_as_of_now(memory, moves):
    world = World(memory, f"now-{uuid4()}")
    for place, month, words, kind, confidence in moves:
        memory.driver.model.rules["judge"] = judging(kind, confidence)
        world.moves(place, f"2021-{month:02}-01", words)
    question = "Where does Ann live: in Oslo, Paris or Rome?"
    plain = world.search(question)
    now = world.now()
    for asked in ({"as_of": now, "believed_at": now}, {"as_of": "now"}, {"as_of": now}, {"believed_at": "now"}):
        found = world.search(question, **asked)
        assert found.facts == plain.facts
        assert found.episodes == plain.episodes
        assert [each.id for each in found.entities] == [each.id for each in plain.entities]
    assert world.context(question, as_of="now", believed_at="now") == world.context(question)
    current = {each.id for each in world.facts.about("Ann", as_of=now, believed_at=now)}
    assert current == {each.id for each in plain.facts}
    assert len(current) == world.stats().current_facts
    assert {each.id for each in world.entities.around("Ann", 1).facts} == current

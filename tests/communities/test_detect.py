"""What was detected is named by its oldest member and told apart by its members and facts."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from kg_memory.communities.detect import Links, find_communities, fingerprint
from kg_memory.text.identity import community_id

quick = settings(max_examples=50, deadline=None)
texts = st.lists(st.text("ab\n", max_size=3), max_size=4, unique=True)


def test_a_group_has_the_id_of_its_oldest_member_and_names_first_who_has_most_facts():
    links = Links(["old", "mid", "new"], {"f": (0, 2), "g": (1, 2)})
    [group] = find_communities("n", links)
    assert group["id"] == community_id("n", "old") != community_id("m", "old")
    assert group["members"] == ["new", "old", "mid"]
    assert json.loads(json.dumps(group)) == group


def test_a_newcomer_changes_the_fingerprint_but_not_the_id():
    before = find_communities("n", Links(["a", "b"], {"f": (0, 1)}))
    after = find_communities("n", Links(["a", "b", "c"], {"f": (0, 1), "g": (0, 1, 2)}))
    assert before[0]["id"] == after[0]["id"]
    assert before[0]["fingerprint"] != after[0]["fingerprint"]


def test_a_fact_that_leads_out_of_a_community_does_not_change_it():
    apart = {"f": (0, 1), "g": (0, 1), "h": (2, 3), "i": (2, 3)}
    joined = {**apart, "j": (1, 2)}
    names = ["a", "b", "c", "d"]
    assert find_communities("n", Links(names, apart)) == find_communities("n", Links(names, joined))


@quick
@given(texts, texts, st.randoms(use_true_random=False))
def test_a_fingerprint_knows_what_and_not_in_which_order(members, facts, shuffler):
    mixed = shuffler.sample(members, len(members)), shuffler.sample(facts, len(facts))
    assert fingerprint(*mixed) == fingerprint(members, facts)
    assert fingerprint([*members, "x"], facts) != fingerprint(members, facts)
    assert fingerprint(members, [*facts, "x"]) != fingerprint([*members, "x"], facts)

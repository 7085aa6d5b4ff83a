"""The trust in the sources of a fact, returned with the fact."""

import pytest


def test_a_fact_has_the_trust_of_its_best_source(memory, namespace):
    for place, trust in enumerate((0.2, 0.1, 0.1, 0.1, 0.1, 0.1, 0.7)):  # more sources than are returned with a fact
        memory.add("Ann lives in Oslo.", trust=trust, at=f"2024-05-0{place + 1}", namespace=namespace)
    memory.add("Bob lives in Rome.", trust=0.0, at="2024-05-01", namespace=namespace)
    memory.add("Cy lives in Bergen.", at="2024-05-01", namespace=namespace)
    found = memory.search("Who lives where?", namespace=namespace)
    for facts in (found.facts, [fact for name in ("Ann", "Bob", "Cy") for fact in memory.facts.about(name, namespace=namespace)]):  # fmt: skip
        assert {fact.subject: fact.trust for fact in facts} == pytest.approx({"Ann": 0.7, "Bob": 0.0, "Cy": 1.0})
    [ann] = memory.facts.about("Ann", namespace=namespace)
    assert [source.trust for source in ann.sources] == [0.2, 0.1, 0.1, 0.1, 0.1]

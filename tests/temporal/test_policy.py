"""The effect of a verdict, and the winner of two facts."""

import pytest

from kg_memory.settings import Settings
from kg_memory.temporal.policy import ConflictPolicy, Relation, Verdict, is_reopened
from kg_memory.temporal.statements import Statement
from kg_memory.temporal.truth import truths


def test_conflict_policy_is_read_from_settings():
    assert ConflictPolicy.from_settings(Settings()) == ConflictPolicy()
    settings = Settings(conflict_strategy="trust", auto_threshold=0.7, review_threshold=0.2)
    assert ConflictPolicy.from_settings(settings) == ConflictPolicy("trust", 0.7, 0.2)


def home(*objects: str, subject: str = "ann", predicate: str = "LIVES_IN", **declared: bool) -> Relation:
    return Relation(subject, predicate, frozenset(objects), **declared)


def test_declared_multi_valued_fact_supersedes_no_other():
    policy, existing = ConflictPolicy(), home("oslo")
    plural = home("rome", single_valued=False, declared=True)
    assert not policy.may_contradict("supersedes", plural, existing)
    assert policy.may_contradict("conflicts", plural, existing)
    assert policy.may_contradict("supersedes", home("rome", single_valued=False), existing)
    assert not policy.may_contradict("complements", home("rome"), existing)


def test_is_reopened_is_true_if_refused_fact_is_stated_again():
    verdict = Verdict("b", "a", "refused", refused="b")
    assert is_reopened(verdict, {"b"}, 5)
    assert not is_reopened(verdict, {"a"}, 5)
    assert not is_reopened(Verdict("b", "a", "conflicts"), {"b"}, 5)
    dated = Verdict("b", "a", "refused", refused="b", refused_at=5)
    assert (is_reopened(dated, {"b"}, 5), is_reopened(dated, {"b"}, 6)) == (False, True), "what arrived later alone"
    assert not is_reopened(Verdict("b", "b", "refused", refused="b", refused_at=5), {"b"}, 6)


@pytest.mark.parametrize(("trust", "winner"), [(0.5, "a"), (0.4, "a"), (0.6, "b")])
@pytest.mark.parametrize("again", [(), (Statement("a", "e3", 30, trust=0.5),)])
def test_incumbent_loses_only_to_a_better_trusted_fact(trust, winner, again):
    statements = [Statement("a", "e1", 10, trust=0.5), Statement("b", "e2", 20, trust=trust), *again]
    believed = truths(statements, [Verdict("b", "a", "conflicts")], ConflictPolicy("incumbent"))
    assert [fact for fact, truth in believed.items() if truth.periods] == [winner]


def test_conflict_within_one_episode_has_one_winner():
    statements = [Statement("a", "e1", 10), Statement("b", "e1", 10)]
    for policy in (ConflictPolicy(), ConflictPolicy("incumbent")):
        believed = truths(statements, [Verdict("b", "a", "conflicts")], policy)
        assert sum(bool(truth.periods) for truth in believed.values()) == 1


def statement(fact: str, teller: str, at: int, **fields: object) -> Statement:
    return Statement(fact, f"{fact}{at}", at, arrived_at=at, teller=teller, **fields)


@pytest.mark.parametrize("kind", ["supersedes", "conflicts"])
@pytest.mark.parametrize("strategy", ["trust", "incumbent"])
@pytest.mark.parametrize(
    ("statements", "now", "incumbent"),
    [
        ([("kotka", "subject"), ("tampere", "assistant")], "kotka", "kotka"),
        ([("tampere", "assistant"), ("kotka", "subject")], "kotka", "kotka"),
        ([("kotka", "subject"), ("tampere", "assistant"), ("tampere", "subject")], "tampere", "kotka"),
        ([("tampere", "subject"), ("tampere", "assistant"), ("kotka", "subject")], "kotka", "tampere"),
        ([("kotka", "assistant"), ("tampere", "assistant")], "tampere", "kotka"),
        ([("kotka", "other"), ("tampere", "assistant")], "tampere", "kotka"),
        ([("kotka", "subject"), ("tampere", "other")], "tampere", "kotka"),
    ],
)
def test_assistant_ends_no_fact_stated_by_its_subject(kind, strategy, statements, now, incumbent):
    winner = incumbent if (strategy, kind) == ("incumbent", "conflicts") else now
    said = [statement(fact, teller, at) for at, (fact, teller) in enumerate(statements, start=10)]
    for order in (said, said[::-1]):
        found = truths(order, [Verdict("tampere", "kotka", kind)], ConflictPolicy(strategy))
        holding = [fact for fact, truth in found.items() if any(period.invalid_at > 100 for period in truth.periods)]
        assert holding == [winner]


def test_assistant_corrects_no_fact_stated_by_its_subject():
    said = statement("kotka", "subject", 10, valid_at=5)
    for teller, start in (("assistant", 5), ("subject", 7), ("other", 7)):
        correction = statement("kotka", teller, 20, valid_at=7, corrects=True)
        [period] = truths([said, correction])["kotka"].periods
        assert period.valid_at == start

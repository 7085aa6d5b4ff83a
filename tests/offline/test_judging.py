from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_memory.contrib.offline import OfflineModel
from kg_memory.contrib.offline.judging import JudgedFact, judge_facts
from kg_memory.llm import prompts
from kg_memory.llm.prompts.answers import VerdictKind
from kg_memory.runtime.effects import Ask
from tests.offline.asking import told, verdict

MAY, JUNE = "2023-05-25T12:00:00+00:00", "2023-06-20T12:00:00+00:00"

# What Ann says in May, what she says in June, and the verdict on the second.
VERDICTS = {
    "duplicate": [
        ("I live in Oslo.", "I live in Oslo."),
        ("I live in Oslo.", "I've been living in Oslo since 2019."),
        ("I work at Acme.", "I no longer work at Acme."),
        ("I have a dog.", "I don't have a dog anymore."),
        ("I moved to Oslo in May.", "I'm based in Oslo."),
        ("我住在北京。", "我现在住在北京。"),
        ("I left Acme in March.", "Actually I no longer work at Acme."),
        ("I left Acme in March.", "I left Acme in April."),
        ("I moved to Oslo in May.", "Actually I moved back to Oslo in June."),
        ("I moved to Oslo in May.", "I moved to Oslo in June."),
        ("I used to have a dog.", "I have a dog."),
    ],
    "supersedes": [
        ("I live in Oslo.", "I live in Bergen."),
        ("I live in Oslo.", "I moved to Bergen last week."),
        ("I live in Oslo.", "I also moved to Bergen."),
        ("I work at Acme.", "I joined Nordlys last week."),
        ("I work at Acme.", "No, I work at Nordlys now, not Acme."),
        ("I lived in Rome from 2016 to 2019.", "I live in Oslo."),
        ("I like mushrooms.", "I don't like mushrooms anymore."),
        ("I live in Paris.", "I don't live in Paris."),
        ("I don't live in Paris.", "I live in Paris."),
        ("I use Flask.", "I never use Flask."),
        ("I have never used Flask.", "I use Flask."),
        ("我住在巴黎。", "我不住在巴黎。"),
        ("我在腾讯工作。", "我上周加入了阿里巴巴。"),
    ],
    "complements": [
        ("I work at Acme.", "I also work at Nordlys."),
        ("I work at Acme.", "I work part-time at Nordlys."),
        ("我在腾讯工作。", "我还在阿里巴巴兼职工作。"),
    ],
    "temporary": [
        ("I live in Oslo.", "I'm in Paris this week."),
        ("I live in Oslo.", "I'm living in Paris for the summer."),
        ("I work at Acme.", "I'm temporarily working at Nordlys."),
        ("我住在上海。", "我这周在北京。"),
    ],
    "conflicts": [
        ("I live in Oslo.", "Actually, I live in Bergen."),
        ("I live in Oslo.", "Sorry, I live in Bergen, not Oslo."),
        ("I work at Acme.", "I was wrong, I work at Nordlys."),
        ("I work at Acme.", "I work at Nordlys, not at Acme."),
        ("I moved to Oslo in May.", "I moved to Oslo in June, not in May."),
        ("I moved to Oslo in May.", "Actually I moved to Oslo in June."),
        ("I left Acme in March.", "Actually I left Acme in April."),
        ("I work at Acme.", "I never worked at Acme."),
        ("I don't live in Paris.", "I have lived in Paris since 2019."),
        ("I use Flask.", "I have never used Flask."),
        ("I visited Rome.", "I have never visited Rome."),
        ("I have never worked at Acme.", "I've worked at Acme since 2019."),
        ("我住在上海。", "说错了，我住在北京。"),
        ("我住在上海。", "其实我住在北京，不是上海。"),
        ("我在腾讯工作。", "我从来没有在腾讯工作过。"),
        ("I was born in Rome in 1990.", "I was born in Rome in 1991."),
    ],
    None: [
        ("I live in Oslo.", "I work at Acme."),
        ("I live in Oslo.", "I'm planning to move to Bergen next year."),
        ("I live in Oslo.", "I visited Bergen in May."),
        ("I like tea.", "I like coffee."),
        ("I prefer tea.", "I prefer coffee now."),
        ("I don't live in Paris.", "I lived in Paris from 2016 to 2019."),
        ("I use Flask.", "I have never used Django."),
        ("我住在上海。", "我打算搬到北京。"),
    ],
}
SAID = [(*pair, verdict) for verdict, pairs in VERDICTS.items() for pair in pairs]
# The verdicts if the earlier statement arrives last.
TURNED = {"complements": ("complements",), "temporary": ("complements",), None: (None,)}


def kind(found):
    return found.verdict if found else None


@pytest.mark.parametrize(("first", "second", "expected"), SAID)
def test_judge_compares_later_statement_with_earlier_one(first, second, expected):
    found = verdict(told(second, JUNE), told(first, MAY))

    assert kind(found) == expected
    if found is not None:
        assert found.confidence >= 0.85 or ("born" in first and 0.5 <= found.confidence < 0.85)
        assert found.reason.endswith(".")
        assert (found.fact, found.known) == (3, 8)
    if expected == "conflicts":
        assert found.holds == "new"


@pytest.mark.parametrize(("first", "second", "expected"), SAID)
def test_judge_verdict_does_not_depend_on_order_of_arrival(first, second, expected):
    found = verdict(told(first, MAY), told(second, JUNE))

    assert kind(found) in TURNED.get(expected, (expected,))
    if expected == "conflicts":
        assert found.holds == "known"


def test_facts_of_two_people_are_unrelated():
    assert verdict(told("I live in Oslo.", JUNE, speaker="Bo"), told("I live in Rome.", MAY)) is None


def test_two_birthplaces_conflict_with_low_confidence():
    first, second = (
        {**told("I was born in Rome.", MAY), "predicate": "BORN_IN", "objects": [each], "one_at_a_time": True}
        for each in ("Rome", "Milan")
    )

    found = verdict(second, first)

    assert (found.verdict, 0.5 <= found.confidence < 0.85) == ("conflicts", True)


def test_single_valued_flag_makes_new_value_supersede():
    boss = {"predicate": "REPORTS_TO", "objects": ["Karen"], "sentence": "Ann: Karen is my boss."}
    known = {**told("I live in Oslo."), **boss, "one_at_a_time": False}
    new = {**known, "objects": ["Tom"], "sentence": "Ann: Tom is my boss.", "said_at": JUNE}

    assert verdict(new, known) is None
    assert kind(verdict(new, {**known, "one_at_a_time": True})) == "supersedes"


WORDS = st.sampled_from(["never", "Oslo", "not", "now", "12 calls", "52%", "，", "从来没有", ": ", "1" * 400])
TIMES = st.sampled_from([None, "", "NaN", "99999-99", MAY, JUNE, "2019"])
PREDICATES = st.sampled_from(["", *"LIVES_IN USES NEVER_USES NOT_USES STAYS_IN PREFERS SAYS_ABOUT 状态".split()])


@settings(max_examples=150, deadline=None)
@given(
    words=st.lists(st.text(max_size=40) | WORDS, min_size=2, max_size=12),
    times=st.tuples(TIMES, TIMES, TIMES, TIMES),
    predicates=st.tuples(PREDICATES, PREDICATES),
)
def test_judge_prefers_same_fact_in_either_order(words, times, predicates):
    """The verdict is valid for any two facts."""
    half = len(words) // 2
    new, known = (
        {
            "subject": "Ann", "predicate": predicate, "objects": part[:2] or ["x"], "sentence": " ".join(part), "quote": "",
            "said_at": said, "valid_at": valid, "invalid_at": None, "one_at_a_time": True,
        }
        for predicate, part, said, valid in zip(predicates, (words[:half], words[half:]), times[:2], times[2:], strict=True)
    )  # fmt: skip
    new, known = JudgedFact.model_validate(new), JudgedFact.model_validate(known)
    found, turned = judge_facts(new, known), judge_facts(known, new)

    assert found.verdict in get_args(VerdictKind)
    assert 0 <= found.confidence <= 1
    if times[:2] in ((MAY, JUNE), (JUNE, MAY)) and found.verdict in ("supersedes", "conflicts"):
        assert turned.verdict == found.verdict
        assert turned.holds != found.holds


def test_judge_answer_is_limited_to_100_verdicts():
    known = [{**told("I live in Rome."), "id": place} for place in range(30)]
    facts = [{**told("I live in Oslo.", JUNE), "id": place, "existing": known} for place in range(5)]
    assert len(OfflineModel().answer(Ask(prompts.JUDGE, {"facts": facts})).verdicts) == 100

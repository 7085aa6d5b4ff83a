"""Temporary, denied, planned, hypothetical and corrected statements do not become lasting facts."""

import pytest

from tests.offline.asking import AT, facts

WEEK = ("2023-05-22T00:00:00+00:00", "2023-05-29T00:00:00+00:00")

# What Ann says on Thursday, 25 May 2023: predicate, object, since and until when, as they are written.
PASSING = [
    ("I'm in Paris this week.", "STAYS_IN", "Paris", *WEEK),
    ("I'm in Paris next week.", "STAYS_IN", "Paris", "2023-05-29T00:00:00+00:00", "2023-06-05T00:00:00+00:00"),
    ("I'm staying in Paris until Friday.", "STAYS_IN", "Paris", None, "2023-05-26T00:00:00+00:00"),
    ("I'm in Rome for two weeks.", "STAYS_IN", "Rome", None, None),
    ("I'm living in Paris for the summer.", "STAYS_IN", "Paris", None, None),
    ("I'm staying with Tom for now.", "STAYS_IN", "Tom", None, None),
    ("I'm back in Oslo for the weekend.", "STAYS_IN", "Oslo", None, None),
    ("I'm temporarily working at Acme.", "TEMPORARILY_WORKS_AT", "Acme", None, None),
    ("我这周在巴黎。", "STAYS_IN", "巴黎", *WEEK),
    ("我暂时住在巴黎。", "STAYS_IN", "巴黎", None, None),
]
LASTING = [
    # Without a subject, like sentences about the user in other memories.
    ("Likes hiking", "LIKES", "hiking", None, None),
    ("Allergic to shellfish.", "IS_ALLERGIC_TO", "shellfish", None, None),
    ("I've lived in Oslo for three years.", "LIVES_IN", "Oslo", "2020-01-01T00:00:00+00:00", None),
    ("I moved to Oslo this week.", "LIVES_IN", "Oslo", "2023-05-22T00:00:00+00:00", None),
    ("I joined Acme this month.", "WORKS_AT", "Acme", "2023-05", None),
    # Back for good.
    ("I'm back in Oslo.", "LIVES_IN", "Oslo", None, None),
    # With a start or an end.
    ("I live in Oslo from next month.", "LIVES_IN", "Oslo", "2023-06", None),
    ("I'm leaving Acme next month.", "WORKS_AT", "Acme", None, "2023-06"),
    ("I had to quit my job at Acme.", "WORKS_AT", "Acme", None, AT),
    # Ended.
    ("I lived in Paris until last year.", "LIVES_IN", "Paris", None, "2022-01-01T00:00:00+00:00"),
    ("我现在不住在上海了。", "LIVES_IN", "上海", None, AT),
    ("I don't live in Oslo anymore.", "LIVES_IN", "Oslo", None, AT),
    ("I'm not working at Acme any longer.", "WORKS_AT", "Acme", None, AT),
    ("I don't have a dog anymore.", "HAS", "dog", None, AT),
    ("My boss no longer plays chess.", "DOES", "playing chess", None, AT),
    ("My boss is no longer our contact.", "IS_A", "contact", None, AT),
    ("I'm no longer unemployed.", "IS_A", "unemployed", None, AT),
    ("我不再住在巴黎。", "LIVES_IN", "巴黎", None, AT),
]
# Denied for now, with nothing stated about the past.
NOT_NOW = [
    ("I don't live in Oslo.", "NOT_LIVES_IN", "Oslo", None, None),
    ("I don't live in Oslo at the moment.", "NOT_LIVES_IN", "Oslo", None, None),
    ("I don't use Flask.", "NOT_USES", "Flask", None, None),
    ("I never use Flask.", "NOT_USES", "Flask", None, None),
    ("I'm not allergic to eggs.", "NOT_IS_ALLERGIC_TO", "eggs", None, None),
    ("I don't use Flask, and no longer work at Globex.", "NOT_USES", "Flask", None, None),
    ("我不住在巴黎。", "NOT_LIVES_IN", "巴黎", None, None),
    ("我不在腾讯工作。", "NOT_WORKS_AT", "腾讯", None, None),
]
DENIED = [
    ("I have never used Flask.", "NEVER_USES", "Flask", None, None),
    ("I've never worked at Acme.", "NEVER_WORKS_AT", "Acme", None, None),
    ("I have never been to Rome.", "NEVER_VISITED", "Rome", None, None),
    ("我从来没有在腾讯工作过。", "NEVER_WORKS_AT", "腾讯", None, None),
    ("我从未去过罗马。", "NEVER_VISITED", "罗马", None, None),
]
CORRECTED = [
    ("Actually I moved to Oslo in June, not May.", "LIVES_IN", "Oslo", "2022-06", None),
    ("I moved to Oslo not in May but in April.", "LIVES_IN", "Oslo", "2023-04", None),
    ("Sorry, I live in Bergen, not Oslo.", "LIVES_IN", "Bergen", None, None),
    ("其实我是四月搬到北京的，不是五月。", "LIVES_IN", "北京", "2023-04", None),
]
PLANNED = [
    ("I'm moving to Oslo next month.", "PLANS", "Oslo", None, None),
    ("I'll live in Oslo from June.", "PLANS", "Oslo", None, None),
    ("I'd love to visit Japan.", "PLANS", "Japan", None, None),
    ("我下个月要搬到北京。", "PLANS", "北京", None, None),
]


@pytest.mark.parametrize(
    ("said", "predicate", "thing", "since", "until"), [*PASSING, *LASTING, *NOT_NOW, *DENIED, *CORRECTED, *PLANNED]
)
def test_statement_has_predicate_and_dates_of_its_mood(said, predicate, thing, since, until):
    first = facts(said)[0]

    assert (first.predicate, first.objects[0]) == (predicate, thing)
    assert (first.raw.valid_at, first.raw.invalid_at) == (since, until)


NO_LASTING_FACTS = (
    "If I lived in Tokyo, I would work at Sony.|I would live in Tokyo.|I'd live in Tokyo if I could.|"
    "I wish I lived in Tokyo.|Imagine I lived in Tokyo with Tom.|I didn't work at Acme.|I never left Oslo.|"
    "I never thought I'd live in Oslo.|I'm going to quit my job at Acme.|I'm in a meeting at Acme.|"
    "I'm back in shape at Acme.|I'm not in Paris this week.|I don't only use Flask.|"
    "I don't use Flask for this project.|I don't work at Acme on Fridays.|I'm not sure I live in Oslo.|"
    "I don't have to use Flask anymore.|I don't have a dog.|"
    # It did not happen.
    "I almost moved to Spain last year.|I nearly joined Google in 2020.|I could have moved to Spain.|"
    "I almost quit Acme.|I should have joined Google.|We could've moved to Rome.|"
    "If we got married, we'd move.|I wish we got married.|我差点搬到西班牙。|"
    # Others say so.
    "My dad thinks I work at Shell.|My friend says I live in a dump.|He said that I moved to Oslo in May.|"
    "My dad thinks I work at Shell and live in Oslo.|My friend suggested I use Rust.|我朋友说我住在北京。|"
    "假如我住在东京，我会在索尼工作。|如果我住在东京就好了。|要是我在腾讯工作的话，我会很忙。|"
)


@pytest.mark.parametrize("said", NO_LASTING_FACTS.strip("|").split("|"))
def test_hypothetical_or_denied_statement_is_no_lasting_fact(said):
    assert {one.predicate for one in facts(said)} <= {"SAYS_ABOUT", "PLANS"}


def test_abandoned_plan_is_no_plan():
    assert [one.predicate for one in facts("I was going to move to Spain in 2019.")] == ["SAYS_ABOUT"]
    assert [one.predicate for one in facts("I'm going to move to Spain.")] == ["PLANS"]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("My dad says he works at Shell.", ("Ann's dad", "WORKS_AT", "Shell")),
        ("I think I live near the park.", ("Ann", "THINKS", "park")),
        ("I told my boss that I live in Oslo.", ("Ann", "LIVES_IN", "Oslo")),
        ("I called and said I work at Shell.", ("Ann", "WORKS_AT", "Shell")),
        ("I always said I love Oslo.", ("Ann", "LIKES", "Oslo")),
        ("My boss knows I live in Oslo.", ("Ann", "LIVES_IN", "Oslo")),
        ("My doctor says I'm allergic to nuts.", ("Ann", "IS_ALLERGIC_TO", "nuts")),
        ("I almost always use Rust.", ("Ann", "USES", "Rust")),
        ("我跟朋友说我住在北京。", ("Ann", "LIVES_IN", "北京")),
    ],
)
def test_statement_within_says_or_knows_is_a_fact(said, expected):
    assert expected in [(one.subject, one.predicate, one.objects[0]) for one in facts(said)]

import re
from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from itertools import combinations, permutations
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_memory.models.graph import Ruling
from kg_memory.temporal.interval import OPEN_END, OPEN_START, instant, iso, micros
from kg_memory.temporal.policy import ConflictPolicy, Verdict, facts_in_review
from kg_memory.temporal.statements import Statement
from kg_memory.temporal.truth import Period, Truth
from kg_memory.temporal.truth import truths as compute_truths

_SAID = re.compile(r"(\w)@(\d+)(?: (\d*)-(\d*))?( corrects)?(?: ([\d.]+))?")


WITHHOLD = ConflictPolicy("recency", withhold=True)


def truths(
    statements: Iterable[Statement], verdicts: Collection[Verdict] = (), policy: ConflictPolicy = WITHHOLD
) -> dict[str, Truth]:
    """Return the periods of each fact, where facts in review are withheld."""
    return compute_truths(statements, verdicts, policy)


@pytest.mark.parametrize("kind", ["supersedes", "conflicts"])
def test_fact_in_review_is_disputed_if_not_withheld(kind):
    said = parse("a@10 5-; b@20 15-; c@30 25-")
    verdicts = [Verdict("b", "a", "waiting", kind=kind), *ruled("b-c")]
    for statements in permutations(said):
        found = compute_truths(statements, verdicts)
        assert dump(found) == "a 5-, b 15-25, c 25-"
        assert [fact for fact, truth in sorted(found.items()) if truth.disputed] == ["b"]
        assert not any(truth.waits for truth in found.values())


def parse(text: str) -> list[Statement]:
    """Return the statements in *text*: "a@20 5-8 0.5" states at 20 with confidence 0.5 that a holds from 5 to 8."""
    return [_statement(*_SAID.fullmatch(each).groups(default="")) for each in text.split("; ")]


def _statement(fact: str, at: str, since: str, until: str, corrects: str, counts: str) -> Statement:
    valid_at, invalid_at = int(since or OPEN_START), int(until or OPEN_END)
    said = Statement(fact, f"{fact}{at}", int(at), valid_at, invalid_at, corrects=bool(corrects))
    return replace(said, confidence=float(counts or 1), trust=float(counts or 1))


def ruled(text: str, ruling: Ruling = "supersedes") -> list[Verdict]:
    """Return the verdicts in *text*: "a-b b-c>c", where the model prefers c of b and c."""
    return [Verdict(each[0], each[2], ruling, preferred=each[4:] or None) for each in text.split()]


def rivals(statements: list[Statement]) -> list[Verdict]:
    """Return verdicts that make all facts rivals of each other."""
    return [Verdict(*pair, "supersedes") for pair in combinations(sorted({each.fact for each in statements}), 2)]


def dump(found: dict[str, Truth]) -> str:
    """Return the periods of all facts as text: "a 5-8 20-, b -5, c", where c never holds."""
    return ", ".join(
        " ".join([fact, *(f"{_end(each.valid_at)}-{_end(each.invalid_at)}" for each in found[fact].periods)])
        for fact in sorted(found)
    )


def _end(moment: int) -> str:
    return "" if moment in (OPEN_START, OPEN_END) else str(moment)


def known(truth: Truth) -> list[tuple[int, int]]:
    """Return the intervals in which a fact is known to hold."""
    return [(each.known_from, each.invalid_at) for each in truth.periods if each.known_from < each.invalid_at]


HISTORIES = {
    "a dated fact holds from its date on": ("a@10 5-", "a 5-"),
    "an undated fact holds since nobody knows when": ("a@10", "a -"),
    "a fact with an end ends there": ("a@10 5-8", "a 5-8"),
    "a fact of the future begins then": ("a@10 50-", "a 50-"),
    "a fact known only by its end held until then": ("a@20 -15", "a -15"),
    "a fact ends where the contradicting one begins": ("a@10 5-; b@20 15-", "a 5-15, b 15-"),
    "a back-dated fact gets its place between the others": ("a@1 1-; c@9 9-; b@20 6-", "a 1-6, b 6-9, c 9-"),
    "an older fact told last does not end the newer one": ("b@10 8-; a@20 5-", "a 5-8, b 8-"),
    "a fact that becomes true again has two periods": ("a@1 1-; b@6 6-; a@9 9-", "a 1-6 9-, b 6-9"),
    "undated facts follow each other as they were said": ("a@1; b@6; a@9", "a -6 9-, b 6-9"),
    "an undated fact after a dated one begins when it was said": ("a@5 5-; b@20", "a 5-20, b 20-"),
    "an undated fact ends where a dated one begins": ("a@5; b@20 15-", "a -15, b 15-"),
    "of two that begin together the one said later holds": ("b@10 5-; a@11 5-", "a 5-, b"),
    "of two said together too, the one with the later id": ("a@10 5-; b@10 5-", "a, b 5-"),
    "an undated fact is kept when a dated one begins as it is said": ("b@10; a@10 10-", "a 10-, b -10"),
    "of two undated ones said together the later id follows": ("a@10; b@10", "a -10, b 10-"),
    "a rival within an interval cuts it": ("a@10 5-30; b@20 20-", "a 5-20, b 20-"),
    "an interval does not come back after a rival": ("a@10 5-30; b@20 10-15", "a 5-10, b 10-15"),
    "nobody fills a gap": ("a@10 5-8; b@20 20-", "a 5-8, b 20-"),
    "no longer ends what was dated": ("a@10 5-; a@20 -20", "a 5-20"),
    "no longer ends what was not dated": ("a@10; a@20 -20", "a -20"),
    "an end told later may lie before the statement": ("a@20; a@30 -10", "a -10"),
    "what was over when it was stated ends no rival": ("a@13 12-; b@20; b@30 -10", "a 12-, b -10"),
    "what is stated again after its end holds anew": ("a@10 5-; a@20 -20; a@30", "a 5-20 30-"),
    "also where its start was never told": ("a@15 -15; a@20", "a -15 20-"),
    "also after a whole interval": ("a@10 2-5; a@20", "a 2-5 20-"),
    "an interval ends what began with it": ("a@10 5-; a@40 5-30", "a 5-30"),
    "two stays do not end each other": ("a@10 5-20; a@40 8-15; a@41 32-33", "a 5-20 32-33"),
    "a planned end is overruled by a statement after it": ("a@10 5-; a@20 -30; a@40 5-", "a 5-"),
    "a planned end is not overruled before it": ("a@10 5-; a@20 -30; a@25 5-", "a 5-30"),
    "of two ends told alone the first counts": ("a@20 -10; a@30 -30", "a -10"),
    "an end does not end a rival, and stands": ("a@10 5-; b@20 15-; a@30 -25", "a 5-25, b 15-"),
    "an end that is told stands whatever began before": ("b@25 -10; a@20 5-", "a 5-, b -10"),
    "and a rival whose start was not told begins there": ("b@20; a@30 -25", "a -25, b 25-"),
    "also where what ended began before it": ("a@10 5-; b@20; a@30 -25", "a 5-25, b 25-"),
    "a start told as the time of speaking is none": ("b@20 20-; a@30 -25", "a -25, b 25-"),
    "who moved back from where she had moved to": ("c@10 -10; b@20; a@30 -30; b@30", "a -30, b 30-, c -10"),
    "a rival that was over before the end keeps its time": ("a@10 5-; b@20 -24; a@30 -25", "a 5-25, b 20-24"),
    "what is said again within a told time stays there": ("b@20 15-; b@22; a@30 -25", "a -25, b 15-"),
    "what was so when it was said ends at a start that is told later": ("a@10; b@20 5-", "a -5, b 5-"),
    "also what was known to be so before": ("a@10 2-; a@12; b@20 5-", "a 2-5, b 5-"),
    "what is said after that holds again": ("a@10; b@20 5-; a@30", "a -5 30-, b 5-30"),
    "a later start that was known then stands between": ("c@14 13-; a@15; b@20 5-", "a 15-, b 5-13, c 13-15"),
    "whichever of two starts is told last": ("a@15; c@16 13-; b@20 5-", "a, b 5-13, c 13-"),
    "what is told with its end is history": ("a@10; b@20 5-8", "a 10-, b 5-8"),
    "and what ended after it was told was so until then": ("a@10; b@20 5-; b@30 -25", "a -5, b 5-25"),
    "an end that was to come does not stand": ("a@10 5-25; b@20 15-", "a 5-15, b 15-"),
    "two known by their ends have no known starts": ("a@25 -10; b@30 -20", "a -10, b -20"),
    "also where one is known before": ("a@5; a@25 -10; b@30 -20", "a 5-10, b -20"),
    "and the start of one is unknown where both end at once": ("b@5; b@25 -10; a@30 -10", "a -10, b 5-10"),
    "what is said again changes nothing": ("a@1 1-; b@6 6-; b@7 6-; b@8; b@9 9-", "a 1-6, b 6-"),
    "a correction replaces an earlier start": ("a@10 5-; a@20 8- corrects", "a 8-"),
    "and a later start": ("a@10 5-; a@20 3- corrects", "a 3-"),
    "a start that is no correction does not": ("a@10 5-; a@20 8-", "a 5-"),
    "a correction gives room back to a rival": ("b@2 1-; a@10 5-; a@20 8- corrects", "a 8-, b 1-8"),
    "another stay is not corrected": ("a@10 2-4; a@20 8- corrects", "a 2-4 8-"),
    "what is said after a correction is not corrected": ("a@20 8- corrects; a@30 6-", "a 6-"),
    "a correction without a date corrects nothing": ("a@10 5-; a@20 corrects", "a 5-"),
    "a corrected start keeps the end that was told": ("a@10 2-; a@20 -15; a@30 5- corrects", "a 5-15"),
    "also one told with the start": ("a@10 2-8; a@30 5- corrects", "a 5-8"),
    "a corrected end keeps the start": ("a@10; a@20 -13; a@30 -16 corrects", "a -16"),
    "also where it is earlier": ("a@10 2-; a@20 -13; a@30 -8 corrects", "a 2-8"),
    "also one told with the end": ("a@10 2-8; a@30 -9 corrects", "a 2-9"),
    "of two ends that correct each other, the later counts": ("a@10; a@20 -13 corrects; a@30 -16", "a -16"),
    "and so of two starts": ("a@10 2-; a@20 4- corrects; a@30 6-", "a 6-"),
    "that it is so now is corrected by a later start": ("a@10; a@15; a@30 12- corrects", "a 12-"),
    "a corrected end of the first stay leaves the second": ("a@10 5-; a@20 -15; a@30; a@40 -18 corrects", "a 5-18 30-"),
    "and one of the second the first": ("a@10 5-20; a@41 30-40; a@50 -45 corrects", "a 5-20 30-45"),
    "a corrected second start leaves the first": ("a@10 5-; a@20 -20; a@30 28-; a@40 29- corrects", "a 5-20 29-"),
    "the last correction counts": ("a@10 5-; a@20 8- corrects; a@30 6- corrects", "a 6-"),
}


@pytest.mark.parametrize(("statements", "periods"), HISTORIES.values(), ids=HISTORIES)
def test_truths_returns_the_periods_of_a_history(statements, periods):
    assert dump(truths(parse(statements), rivals(parse(statements)))) == periods


@pytest.mark.parametrize(
    "text", ["2024-01-01T00:00Z", "2024-01-01T00:00:07Z", "2024-01-01T00:00:00.000001Z", "2024-01-01T01:00+09:00"]
)
def test_iso_omits_unneeded_digits(text):
    assert iso(datetime.fromisoformat(text)) == text


@given(st.datetimes(), st.integers(-1439, 1439))
def test_iso_text_is_parsed_to_the_same_time(moment, minutes):
    moment = moment.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    assert datetime.fromisoformat(iso(moment)) == moment


def test_verdict_on_a_fact_without_statements_has_no_effect():
    assert truths([], ruled("a-b")) == {}
    for ruling in get_args(Ruling):
        assert truths(parse("a@1 1-"), ruled("b-a", ruling)) == truths(parse("a@1 1-"))


def test_fact_waits_by_a_verdict_on_itself_and_ends_nothing():
    told = parse("a@1 1-; b@2 2-")
    alone = truths(parse("a@1 1-"))
    waiting = truths(told, [*ruled("b-a"), *ruled("b-b", "waiting")])
    assert waiting["a"] == alone["a"]
    assert (waiting["b"].waits, waiting["b"].periods) == (True, truths(told, ruled("b-a"))["b"].periods)
    for ruling in set(get_args(Ruling)) - {"waiting"}:
        assert truths(told, [*ruled("b-a"), *ruled("b-b", ruling)]) == truths(told, ruled("b-a"))


def test_retracted_fact_counts_only_later_arrivals():
    retracted = Verdict("a", "a", "refused", refused="a", refused_at=5)
    early, late = Statement("a", "1", 1, arrived_at=5), Statement("a", "2", 2, arrived_at=6)
    assert truths([early], [retracted]) == {"a": Truth()}
    assert truths([late, early], [retracted]) == truths([late])
    assert truths([early], [replace(retracted, ruling="both")]) == truths([early])


def test_undated_fact_is_known_from_its_first_statement():
    assert known(truths(parse("a@20; a@10"))["a"]) == [(10, OPEN_END)]
    assert known(truths(parse("a@20; a@10 5-"))["a"]) == [(5, OPEN_END)]
    assert known(truths(parse("a@20 -15"))["a"]) == [(OPEN_START, 15)]
    left = parse("a@25 -10; b@30 -20")
    assert known(truths(left, rivals(left))["b"]) == [(10, 20)]


def test_period_has_the_time_of_the_last_statement():
    assert truths(parse("a@10 5-; a@30; a@20"))["a"].periods == (Period(5, OPEN_END, 30, 5),)


# Dates of reduced precision. Each statement has the fact, the time of the statement, and the date.

DAYS = {4: "year", 7: "month", 10: "day", 16: "instant"}
COARSE = {
    "a finer date refines a coarser one": ("a@2020 2019; a@2021 2019-05", "a 2019-05-01 month"),
    "the finest counts, whenever it was said": ("a@2020 2019-05-03; a@2021 2019-05; a@2022 2019", "a 2019-05-03 day"),
    "of two as fine the one said last": ("a@2020 2019; a@2021 2019-05; a@2022 2019-03", "a 2019-03-01 month"),
    "a date in the next year does not refine the year": ("a@2021 2019; a@2022 2020-01-01", "a 2019-01-01 year"),
    "the last day of a leap year does": ("a@2022 2020; a@2023 2020-12-31", "a 2020-12-31 day"),
    "March is not in February": ("a@2021 2019-02; a@2022 2019-03-01", "a 2019-02-01 month"),
    "a season is three months": ("a@2021 2019-12?; a@2022 2020-03", "a 2019-12-01 season"),
    "its last day is in it": ("a@2021 2019-12?; a@2022 2020-02-29", "a 2020-02-29 day"),
    "that it is so now is no finer date": ("a@2019-12 2019; a@2019-06-01 2019-06-01T00:00", "a 2019-01-01 year"),
    "a calendar ends": ("a@9999-12-31 9999-12-31T12:00; a@9999-12-31 9999-12", "a 9999-12-31 instant"),
    "a coarse start said after a finer one of a rival lies behind it": (
        "b@2019-04 2019-03; a@2019-12 2019", "a 2019-04-01 year, b 2019-03-01 month"),
    "and behind its end, where that was told": (
        "b@2019-08 2019-03 2019-06; a@2019-12 2019", "a 2019-06-01 year, b 2019-03-01 month"),
    "also behind an undated one": ("b@2019-04; a@2019-12 2019", "a 2019-04-01 year, b - instant"),
    "a coarse start said first is not moved, also when it is said again": (
        "a@2019-02 2019; b@2019-04 2019-03; a@2019-12 2019", "a 2019-01-01 year, b 2019-03-01 month"),
    "an undated state was out of date by a start told later": ("a@2024-05; b@2024-06 2024-03", "a - instant, b 2024-03-01 month"),
    "but that start may lie behind it": ("a@2024-05; b@2024-06 2024", "a - instant, b 2024-05-01 year"),
    "and one long before it is history": ("a@2024-05; b@2024-06 2019", "a 2024-05-01 by, b 2019-01-01 year"),
    "nor behind a rival of another year": ("b@2018-04 2018-03; a@2019-12 2019", "a 2019-01-01 year, b 2018-03-01 month"),
    "nor behind what was said to begin after it was said": (
        "b@2019-04 2019-11; a@2019-08 2019", "a 2019-01-01 year, b 2019-11-01 month"),
    "a coarse start lies behind the end of a rival in that year": (
        "a@2024-01 ? 2023-05; b@2024-02 2023", "a - instant, b 2023-05-01 year"),
    "also where the end is told later": ("b@2024-01 2023; a@2024-02 ? 2023-05", "a - instant, b 2023-05-01 year"),
    "also where the rival began in that year": (
        "b@2023-12 2023; a@2024-02 2023-03 2023-05", "a 2023-03-01 month, b 2023-05-01 year"),
    "unless the fact was so before that end": ("b@2023-02 2023; a@2024 ? 2023-05", "a - instant, b 2023-01-01 year"),
    "of two starts in one year, what is told later begins after the other was told": (
        "a@2020-05 2020; b@2020-12 2020", "a 2020-01-01 year, b 2020-05-01 year"),
}  # fmt: skip


def on(date: str) -> int:
    return micros(datetime.fromisoformat(date + "0000-01-01T00:00"[len(date) :]).replace(tzinfo=UTC), default=0)


def dated(text: str) -> Statement:
    told, at, since, until = re.fullmatch(r"(\w)@(\S+)(?: (\S+))?(?: (\S+))?", text).groups(default="")
    precision = "season" if since.endswith("?") else DAYS.get(len(since), "instant")
    start = on(since.rstrip("?")) if since.strip("?") else OPEN_START
    precision = "instant" if start == OPEN_START else precision
    end = (on(until), DAYS[len(until)]) if until else (OPEN_END, "instant")
    return Statement(told, told + at, on(at), start, end[0], precision, end_precision=end[1])


def day(moment: int) -> str:
    return "-" if moment in (OPEN_START, OPEN_END) else str(instant(moment).date())


@pytest.mark.parametrize(("statements", "starts"), COARSE.values(), ids=COARSE)
def test_truths_returns_the_finest_start_and_its_precision(statements, starts):
    said = [dated(each) for each in statements.split("; ")]
    found = truths(said, rivals(said))
    first = {fact: found[fact].periods[0] for fact in sorted(found)}
    assert ", ".join(f"{fact} {day(each.valid_at)} {each.precision}" for fact, each in first.items()) == starts


@pytest.mark.parametrize(
    ("month", "inside", "outside"),
    [("2019-03-31T22:00", "2019-04-29T22:00", "2019-04-30T22:00"),  # April at UTC+2
     ("2019-02-28T23:00", "2019-03-30T23:00", "2019-03-31T22:00"),  # March, when summer time begins
     ("2019-05-01T12:00", "2019-05-31T12:00", "2019-06-01T12:00")],  # May at UTC-12
)  # fmt: skip
def test_month_ends_in_its_own_time_zone(month, inside, outside):
    coarse = Statement("a", "1", on("2021"), on(month), precision="month")
    for finer, refines in ((inside, True), (outside, False)):
        said = [coarse, Statement("a", "2", on("2022"), on(finer), precision="day")]
        assert truths(said)["a"].periods[0].valid_at == (on(finer) if refines else on(month))


ENDS = {
    "a rival that began some time in a year": ("a@2020 2019; b@2022 2021", "a 2021-01-01 year, b - instant"),
    "a rival whose day is known": ("a@2020 2019; b@2022 2021-03-05", "a 2021-03-05 day, b - instant"),
    "a rival that is undated": ("a@2020 2019; b@2022", "a 2022-01-01 by, b - instant"),
    "its own end": ("a@2020 2019 2021-03-05; b@2022 2021-04", "a 2021-03-05 day, b - instant"),
    "an end that another statement tells": ("a@2020 2019; a@2022 ? 2021", "a 2021-01-01 year"),
    "a finer end told for the same time": ("a@2020 2019; a@2024 ? 2021; a@2025 ? 2021-05", "a 2021-05-01 month"),
    "a finer end, told first": ("a@2020 2019; a@2024 ? 2021-05; a@2025 2019 2021", "a 2021-05-01 month"),
    "not an end of another year": ("a@2024 2019 2021; a@2025 ? 2022-05", "a 2021-01-01 year"),
    "not the time at which the end is told": ("a@2020 2019; a@2022 ? 2021; a@2021-08 ? 2021-08", "a 2021-01-01 year"),
    "of two alike the finer": ("a@2020 2019 2021-01; b@2022 2021", "a 2021-01-01 month, b - instant"),
}


@pytest.mark.parametrize(("statements", "ends"), ENDS.values(), ids=ENDS)
def test_end_has_the_precision_of_its_source(statements, ends):
    said = [dated(each) for each in statements.split("; ")]
    found = truths(said, rivals(said))
    last = {fact: found[fact].periods[-1] for fact in sorted(found)}
    assert ", ".join(f"{fact} {day(each.invalid_at)} {each.end_precision}" for fact, each in last.items()) == ends


# Facts that cannot both be true: the statements, the verdicts, the strategy, and the expected periods.

CONFLICTS = {
    "the one said later is believed": ("a@10 5-; b@20 3-", "a-b", "recency", "a, b 3-"),
    "of two said together the one with the later id": ("a@10 5-; b@10 3-", "b-a", "recency", "a, b 3-"),
    "what was said last counts, not what was said first": ("a@10; b@20; a@30", "a-b", "recency", "a -, b"),
    "the surer one is believed": ("a@10 5- 0.9; b@20 5- 0.8", "a-b", "confidence", "a 5-, b"),
    "of two as sure the one said later": ("a@10 5- 0.9; b@20 5- 0.9", "a-b", "confidence", "a, b 5-"),
    "what was once said surely counts": ("a@10 0.9; b@20 0.8; a@5 0.1", "a-b", "confidence", "a -, b"),
    "the better trusted one is believed": ("a@10 5- 0.9; b@20 5- 0.8", "a-b", "trust", "a 5-, b"),
    "of two as trusted the one said later": ("a@10 5- 0.2; b@20 5- 0.2", "a-b", "trust", "a, b 5-"),
    "the one that the model chose is believed": ("a@10 5-; b@20 3-", "a-b>a", "model", "a 5-, b"),
    "where the model chose none, the one said later": ("a@10 5-; b@20 3-", "a-b", "model", "a, b 3-"),
    "the choice of the model counts only when asked for": ("a@10 5-; b@20 3-", "a-b>a", "recency", "a, b 3-"),
    "who refutes only what is refuted anyway restores it": ("a@1 1-; b@2 2-; c@3 3-", "a-b b-c", "recency", "a 1-, b, c 3-"),
    "one that stands refutes all against it": ("a@1 1-; b@2 2-; c@3 3-", "a-c b-c", "recency", "a, b, c 3-"),
    "the model decides each pair for itself": (
        "a@1; b@2; c@3; d@4; e@5", "a-b>a c-a>c d-c>d e-b>b", "model", "a -, b, c, d -, e -"),
    "where the model goes round in a circle the one said last": ("a@1; b@2; c@3", "a-b>a b-c>b c-a>c", "model", "a, b, c -"),
    "where the model says two things, the one said later": ("a@1; b@2", "a-b>a b-a>b", "model", "a, b -"),
}  # fmt: skip


@pytest.mark.parametrize(("statements", "conflicts", "strategy", "periods"), CONFLICTS.values(), ids=CONFLICTS)
def test_truths_resolves_conflicts_by_strategy(statements, conflicts, strategy, periods):
    assert dump(truths(parse(statements), ruled(conflicts, "conflicts"), ConflictPolicy(strategy))) == periods


def test_refuted_fact_restores_the_facts_that_it_ended():
    moves, refuted = parse("a@10 5-; b@20 15-; c@30"), ruled("b-c", "conflicts")
    assert dump(truths(moves[:2], ruled("a-b"))) == "a 5-15, b 15-"
    assert dump(truths(moves, ruled("a-b") + refuted)) == "a 5-, b, c -"


def test_preference_of_the_model_does_not_affect_superseding():
    verdicts = ruled("a-b>a") + ruled("b-c>c", "both") + ruled("b-d", "conflicts")
    said = parse("a@1 1-; b@5 5-; c@9; d@2 2-")
    assert dump(truths(said, verdicts, ConflictPolicy("model"))) == "a 1-5, b 5-, c -, d"


# Statements of lower rank, by their confidence or by the trust in their episode.

CLASSES = {
    "what counts less does not end what counts more": ("a@10 5- 0.9; b@20 15- 0.5", "a 5-, b"),
    "but holds until it begins": ("a@10 5- 0.5; b@20 15- 0.9", "a 5-15, b 15-"),
    "also where neither is dated": ("a@10 0.5; b@20 0.9", "a -20, b 20-"),
    "and after its end": ("a@10 5-15 0.9; b@20 10- 0.5", "a 5-15, b 15-"),
    "and between two that count more": ("a@10 1-5 0.9; b@20 3- 0.5; c@30 9- 0.9", "a 1-5, b 5-9, c 9-"),
    "and not at all where there is no room": ("a@10 5- 0.9; b@20 0.5", "a 5-, b"),
    "a start that is earlier but counts less is no later one": ("a@10 5- 0.9; b@20 1- 0.5", "a 5-, b 1-5"),
    "what counts alike follows each other": ("a@10 5- 0.5; b@20 15- 0.5; c@30 1-3 0.9", "a 5-15, b 15-, c 1-3"),
    "an end that counts less ends nothing that counts more": ("a@10 5- 0.9; a@20 -20 0.5", "a 5-"),
    "an end that counts more ends what counts less": ("a@10 5- 0.5; a@20 -20 0.9", "a 5-20"),
    "a correction that counts less corrects nothing": ("a@10 5- 0.9; a@20 8- corrects 0.5", "a 5-"),
    "what is said again, but counts less, leaves the start known": ("a@10 5- 0.9; a@20 0.5", "a 5-"),
    "and lets no rival in": ("a@10 5- 0.9; a@20 0.5; b@15 15- 0.5", "a 5-, b"),
}


@pytest.mark.parametrize("strategy", ["confidence", "trust"])
@pytest.mark.parametrize(("statements", "periods"), CLASSES.values(), ids=CLASSES)
def test_truths_ranks_statements_by_confidence_or_trust(statements, periods, strategy):
    assert dump(truths(parse(statements), rivals(parse(statements)), ConflictPolicy(strategy))) == periods


def test_coarse_start_is_not_moved_after_a_less_trusted_rival():
    said = [dated("b@2019-04 2019-03"), dated("a@2019-12 2019")]
    found = truths([replace(said[0], trust=0.5), said[1]], rivals(said), ConflictPolicy("trust"))
    assert (known(found["a"]), found["b"].periods) == ([(on("2019"), OPEN_END)], ())


# Review by a person.


def test_fact_first_stated_later_waits_and_is_proposed():
    said = parse("a@10 5-; b@20 15-; a@30")
    for verdicts in (ruled("a-b", "waiting"), ruled("b-a", "waiting")):
        found = truths(said, verdicts)
        assert dump(found) == "a 5-, b 15-30"
        assert [each for each in found if found[each].waits] == ["b"]


def test_correction_does_not_change_which_fact_waits():
    assert truths(parse("a@10 5-; b@20 15-; a@30 8- corrects"), ruled("a-b", "waiting"))["b"].waits


WAITING = {
    "the one said later of two": ("a-b", "", "b"),
    "what was said before a fact that waits does not wait for it": ("a-c b-c d-c", "", "c"),
    "what is said after one that waits does not wait for it": ("a-b b-c", "", "b"),
    "but what waits for another too does": ("a-b b-c a-c", "", "b c"),
    "a chain alternates": ("a-b b-c c-d", "", "b d"),
    "a fact whose opponent was refused waits no more": ("a-b", "a", ""),
    "nor one that was refused itself": ("a-b b-c", "b", ""),
    "a fact of which nothing was said keeps none waiting": ("x-a", "", ""),
}


@pytest.mark.parametrize(("unsure", "refused", "waits"), WAITING.values(), ids=WAITING)
def test_facts_in_review_returns_the_waiting_facts(unsure, refused, waits):
    said = parse("a@10 5-; b@20 15-; c@30 25-; d@40 8-")
    verdicts = ruled(unsure, "waiting") + [Verdict(each, "d", "refused", refused=each) for each in refused]
    by_fact = {fact: [each for each in said if each.fact == fact] for fact in "abcd"}
    assert " ".join(sorted(facts_in_review(verdicts, by_fact))) == waits
    assert " ".join(sorted(fact for fact, truth in truths(said, verdicts).items() if truth.waits)) == waits


def test_waiting_fact_of_a_conflict_is_proposed_as_winner():
    said = parse("a@10 5-; b@20; a@30 25-")
    for kind, periods in (("conflicts", "a 5-, b -"), ("supersedes", "a 5-, b 20-25")):
        found = truths(said, [Verdict("b", "a", "waiting", kind=kind)])
        assert (dump(found), found["b"].waits) == (periods, True)


def test_fact_with_ruling_both_does_not_shorten_a_proposal():
    found = truths(parse("a@10 5-; b@20 15-; c@30 25-"), ruled("a-b", "waiting") + ruled("b-c", "both"))
    assert dump(found) == "a 5-, b 15-, c 25-"

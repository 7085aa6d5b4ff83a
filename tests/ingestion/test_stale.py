"""Silent staleness: the facts that may have changed since they were said, the question to ask, and what an answer does."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest

from kg_memory.errors import InputError
from kg_memory.text.predicates import canonical_predicates, half_life
from tests.scripted import Scripted

NOW = datetime(2026, 6, 1, tzinfo=UTC)
# The days since it was said, of a history that is likely still true and of one that may have changed; the relation, the
# object, and what the person answers to the question: that it is still so, or that it ended.
ENGLISH = """
1500 2200 LIVES_IN Oslo still | 1100 1900 WORKS_AT Acme ended | 1000 1500 WORKS_AS nurse still | 30 90 FEELS tired ended
40 400 IS_WORRIED_ABOUT exam ended | 45 61 IS_BUSY_WITH move still | 120 400 HAS_CONDITION flu ended
150 190 TAKES_MEDICATION iron still | 1700 2500 LIKES jazz still | 1200 2000 OWNS van ended | 500 800 STUDIES_AT UiO ended
600 900 USES Vim still | 100 200 IS_RESPONSIBLE_FOR billing ended | 3000 4000 IS_MARRIED_TO Bo still
500 720 REPORTS_TO Cleo ended
"""
CHINESE = """
1500 2200 住在 奥斯陆 still | 1100 1900 就职于 阿里 ended | 1000 1500 担任 护士 still | 30 90 感到 疲惫 ended
40 400 担心 考试 ended | 45 61 忙于 搬家 still | 120 400 患有 感冒 ended | 150 190 服药 铁剂 still | 1700 2500 喜欢 爵士 still
1200 2000 拥有 货车 ended | 500 800 就读于 北大 ended | 600 900 使用 微信 still | 100 200 负责 账单 ended
3000 4000 结婚 小王 still | 300 720 订阅 财经 ended
"""


class History(NamedTuple):
    """What was said of one person: once, some days ago; and the answer if it is asked about."""

    person: str
    predicate: str
    thing: str
    days: int
    is_stale: bool
    answer: str

    @property
    def sentence(self) -> str:
        words = (self.person, self.predicate.replace("_", " ").lower(), self.thing)
        return (" " if self.thing.isascii() else "").join(words)

    def row(self, days: int, **more: object) -> dict[str, object]:
        """Return the fact as said *days* before `NOW`."""
        said = {"subject": self.person, "predicate": self.predicate, "object": self.thing, "sentence": self.sentence}
        return {**said, "at": (NOW - timedelta(days=days)).isoformat(), **more}


def _read(table: str, prefix: str) -> list[History]:
    rows = [row.split() for row in table.strip().replace("\n", "|").split("|")]
    return [
        History(f"{prefix}{number}{index}", row[2], row[3], int(row[index]), bool(index), row[4])
        for number, row in enumerate(rows)
        for index in (0, 1)
    ]


HISTORIES = _read(ENGLISH, "Ann") + _read(CHINESE, "安")


@pytest.fixture(scope="module")
def told(offline) -> str:
    """A namespace with all histories, and the birthplaces of all persons."""
    rows = [one.row(one.days) for one in HISTORIES]
    rows += [{**one.row(9000, predicate="BORN_IN", object="Rome"), "sentence": None} for one in HISTORIES]
    offline.facts.add_many(rows, namespace="stale")
    return "stale"


@pytest.mark.parametrize("one", HISTORIES, ids=lambda one: f"{one.sentence}, {one.days} days")
def test_history_has_stale_facts_question_and_effect_of_answer(offline, told, one):
    def stale(believed_at: datetime | None = None) -> list[str]:
        found = offline.facts.stale(about=one.person, at=NOW, believed_at=believed_at, namespace=told)
        assert all(each.freshness <= 0.5 for each in found)
        return [each.question for each in found]

    [question] = stale() or [""]
    assert bool(question) == one.is_stale
    if not one.is_stale:
        return
    assert question.startswith(f"Is this still so: {one.sentence}? It was" if one.thing.isascii() else "现在还是这样吗")
    assert one.sentence in question
    before = datetime.now(UTC)
    ends = {"invalid_at": "2026-05-20"} if one.answer == "ended" else {}
    offline.facts.add_many([one.row(1, **ends)], namespace=told)
    assert stale() == []
    assert stale(before) == [question], "as the memory knew it before the answer"


def test_half_lives_are_those_of_known_families():
    assert {half_life(name) for name in canonical_predicates()} > {60.0, 1400.0, float("inf")}
    assert (half_life("STAYS_IN"), half_life("LIVES_IN"), half_life("FROBNICATES")) == (60.0, 1800.0, 365.0)


def test_own_history_of_namespace_is_preferred_to_estimates(offline):
    def moves(person: str) -> list[dict[str, object]]:
        return [
            {"subject": person, "predicate": "LIVES_IN", "object": f"{person}{year}", "valid_at": f"{year}"}
            for year in range(2020, 2024)
        ]

    offline.facts.add_many([row for person in ("Bo", "Cy") for row in moves(person)], namespace="moving")
    offline.facts.add_many([History("Di", "LIVES_IN", "Rome", 0, True, "").row(800)], namespace="moving")
    [stale] = offline.facts.stale(about="Di", at=NOW, namespace="moving")
    # Eight homes lasted twelve years, of which six ended: half of them end in 17 months.
    assert 0.3 < stale.freshness < 0.4
    births = [
        {"subject": f"P{n}", "predicate": "BORN_IN", "object": "Rome", "valid_at": "2000", "invalid_at": "2001"}
        for n in range(9)
    ]
    own = {"subject": "Di", "predicate": "BORN_IN", "object": "Pisa", "at": "2001-01-01"}
    offline.facts.add_many([*births, own], namespace="moving")
    assert offline.facts.stale(about="Di", at=NOW, namespace="moving") == [stale], "a birthplace stays"


@pytest.mark.parametrize(
    "wrong", [{"below": "0.5"}, {"below": 2}, {"below": float("nan")}, {"limit": 0}, {"at": "soonish"}]
)
def test_wrong_arguments_of_stale_are_refused(offline, told, wrong):
    with pytest.raises(InputError, match=f"{next(iter(wrong))} must be"):
        offline.facts.stale(namespace=told, **wrong)


def test_all_facts_can_be_listed_by_freshness(offline, told):
    found = asyncio.run(offline.facts.astale(namespace=told, at="2026-05-01", below=1, limit=1000))
    assert len(found) > len(HISTORIES) / 2
    assert all(each.fact.predicate != "BORN_IN" for each in found)
    assert offline.facts.stale(namespace="elsewhere") == []


@pytest.mark.parametrize(
    ("day", "now", "is_stale"),
    [
        ("2026-03-09", "2026-03-08", False), ("2026-03-09", "2026-03-12", True), ("2026-03", "2026-03-20", False),
        (None, "2026-04-01", False), (None, "2026-09-01", True),
    ],
)  # fmt: skip
def test_plan_is_stale_after_its_day(standard, namespace, day, now, is_stale):
    fact = {"subject": "Ann", "predicate": "VISITS", "objects": ["Rome"], "sentence": "Ann visits Rome", "kind": "plan",
            "quote": "I will visit Rome", "valid_at": day}  # fmt: skip
    entities = [{"name": name, "type": "Entity"} for name in ("Ann", "Rome")]
    memory = standard(Scripted(read=lambda _: {"entities": entities, "facts": [fact]}))
    memory.add("I will visit Rome", speaker="Ann", at="2026-02-01", namespace=namespace)
    found = memory.facts.stale(at=now, namespace=namespace)
    assert [each.question for each in found][: 1] == ["What became of this plan: Ann visits Rome? It was said 39 days ago."
        if day else "What became of this plan: Ann visits Rome? It was said 7 months ago."] * is_stale  # fmt: skip

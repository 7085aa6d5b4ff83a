from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_memory.ingestion import dedupe
from kg_memory.ingestion.invalidate import apply_corrections, find_rejudged, find_verdicts
from kg_memory.ingestion.state import Draft, decode, encode
from kg_memory.llm.prompts.answers import FactVerdict, FactVerdicts
from kg_memory.runtime.effects import Ask
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.temporal.interval import OPEN_END, OPEN_START
from kg_memory.temporal.policy import ConflictPolicy
from kg_memory.text.identity import verdict_id
from tests.ingestion import stepping
from tests.ingestion.stepping import NOW, answered, entity, state

KNOWN = [entity("Ann", known=True), entity("Paris", "Place", known=True), entity("Bob")]
DAY = 24 * 3600 * 1_000_000


def judge(given: dict[str, Any], settings: Settings) -> Flow[dict[str, Any]]:
    """Run `dedupe` and the verdict part of `invalidate` on a plain state, and return the plain result."""
    draft = Draft.of(decode(given))
    update = yield from dedupe.dedupe(draft, settings)
    policy, comparisons = ConflictPolicy.from_settings(settings), update["comparisons"]
    facts = apply_corrections(update["facts"], comparisons, policy)
    verdicts = find_verdicts(facts, comparisons, draft.namespace, policy)
    rejudged = find_rejudged(facts, comparisons, verdicts, draft.namespace)
    return encode({**update, "facts": facts, "verdicts": verdicts, "rejudged": rejudged})


def fact(id_: str = "new", objects: tuple[int, ...] = (1,), **given: Any) -> dict[str, Any]:
    """Return a fact about Ann as `date` returns it."""
    return {
        **stepping.fact(id_, objects), "object_ids": [KNOWN[each]["id"] for each in objects], "valid_at": NOW,
        "invalid_at": OPEN_END, "precision": "instant", "window_end": OPEN_END, "same_as": None, "corrects": False,
        "refuted": False, "restated": False, **given,
    }  # fmt: skip


def stored(id_: str = "old", place: int = 0, objects: tuple[str, ...] = ("Oslo",), **given: Any) -> dict[str, Any]:
    """Return the row of an existing fact, a candidate for the new fact at index *place*."""
    dates = {"valid_at": 5, "invalid_at": OPEN_END, "precision": "instant", "end_precision": "instant", "arrived_at": 0}
    dates |= {name: given.pop(name) for name in dates.keys() & given.keys()}
    beliefs = given.pop("beliefs", [{"valid_at": 5, "invalid_at": OPEN_END}])
    value = {
        "id": id_, "subject": "Ann", "subject_id": "id Ann", "predicate": "LIVES_IN", "sentence": f"Of {id_}.",
        "objects": list(objects), "object_ids": [f"id {name}" for name in objects], "stated_at": 0, "stated_by": "e0",
        "only_ends": False, "revision": 0, "distance": 0.0, **given,
    }  # fmt: skip
    history = {"fact": id_, "statements": [{"id": value["stated_by"], **dates}], "beliefs": beliefs}
    return {"kind": "candidate", "new": place, "value": {**value, "history": history}}


def verdict(kind: str, known: int = 0, *, new: int = 0, sure: float = 0.95, **given: Any) -> dict[str, Any]:
    """Return the verdict of a model on a pair of facts."""
    told = {"fact": new, "known": known, "verdict": kind, "confidence": sure, "holds": "new", "reason": "It says so."}
    return {**told, **given}


def run(
    facts: list[dict[str, Any]], found: list[dict[str, Any]], *verdicts: dict[str, Any], **given: Any
) -> tuple[dict[str, Any], list[Ask]]:
    """Return the result and the model calls, if the search by subject returns *found*."""
    flow = judge(state(**{"entities": KNOWN, **given}, facts=facts), Settings())
    result, effects = answered(flow, [[0.0]] * len(facts), found, FactVerdicts(verdicts=list(verdicts)))
    return result, [each for each in effects if isinstance(each, Ask)]


def unasked(facts: list[dict[str, Any]], found: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the result, without any model call."""
    flow = judge(state(entities=KNOWN, facts=facts), Settings())
    return answered(flow, [[0.0]] * len(facts), found)[0]


def ruled(result: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(each["kind"], each["ruling"], each["existing"]) for each in result["verdicts"]]


# Candidates


def test_dedupe_reads_revisions_with_candidates():
    flow = judge(state(entities=KNOWN, facts=[fact()]), Settings())
    revision = {"kind": "revision", "new": 0, "value": {"id": "id Ann", "revision": 7}}
    result, [_, related] = answered(flow, [[0.0]], [revision])
    assert related.params["ends"] == ["id Ann", "id Paris"]
    # An entity that did not exist must still not exist when the facts are saved: its revision is 0.
    assert result["grounds"]["revisions"] == {"id Ann": 7, "id Paris": 0}


# Duplicates


def test_dedupe_matches_equal_sentence_without_model_call():
    """A fact with the words of an existing one is a duplicate, without a call of the model.

    Features: A23.
    """
    result = unasked([fact("old")], [stored("x"), stored("old")])
    assert (result["facts"][0]["same_as"], result["verdicts"]) == ("old", [])


def test_dedupe_matches_single_valued_pair_without_model_call():
    """A single-valued fact about the same pair is a duplicate, even with another sentence."""
    result = unasked([fact("new")], [stored("old", objects=("Paris",))])
    assert (result["facts"][0]["same_as"], result["verdicts"]) == ("old", [])


@pytest.mark.parametrize(
    "other",
    [
        stored("old", objects=("Paris",), predicate="LEFT"),
        stored("old", objects=("Paris",), subject="Bob", subject_id="id Bob"),
        stored("old", objects=("Paris", "Oslo")),
    ],
)
def test_dedupe_asks_about_other_predicate_subject_or_objects(other):
    result, [_] = run([fact("new")], [other], verdict("unrelated"))
    assert result["facts"][0]["same_as"] is None


def test_dedupe_asks_about_new_sentence_of_multi_valued_fact():
    plural = fact("new", predicate="VISITED", single_valued=False)
    _, [asked] = run([plural], [stored("old", objects=("Paris",), predicate="VISITED")])
    assert len(asked.fields["facts"]) == 1


def test_judge_prompt_has_only_uncertain_facts_with_indexes():
    """Only uncertain facts are in the prompt, each with its index among the new facts.

    Features: A54.
    """
    facts = [fact("old"), fact("new", objects=(2,))]
    result, [asked] = run(facts, [stored("old"), stored("old", 1)], verdict("duplicate", new=1))
    assert [each["id"] for each in asked.fields["facts"]] == [1]
    assert [each["same_as"] for each in result["facts"]] == ["old", "old"]


# The prompt


def test_judge_prompt_covers_all_facts_of_the_episode():
    facts = [fact("one", single_valued=False), fact("two", objects=(2,), single_valued=False)]
    _, asked = run(facts, [stored("a"), stored("b", 1), stored("c", 1)])
    assert len(asked) == 1
    assert [[each["id"] for each in told["existing"]] for told in asked[0].fields["facts"]] == [[0], [0, 1]]


def test_judge_compares_facts_of_one_episode_with_other_dates():
    facts = [fact("oslo", valid_at=NOW - DAY), fact("paris", objects=(2,))]
    result, [asked] = run(facts, [], verdict("supersedes", new=1))
    assert [each["sentence"] for each in asked.fields["facts"][0]["existing"]] == ["Ann lives in oslo."]
    assert [(each["new"], each["existing"]) for each in result["verdicts"]] == [("paris", "oslo")]
    together = [fact("oslo"), fact("paris", objects=(2,))]
    assert run(together, [], verdict("supersedes", new=1))[0]["verdicts"] == []


def test_dedupe_merges_facts_stated_twice_in_one_episode():
    result = unasked([fact("oslo"), fact("again")], [])
    assert [each["same_as"] for each in result["facts"]] == [None, "oslo"]
    known = unasked([fact("oslo"), fact("again")], [stored("old", objects=("Paris",)), stored("old", 1, ("Paris",))])
    assert [each["same_as"] for each in known["facts"]] == ["old", "old"]


def test_judge_prompt_has_sentences_dates_and_no_graph_ids():
    _, [asked] = run([fact("new", valid_at=OPEN_START, invalid_at=NOW)], [stored("one"), stored("two")])
    [told] = asked.fields["facts"]
    assert (told["subject"], told["objects"], told["quote"]) == ("Ann", ["Paris"], "I live in Oslo.")
    assert told["said_at"] == told["invalid_at"] == "2024-01-01T00:00Z"
    assert "valid_at" not in told
    first, second = told["existing"]
    assert (first["id"], second["id"], first["sentence"], first["one_at_a_time"]) == (0, 1, "Of one.", True)
    assert (first["valid_at"], first.get("invalid_at")) == ("1970-01-01T00:00:00.000005Z", None)
    assert "id Ann" not in str(told)


def test_judge_prompt_omits_unknown_dates_and_false_flags():
    open_ended = {"valid_at": OPEN_START, "invalid_at": OPEN_END, "single_valued": False}
    _, [asked] = run([fact("new", **open_ended)], [stored("one", valid_at=OPEN_START)])
    [told] = asked.fields["facts"]
    for each in (told, *told["existing"]):
        assert not {"valid_at", "invalid_at", "one_at_a_time"} & each.keys()
    assert {"subject", "predicate", "objects", "sentence", "said_at"} < told["existing"][0].keys() < told.keys()


def test_judge_prompt_shows_renamed_entity_in_both_facts():
    entities = [{**KNOWN[0], "name": "Ann Smith"}, {**KNOWN[1], "name": "Paris, France"}]
    _, [asked] = run([fact(single_valued=False)], [stored(objects=("Oslo", "Paris"))], entities=entities)
    [told] = asked.fields["facts"]
    [known] = told["existing"]
    assert told["subject"] == known["subject"] == "Ann Smith"
    assert (told["objects"], known["objects"]) == (["Paris, France"], ["Oslo", "Paris, France"])


@pytest.mark.parametrize("known", [{"subject": "ANN"}, {"subject": "Another Ann", "subject_id": "id other"}])
def test_judge_skips_facts_of_a_namesake(known):
    entities = [{**KNOWN[0], "apart_from": ["id other"]}, *KNOWN[1:]]
    rows = [stored("a", objects=("Paris",), **{"subject_id": "id of another", **known}), stored("b", subject="Ann B")]
    _, [asked] = run([fact()], rows, entities=entities)
    assert [old["sentence"] for old in asked.fields["facts"][0]["existing"]] == ["Of b."]


def test_judge_prompt_lists_a_repeated_candidate_once():
    _, [asked] = run([fact()], [stored()] * 3)
    assert [each["id"] for each in asked.fields["facts"][0]["existing"]] == [0]


def test_judge_retry_asks_only_about_new_candidates():
    first, _ = run([fact()], [stored("one")], verdict("supersedes"))
    rows = [stored("one"), stored("two")]
    result, [asked] = run(first["facts"], rows, verdict("conflicts"), judged=first["judged"])
    assert [each["sentence"] for each in asked.fields["facts"][0]["existing"]] == ["Of two."]
    assert sorted(ruled(result)) == [("conflicts", "conflicts", "two"), ("supersedes", "supersedes", "one")]


@pytest.mark.parametrize("name", ["Ann Smith", "安", "", "Ann\x00"])
def test_judge_retry_asks_nothing_after_a_rename(name):
    first, _ = run([fact(), fact("two", objects=(2,))], [stored("one"), stored("one", 1)], verdict("supersedes"))
    renamed = [{**KNOWN[0], "name": name}, {**KNOWN[1], "name": f"{name} of Paris"}, KNOWN[2]]
    given = state(entities=renamed, facts=first["facts"], judged=first["judged"])
    rows = [stored("one", subject=name), stored("one", 1, subject=name)]
    result, effects = answered(judge(given, Settings()), [[0.0], [0.0]], rows)
    assert not [effect for effect in effects if isinstance(effect, Ask)]
    assert ruled(result) == ruled(first) == [("supersedes", "supersedes", "one")]


@pytest.mark.parametrize(
    "change",
    [{"sentence": "Other words."}, {"valid_at": 6}, {"invalid_at": 7}, {"object_ids": ["id Rome"]}, {"kind": "plan"}],
)
def test_judge_retry_asks_again_about_a_changed_candidate(change):
    first, _ = run([fact()], [stored("one")], verdict("supersedes"))
    assert run(first["facts"], [stored("one", **change)], judged=first["judged"])[1]


# The effect of verdicts


@pytest.mark.parametrize(
    ("sure", "ruling"),
    [(1.0, "supersedes"), (0.85, "supersedes"), (0.8499, "waiting"), (0.5, "waiting"), (0.4999, None)],
)
@pytest.mark.parametrize("kind", ["supersedes", "conflicts"])
def test_verdict_confidence_decides_its_ruling(sure, ruling, kind):
    """The confidence of a verdict decides whether it takes effect, waits for review or is ignored.

    Features: D6.
    """
    result, _ = run([fact()], [stored()], verdict(kind, sure=sure))
    expected = {None: [], "waiting": ["waiting"]}.get(ruling, [kind])
    assert [each["ruling"] for each in result["verdicts"]] == expected


@pytest.mark.parametrize(
    ("kind", "known", "new"),
    [*(("supersedes", *pair) for pair in ((7, 0), (-1, 0), (0, 5), (0, -1))), ("rules out", 0, 0), ("", 0, 0)],
)
def test_verdicts_of_unknown_kind_or_pair_are_ignored(kind, known, new):
    result, _ = run([fact()], [stored()], verdict(kind, known, new=new))
    assert (result["verdicts"], result["facts"][0]["same_as"]) == ([], None)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_verdict_of_a_duplicate_has_the_existing_fact_id(order):
    told = [verdict("duplicate", 0), verdict("supersedes", 1)]
    result, _ = run([fact()], [stored("same"), stored("taken")], *(told[place] for place in order))
    assert result["facts"][0]["same_as"] == "same"
    [only] = result["verdicts"]
    assert (only["new"], only["existing"], only["id"]) == ("same", "taken", verdict_id("n", "same", "taken"))


def test_dedupe_picks_the_duplicate_of_highest_confidence():
    told = (verdict("duplicate", 0, sure=0.86), verdict("duplicate", 1, sure=0.99))
    result, _ = run([fact()], [stored("one"), stored("two")], *told)
    assert result["facts"][0]["same_as"] == "two"


def test_facts_of_one_episode_do_not_contradict_each_other():
    facts = [fact("paris"), fact("old", objects=(2,))]
    result, _ = run(facts, [stored("old"), stored("old", 1)], verdict("supersedes"))
    assert (result["facts"][1]["same_as"], result["verdicts"]) == ("old", [])


def test_pair_has_one_verdict_of_highest_confidence():
    facts = [fact("one"), fact("two", objects=(2,))]
    found = [stored("same"), stored("taken"), stored("same", 1), stored("taken", 1)]
    told = [
        verdict("duplicate", 0), verdict("supersedes", 1, sure=0.86),
        verdict("duplicate", 0, new=1), verdict("conflicts", 1, new=1, sure=0.99),
    ]  # fmt: skip
    result, _ = run(facts, found, *told)
    assert ruled(result) == [("conflicts", "conflicts", "taken")]


def test_temporary_fact_retains_its_stated_end():
    passing = fact("new", precision="week", window_end=NOW + 7 * DAY, invalid_at=NOW + DAY)
    result, _ = run([passing], [stored()], verdict("temporary"))
    assert result["facts"][0]["invalid_at"] == NOW + DAY


# The same fact with other dates

REDATED = fact("old", valid_at=NOW - 100 * DAY, stated_from="2023-09-23", precision="day")


def redated(*verdicts: dict[str, Any], new: dict[str, Any] = REDATED) -> tuple[dict[str, Any], list[Ask]]:
    return run([new], [stored("old"), stored("other")], *verdicts)


@pytest.mark.parametrize(
    ("told", "corrects"),
    [
        ([verdict("conflicts")], True),
        ([verdict("conflicts", sure=0.7)], False),
        ([verdict("duplicate")], False),
        ([verdict("conflicts", holds="known")], False),
        ([], False),
        ([verdict("supersedes")], False),
    ],
)
def test_date_is_corrected_only_by_sure_conflict_for_new_fact(told, corrects):
    result, _ = redated(*told)
    assert (result["facts"][0]["same_as"], result["facts"][0]["corrects"]) == ("old", corrects)
    assert result["verdicts"] == []


@pytest.mark.parametrize(
    "same",
    [
        {"stated_from": None}, {"valid_at": OPEN_START}, {"valid_at": NOW}, {"valid_at": 5 + DAY // 2},
        {"valid_at": 5, "precision": "instant"},
    ],
)  # fmt: skip
def test_judge_asks_nothing_about_same_or_missing_date(same):
    assert unasked([{**REDATED, **same}], [stored("old")])["facts"][0]["same_as"] == "old"


# Declared predicates

DECLARED = {"declared": True, "single_valued": True}


@pytest.mark.parametrize("told", [[], [verdict("unrelated")], [verdict("complements", sure=0.4)]])
def test_declared_single_valued_fact_supersedes_by_default(told):
    """It supersedes the existing fact if the model gives no verdict, or an unsure or unrelated one."""
    result, _ = run([fact(**DECLARED)], [stored()], *told)
    assert ruled(result) == [("supersedes", "supersedes", "old")]


@pytest.mark.parametrize("kind", ["complements", "temporary", "conflicts"])
def test_model_verdict_overrides_declared_cardinality(kind):
    result, _ = run([fact(**DECLARED)], [stored()], verdict(kind))
    assert [each["kind"] for each in result["verdicts"]] == (["conflicts"] if kind == "conflicts" else [])


@pytest.mark.parametrize("other", [{"predicate": "LEFT"}, {"subject": "Bob", "subject_id": "id Bob"}])
def test_declared_cardinality_ignores_other_predicate_or_subject(other):
    result, _ = run([fact(**DECLARED)], [stored(**other)])
    assert result["verdicts"] == []


def test_undeclared_single_valued_fact_ends_nothing_by_itself():
    result, _ = run([fact()], [stored()])
    assert result["verdicts"] == []


KINDS = st.sampled_from(["duplicate", "supersedes", "conflicts", "complements", "temporary", "unrelated", "x", ""])
ANSWERS = st.lists(
    st.builds(verdict, KINDS, st.integers(-2, 4), new=st.integers(-2, 4), sure=st.floats(), holds=st.text(max_size=6)),
    max_size=12,
)


@given(ANSWERS)
def test_any_model_answer_gives_at_most_one_verdict_per_pair(told):
    """No verdict relates a fact to itself."""
    facts = [fact("one"), fact("two", objects=(2,))]
    result, _ = run(facts, [stored(f"known {number}", number % 2) for number in range(4)], *told)
    for each in result["verdicts"]:
        assert FactVerdict.model_validate({**each, "fact": 0, "known": 0, "verdict": each["kind"]})
        assert each["new"] != each["existing"]
    assert len({each["id"] for each in result["verdicts"]}) == len(result["verdicts"])
    known = {None, "one", "two", *(f"known {number}" for number in range(4))}  # the two may be duplicates
    assert all(each["same_as"] in known - {each["id"]} for each in result["facts"])

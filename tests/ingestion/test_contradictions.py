from __future__ import annotations

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
from tests.ingestion.stepping import NOW, answered, entity, state

KNOWN = [entity("Ann", known=True), entity("Paris", "Place", known=True), entity("Bob")]
DAY = 24 * 3600 * 1_000_000


def judge(given: dict[str, Any], settings: Settings) -> Flow[dict[str, Any]]:
    """Return what `dedupe` makes of a plain state, and what `invalidate` makes of the verdicts, plain."""
    draft = Draft.of(decode(given))
    update = yield from dedupe.dedupe(draft, settings)
    policy, comparisons = ConflictPolicy.from_settings(settings), update["comparisons"]
    facts = apply_corrections(update["facts"], comparisons, policy)
    verdicts = find_verdicts(facts, comparisons, draft.namespace, policy)
    rejudged = find_rejudged(facts, comparisons, verdicts, draft.namespace)
    return encode({**update, "facts": facts, "verdicts": verdicts, "rejudged": rejudged})


def fact(id_: str = "new", objects: tuple[int, ...] = (1,), **given: Any) -> dict[str, Any]:
    """Return a fact as `date` leaves it: what Ann said of herself."""
    return {
        "id": id_, "subject": 0, "subject_id": "id Ann", "predicate": "LIVES_IN", "wording": "LIVES_IN",
        "objects": list(objects), "object_ids": [KNOWN[each]["id"] for each in objects], "single_valued": True,
        "declared": False, "family": "residence", "sentence": f"Ann lives in {id_}.", "start": 0, "end": 15,
        "quoted": True, "stated_from": None, "stated_until": None, "stated_at": NOW, "valid_at": NOW,
        "invalid_at": OPEN_END, "precision": "instant", "window_end": OPEN_END, "confidence": 1.0,
        "edge_type": "semantic", "same_as": None, "corrects": False, "refuted": False, "restated": False, **given,
    }  # fmt: skip


def stored(id_: str = "old", place: int = 0, objects: tuple[str, ...] = ("Oslo",), **given: Any) -> dict[str, Any]:
    """Return a known fact as the queries tell it, found for the fact at *place*."""
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
    """Return what a model says of a pair."""
    told = {"fact": new, "known": known, "verdict": kind, "confidence": sure, "holds": "new", "reason": "It says so."}
    return {**told, **given}


def run(
    facts: list[dict[str, Any]],
    found: list[dict[str, Any]],
    *verdicts: dict[str, Any],
    settings: Settings | None = None,
) -> tuple[dict[str, Any], list[Ask]]:
    """Return the result and the questions, where the search by subject finds *found*."""
    flow = judge(state(entities=KNOWN, facts=facts), settings or Settings())
    result, effects = answered(flow, [[0.0]] * len(facts), found, FactVerdicts(verdicts=list(verdicts)))
    return result, [each for each in effects if isinstance(each, Ask)]


def unasked(facts: list[dict[str, Any]], found: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the result where nothing is asked."""
    flow = judge(state(entities=KNOWN, facts=facts), Settings())
    return answered(flow, [[0.0]] * len(facts), found)[0]


def ruled(result: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(each["kind"], each["ruling"], each["existing"]) for each in result["verdicts"]]


# What is looked for


def test_what_it_is_based_on_is_read_with_the_candidates():
    flow = judge(state(entities=KNOWN, facts=[fact()]), Settings())
    result, [_, related] = answered(
        flow, [[0.0]], [{"kind": "revision", "new": 0, "value": {"id": "id Ann", "revision": 7}}]
    )
    assert related.params["ends"] == ["id Ann", "id Paris"]
    # An entity that is not there yet must still not be there.
    assert result["grounds"]["revisions"] == {"id Ann": 7, "id Paris": 0}


# What is known already


def test_the_same_words_again_are_the_same_fact_without_asking():
    """A fact with the words of an existing one is a duplicate, without a call of the model.

    Features: A23.
    """
    result = unasked([fact("old")], [stored("x"), stored("old")])
    assert (result["facts"][0]["same_as"], result["verdicts"]) == ("old", [])


def test_another_sentence_of_one_pair_and_one_at_a_time_is_the_same_fact_without_asking():
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
def test_another_predicate_direction_or_number_of_objects_is_asked_about(other):
    result, [_] = run([fact("new")], [other], verdict("unrelated"))
    assert result["facts"][0]["same_as"] is None


def test_of_a_plural_predicate_another_sentence_is_asked_about():
    plural = fact("new", predicate="VISITED", single_valued=False)
    _, [asked] = run([plural], [stored("old", objects=("Paris",), predicate="VISITED")])
    assert len(asked.fields["facts"]) == 1


def test_only_the_uncertain_ones_are_asked_about_under_their_own_place():
    """Only uncertain facts are in the prompt, each with its index among the new facts.

    Features: A54.
    """
    facts = [fact("old"), fact("new", objects=(2,))]
    result, [asked] = run(facts, [stored("old"), stored("old", 1)], verdict("duplicate", new=1))
    assert [each["id"] for each in asked.fields["facts"]] == [1]
    assert [each["same_as"] for each in result["facts"]] == ["old", "old"]


# What is asked


def test_one_question_is_asked_for_all_facts_of_the_episode():
    facts = [fact("one", single_valued=False), fact("two", objects=(2,), single_valued=False)]
    _, asked = run(facts, [stored("a"), stored("b", 1), stored("c", 1)])
    assert len(asked) == 1
    assert [[each["id"] for each in told["existing"]] for told in asked[0].fields["facts"]] == [[0], [0, 1]]


def test_what_one_episode_says_of_two_times_is_compared_with_itself():
    facts = [fact("oslo", valid_at=NOW - DAY), fact("paris", objects=(2,))]
    result, [asked] = run(facts, [], verdict("supersedes", new=1))
    assert [each["sentence"] for each in asked.fields["facts"][0]["existing"]] == ["Ann lives in oslo."]
    assert [(each["new"], each["existing"]) for each in result["verdicts"]] == [("paris", "oslo")]
    together = [fact("oslo"), fact("paris", objects=(2,))]
    assert run(together, [], verdict("supersedes", new=1))[0]["verdicts"] == []


def test_what_one_episode_says_twice_is_one_fact():
    result = unasked([fact("oslo"), fact("again")], [])
    assert [each["same_as"] for each in result["facts"]] == [None, "oslo"]
    known = unasked([fact("oslo"), fact("again")], [stored("old", objects=("Paris",)), stored("old", 1, ("Paris",))])
    assert [each["same_as"] for each in known["facts"]] == ["old", "old"]


def test_the_question_tells_words_dates_and_numbers_and_no_ids_of_the_graph():
    _, [asked] = run([fact("new", valid_at=OPEN_START, invalid_at=NOW)], [stored("one"), stored("two")])
    [told] = asked.fields["facts"]
    assert (told["subject"], told["objects"], told["quote"]) == ("Ann", ["Paris"], "I live in Oslo.")
    assert (told["said_at"], told.get("valid_at"), told["invalid_at"]) == (
        "2024-01-01T00:00Z", None, "2024-01-01T00:00Z",
    )  # fmt: skip
    first, second = told["existing"]
    assert (first["id"], second["id"], first["sentence"], first["one_at_a_time"]) == (0, 1, "Of one.", True)
    assert (first["valid_at"], first.get("invalid_at")) == ("1970-01-01T00:00:00.000005Z", None)
    assert "id Ann" not in str(told)


def test_the_question_does_not_tell_what_is_not_so_or_not_known():
    open_ended = {"valid_at": OPEN_START, "invalid_at": OPEN_END, "single_valued": False}
    _, [asked] = run([fact("new", **open_ended)], [stored("one", valid_at=OPEN_START)])
    [told] = asked.fields["facts"]
    for each in (told, *told["existing"]):
        assert not {"valid_at", "invalid_at", "one_at_a_time"} & each.keys()
    assert {"subject", "predicate", "objects", "sentence", "said_at"} < told["existing"][0].keys() < told.keys()


def test_an_entity_that_got_a_fuller_name_is_told_under_it_on_both_sides():
    entities = [{**KNOWN[0], "name": "Ann Smith"}, {**KNOWN[1], "name": "Paris, France"}]
    flow = judge(state(entities=entities, facts=[fact(single_valued=False)]), Settings())
    _, effects = answered(flow, [[0.0]], [stored(objects=("Oslo", "Paris"))], FactVerdicts(verdicts=[]))
    [told] = effects[-1].fields["facts"]
    [known] = told["existing"]
    assert told["subject"] == known["subject"] == "Ann Smith"
    assert (told["objects"], known["objects"]) == (["Paris, France"], ["Oslo", "Paris, France"])


@pytest.mark.parametrize("known", [{"subject": "ANN"}, {"subject": "Another Ann", "subject_id": "id other"}])
def test_a_fact_about_another_of_the_same_name_is_not_compared(known):
    entities = [{**KNOWN[0], "apart_from": ["id other"]}, *KNOWN[1:]]
    rows = [stored("a", objects=("Paris",), **{"subject_id": "id of another", **known}), stored("b", subject="Ann B")]
    flow = judge(state(entities=entities, facts=[fact()]), Settings())
    _, effects = answered(flow, [[0.0]], rows, FactVerdicts(verdicts=[]))
    assert [old["sentence"] for old in effects[-1].fields["facts"][0]["existing"]] == ["Of b."]


def test_a_candidate_found_in_two_ways_is_asked_about_once():
    flow = judge(state(entities=KNOWN, facts=[fact()]), Settings())
    _, effects = answered(flow, [[0.0]], [stored()] * 3, FactVerdicts(verdicts=[]))
    assert [each["id"] for each in effects[-1].fields["facts"][0]["existing"]] == [0]


def test_done_again_it_asks_only_about_what_came_since():
    first, _ = run([fact()], [stored("one")], verdict("supersedes"))
    given = state(entities=KNOWN, facts=first["facts"], judged=first["judged"])
    flow = judge(given, Settings())
    rows = [stored("one"), stored("two")]
    result, effects = answered(flow, [[0.0]], rows, FactVerdicts(verdicts=[verdict("conflicts")]))
    assert [each["sentence"] for each in effects[-1].fields["facts"][0]["existing"]] == ["Of two."]
    assert sorted(ruled(result)) == [("conflicts", "conflicts", "two"), ("supersedes", "supersedes", "one")]


@pytest.mark.parametrize("name", ["Ann Smith", "安", "", "Ann\x00"])
def test_done_again_under_another_name_of_an_entity_nothing_is_asked(name):
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
def test_done_again_with_another_text_or_date_or_object_it_asks_again(change):
    first, _ = run([fact()], [stored("one")], verdict("supersedes"))
    given = state(entities=KNOWN, facts=first["facts"], judged=first["judged"])
    _, effects = answered(judge(given, Settings()), [[0.0]], [stored("one", **change)], FactVerdicts(verdicts=[]))
    assert isinstance(effects[-1], Ask)


# What the verdicts do


@pytest.mark.parametrize(
    ("sure", "ruling"),
    [(1.0, "supersedes"), (0.85, "supersedes"), (0.8499, "waiting"), (0.5, "waiting"), (0.4999, None)],
)
@pytest.mark.parametrize("kind", ["supersedes", "conflicts"])
def test_what_is_sure_takes_effect_what_is_less_waits_and_what_is_doubtful_is_ignored(sure, ruling, kind):
    """The confidence of a verdict decides whether it takes effect, waits for review or is ignored.

    Features: D6.
    """
    result, _ = run([fact()], [stored()], verdict(kind, sure=sure))
    expected = {None: [], "waiting": ["waiting"]}.get(ruling, [kind])
    assert [each["ruling"] for each in result["verdicts"]] == expected


@pytest.mark.parametrize("kind", ["complements", "temporary", "unrelated", "duplicate"])
def test_a_paraphrase_a_complement_and_a_passing_state_end_nothing(kind):
    """Verdicts of these three kinds end no existing fact.

    Features: C49, D32.
    """
    result, _ = run([fact()], [stored()], verdict(kind))
    assert result["verdicts"] == []


@pytest.mark.parametrize(
    "odd",
    [
        verdict("supersedes", 7), verdict("supersedes", -1), verdict("supersedes", new=5),
        verdict("supersedes", new=-1), verdict("rules out"), verdict(""),
    ],
)  # fmt: skip
def test_verdicts_about_what_was_not_asked_or_of_no_known_kind_are_ignored(odd):
    result, _ = run([fact()], [stored()], odd)
    assert (result["verdicts"], result["facts"][0]["same_as"]) == ([], None)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_fact_that_is_known_and_ends_another_does_so_under_the_known_ones_id(order):
    told = [verdict("duplicate", 0), verdict("supersedes", 1)]
    result, _ = run([fact()], [stored("same"), stored("taken")], *(told[place] for place in order))
    assert result["facts"][0]["same_as"] == "same"
    [only] = result["verdicts"]
    assert (only["new"], only["existing"], only["id"]) == ("same", "taken", verdict_id("n", "same", "taken"))


def test_of_two_facts_that_it_may_say_again_the_surer_one_is_it():
    told = (verdict("duplicate", 0, sure=0.86), verdict("duplicate", 1, sure=0.99))
    result, _ = run([fact()], [stored("one"), stored("two")], *told)
    assert result["facts"][0]["same_as"] == "two"


def test_what_one_episode_states_together_does_not_contradict_itself():
    facts = [fact("paris"), fact("old", objects=(2,))]
    result, _ = run(facts, [stored("old"), stored("old", 1)], verdict("supersedes"))
    assert (result["facts"][1]["same_as"], result["verdicts"]) == ("old", [])


def test_one_pair_has_one_verdict_the_surest():
    facts = [fact("one"), fact("two", objects=(2,))]
    found = [stored("same"), stored("taken"), stored("same", 1), stored("taken", 1)]
    told = [
        verdict("duplicate", 0), verdict("supersedes", 1, sure=0.86),
        verdict("duplicate", 0, new=1), verdict("conflicts", 1, new=1, sure=0.99),
    ]  # fmt: skip
    result, _ = run(facts, found, *told)
    assert ruled(result) == [("conflicts", "conflicts", "taken")]


def test_a_passing_state_keeps_the_end_that_it_was_said_to_have():
    passing = fact("new", precision="week", window_end=NOW + 7 * DAY, invalid_at=NOW + DAY)
    result, _ = run([passing], [stored()], verdict("temporary"))
    assert result["facts"][0]["invalid_at"] == NOW + DAY


# The same fact with other dates

REDATED = fact("old", valid_at=NOW - 100 * DAY, stated_from="2023-09-23", precision="day")


def test_the_same_fact_with_another_date_is_asked_about():
    _, [asked] = redated()
    assert [each["id"] for each in asked.fields["facts"][0]["existing"]] == [0]


def redated(*verdicts: dict[str, Any], new: dict[str, Any] = REDATED) -> tuple[dict[str, Any], list[Ask]]:
    flow = judge(state(entities=KNOWN, facts=[new]), Settings())
    answer = FactVerdicts(verdicts=list(verdicts))
    result, effects = answered(flow, [[0.0]], [stored("old"), stored("other")], answer)
    return result, [each for each in effects if isinstance(each, Ask)]


@pytest.mark.parametrize(
    ("told", "corrects"),
    [
        ([verdict("conflicts")], True), ([verdict("conflicts", sure=0.7)], False), ([verdict("duplicate")], False),
        ([verdict("conflicts", holds="known")], False), ([], False), ([verdict("supersedes")], False),
    ],
)  # fmt: skip
def test_another_date_that_is_told_as_a_correction_corrects_and_no_other(told, corrects):
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
def test_the_same_date_or_none_of_its_own_is_not_asked_about(same):
    assert unasked([{**REDATED, **same}], [stored("old")])["facts"][0]["same_as"] == "old"


# What is declared

DECLARED = {"declared": True, "single_valued": True}


@pytest.mark.parametrize("told", [[], [verdict("unrelated")], [verdict("complements", sure=0.4)]])
def test_what_is_declared_to_hold_one_at_a_time_ends_the_other_where_the_model_says_nothing(told):
    result, _ = run([fact(**DECLARED)], [stored()], *told)
    assert ruled(result) == [("supersedes", "supersedes", "old")]


@pytest.mark.parametrize("kind", ["complements", "temporary", "conflicts"])
def test_what_the_model_says_of_a_pair_goes_before_what_is_declared(kind):
    result, _ = run([fact(**DECLARED)], [stored()], verdict(kind))
    assert [each["kind"] for each in result["verdicts"]] == (["conflicts"] if kind == "conflicts" else [])


@pytest.mark.parametrize("other", [{"predicate": "LEFT"}, {"subject": "Bob", "subject_id": "id Bob"}])
def test_what_is_declared_of_one_predicate_and_subject_tells_nothing_of_another(other):
    result, _ = run([fact(**DECLARED)], [stored(**other)])
    assert result["verdicts"] == []


def test_what_is_only_guessed_to_hold_one_at_a_time_ends_nothing_by_itself():
    result, _ = run([fact()], [stored()])
    assert result["verdicts"] == []


def test_what_is_declared_to_hold_beside_others_is_not_ended_by_them_but_may_be_refuted():
    plural = {"declared": True, "single_valued": False}
    assert run([fact(**plural)], [stored()], verdict("supersedes"))[0]["verdicts"] == []
    assert ruled(run([fact(**plural)], [stored()], verdict("conflicts"))[0]) == [("conflicts", "conflicts", "old")]


KINDS = st.sampled_from(["duplicate", "supersedes", "conflicts", "complements", "temporary", "unrelated", "x", ""])
ANSWERS = st.lists(
    st.builds(verdict, KINDS, st.integers(-2, 4), new=st.integers(-2, 4), sure=st.floats(), holds=st.text(max_size=6)),
    max_size=12,
)


@given(ANSWERS)
def test_whatever_the_model_answers_each_pair_has_one_verdict_and_no_fact_is_against_itself(told):
    facts = [fact("one"), fact("two", objects=(2,))]
    found = [stored(f"known {number}", number % 2) for number in range(4)]
    result, _ = run(facts, found, *told)
    assert all(
        FactVerdict.model_validate({**each, "fact": 0, "known": 0, "verdict": each["kind"]})
        for each in result["verdicts"]
    )
    assert len({each["id"] for each in result["verdicts"]}) == len(result["verdicts"])
    assert all(each["new"] != each["existing"] for each in result["verdicts"])
    known = {None, "one", "two", *(f"known {number}" for number in range(4))}  # the two may say the same
    assert all(each["same_as"] in known - {each["id"]} for each in result["facts"])

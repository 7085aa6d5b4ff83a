from typing import Any

import pytest

from kg_memory.falkor.queries import facts as cypher
from kg_memory.ingestion.facts import MOST_SHOWN, Meaning, find_meanings
from kg_memory.ingestion.records import NewPredicate
from kg_memory.llm.prompts.answers import CanonicalPredicates
from kg_memory.models.ontology import FactType
from kg_memory.settings import Settings
from tests.ingestion.stepping import answered

DRIVES = Settings(fact_types=(FactType("Drives", "which car a person has", single_valued=True),))


def row(name: str, canonical: str, origin: str = "learned", *, one: bool | None = False) -> dict[str, Any]:
    return {"predicate": {"name": name, "canonical": canonical, "single_valued": one, "origin": origin}}


def find_meaning(name: str, *answers: Any, settings: Settings | None = None) -> tuple[Meaning, list[Any], list[Any]]:
    """Return the meaning of the predicate *name*, the learned predicates, and the effects."""
    flow = find_meanings({name: "Ann says so."}, settings or Settings())
    (found, learned), effects = answered(flow, *answers)
    assert found.keys() == {name}
    return found[name], learned, effects


def answer_for(name: str, canonical: str, *, one: bool = False) -> CanonicalPredicates:
    return CanonicalPredicates(predicates=[{"name": name, "canonical": canonical, "one_at_a_time": one}])


def test_known_predicate_is_resolved_without_model_call():
    meaning, learned, effects = find_meaning("RESIDES_IN", [])
    assert meaning == Meaning("LIVES_IN", single_valued=True, family="residence")
    assert (learned, [each.cypher for each in effects]) == ((), [cypher.ALL_PREDICATES])


def test_predicate_is_corrected_declared_learned_or_ruled():
    """A correction takes precedence over a declaration, that over a learned predicate, and that over the rules.

    Features: B6.
    """
    meaning, learned, _ = find_meaning("RESIDES_IN", [row("RESIDES_IN", "DWELLS_IN")])
    assert (meaning.name, meaning.declared, learned) == ("DWELLS_IN", False, ())
    meaning, _, _ = find_meaning("DRIVES", [row("DRIVES", "STEERS")], settings=DRIVES)
    assert (meaning.name, meaning.single_valued, meaning.declared) == ("DRIVES", True, True)
    meaning, _, _ = find_meaning("DRIVES", [row("DRIVES", "STEERS", "corrected", one=False)], settings=DRIVES)
    assert (meaning.name, meaning.single_valued, meaning.declared) == ("STEERS", False, True)
    meaning, _, _ = find_meaning("DRIVES", [row("DRIVES", "STEERS", "corrected", one=None)])
    assert not meaning.declared, "a corrected name declares no cardinality"


def test_fact_type_without_cardinality_declares_none():
    settings = Settings(fact_types=(FactType("Lives in", "home"),))
    meaning, _, _ = find_meaning("LIVES_IN", [], settings=settings)
    assert meaning == Meaning("LIVES_IN", single_valued=True, family="residence", declared=False)


def test_unknown_predicate_is_asked_about_with_its_sentence():
    """The model is asked once about an unknown predicate, with its sentence and the predicates in use.

    Features: C55.
    """
    settings = Settings(fact_types=(FactType("Owns shares of", "capital"),))
    answer = answer_for("XERBLATS", "GLORPS", one=True)
    meaning, learned, effects = find_meaning("XERBLATS", [row("ZORPS", "GLORPS")], answer, settings=settings)
    asked = effects[-1]
    assert asked.fields["predicates"] == [{"name": "XERBLATS", "sentence": "Ann says so."}]
    assert asked.fields["known"][:2] == ["OWNS_SHARES_OF", "GLORPS"]
    assert len(asked.fields["known"]) <= MOST_SHOWN
    assert (meaning.name, meaning.single_valued) == ("GLORPS", True)
    assert learned == (NewPredicate("XERBLATS", "GLORPS", single_valued=True),)


def test_predicate_of_the_model_is_made_canonical():
    meaning, learned, _ = find_meaning("LIVES_XERBLY_IN", [], answer_for("LIVES_XERBLY_IN", "resides in", one=False))
    assert (meaning.name, meaning.single_valued, meaning.family) == ("LIVES_IN", True, "residence")
    assert learned[0].canonical == "LIVES_IN"


@pytest.mark.parametrize("odd", ["ANOTHER", "", "lives_xerbly"])
def test_answer_about_another_predicate_is_ignored(odd):
    meaning, learned, _ = find_meaning("LIVES_XERBLY", [], answer_for(odd, "GLORPS"))
    assert (meaning.name, learned) == ("LIVES_XERBLY", ())


def test_predicate_unlike_all_known_ones_keeps_its_name_without_model_call():
    meaning, learned, effects = find_meaning("XERBLATS", [row("ZORPS", "GLORPS")])
    assert (meaning, len(effects)) == (Meaning("XERBLATS"), 1)
    assert learned == (NewPredicate("XERBLATS", "XERBLATS", single_valued=None),)
    again = row("XERBLATS", "XERBLATS", one=None), answer_for("XERBLATS", "GLORPS", one=True)
    meaning, learned, _ = find_meaning("XERBLATS", [again[0]], again[1])
    assert learned == (NewPredicate("XERBLATS", "XERBLATS", single_valued=True),), "asked about when it comes again"
    assert (meaning.name, meaning.single_valued) == ("XERBLATS", True)
    _, _, effects = find_meaning("爱喝", [], answer_for("爱喝", "LIKES_TO_DRINK"))
    assert effects[-1].fields["predicates"] == [{"name": "爱喝", "sentence": "Ann says so."}]

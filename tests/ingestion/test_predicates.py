from __future__ import annotations

from typing import Any

import pytest

from kg_memory.falkor.queries import facts as cypher
from kg_memory.ingestion.facts import MOST_SHOWN, Meaning, find_meanings
from kg_memory.ingestion.records import NewPredicate
from kg_memory.llm.prompts.answers import CanonicalPredicates
from kg_memory.models.ontology import FactType
from kg_memory.settings import Settings
from tests.ingestion.stepping import answered

DRIVES = FactType("Drives", "which car a person has", single_valued=True)


def row(name: str, canonical: str, origin: str = "learned", *, one: bool | None = False) -> dict[str, Any]:
    return {"predicate": {"name": name, "canonical": canonical, "single_valued": one, "origin": origin}}


def meant(name: str, *answers: Any, settings: Settings | None = None) -> tuple[Meaning, list[Any], list[Any]]:
    """Return what *name* means, what was learned, and the effects."""
    flow = find_meanings({name: "Ann says so."}, settings or Settings())
    (found, learned), effects = answered(flow, *answers)
    assert found.keys() == {name}
    return found[name], learned, effects


def told(name: str, canonical: str, *, one: bool = False) -> CanonicalPredicates:
    return CanonicalPredicates(predicates=[{"name": name, "canonical": canonical, "one_at_a_time": one}])


def test_what_the_rules_know_is_not_asked():
    meaning, learned, effects = meant("RESIDES_IN", [])
    assert meaning == Meaning("LIVES_IN", single_valued=True, family="residence")
    assert (learned, [each.cypher for each in effects]) == ((), [cypher.ALL_PREDICATES])


def test_what_was_learned_goes_before_the_rules():
    meaning, learned, _ = meant("RESIDES_IN", [row("RESIDES_IN", "DWELLS_IN")])
    assert (meaning.name, meaning.declared, learned) == ("DWELLS_IN", False, ())


def test_what_is_declared_goes_before_what_was_learned():
    """A declared predicate takes precedence over a learned one.

    Features: B6.
    """
    settings = Settings(fact_types=(DRIVES,))
    meaning, _, _ = meant("DRIVES", [row("DRIVES", "STEERS")], settings=settings)
    assert (meaning.name, meaning.single_valued, meaning.declared) == ("DRIVES", True, True)


def test_what_a_person_corrected_goes_before_all():
    settings = Settings(fact_types=(DRIVES,))
    meaning, _, _ = meant("DRIVES", [row("DRIVES", "STEERS", "corrected", one=False)], settings=settings)
    assert (meaning.name, meaning.single_valued, meaning.declared) == ("STEERS", False, True)


def test_a_correction_of_the_name_alone_declares_nothing_of_how_many():
    meaning, _, _ = meant("DRIVES", [row("DRIVES", "STEERS", "corrected", one=None)])
    assert not meaning.declared


def test_a_fact_type_that_does_not_say_how_many_declares_it_not():
    settings = Settings(fact_types=(FactType("Lives in", "home"),))
    meaning, _, _ = meant("LIVES_IN", [], settings=settings)
    assert meaning == Meaning("LIVES_IN", single_valued=True, family="residence", declared=False)


def test_what_nobody_knows_is_asked_once_with_its_sentence_and_the_names_in_use():
    """The model is asked once about an unknown predicate, with its sentence and the predicates in use.

    Features: C55.
    """
    settings = Settings(fact_types=(FactType("Owns shares of", "capital"),))
    meaning, learned, effects = meant(
        "XERBLATS", [row("ZORPS", "GLORPS")], told("XERBLATS", "GLORPS", one=True), settings=settings
    )
    asked = effects[-1]
    assert asked.fields["predicates"] == [{"name": "XERBLATS", "sentence": "Ann says so."}]
    assert asked.fields["known"][:2] == ["OWNS_SHARES_OF", "GLORPS"]
    assert len(asked.fields["known"]) <= MOST_SHOWN
    assert (meaning.name, meaning.single_valued) == ("GLORPS", True)
    assert learned == (NewPredicate("XERBLATS", "GLORPS", single_valued=True),)


def test_the_models_name_is_brought_to_the_one_that_the_rules_have_for_it():
    meaning, learned, _ = meant("XERBLATS", [], told("XERBLATS", "resides in", one=False))
    assert (meaning.name, meaning.single_valued, meaning.family) == ("LIVES_IN", True, "residence")
    assert learned[0].canonical == "LIVES_IN"


@pytest.mark.parametrize("odd", ["ANOTHER", "", "xerblats"])
def test_an_answer_about_what_was_not_asked_teaches_nothing(odd):
    meaning, learned, _ = meant("XERBLATS", [], told(odd, "GLORPS"))
    assert (meaning.name, learned) == ("XERBLATS", ())

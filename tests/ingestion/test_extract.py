import pytest

from kg_memory.llm.prompts import EXTRACT_JSON, EXTRACT_MESSAGE, EXTRACT_TEXT
from kg_memory.llm.prompts.answers import ExtractedEntities
from kg_memory.models.ontology import EntityType
from kg_memory.settings import Settings
from kg_memory.text.identity import PRONOUNS
from tests.ingestion.stepping import answered, extract, state

SETTINGS = Settings(plan="thorough")


def found(*names: str, type_: str = "Person") -> ExtractedEntities:
    return ExtractedEntities(entities=[{"name": name, "type": type_} for name in names])


def names(given, answer, settings=SETTINGS) -> list[str]:
    result, _ = answered(extract(given, settings), *answer)
    return [each["name"] for each in result["mentions"]]


def test_speaker_is_the_first_entity():
    """The speaker is the first entity, whether or not the model returns it.

    Features: A15.
    """
    assert names(state(), [found("Oslo")]) == ["Ann", "Oslo"]
    assert names(state(), [found("Oslo", "ANN")]) == ["Ann", "Oslo"]


def test_extract_adds_no_entity_without_a_speaker():
    assert names(state(episode={"speaker": None}), [found("Oslo")]) == ["Oslo"]


@pytest.mark.parametrize("name", [*sorted(PRONOUNS)[::7], "I", "HER", "我们", "", "  ", "!!!", "\x00", "🎉"])
def test_extract_drops_pronouns_and_names_without_letters(name):
    """Features: A51."""
    assert names(state(), [found(name, "Oslo")]) == ["Ann", "Oslo"]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("I live in the US and work at WHO.", ["US", "WHO"]), ("She runs IT for us.", ["IT"]),
        ("We flew to the U.S. in May.", ["US"]), ("May and Will met Hope.", ["May", "Will", "Hope"]), ("IT", ["IT"]),
    ],
)  # fmt: skip
def test_extract_accepts_names_spelt_like_common_words(content, told):
    assert names(state(content), [found(*told)]) == ["Ann", *told]


@pytest.mark.parametrize(
    ("content", "name"),
    [("She runs it for us.", "us"), ("It is here.", "It"), ("WE MET US THERE", "US"), ("I live in Oslo.", "US")],
)
def test_dropped_pronoun_is_reported_with_reason(content, name):
    """Pronouns are dropped as entities, and the report has the reason.

    Features: B2.
    """
    result, _ = answered(extract(state(content), SETTINGS), found(name, "Oslo"))
    assert [each["name"] for each in result["mentions"]] == ["Ann", "Oslo"]
    assert result["dropped"] == [{"kind": "entity", "text": name, "reason": "its name is a pronoun"}]


def test_extract_merges_equal_names():
    """Features: B3."""
    assert names(state(), [found("Oslo", "oslo", " OSLO ")]) == ["Ann", "Oslo"]


def test_entity_name_has_no_line_breaks():
    assert names(state(), [found("New\nYork \x07City")]) == ["Ann", "New York City"]


def test_entity_type_becomes_a_declared_type():
    """An unknown entity type becomes the first declared type; a known one gets its declared spelling.

    Features: B1.
    """
    types = (EntityType("Thing", "anything"), EntityType("Person", "a human"), EntityType("Ship", "it floats"))
    given = ExtractedEntities(entities=[{"name": "Fram", "type": " sHIP "}, {"name": "Oslo", "type": "City"}])
    result, _ = answered(extract(state(), Settings(entity_types=types, plan="thorough")), given)
    assert [each["type"] for each in result["mentions"]] == ["Person", "Ship", "Thing"]


def test_speaker_has_the_first_type_without_a_person_type():
    settings = Settings(entity_types=(EntityType("Thing", "anything"),), plan="thorough")
    result, _ = answered(extract(state(), settings), found())
    assert [(each["name"], each["type"]) for each in result["mentions"]] == [("Ann", "Thing")]


@pytest.mark.parametrize(
    ("kind", "prompt"), [("message", EXTRACT_MESSAGE), ("text", EXTRACT_TEXT), ("json", EXTRACT_JSON)]
)
def test_each_episode_kind_has_its_own_prompt(kind, prompt):
    """Each kind of episode has its own prompt, which gets exactly the fields that it uses.

    Features: A9.
    """
    settings = Settings(instructions="Keep order numbers.", plan="thorough")
    _, [asked] = answered(extract(state(episode={"kind": kind}), settings), found())
    assert asked.prompt is prompt
    assert asked.fields.keys() == prompt.fields
    assert asked.fields["instructions"] == "Keep order numbers."
    assert "Person" in asked.fields["entity_types"]
    assert "embedding" not in str(asked.fields)

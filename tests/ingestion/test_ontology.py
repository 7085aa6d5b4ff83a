"""Ontologies by name and from a file, and strict ontologies."""

import pytest

from kg_memory import GraphMemory, Settings
from kg_memory.contrib.variants import MEMORYD, ZEPH
from kg_memory.errors import SettingsError
from kg_memory.models.ontology import ENTITY_TYPES
from tests.scripted import Scripted

FILE = """
strict = true
[[entity_types]]
name = "Thing"
description = "anything"
[[fact_types]]
name = "LIVES_IN"
description = "somebody lives in a place"
signature = [["Thing", "Thing"]]
single_valued = true
"""


def test_ontology_is_chosen_by_its_name():
    """Features: C2, D1."""
    memoryd, zeph = Settings(ontology="memoryd"), Settings(ontology="zeph")
    assert (memoryd.entity_types, memoryd.strict_fact_types) == (MEMORYD.entity_types, True)
    names = [type_.name for type_ in memoryd.entity_types]
    assert names == ["Concept", "Person", "Organization", "Place", "Library", "Tool", "Project"]
    assert (zeph.entity_types, zeph.fact_types, zeph.strict_fact_types) == (ZEPH.entity_types, (), False)
    assert len(zeph.entity_types) == 8
    assert Settings().entity_types == ENTITY_TYPES
    assert Settings.from_env({"KG_MEMORY_ONTOLOGY": "zeph"}).entity_types == ZEPH.entity_types
    assert memoryd.with_(plan="thorough").fact_types == MEMORYD.fact_types


def test_strict_ontology_drops_and_reports_undeclared_facts(server, embeddings, namespace, tmp_path):
    """Features: D2."""
    path = tmp_path / "types.toml"
    path.write_text(FILE, encoding="utf-8")
    settings = Settings(url=server.url, merge_threshold=0.98, ask_threshold=0.6, ontology=str(path))
    with GraphMemory(settings, model=Scripted(), embeddings=embeddings) as memory:
        added = memory.add("Ann knows Bob.", speaker="Ann", namespace=namespace)
        assert added.facts == ()
        assert "is not a declared fact type" in added.dropped[0].reason
        assert memory.add("I live in Oslo.", speaker="Ann", namespace=namespace).facts
        [fact] = memory.facts.list(namespace=namespace)
        assert (fact.predicate, memory.stats(namespace=namespace).episodes) == ("LIVES_IN", 2)


@pytest.mark.parametrize(
    "content",
    [
        "strict = 1", "strict = true", "other = 1", "[[fact_types]]", "[",
        "[[entity_types]]\nname = 1\ndescription = 'x'", "[[entity_types]]\nname=''\ndescription=''",
        "[[fact_types]]\nname='A'\ndescription='b'\nsignature=[['x']]",
    ],
)  # fmt: skip
def test_settings_refuse_an_invalid_ontology_file(content, tmp_path):
    path = tmp_path / "types.toml"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(SettingsError, match="ontology"):
        Settings(ontology=str(path))
    with pytest.raises(SettingsError, match="memoryd, zeph or a TOML file"):
        Settings(ontology="nothing")

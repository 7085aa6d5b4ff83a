"""GraphML and Cytoscape JSON are valid for other programs, whatever the names contain."""

import io
import json
from typing import Literal
from xml.etree import ElementTree as ET

import pytest
from pydantic import BaseModel, ConfigDict

from kg_memory import GraphMemory
from kg_memory.errors import InputError
from tests.scripted import Scripted
from tests.transfer import exported

SPACE = "{http://graphml.graphdrawing.org/xmlns}"
EVIL = "Bob \x01\x0b</data> & \"'\ufffe\r\n💧"


class Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class Element(Strict):
    """An element, as Cytoscape's schema has it: ids are text, and an edge has both ends."""

    data: dict[str, str | float | bool | list[str]]


class Elements(Strict):
    nodes: list[Element]
    edges: list[Element]


class Document(Strict):
    format_version: Literal["1.0"]
    generated_by: str
    target_cytoscapejs_version: str
    directed: bool
    multigraph: bool
    data: dict[str, str]
    elements: Elements


@pytest.fixture
def drawn(memory: GraphMemory, model: Scripted, namespace: str) -> GraphMemory:
    memory.add("I lived in Oslo until 2020-01-01", speaker="Ann", at="2024-01-01", namespace=namespace)
    memory.add("I moved to Paris", speaker="Ann", at="2024-01-02", namespace=namespace)
    facts = model.rules["facts"]
    three = {"predicate": "introduces", "objects": [1, 2], "sentence": f"Ann introduces {EVIL} to Cid"}
    model.rules["facts"] = lambda fields: {"facts": [{**facts(fields)["facts"][0], **three}]}
    memory.add("Ann introduces Bob to Cid", at="2024-01-03", namespace=namespace)
    memory.driver.store.database.query(
        memory.driver.key(namespace), "MATCH (n:Entity {name: 'Bob'}) SET n.name = $evil", {"evil": EVIL}, write=True
    )
    return memory


def test_graphml_has_entities_as_nodes_and_facts_as_edges(drawn, namespace):
    root = ET.fromstring(exported(drawn, namespace, form="graphml"))
    keys = {each.get("id"): each.get("attr.name") for each in root.iter(f"{SPACE}key")}

    def data(element: ET.Element) -> dict[str, str]:
        return {str(keys[each.get("key")]): each.text or "" for each in element.iter(f"{SPACE}data")}

    nodes = {each.get("id"): data(each) for each in root.iter(f"{SPACE}node")}
    names = {told["name"]: id_ for id_, told in nodes.items()}
    assert EVIL.translate(dict.fromkeys((1, 11, 0xFFFE), 0xFFFD)).replace("\r\n", "\r\n") in names
    edges = [(each.get("source"), each.get("target"), data(each)) for each in root.iter(f"{SPACE}edge")]
    assert all(source in nodes and target in nodes for source, target, _ in edges)
    [home] = [told for source, target, told in edges if (source, target) == (names["Ann"], names["Paris"])]
    assert (home["predicate"], home["valid_at"], home["reviewed"]) == ("LIVES_IN", "2024-01-02T00:00:00+00:00", "true")
    [episode] = [each for each in drawn.episodes.list(namespace=namespace) if "Paris" in each.content]
    assert home["evidence"] == episode.id
    [oslo] = [told for source, target, told in edges if (source, target) == (names["Ann"], names["Oslo"])]
    assert oslo["invalid_at"].startswith("2020-01-01")
    [fact] = [id_ for id_, told in nodes.items() if told["kind"] == "fact"]
    roles = [told["role"] for source, target, told in edges if fact in (source, target)]
    assert sorted(roles) == ["object", "object", "subject"]


def test_cytoscape_json_follows_its_schema(drawn, namespace):
    """The Cytoscape export follows its schema: unique ids, and edges between exported nodes.

    Features: D13.
    """
    found = Document.model_validate_json(exported(drawn, namespace, form="cytoscape")).elements
    ids = [each.data["id"] for each in (*found.nodes, *found.edges)]
    assert len(set(ids)) == len(ids)
    nodes = {each.data["id"]: each.data for each in found.nodes}
    assert EVIL in {each["name"] for each in nodes.values()}
    assert all(each.data["source"] in nodes and each.data["target"] in nodes for each in found.edges)
    assert sum(each["kind"] == "fact" for each in nodes.values()) == 1
    assert len(found.edges) == 5
    assert all(isinstance(each.data["evidence"], list) and each.data["evidence"] for each in found.edges)


def test_drawing_is_no_import_and_needs_a_stored_namespace(drawn, namespace):
    with pytest.raises(InputError, match="not an export of kg-memory"):
        drawn.data.import_(io.BytesIO(exported(drawn, namespace, form="cytoscape")))
    for form in ("graphml", "cytoscape"):
        with pytest.raises(InputError, match="'nobody' is empty or does not exist"):
            drawn.data.export(io.BytesIO(), namespace="nobody", form=form)
    with pytest.raises(InputError, match="form must be one of jsonl, graphml, cytoscape, got 'dot'"):
        drawn.data.export(io.BytesIO(), namespace=namespace, form="dot")
    assert json.loads(exported(drawn, namespace, form="cytoscape"))["data"] == {"name": namespace}

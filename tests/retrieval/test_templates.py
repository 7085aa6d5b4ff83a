"""Templates of a context, and that no stored text breaks out of them."""

import json
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given

from kg_memory.errors import InputError
from kg_memory.models.graph import Community, Entity, Remark
from kg_memory.models.results import SearchResults
from kg_memory.retrieval.context.lines import Section
from kg_memory.retrieval.context.templates import PLAIN, TEMPLATES, ZEP, find_template, render
from kg_memory.text.tokenise import estimate_tokens
from tests.hostile.places import all_in_place
from tests.retrieval.findings import ANY_TEXT, HARM, JUNE, MAY, PLENTY, asked, episode, fact, hostile, source

ENDED = "no longer so: from 1 May 2023 to 1 June 2023"
BY = {"by": "fedcba9876543", "by_source_id": "D2:1"}
FOUND = SearchResults(
    question="Where does Ann live?",
    time=asked(),
    facts=(
        fact(valid_at=MAY, confidence=0.95, sources=(source(source_id="m07"),)),
        fact("Ann works at R&D <Labs>", valid_at=MAY, invalid_at=JUNE, sources=()),
    ),
    entities=(Entity(id="1", name="Ann", type="Person", summary="Paints in Oslo."),),
    communities=(Community(id="3", name="Norwegians", summary="They ski."),),
    episodes=(episode(remarks=(Remark(kind="ended", sentence="Ann lives in Oslo", at=JUNE, **BY),)),),
)  # fmt: skip
PLAIN_TEXT = """\
Facts [sources]
<FACTS>
- Ann lives in Oslo (since 1 May 2023) [m07]
- Ann works at R&amp;D &lt;Labs&gt; (no longer so: from 1 May 2023 to 1 June 2023)
</FACTS>

Who and what
<ENTITIES>
- Ann (Person): Paints in Oslo.
</ENTITIES>

Groups
<COMMUNITIES>
- Norwegians: They ski.
</COMMUNITIES>

Said [source]
<EPISODES>
1 May 2023:
- [abcdef01] Ann: I moved to Oslo (no longer so since 1 June 2023: see [D2:1])
</EPISODES>"""
ZEP_TEXT = """\
FACTS and ENTITIES represent relevant context to the current conversation.
These are the most relevant facts and their valid date ranges. If the fact is about an event, the event takes place \
during this time.
format: FACT (Date range: from - to)
<FACTS>
Ann lives in Oslo (Date range: 1 May 2023 - present)
Ann works at R&amp;D &lt;Labs&gt; (Date range: 1 May 2023 - 1 June 2023)
</FACTS>
These are the most relevant entities
ENTITY_NAME: entity summary
<ENTITIES>
Ann: Paints in Oslo.
</ENTITIES>"""
ZEPH_TEXT = """\
[knowledge graph]
- Ann lives in Oslo (confidence: 0.95)
- Ann works at R&D Labs (confidence: 1.00)"""


@pytest.mark.parametrize(("name", "text"), [("plain", PLAIN_TEXT), ("zep", ZEP_TEXT), ("zeph", ZEPH_TEXT)])
def test_render_follows_the_template(name, text):
    """Each template gives the context its format.

    Features: A36, A37, C45.
    """
    assert render(FOUND, PLENTY, name) == text


def test_render_writes_well_formed_xml():
    memory = ET.fromstring(render(FOUND, PLENTY, "xml"))
    assert [each.tag for each in memory] == ["facts", "entities", "communities", "episodes"]
    assert [(each.text, each.attrib) for each in memory[0]] == [
        ("Ann lives in Oslo", {"when": "since 1 May 2023", "confidence": "0.95", "sources": "m07"}),
        ("Ann works at R&D <Labs>", {"when": ENDED, "confidence": "1"}),
    ]
    assert (memory[1][0].text, memory[1][0].attrib) == ("Paints in Oslo.", {"name": "Ann", "type": "Person"})
    assert (memory[2][0].text, memory[2][0].attrib) == ("They ski.", {"name": "Norwegians"})
    assert memory[3][0].attrib == {
        "when": "1 May 2023", "speaker": "Ann", "sources": "abcdef01",
        "remarks": "no longer so since 1 June 2023: see [D2:1]",
    }  # fmt: skip


def test_render_writes_valid_json_with_unicode():
    memory = json.loads(render(FOUND, PLENTY, "json"))
    assert memory["facts"] == [
        {"fact": "Ann lives in Oslo", "when": "since 1 May 2023", "confidence": 0.95, "sources": ["m07"]},
        {"fact": "Ann works at R&D <Labs>", "when": ENDED, "confidence": 1.0},
    ]
    assert memory["entities"] == [{"name": "Ann", "type": "Person", "summary": "Paints in Oslo."}]
    assert memory["communities"] == [{"name": "Norwegians", "summary": "They ski."}]
    assert memory["episodes"][0]["remarks"] == ["no longer so since 1 June 2023: see [D2:1]"]
    assert "北京" in render(SearchResults(question="", facts=(fact("北京"),)), PLENTY, "json")


@pytest.mark.parametrize("name", TEMPLATES)
def test_render_marks_unreviewed_facts(name):
    assert "not reviewed" in render(SearchResults(question="", facts=(fact(reviewed=False),)), PLENTY, name)


@pytest.mark.parametrize("name", TEMPLATES)
@pytest.mark.parametrize("most", [0, -1, 3])
def test_render_returns_nothing_without_room(name, most):
    assert render(FOUND, most, name) == ""


def test_find_template_raises_with_names_of_known_templates():
    wrong: Any
    for wrong in ("markdown", "", 7, ["plain"]):
        with pytest.raises(InputError, match=r"one of plain, zep, json, xml, zeph, got .*; or pass a Template"):
            find_template(wrong)
    assert find_template(None) is find_template("plain") is PLAIN
    assert find_template(ZEP) is ZEP


def test_render_accepts_custom_template():
    mine = replace(
        PLAIN, name="mine", head="I know:\n", sections={"facts": Section(lambda told: f"* {told.text}, {told.when}")}
    )
    text = render(FOUND, PLENTY, mine)
    assert text.splitlines()[:2] == ["I know:", "* Ann lives in Oslo, since 1 May 2023"]
    assert {each.left_out for each in text.left_out} == {"the template has no section for it"}


# Escapes


@given(HARM.filter(str.strip))  # an entity without a summary is left out
def test_no_text_breaks_any_template(text):
    for name in TEMPLATES:
        intact(name, text)


def intact(name: str, text: str) -> None:
    """Check that items whose texts are all *text* are one line each, and that no frame is broken."""
    context = render(hostile(text), PLENTY, name)
    assert [line.kind for line in context.lines] == list(TEMPLATES[name].sections)
    all_in_place(name, context)


@given(ANY_TEXT)
def test_xml_and_json_contain_the_text_unchanged(text):
    told = PLAIN.escape(text) and " ".join(text.split())
    if told.isprintable():
        found = hostile(text)
        assert (ET.fromstring(render(found, PLENTY, "xml"))[0][0].text or "") == told
        assert json.loads(render(found, PLENTY, "json"))["facts"][0].get("fact", "") == told


# Tokens


def test_dates_in_words_cost_few_more_tokens_than_figures():
    lines = render(FOUND, PLENTY).lines
    dated = "- Ann lives in Oslo (2023-05-01 - now) [m07]"
    assert estimate_tokens(lines[0].text) <= estimate_tokens(dated) * 1.1

"""Templates that render recalled context as XML, as JSON, or as a system message in the style of Zeph."""

from __future__ import annotations

import json
from html import escape
from typing import Any

from kg_memory.retrieval.context.lines import EpisodeLine, FactLine, Section, Template, join_warnings, make_sections
from kg_memory.text import context_markers


def _element(tag: str, text: str, /, **attributes: str) -> str:
    pairs = "".join(f' {key}="{value}"' for key, value in attributes.items() if value)
    return f"<{tag}{pairs}>{text}</{tag}>"


def _xml_fact(line: FactLine) -> str:
    sources = ", ".join(line.sources)
    return _element("fact", line.text, when=line.when, confidence=f"{line.confidence:g}", sources=sources)


def _xml_episode(line: EpisodeLine) -> str:
    remarks, sources = "; ".join(line.remarks), ", ".join(line.sources)
    parts = {"when": line.when, "asked": line.asked, "speaker": line.speaker, "remarks": remarks}
    return _element("episode", line.text, sources=sources, **parts)


XML = Template(
    name="xml",
    head=context_markers.XML_HEAD,
    sections=make_sections(
        context_markers.XML,
        facts=_xml_fact,
        entities=lambda line: _element("entity", line.summary, name=line.name, type=line.type),
        communities=lambda line: _element("community", line.summary, name=line.name),
        episodes=_xml_episode,
    ),
    foot=context_markers.XML_FOOT,
    unknown=lambda text: f"{context_markers.XML_HEAD}{_element('unknown', text)}{context_markers.XML_FOOT}",
    escape=escape,
    between_sections="\n",
)


def _object(**fields: Any) -> str:
    plain = json.dumps({key: value for key, value in fields.items() if value not in ("", ())}, ensure_ascii=False)
    # The JSON is placed between tags, so it must not contain a closing tag.
    return plain.replace("<", "\\u003c").replace(">", "\\u003e")


def _json_episode(line: EpisodeLine) -> str:
    parts = {"speaker": line.speaker, "when": line.when, "sources": line.sources, "remarks": line.remarks}
    return _object(asked=line.asked, said=line.text, **parts)


JSON = Template(
    name="json",
    head=context_markers.JSON_HEAD,
    sections=make_sections(
        context_markers.JSON,
        facts=lambda line: _object(fact=line.text, when=line.when, confidence=line.confidence, sources=line.sources),
        entities=lambda line: _object(name=line.name, type=line.type, summary=line.summary),
        communities=lambda line: _object(name=line.name, summary=line.summary),
        episodes=_json_episode,
    ),
    foot=context_markers.JSON_FOOT,
    unknown=lambda text: _object(unknown=text),
    escape=str,
    between_lines=",\n",
    between_sections=",\n",
)


ZEPH = Template(
    name="zeph",
    head=context_markers.ZEPH_HEAD,
    sections={"facts": Section(lambda line: f"- {line.text} (confidence: {line.confidence:.2f}{join_warnings(line)})")},
    escape=lambda text: " ".join(text.replace("<", " ").replace(">", " ").split()),
)

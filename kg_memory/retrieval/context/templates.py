"""Templates: the forms in which a context is written, as values that a user can copy and change.

    from dataclasses import replace
    from kg_memory.retrieval.context.templates import PLAIN
    memory.context("Where does Ann live?", template="json")
    memory.context("Where does Ann live?", template=replace(PLAIN, name="mine", head="I remember: "))

In each, no stored text can forge a line, close a section or end the text: see `Template.escape`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from types import MappingProxyType
from typing import Any

from kg_memory.errors import InputError
from kg_memory.models.graph import Episode, Fact, Kind
from kg_memory.retrieval.context.lines import EpisodeLine, FactLine, LineMaker, escape_brackets
from kg_memory.text import context_markers
from kg_memory.text.context_markers import Marker


@dataclass(frozen=True, slots=True)
class Section:
    """The form of one kind: `line` writes a `FactLine`, `EntityLine`, ... as text."""

    line: Callable[[Any], str]
    begin: str = ""
    end: str = ""


@dataclass(frozen=True, slots=True)
class Template:
    """A form of a context: sections in their order, of the kinds that it shows, between `head` and `foot`.

    `escape` makes a stored text harmless for this form; the text is on one line already, without invisible characters.
    In a list of at least `grouped_from` facts those of one subject stand together, at the place of the best of them:
    a short list reads well best first, a long one by what it is about. ``None`` never groups. `unknown` writes the line
    that the memory does not know, in place of all else.
    """

    name: str
    sections: Mapping[Kind, Section]
    escape: Callable[[str], str]
    head: str = ""
    foot: str = ""
    between_lines: str = "\n"
    between_sections: str = "\n\n"
    grouped_from: int | None = None
    unknown: Callable[[str], str] = str


def find_template(value: Template | str | None) -> Template:
    """Return the template of that name; a `Template` as it is, the plain one for ``None``.

    Errors: `InputError` names those that exist.
    """
    if value is None:
        return PLAIN
    if isinstance(value, Template):
        return value
    if not isinstance(value, str) or value not in TEMPLATES:
        raise InputError(
            f"template must be one of {', '.join(TEMPLATES)}, got {str(value)[:100]!r}; or pass a Template"
        )
    return TEMPLATES[value]


def fact_line(fact: Fact, words: set[str]) -> str:
    """Return the line of a fact in the plain template."""
    return PLAIN.sections["facts"].line(LineMaker(PLAIN.escape, frozenset(words)).make([fact]))


def episode_line(episode: Episode, words: set[str]) -> str:
    """Return the line of an episode in the plain template."""
    return PLAIN.sections["episodes"].line(LineMaker(PLAIN.escape, frozenset(words)).make([episode]))


def _sections(marks: Mapping[Kind, Marker], **lines: Callable[[Any], str]) -> dict[Kind, Section]:
    """Return the sections of the kinds of *marks*, each with the line of that name."""
    return {kind: Section(lines[kind], mark.begin, mark.end) for kind, mark in marks.items()}


# Plain


def _plain_fact(line: FactLine) -> str:
    return f"- {line.text} ({line.when}){_references(line.sources)}"


def _plain_episode(line: EpisodeLine) -> str:
    speaker = line.speaker and f"{line.speaker}: "
    remarks = "".join(f" ({remark})" for remark in line.remarks)
    asked = line.asked and f"{line.asked} / "
    return f"-{_references(line.sources)} ({line.when}) {asked}{speaker}{line.text}{remarks}"


def _references(sources: tuple[str, ...]) -> str:
    return f" [{', '.join(sources)}]" if sources else ""


PLAIN = Template(
    name="plain",
    sections=_sections(
        context_markers.PLAIN,
        facts=_plain_fact,
        entities=lambda line: f"- {line.name} ({line.type})" + (line.summary and f": {line.summary}"),
        communities=lambda line: f"- {line.name}" + (line.summary and f": {line.summary}"),
        episodes=_plain_episode,
    ),
    escape=escape_brackets,
    grouped_from=12,
)

# The paper's (Zep 3), which shows facts and entities, and Zeph's system message, which has facts and how sure they are


def _append(line: FactLine) -> str:
    return "".join(f", {mark}" for mark in (line.mark, line.standing) if mark)


def _drop_brackets(text: str) -> str:
    return " ".join(text.replace("<", " ").replace(">", " ").split())


ZEP = Template(
    name="zep",
    head=context_markers.ZEP_HEAD,
    sections=_sections(
        context_markers.ZEP,
        facts=lambda line: f"{line.text} (Date range: {line.begin} - {line.end}{_append(line)})",
        entities=lambda line: f"{line.name}: {line.summary or line.type}",
    ),
    escape=escape_brackets,
    between_sections="\n",
)
ZEPH = Template(
    name="zeph",
    head=context_markers.ZEPH_HEAD,
    sections={"facts": Section(lambda line: f"- {line.text} (confidence: {line.confidence:.2f}{_append(line)})")},
    escape=_drop_brackets,
)

# XML


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
    sections=_sections(
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

# JSON


def _object(**fields: Any) -> str:
    plain = json.dumps({key: value for key, value in fields.items() if value not in ("", ())}, ensure_ascii=False)
    # JSON that stands between tags must not close them.
    return plain.replace("<", "\\u003c").replace(">", "\\u003e")


def _json_episode(line: EpisodeLine) -> str:
    parts = {"speaker": line.speaker, "when": line.when, "sources": line.sources, "remarks": line.remarks}
    return _object(asked=line.asked, said=line.text, **parts)


JSON = Template(
    name="json",
    head=context_markers.JSON_HEAD,
    sections=_sections(
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

TEMPLATES: Mapping[str, Template] = MappingProxyType({form.name: form for form in (PLAIN, ZEP, XML, JSON, ZEPH)})

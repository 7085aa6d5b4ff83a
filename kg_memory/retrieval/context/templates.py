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
from kg_memory.models.graph import KINDS, Episode, Fact, Kind
from kg_memory.retrieval.context.lines import Teller, ToldCommunity, ToldEntity, ToldEpisode, ToldFact, bracketless
from kg_memory.text import context_markers
from kg_memory.text.context_markers import Marker


@dataclass(frozen=True, slots=True)
class Section:
    """How things of one kind are written: `line` makes a line of a `ToldFact`, `ToldEntity`, ..."""

    line: Callable[[Any], str]
    begin: str = ""
    end: str = ""


@dataclass(frozen=True, slots=True)
class Template:
    """A form of a context: sections in their order, of the kinds that it shows, between `head` and `foot`.

    `escape` makes a stored text harmless for this form; the text is on one line already, without invisible characters.
    In a list of at least `grouped_from` facts those of one subject stand together, at the place of the best of them:
    a short list reads well best first, a long one by what it is about. ``None`` never groups.
    """

    name: str
    sections: Mapping[Kind, Section]
    escape: Callable[[str], str]
    head: str = ""
    foot: str = ""
    between_lines: str = "\n"
    between_sections: str = "\n\n"
    grouped_from: int | None = None


def template(given: Template | str | None) -> Template:
    """Return the template that is *given* as itself or by its name; the plain one for none.

    Errors: `InputError` names those that there are.
    """
    if given is None:
        return PLAIN
    if isinstance(given, Template):
        return given
    if not isinstance(given, str) or given not in TEMPLATES:
        known = ", ".join(TEMPLATES)
        raise InputError(f"there is no template {str(given)[:100]!r}: use {known}, or a Template of your own")
    return TEMPLATES[given]


# Plain


def fact_line(fact: Fact, wanted: set[str]) -> str:
    """Return a fact as the plain template tells it."""
    return PLAIN.sections["facts"].line(Teller(PLAIN.escape, frozenset(wanted)).tell([fact]))


def episode_line(episode: Episode, wanted: set[str]) -> str:
    """Return an episode as the plain template tells it."""
    return PLAIN.sections["episodes"].line(Teller(PLAIN.escape, frozenset(wanted)).tell([episode]))


def _plain_fact(told: ToldFact) -> str:
    return f"- {told.text} ({told.when}){_references(told.sources)}"


def _plain_entity(told: ToldEntity) -> str:
    return f"- {told.name} ({told.type})" + (told.summary and f": {told.summary}")


def _plain_community(told: ToldCommunity) -> str:
    return f"- {told.name}" + (told.summary and f": {told.summary}")


def _plain_episode(told: ToldEpisode) -> str:
    speaker = told.speaker and f"{told.speaker}: "
    return f"-{_references(told.sources)} ({told.when}) {speaker}{told.text}" + "".join(
        f" ({each})" for each in told.remarks
    )


def _references(sources: tuple[str, ...]) -> str:
    return f" [{', '.join(sources)}]" if sources else ""


def _between(mark: Marker, line: Callable[[Any], str]) -> Section:
    return Section(line, mark.begin, mark.end)


_PLAIN_LINES: Mapping[Kind, Callable[[Any], str]] = {
    "facts": _plain_fact, "entities": _plain_entity, "communities": _plain_community, "episodes": _plain_episode,
}  # fmt: skip
PLAIN = Template(
    name="plain",
    sections={kind: _between(context_markers.PLAIN[kind], _PLAIN_LINES[kind]) for kind in KINDS},
    escape=bracketless,
    grouped_from=12,
)

# The paper's (Zep 3), which shows facts and entities.


def _zep_fact(told: ToldFact) -> str:
    return f"{told.text} (Date range: {told.begin} - {told.end}{'' if told.reviewed else ', not reviewed'})"


ZEP = Template(
    name="zep",
    head=context_markers.ZEP_HEAD,
    sections={
        "facts": _between(context_markers.ZEP["facts"], _zep_fact),
        "entities": _between(context_markers.ZEP["entities"], lambda told: f"{told.name}: {told.summary or told.type}"),
    },
    escape=bracketless,
    between_sections="\n",
)

# XML


def _element(tag: str, text: str, /, **attributes: str) -> str:
    told = "".join(f' {key}="{value}"' for key, value in attributes.items() if value)
    return f"<{tag}{told}>{text}</{tag}>"


def _xml_fact(told: ToldFact) -> str:
    sources = ", ".join(told.sources)
    return _element("fact", told.text, when=told.when, confidence=f"{told.confidence:g}", sources=sources)


def _xml_episode(told: ToldEpisode) -> str:
    remarks, sources = "; ".join(told.remarks), ", ".join(told.sources)
    return _element("episode", told.text, sources=sources, when=told.when, speaker=told.speaker, remarks=remarks)


_XML_LINES: Mapping[Kind, Callable[[Any], str]] = {
    "facts": _xml_fact,
    "entities": lambda told: _element("entity", told.summary, name=told.name, type=told.type),
    "communities": lambda told: _element("community", told.summary, name=told.name),
    "episodes": _xml_episode,
}
XML = Template(
    name="xml",
    head=context_markers.XML_HEAD,
    sections={kind: _between(context_markers.XML[kind], line) for kind, line in _XML_LINES.items()},
    foot=context_markers.XML_FOOT,
    escape=escape,
    between_sections="\n",
)

# JSON


def _object(**fields: Any) -> str:
    told = json.dumps({key: value for key, value in fields.items() if value not in ("", ())}, ensure_ascii=False)
    # JSON that stands between tags must not close them.
    return told.replace("<", "\\u003c").replace(">", "\\u003e")


def _json_fact(told: ToldFact) -> str:
    return _object(fact=told.text, when=told.when, confidence=told.confidence, sources=told.sources)


def _json_episode(told: ToldEpisode) -> str:
    return _object(
        said=told.text, speaker=told.speaker, when=told.when, sources=told.sources, remarks=told.remarks,
    )  # fmt: skip


_JSON_LINES: Mapping[Kind, Callable[[Any], str]] = {
    "facts": _json_fact,
    "entities": lambda told: _object(name=told.name, type=told.type, summary=told.summary),
    "communities": lambda told: _object(name=told.name, summary=told.summary),
    "episodes": _json_episode,
}
JSON = Template(
    name="json",
    head=context_markers.JSON_HEAD,
    sections={kind: _between(context_markers.JSON[kind], line) for kind, line in _JSON_LINES.items()},
    foot=context_markers.JSON_FOOT,
    escape=str,
    between_lines=",\n",
    between_sections=",\n",
)

# A system message that has facts alone, with how sure they are (Zeph)


def _zeph_fact(told: ToldFact) -> str:
    return f"- {told.text} (confidence: {told.confidence:.2f}{'' if told.reviewed else ', not reviewed'})"


def _unbracketed(text: str) -> str:
    return " ".join(text.replace("<", " ").replace(">", " ").split())


ZEPH = Template(
    name="zeph",
    head=context_markers.ZEPH_HEAD,
    sections={"facts": Section(_zeph_fact)},
    escape=_unbracketed,
)

TEMPLATES: Mapping[str, Template] = MappingProxyType({each.name: each for each in (PLAIN, ZEP, XML, JSON, ZEPH)})

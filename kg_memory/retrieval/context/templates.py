"""Templates: the formats in which a context is written, as values that a user can copy and change.

    from dataclasses import replace
    from kg_memory.retrieval.context.templates import PLAIN
    memory.context("Where does Ann live?", template="json")
    memory.context("Where does Ann live?", template=replace(PLAIN, name="mine", head="I remember: "))

In every template, a stored text cannot forge a line, close a section or end the context: see `Template.escape`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, filterfalse, groupby
from operator import attrgetter
from types import MappingProxyType

from kg_memory.models.graph import KINDS, Episode, Fact, Kind, Value
from kg_memory.models.results import Context, Explanation, Line, SearchResults
from kg_memory.plugins import load_plugins
from kg_memory.retrieval.context import packing
from kg_memory.retrieval.context.lines import (
    EpisodeLine,
    LineMaker,
    Template,
    escape_brackets,
    id_of,
    join_warnings,
    make_sections,
    result_text,
)
from kg_memory.text import context_markers
from kg_memory.text.dated import date_in_words
from kg_memory.text.sentences import content_stems
from kg_memory.text.tokenise import estimate_tokens, terms
from kg_memory.validation import validate_choice


def find_template(value: Template | str | None) -> Template:
    """Return the template with the name *value*; a `Template` is returned unchanged, and None means the plain one."""
    if value is None:
        return PLAIN
    if isinstance(value, Template):
        return value
    return TEMPLATES[validate_choice("template", value, TEMPLATES, hint="; or pass a Template")]


def fact_line(fact: Fact, words: set[str], home: str | None = None) -> str:
    """Write *fact* as a line of the plain template; a long sentence is cut around the question's *words*."""
    return PLAIN.sections["facts"].line(LineMaker(PLAIN.escape, frozenset(words), home=home).make([fact]))


def episode_line(episode: Episode, words: set[str], home: str | None = None) -> str:
    """Write *episode* (a message) as a line of the plain template, as `fact_line` does for a fact."""
    return PLAIN.sections["episodes"].line(LineMaker(PLAIN.escape, frozenset(words), home=home).make([episode]))


# Plain


def _plain_episode(line: EpisodeLine) -> str:
    speaker = line.speaker and f"{line.speaker}: "
    remarks = "".join(f" ({remark})" for remark in line.remarks)
    asked = line.asked and f"{line.asked} / "
    return f"-{_references(line.sources)} {asked}{speaker}{line.text}{remarks}"


def _references(sources: tuple[str, ...]) -> str:
    return f" [{', '.join(sources)}]" if sources else ""


_SECTIONS = make_sections(
    context_markers.PLAIN,
    facts=lambda line: f"- {line.text} ({line.when}){_references(line.sources)}",
    entities=lambda line: f"- {line.name} ({line.type})" + (line.summary and f": {line.summary}"),
    communities=lambda line: f"- {line.name}" + (line.summary and f": {line.summary}"),
    episodes=_plain_episode,
)
PLAIN = Template(
    name="plain",
    sections={**_SECTIONS, "episodes": replace(_SECTIONS["episodes"], heading=lambda line: f"{line.day}:")},
    escape=escape_brackets,
)

# The template of the Zep paper, which shows facts and entities
ZEP = Template(
    name="zep",
    head=context_markers.ZEP_HEAD,
    sections=make_sections(
        context_markers.ZEP,
        facts=lambda line: f"{line.text} (Date range: {line.begin} - {line.end}{join_warnings(line)})",
        entities=lambda line: f"{line.name}: {line.summary or line.type}",
    ),
    escape=escape_brackets,
    between_sections="\n",
)

TEMPLATES: Mapping[str, Template] = MappingProxyType(
    {form.name: form for form in (PLAIN, ZEP, *load_plugins("templates"))}
)


# Rendering: write search results as a text for a prompt
NO_SECTION = "the template has no section for it"
WITHHELD = "it looks like a prompt injection, and was not read"
"""The reason why an episode is never shown in a context, though a search finds it."""
UNLIKELY = "the memory probably holds nothing about this"
"""The reason why results have no line if the memory abstains."""


def render(results: SearchResults, max_tokens: int, form: Template | str | None = None) -> Context:
    """Write the best search results as text for a prompt, in at most about *max_tokens* tokens.

    The text is "" if no line fits. *form*: a template or its name. Errors: `InputError` for an unknown template.
    """
    template = find_template(form)
    now = results.time.believed_at if results.time else None
    maker = LineMaker(template.escape, frozenset(terms(results.question)), now, home=results.home)

    def write(group: packing.Group, length: int) -> Line:
        kind = packing.kind_of(group[0])
        section = template.sections[kind]
        parts = (replace(maker, length=length) if kind == "episodes" else maker).make(group)
        text, heading = section.line(parts), section.heading(parts) if section.heading else ""
        tokens = packing.token_cost(text + template.between_lines)
        return Line(kind=kind, id=id_of(group[0]), text=text, tokens=tokens, heading=heading)

    groups = packing.group_results(results)
    groups["episodes"], withheld = _split_withheld(groups["episodes"])
    repeats = packing.find_repeats(results)
    shown, reasons = packing.leave_out({kind: groups[kind] for kind in template.sections}, results.question)
    if "episodes" in shown:
        shown["episodes"] = packing.join_turns(shown["episodes"], content_stems(results.question))
    if {"facts", "episodes"} <= shown.keys():
        shown = packing.join_facts(shown, repeats)
    room = max_tokens - 1 - packing.token_cost(template.head + template.foot)
    choice = packing.choose(shown, write, _section_costs(template), room, repeats)
    lines = _sort_lines(choice, results, template)
    left_out = [*_omissions(results, shown, choice, reasons), *withheld]
    if results.abstains:
        return _abstain(results, max_tokens, template, [*map(_explain_drop, lines), *left_out])
    text = _assemble_text(lines, template)
    return Context(text, results, tokens=estimate_tokens(text), lines=lines, left_out=left_out)


def _abstain(results: SearchResults, max_tokens: int, template: Template, left_out: Sequence[Explanation]) -> Context:
    text = template.unknown(template.escape(str(results.answerable)))
    tokens = estimate_tokens(text)
    if tokens > max_tokens:
        text, tokens = "", 0
    return Context(text, results, tokens=tokens, left_out=left_out)


def _explain_drop(line: Line) -> Explanation:
    return Explanation(kind=line.kind, id=line.id, text=line.text, left_out=UNLIKELY)


def _split_withheld(groups: list[packing.Group]) -> tuple[list[packing.Group], list[Explanation]]:
    """Return *groups* without withheld messages (suspected prompt injections), and explanations for these."""
    withheld = [value for group in groups for value in group if isinstance(value, Episode) and value.withheld]
    ids = {id_of(episode) for episode in withheld}
    shown = [tuple(filterfalse(lambda value: id_of(value) in ids, group)) for group in groups]
    return list(filter(None, shown)), [_explain_omission("episodes", episode, WITHHELD) for episode in withheld]


def _section_costs(template: Template) -> dict[Kind, int]:
    between = template.between_sections
    return {
        kind: packing.token_cost(section.begin + section.end + between) for kind, section in template.sections.items()
    }


def _assemble_text(lines: Sequence[Line], template: Template) -> str:
    sections = []
    for kind, section in template.sections.items():
        shown = [line for line in lines if line.kind == kind]
        texts = []
        for heading, group in groupby(shown, attrgetter("heading")):
            texts += [*filter(None, [heading]), *(line.text for line in group)]
        if texts:
            sections.append(f"{section.begin}{template.between_lines.join(texts)}{section.end}")
    return f"{template.head}{template.between_sections.join(sections)}{template.foot}" if sections else ""


def _sort_lines(choice: packing.Choice, results: SearchResults, template: Template) -> list[Line]:
    """Return the chosen lines in the order of the context: by section of *template*, and messages by their times."""
    times = {episode.id: episode.at for episode in results.episodes}
    ordered = [line for kind in template.sections for line in choice.lines[kind] if not line.heading]
    dated = sorted((line for line in chain(*choice.lines.values()) if line.heading), key=lambda line: times[line.id])
    for heading, group in groupby(dated, attrgetter("heading")):
        lines = list(group)
        moments = {date_in_words(times[line.id]) for line in lines}
        shown = f"{moments.pop()}:" if len(moments) == 1 else heading
        ordered += [line.model_copy(update={"heading": shown}) for line in lines]
    return sorted(ordered, key=lambda line: list(template.sections).index(line.kind))


def _omissions(
    results: SearchResults,
    shown: Mapping[Kind, list[packing.Group]],
    choice: packing.Choice,
    reasons: Mapping[tuple[Kind, str], str],
) -> Iterator[Explanation]:
    """Yield an `Explanation` for each search result that has no line of its own in the prompt text."""
    firsts = {
        (packing.kind_of(value), id_of(value)): id_of(group[0])
        for group in chain.from_iterable(shown.values())
        for value in group
    }
    for kind in KINDS:
        lines = {line.id for line in choice.lines.get(kind, ())}
        for id_, value in {id_of(value): value for value in getattr(results, kind)}.items():
            if isinstance(value, Episode) and value.withheld:
                continue  # explained by `_split_withheld`
            if kind not in shown:
                yield _explain_omission(kind, value, NO_SECTION)
            elif id_ not in lines:
                first = firsts.get((kind, id_), id_)
                reason = reasons.get((kind, id_)) or choice.left_out.get((kind, id_)) or packing.same_as(first)
                yield _explain_omission(kind, value, reason)


def _explain_omission(kind: Kind, value: Value, reason: str) -> Explanation:
    return Explanation(kind=kind, id=id_of(value), text=result_text(value), left_out=reason)

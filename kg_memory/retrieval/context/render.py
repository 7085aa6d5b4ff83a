"""What was found as a text for a prompt, purely: dated facts, entities, communities and lines of conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kg_memory.models.context import Context, Line
from kg_memory.models.graph import Episode, Explanation, Fact, Kind, SearchResults, Value
from kg_memory.retrieval.context.lines import LONGEST_REFERENCE, Teller, excerpt, id_of, text_of, told
from kg_memory.retrieval.context.packing import Choice, added, choose, same_as
from kg_memory.retrieval.context.templates import Template, episode_line, fact_line, template
from kg_memory.retrieval.context.times import coarse, day, held
from kg_memory.retrieval.dedupe import Alike, grouped, repeats
from kg_memory.retrieval.records import DEFAULT_TOKENS
from kg_memory.text.tokenise import estimate_tokens, terms

__all__ = [
    "LONGEST_REFERENCE", "coarse", "context_of", "day", "episode_line", "estimate_tokens", "excerpt", "fact_line",
    "held", "render", "told",
]  # fmt: skip

NO_SECTION = "the template has no section for it"


WITHHELD = "it looks like a prompt injection, and was not read"
"""Why an episode is kept from models, though a search finds it."""
UNLIKELY = "the memory probably holds nothing about this"
"""Why nothing is told."""


def render(found: SearchResults, max_tokens: int, form: Template | str | None = None) -> Context:
    """Return the best lines of *found* that fit into about *max_tokens*, in a form; "" when none does.

    Errors: `InputError` for the name of a template that there is not.
    """
    frame = template(form)
    now = found.asked.believed_at if found.asked else None
    teller = Teller(frame.escape, frozenset(terms(found.question)), now)

    def write(kind: Kind, alike: Alike) -> Line:
        text = frame.sections[kind].line(teller.tell(alike))
        return Line(kind=kind, id=id_of(alike[0]), text=text, tokens=added(text + frame.between_lines))

    groups = grouped(found)
    groups["episodes"], withheld = _apart(groups["episodes"])
    shown = {kind: groups[kind] for kind in frame.sections}
    room = max_tokens - 1 - added(frame.head + frame.foot)
    choice = choose(shown, write, _section_costs(frame), room, repeats(found))
    lines = _arranged(choice, found.facts, frame)
    text = _framed(lines, frame)
    left_out = [*_left_out(groups, choice), *withheld]
    return Context(text, found, tokens=estimate_tokens(text), lines=lines, left_out=left_out)


def context_of(state: Mapping[str, Any], form: Template | None = None) -> Context:
    """Return the context of a question that went through the retrieval graph, or what it is in another *form*."""
    found = SearchResults.model_validate(state["found"])
    if form is not None:
        most = state.get("max_tokens")
        told = render(found, DEFAULT_TOKENS if most is None else most, form)
        return abstained(told) if any(each.get("left_out") == UNLIKELY for each in state["lines"]) else told
    lines = [Line(**each) for each in state["lines"] if "tokens" in each]
    left_out = [Explanation(**each) for each in state["lines"] if "tokens" not in each]
    text = state["context"]
    return Context(text, found, tokens=estimate_tokens(text), lines=lines, left_out=left_out)


def abstained(context: Context) -> Context:
    """Return an empty context that knows what *context* would have told."""
    untold = [Explanation(kind=each.kind, id=each.id, text=each.text, left_out=UNLIKELY) for each in context.lines]
    return Context(found=context.found, left_out=[*untold, *context.left_out])


def plain_lines(context: Context) -> list[dict[str, Any]]:
    """Return the lines of *context* and what it leaves out, JSON-plain, as the graph's state has them."""
    left_out = (each.model_dump(include={"kind", "id", "text", "left_out"}) for each in context.left_out)
    return [*(each.model_dump() for each in context.lines), *left_out]


def _apart(episodes: list[Alike]) -> tuple[list[Alike], list[Explanation]]:
    """Return *episodes* that are told, and why the others are not."""
    withheld = [each for alike in episodes for each in alike if isinstance(each, Episode) and each.withheld]
    ids = {each.id for each in withheld}
    told = [kept for alike in episodes if (kept := tuple(each for each in alike if id_of(each) not in ids))]
    return told, [Explanation(kind="episodes", id=each.id, text=text_of(each), left_out=WITHHELD) for each in withheld]


def _section_costs(frame: Template) -> dict[Kind, int]:
    return {kind: added(each.begin + each.end + frame.between_sections) for kind, each in frame.sections.items()}


def _framed(lines: Sequence[Line], frame: Template) -> str:
    """Return *lines* between the frames of their sections and of all; "" without any."""
    sections = []
    for kind, section in frame.sections.items():
        if texts := [line.text for line in lines if line.kind == kind]:
            sections.append(f"{section.begin}{frame.between_lines.join(texts)}{section.end}")
    return f"{frame.head}{frame.between_sections.join(sections)}{frame.foot}" if sections else ""


def _arranged(choice: Choice, facts: Sequence[Fact], frame: Template) -> list[Line]:
    """Return the lines in the order of the text; of many facts those of one subject stand together."""
    lines = [line for kind in frame.sections for line in choice.lines[kind]]
    told_facts = choice.lines.get("facts", [])
    if frame.grouped_from is None or len(told_facts) < frame.grouped_from:
        return lines
    subjects = {fact.id: fact.subject for fact in facts}
    first: dict[str, int] = {}
    for place, line in enumerate(told_facts):
        first.setdefault(subjects[line.id], place)
    kinds = list(frame.sections)
    return sorted(lines, key=lambda line: (kinds.index(line.kind), first.get(subjects.get(line.id, ""), 0)))


def _left_out(groups: Mapping[Kind, list[Alike]], choice: Choice) -> list[Explanation]:
    """Return what is not told: what the template has no section for, what repeats something, and what has no room."""
    left: list[tuple[Kind, Value, str]] = []
    values = {(kind, id_of(first)): first for kind, alikes in groups.items() for first, *_ in reversed(alikes)}
    for kind, alikes in groups.items():
        shown = kind in choice.lines
        for first, *others in alikes:
            if not shown:
                left.extend((kind, each, NO_SECTION) for each in (first, *others))
            else:
                left.extend((kind, each, same_as(id_of(first))) for each in others if id_of(each) != id_of(first))
    left.extend((kind, values[kind, id_], reason) for kind, id_, reason in choice.left_out)
    return [Explanation(kind=kind, id=id_of(each), text=text_of(each), left_out=reason) for kind, each, reason in left]

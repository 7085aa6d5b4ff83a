"""Show stored facts, entities, episodes, communities, predicates and changes."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from kg_memory.cli.command import (
    explain_nothing,
    namespace_of,
    open_memory,
    open_to_change,
    open_to_look,
    review_command,
    times_of,
)
from kg_memory.cli.identities import entity_row
from kg_memory.cli.output import (
    FACT_STYLES,
    FACTS,
    Cell,
    Screen,
    count_noun,
    count_waiting,
    day,
    fact_row,
    first_quote,
    place,
    relation,
    said_by,
    source,
    with_ids,
)
from kg_memory.errors import InputError
from kg_memory.models.graph import Change, Community, Episode, Fact, PredicateInfo, TimelineEvent
from kg_memory.models.operations import CommunityRefresh
from kg_memory.models.results import CommunityCard
from kg_memory.plugins import load_plugin
from kg_memory.text.dated import date_in_figures, period_in_figures
from kg_memory.text.predicates import canonical_predicate, predicate_name

if TYPE_CHECKING:
    from kg_memory.memory.memory import GraphMemory

NO_NAME = "kg-memory entities lists the known names."


def facts(arguments: Namespace, screen: Screen) -> int:
    """List the facts, of a name if there is one, current and ended, newest first."""
    page = {"limit": arguments.limit, "after": arguments.after, "where": arguments.where}
    namespace, name = namespace_of(arguments), arguments.name
    with open_to_look(arguments, screen) as memory:
        facts_ = memory.facts.list(about=name, namespace=namespace, **page, **times_of(arguments))
        alike = [] if facts_ or name is None else memory.entities.list(like=name, limit=1, namespace=namespace)
        if alike and alike[0].name != name:
            screen.note(f"Nothing is known about {name!r}; these are about {alike[0].name}.")
            facts_ = memory.facts.list(about=alike[0].id, namespace=namespace, **page, **times_of(arguments))
        empty = "" if facts_ else _no_facts(memory, arguments)
    columns, rows = with_ids(FACTS, [fact_row(fact) for fact in facts_], facts_, ids=arguments.ids)
    screen.values(facts_, columns, rows, FACT_STYLES, empty=empty)
    if facts_.next:
        screen.note(f"There are more: --after {facts_.next}")
    return 0


def _no_facts(memory: GraphMemory, arguments: Namespace, predicate: str | None = None) -> str:
    """Return why no fact was found about the name of *arguments*, or at all."""
    limits = {"on": "--on", "during": "--during", "believed_at": "--believed-at", "where": "--where"}
    given = [option for name, option in limits.items() if getattr(arguments, name, None)]
    about = f" about {arguments.name!r}" if arguments.name else ""
    about += f" with the predicate {predicate!r}" if predicate else ""
    namespace = namespace_of(arguments)
    known = arguments.name is None or memory.entities.list(like=arguments.name, limit=1, namespace=namespace)
    hint = f"Without {' and '.join(given)} there may be some." if given else ""
    if predicate and known:
        others = memory.facts.history(arguments.name, namespace=namespace, believed_at=arguments.believed_at)
        predicates = ", ".join(sorted({fact.predicate for fact in others}))
        hint = f"{hint} Its predicates are {predicates}.".strip() if predicates else hint
    reason = f"No facts{about}. {hint if known else NO_NAME}".strip()
    return explain_nothing(memory, arguments, reason)


def around(arguments: Namespace, screen: Screen) -> int:
    """List the entities within some steps of a name, nearest first, and the facts that lead to them."""
    with open_to_look(arguments, screen) as memory:
        limits = {"namespace": namespace_of(arguments), "limit": arguments.limit, **times_of(arguments)}
        neighbourhood = memory.entities.around(arguments.name, arguments.steps, **limits)
        otherwise = f"Nobody and nothing is called {arguments.name!r}. {NO_NAME}"
        empty = "" if neighbourhood.entities else explain_nothing(memory, arguments, otherwise)
    if screen.as_json:
        screen.json(neighbourhood.model_dump(mode="json"))
    elif not neighbourhood.entities:
        screen.line(empty)
    else:
        near = sorted(neighbourhood.entities, key=lambda entity: (neighbourhood.depths[entity.id], entity.name))
        rows = [(neighbourhood.depths[entity.id], *entity_row(entity)[:3]) for entity in near]
        screen.table(("steps", "name", "type", "also called"), rows, ("cyan", "bold"))
        if neighbourhood.facts:
            screen.line()
            screen.table(FACTS, [fact_row(fact) for fact in neighbourhood.facts], FACT_STYLES)
    return 0


def episodes(arguments: Namespace, screen: Screen) -> int:
    """List the episodes."""
    with open_to_look(arguments, screen) as memory:
        episodes_ = memory.episodes.list(
            namespace=namespace_of(arguments), limit=arguments.limit, status=arguments.status
        )
        which = f"{arguments.status} episodes" if arguments.status else "episodes"
        otherwise = f"No {which}. Tell the memory something: kg-memory ingest FILE"
        empty = "" if episodes_ else explain_nothing(memory, arguments, otherwise)
    rows: list[tuple[Cell, ...]] = [
        (episode.at, episode.speaker, episode.content, place(episode), _state(episode)) for episode in episodes_
    ]
    columns: tuple[str, ...] = ("at", "by", "what", "source", "state")
    if arguments.ids:
        columns, rows = (*columns, "id"), [(*row, episode.id) for row, episode in zip(rows, episodes_, strict=True)]
    screen.values(episodes_, columns, rows, FACT_STYLES, empty=empty)
    return 0


def _state(episode: Episode) -> str:
    """Return the state of *episode*, with the reason for a failure."""
    at_step = f" at {episode.step}" if episode.step else ""
    why = f": {episode.reason}" if episode.reason else ""
    return f"{episode.status.value}{at_step}{why}"


def namespaces(arguments: Namespace, screen: Screen) -> int:
    """List the namespaces, and how much each holds."""
    with open_to_look(arguments, screen) as memory:
        counts = {name: memory.stats(namespace=name) for name in memory.data.namespaces()}
    if screen.as_json:
        screen.json([{"namespace": name, **held.model_dump()} for name, held in counts.items()])
        return 0
    if not counts:
        screen.line("Nothing is remembered yet. Tell the memory something: kg-memory ingest FILE")
        return 0
    rows: list[tuple[Cell, ...]] = []
    for name, held in counts.items():
        counted = {"waiting": held.waiting, "failed": held.failed}
        states = [f"{number} {state}" for state, number in counted.items() if number] + ["paused"] * held.paused
        rows.append((name, held.episodes, held.facts, held.entities, ", ".join(states)))
    screen.table(("namespace", "episodes", "facts", "entities", "state"), rows, ("bold",))
    return 0


def stats(arguments: Namespace, screen: Screen) -> int:
    """Print the counts of a namespace, and the names of the other namespaces."""
    namespace = namespace_of(arguments)
    with open_to_look(arguments, screen) as memory:
        counts = memory.stats(namespace=namespace)
        others = sorted({*memory.driver.store.database.namespaces(reachable=True)} - {namespace})
    if screen.as_json:
        screen.json({"namespace": namespace, **counts.model_dump(), "other_namespaces": others})
        return 0
    named = {name.replace("_", " "): value for name, value in counts.model_dump().items()}
    screen.table(("what", "how many"), [("namespace", namespace), *named.items()], ("", "bold"))
    if counts.waiting:
        screen.note(f"{count_noun(counts.waiting, 'episode')} not read to the end: kg-memory resume reads them")
    if counts.failed:
        screen.note(f"{count_noun(counts.failed, 'episode')} that could not be read: kg-memory retry reads them again")
    if counts.reviews:
        screen.note(f"{count_waiting(counts.reviews, 'verdict')} for review: {review_command(arguments)}")
    if others:
        screen.line(f"other namespaces: {', '.join(others)}", "dim")
    return 0


RECENT = timedelta(days=7)
"""Period before now that `changes` lists by default."""
_NOTHING = "-"


def history(arguments: Namespace, screen: Screen) -> int:
    """List the periods of an entity's facts, newest first."""
    about = arguments.name, arguments.predicate
    with open_to_look(arguments, screen) as memory:
        periods = memory.facts.history(
            *about, namespace=namespace_of(arguments), limit=arguments.limit, believed_at=arguments.believed_at
        )
        empty = "" if periods else _no_facts(memory, arguments, arguments.predicate)
    columns, rows = with_ids(FACTS, [fact_row(fact) for fact in periods], periods, ids=arguments.ids)
    screen.values(periods, columns, rows, FACT_STYLES, empty=empty)
    return 0


def timeline(arguments: Namespace, screen: Screen) -> int:
    """List the events of an entity, earliest first."""
    with open_to_look(arguments, screen) as memory:
        events = memory.facts.timeline(
            arguments.name, namespace=namespace_of(arguments), limit=arguments.limit, believed_at=arguments.believed_at
        )
        empty = "" if events else _no_facts(memory, arguments)
    rows = [
        (_at(event), event.kind, relation(event.fact), first_quote(event.fact), source(event.fact)) for event in events
    ]
    styles = ("cyan", "yellow", "bold", "", "dim")
    screen.values(events, ("when", "what", "fact", "said", "source"), rows, styles, empty=empty)
    return 0


def changes(arguments: Namespace, screen: Screen) -> int:
    """List the changes of what is believed, earliest first, by transaction time."""
    begin = arguments.since if arguments.since is not None else datetime.now(UTC) - RECENT
    with open_to_look(arguments, screen) as memory:
        changes_ = memory.facts.changes(
            begin, arguments.until, namespace=namespace_of(arguments), limit=arguments.limit
        )
        since = arguments.since or f"{day(begin)}, a week ago"
        otherwise = f"Nothing changed since {since}. --since looks further back, as in --since 'last year'."
        empty = "" if changes_ else explain_nothing(memory, arguments, otherwise)
    facts = [fact for change in changes_ for fact in (change.before, change.after) if fact]
    said = {told.episode: said_by(told) for fact in facts for told in fact.sources}
    rows = [
        (change.at, change.kind, relation(_fact_of(change)), *_validities(change), _cause(change, said))
        for change in changes_
    ]
    styles = ("cyan", "yellow", "bold", "", "green", "dim")
    screen.values(changes_, ("learned at", "what", "fact", "before", "now", "source"), rows, styles, empty=empty)
    return 0


def _at(moment: TimelineEvent) -> str:
    """Return when it was, as exactly as it is known."""
    return date_in_figures(moment.at, moment.precision)


def _fact_of(change: Change) -> Fact:
    """Return the belief after *change*, else the one before it."""
    fact = change.after or change.before
    if fact is None:
        raise ValueError("a change of nothing")
    return fact


def _cause(change: Change, said: Mapping[str, str]) -> str:
    """Return who said when what caused *change*; who stated its fact, where that is not among those that *said* it."""
    return said.get(change.cause or "") or source(_fact_of(change))


def _validities(change: Change) -> tuple[str, str]:
    before, after = (period_in_figures(fact) if fact else _NOTHING for fact in (change.before, change.after))
    return before, after


_SEARCHED = 100_000
_COLUMNS = ("predicate", "kept as", "values at a time", "by")


def predicates(arguments: Namespace, screen: Screen) -> int:
    """List the predicates, or show or correct one."""
    namespace = namespace_of(arguments)
    changes_one = arguments.canonical is not None or arguments.one_at_a_time is not None
    with (open_to_change if changes_one else open_to_look)(arguments, screen) as memory:
        if arguments.name is None:
            predicates_ = memory.predicates.list(namespace=namespace, limit=arguments.limit)
            empty = "No predicates were learned yet. What the rules know, as LIVES_IN, goes without saying."
            screen.values(
                predicates_, _COLUMNS, [_row(info) for info in predicates_], ("bold", "", "yellow", "dim"), empty=empty
            )
            return 0
        if not changes_one:
            stored = memory.predicates.list(namespace=namespace, limit=_SEARCHED)
            _tell(_look_up(arguments.name, stored), screen)
            return 0
        corrected = memory.predicates.update(
            arguments.name, canonical=arguments.canonical, single_valued=arguments.one_at_a_time, namespace=namespace
        )
    _tell(corrected, screen)
    screen.note("It counts for what is read from now on.")
    return 0


def _look_up(name: str, stored: list[PredicateInfo]) -> PredicateInfo:
    """Return the stored or built-in predicate for any wording of it."""
    written = predicate_name(name)
    for info in stored:
        if info.name == written:
            return info
    rule = canonical_predicate(written)
    one = rule.single_valued if rule else None
    return PredicateInfo(name=written, canonical=rule.name if rule else written, single_valued=one, origin="rules")


def _tell(info: PredicateInfo, screen: Screen) -> None:
    if screen.as_json:
        screen.json(info.model_dump(mode="json"))
    else:
        screen.table(_COLUMNS, [_row(info)], ("bold", "", "yellow", "dim"))


def _row(info: PredicateInfo) -> tuple[Cell, ...]:
    times = {True: "one", False: "several", None: "not known"}
    return info.name, info.canonical, times[info.single_valued], info.origin


_COMMUNITY_COLUMNS = ("community", "level", "members", "summary")
_SHOWN = 8
"""Members named in a line, at most."""
_DRAWN = 60
"""Members or parts drawn in a picture, at most."""


def communities(arguments: Namespace, screen: Screen) -> int:
    """List the communities or show one, after a refresh if that is asked for."""
    if arguments.full and not arguments.refresh:
        raise InputError("--full says how to refresh: give --refresh too")
    if arguments.svg and not arguments.name:
        raise InputError("--svg draws one community: give its name too, as `kg-memory communities` lists it")
    namespace = namespace_of(arguments)
    with (open_memory if arguments.refresh else open_to_look)(arguments, screen) as memory:
        done = memory.communities.refresh(namespace=namespace, full=arguments.full) if arguments.refresh else None
        if arguments.name:
            card = memory.communities.get(arguments.name, namespace=namespace, limit=arguments.limit)
        else:
            communities_ = memory.communities.list(namespace=namespace, level=arguments.level, limit=arguments.limit)
    if done:
        screen.note(_describe_refresh(done))
    if arguments.name:
        return _show_community(card, arguments.name, arguments.svg, screen)
    hint = "nothing belongs together yet" if done else "kg-memory communities --refresh finds them"
    styles = ("bold", "cyan", "", "")
    screen.values(
        communities_,
        _COMMUNITY_COLUMNS,
        [_community_row(community) for community in communities_],
        styles,
        empty=f"No communities: {hint}.",
    )
    return 0


def _describe_refresh(done: CommunityRefresh) -> str:
    drift = f" {done.drift:.1%} of the entities had been elsewhere before." if done.drift else ""
    return (
        f"{count_noun(done.changed, 'community')} summarised, {done.unchanged} unchanged, "
        f"{done.removed} removed; {count_noun(done.questions, 'question')} asked.{drift}"
    )


def _community_row(community: Community) -> tuple[Cell, ...]:
    inside = community.parts or community.members
    more = len(inside) - _SHOWN
    members = ", ".join(inside[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
    return community.name, community.level, members, community.summary


def _show_community(card: CommunityCard | None, name: str, path: Path | None, screen: Screen) -> int:
    """Print one community, and draw it if there is a *path*."""
    if card is None:
        raise InputError(f"no community has a name that begins with {name!r}: kg-memory communities lists them")
    if path:
        path.write_text(draw(card), encoding="utf-8")
        screen.note(f"Drawn in {path}.")
    if screen.as_json:
        screen.json(card.model_dump(mode="json"))
        return 0
    community = card.community
    screen.line(community.name, "bold")
    screen.line(community.summary)
    if community.members:
        joined = f" ({community.joined} joined since it was summarised)" if community.joined else ""
        screen.line(f"{count_noun(len(community.members), 'member')}{joined}: {', '.join(community.members)}")
    if card.part_of:
        screen.line(f"part of: {card.part_of.name}")
    if card.parts:
        screen.table(
            ("part", "level", "summary"), [(part.name, part.level, part.summary) for part in card.parts], ("bold",)
        )
    if card.facts:
        screen.table(FACTS, [fact_row(fact) for fact in card.facts], FACT_STYLES)
    return 0


def draw(card: CommunityCard) -> str:
    """Return a picture of a community: its members and their facts, or itself amid its parts."""
    picture: Callable[[str, Sequence[str], Sequence[tuple[int, int, str]]], str] = load_plugin("drawings", "svg")
    if card.parts:
        names = [card.community.name, *(part.name for part in card.parts[:_DRAWN])]
        return picture(card.community.name, names, [(0, place, "") for place in range(1, len(names))])
    shown = card.community.members[:_DRAWN]
    places = {name: place for place, name in enumerate(shown)}
    lines = [
        (places[fact.subject], places[neighbour], fact.predicate.replace("_", " ").lower())
        for fact in card.facts
        for neighbour in fact.objects
        if fact.subject in places and neighbour in places and neighbour != fact.subject
    ]
    return picture(card.community.name, shown, lines)

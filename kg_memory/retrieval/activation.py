"""Spreading activation, purely: what is active activates what it is linked with, less at each step (C21 to C29).

An entity takes what all entities of the step before pass on to it: ``1 - product(1 - received)``, which grows with
each of them and never passes 1, so that what is reached from several sides comes before what is reached from one. The
greatest alone would tell apart only steps and types of facts; a plain sum would have to be cut at 1, where the best
would tie. Several facts between the same two count as the one that conducts best. An entity is reached once, at its
nearest step.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from kg_memory.retrieval.recipe import Synapse

Received = dict[str, dict[str, float]]
"""What each entity gets, by who passes it on."""


@dataclass(frozen=True, slots=True)
class Link:
    """A fact as activation passes it: its edge type, and its entities, once each."""

    type: str
    entities: tuple[str, ...]


def seed_scores(words: Mapping[str, float], links: Iterable[Link], structural: float) -> dict[str, float]:
    """Return how well each entity of *words* serves as a start, 0 to 1 (C22).

    That is ``words * (1 - structural) + structure * structural``, the words' score in parts of the best one's.
    """
    best = max(words.values(), default=0.0)
    structure = structures(words, links)
    return {
        id_: (score / best if best > 0 else 0.0) * (1 - structural) + structure[id_] * structural
        for id_, score in words.items()
    }


def structures(entities: Collection[str], links: Iterable[Link]) -> dict[str, float]:
    """Return how well linked each of *entities* is, 0 to 1: the mean of its facts and its edge types.

    Both count in parts of the most that one of them has.
    """
    degrees: Counter[str] = Counter()
    types: defaultdict[str, set[str]] = defaultdict(set)
    for link in links:
        for id_ in link.entities:
            degrees[id_] += 1
            types[id_].add(link.type)
    most = max((degrees[id_] for id_ in entities), default=0) or 1
    widest = max((len(types[id_]) for id_ in entities), default=0) or 1
    return {id_: (degrees[id_] / most + len(types[id_]) / widest) / 2 for id_ in entities}


def seeds_within(scores: Mapping[str, float], communities: Iterable[Collection[str]], cap: int, most: int) -> list[str]:
    """Return the *most* best of *scores*, best first, with at most *cap* of a community (C23); 0 is any number."""
    memberships: defaultdict[str, list[int]] = defaultdict(list)
    for number, members in enumerate(communities):
        for id_ in members:
            memberships[id_].append(number)
    taken: Counter[int] = Counter()
    chosen: list[str] = []
    for id_ in _best_first(scores):
        if cap and any(taken[each] >= cap for each in memberships[id_]):
            continue
        taken.update(memberships[id_])
        chosen.append(id_)
    return chosen[:most]


def spread(
    active: Mapping[str, float],
    reached: Collection[str],
    links: Iterable[Link],
    recipe: Synapse,
    is_over: Callable[[], bool] = lambda: False,
) -> dict[str, float]:
    """Return the entities that *active* ones activate over *links*, best first; those *reached* before are none.

    With them there are at most ``max_activated_nodes``. It asks at each link whether it *is_over*, and ends then.
    """
    received = _received(active, reached, links, recipe, is_over)
    fresh = {id_: 1 - prod(1 - each for each in sorted(shares.values())) for id_, shares in received.items()}
    fresh = inhibited(fresh, received, recipe.inhibition_threshold)
    passed = {id_: each for id_, each in fresh.items() if each > 0 and each >= recipe.activation_threshold}
    room = max(recipe.max_activated_nodes - len(reached), 0)
    return {id_: passed[id_] for id_ in _best_first(passed)[:room]}


def inhibited(fresh: Mapping[str, float], received: Received, threshold: float) -> dict[str, float]:
    """Return *fresh* after lateral inhibition (C25): what one entity activates competes.

    Where the best of them is above *threshold*, each weaker one keeps ``1 - (best - own)`` of its own. The entity that
    passed activation on holds nothing down: it would undo what it did.
    """
    best: dict[str, float] = {}
    for id_, shares in received.items():
        for parent in shares:
            best[parent] = max(best.get(parent, 0.0), fresh[id_])
    strongest = {id_: max(best[parent] for parent in shares) for id_, shares in received.items()}
    return {
        id_: own * (1 - (strongest[id_] - own)) if strongest[id_] > threshold else own for id_, own in fresh.items()
    }


def _received(
    active: Mapping[str, float],
    reached: Collection[str],
    links: Iterable[Link],
    recipe: Synapse,
    is_over: Callable[[], bool],
) -> Received:
    received: Received = {}
    for link in links:
        if is_over():
            break
        flow = recipe.decay_lambda * recipe.edge_types.get(link.type, 0.0)
        parents: Sequence[str] = [id_ for id_ in link.entities if id_ in active] if flow else ()
        for parent in parents:
            for id_ in link.entities:
                if id_ not in reached and id_ not in active:
                    shares = received.setdefault(id_, {})
                    shares[parent] = max(shares.get(parent, 0.0), active[parent] * flow)
    return received


def _best_first(scores: Mapping[str, float]) -> list[str]:
    return sorted(scores, key=lambda id_: (-scores[id_], id_))

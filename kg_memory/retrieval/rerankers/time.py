"""Rerank by the time that the words of a question name."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from typing import ClassVar, Literal

from kg_memory.retrieval.fuse import Ranking, Scored, blend, ids_of, sort_scores
from kg_memory.retrieval.plugins import Features, Instants, Needs, Part, Question, Share

UNSURE = 0.5
"""The share of what may have been so at that time: its start is unknown."""
SPREAD = 3
"""The first, second and third without the preference stay among the first 3, 6 and 9."""


class ByTime(Part):
    """Prefer what was so, or was said, at the time that the question names: ``(1 - w) * score + w * nearness``.

    Nearness is 1 at that time, and falls to 0 within the vagueness of its words: a day beside "on 4 May", a month
    beside "in May". Nothing falls far behind: see `hold`. Every search whose question names a time ends with this.
    """

    by: Literal["time"] = "time"
    facts: Share = 0.5
    """The weight of nearness for facts."""
    episodes: Share = 0.2
    """Less: what happened in May is often told in June."""
    features: ClassVar[Needs] = Needs(facts=("periods",), episodes=("stated_at",))

    def rerank(self, ranking: list[Scored], features: Mapping[str, Features], question: Question) -> list[Scored]:
        shares = {id_: _nearness(feature, question.instants) for id_, feature in features.items()}
        are_facts = any(feature.periods for feature in features.values())
        return hold(blend(ranking, shares, self.facts if are_facts else self.episodes), ranking)


def _nearness(feature: Features, instants: Instants) -> float:
    """Return how near a fact, by the best of its periods, or an episode is to the time of the question, 0 to 1."""
    periods = feature.periods or [(feature.stated_at, feature.stated_at, feature.stated_at + 1)]
    return max(
        max(instants.nearness(known, until), UNSURE * instants.nearness(since, until))
        for since, known, until in periods
    )


def hold(ranking: Ranking, before: Ranking) -> list[Scored]:
    """Return *ranking* with the n-th of *before* among the first ``SPREAD * n``, and scores that still descend."""
    scores, former = dict(ranking), ids_of(sort_scores(before))
    order: dict[str, None] = {}
    for id_ in scores:
        place, left = divmod(len(order) + 1, SPREAD)
        if place and not left:
            order.setdefault(former[place - 1])
        order.setdefault(id_)
    raised = list(accumulate(reversed([scores[id_] for id_ in order]), max))
    return list(zip(order, reversed(raised), strict=True))

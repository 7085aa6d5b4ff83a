"""Estimate whether the memory holds an answer, from the hits of a search and without a model, with a reason for doubt.

An answer can be missing in two ways. If the subject is unknown, no stored text is near the question: few of its rare
words occur in one text, the search by words and the search by meaning rank different texts first, and the best texts
are hardly nearer to the question than any two texts are to each other. If the subject is known but the detail is
missing, the texts near the question come from other speakers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from kg_memory.falkor.queries import features
from kg_memory.falkor.rows import Row
from kg_memory.models.graph import Kind
from kg_memory.models.results import Answerable
from kg_memory.retrieval.ranking import Hits, Scored, relative_shares, sort_scores
from kg_memory.retrieval.retrievers import Frequencies, coverage, growth
from kg_memory.runtime.effects import read_once
from kg_memory.runtime.flow import Flow
from kg_memory.text.identity import alias_key, without_possessive
from kg_memory.text.tokenise import terms

EVIDENCE: tuple[Kind, ...] = ("episodes", "facts")
SAMPLE = 16
"""The number of episodes that are compared with each other to measure how near two episodes usually are."""
LEAST_SPREAD = 0.05
"""The lowest usual distance between two episodes. Repeats of one text have distance 0."""
NEAREST, NEAREST_SHARE = 10, 20
"""Settings of `nearness`: it averages one hit in `NEAREST_SHARE` stored nodes, and at most `NEAREST` hits."""
STATED = 40
"""The number of best facts whose speakers are compared."""


@dataclass(frozen=True, slots=True)
class QuestionStatistics:
    """How often the words and names of a question occur in the memory.

    `frequencies`, `counts`: nodes with each word, and all nodes, by kind. `subjects`: hashes of known names in the
    question.
    """

    terms: Sequence[str]
    frequencies: Frequencies
    counts: Mapping[Kind, int]
    subjects: frozenset[str] = frozenset()
    named: bool = False

    def is_known(self, term: str) -> bool:
        """Return whether any stored node contains *term*."""
        return any(often.get(term) for often in self.frequencies.values())


@dataclass(frozen=True, slots=True)
class Evidence:
    """Features of search results from which `probability` estimates whether they answer a question.

    All are from 0 to 1, but `told` from -1: the lead of facts stated by the question's subject over those stated by
    others.
    """

    known: float = 0.0
    covered: float = 0.0
    agreed: float = 0.8
    nearest: float = 0.5
    lines: float = 0.45
    told: float = 0.0


SUBJECT = ("known", "covered", "agreed", "nearest")
DETAIL = ("lines", "told")
# Fitted by logistic regression; `benchmarks/abstention.py` prints these numbers.
BIASES = {"subject": -15.9, "detail": -3.9}
WEIGHTS = Evidence(known=2.5, covered=3.6, agreed=7.0, nearest=12.7, lines=6.9, told=1.9)
UNLIKELY, NO = 0.2, 0.1
"""Probabilities below which an answer is unlikely, or absent: of 1000 answerable questions, 32 and 6 are below."""


def read_baseline(model: str, count: int, *, all_read: bool) -> Flow[Row]:
    """Return the mean cosine distance of stored messages, and some speakers, from a sample of messages.

    ``{"distance": 0.4, "speakers": ["Ann"]}``; the distance is None for fewer than two messages.
    """
    version = (model, min(count, SAMPLE), growth(count)) if all_read else None
    rows = yield from read_once(version, features.SPREAD, sample=SAMPLE)
    return rows[0] if rows else {"distance": None, "speakers": []}


def weigh_evidence(
    asked: QuestionStatistics,
    hits: Mapping[Kind, Hits],
    tellers: Mapping[str, Collection[str | None]] | None = None,
    near: Mapping[str, float] | None = None,
    baseline: Row | None = None,
) -> Evidence:
    """Compute the features from which `probability` estimates whether *hits* answer a question."""
    values = {"known": sum(map(asked.is_known, asked.terms)) / (len(asked.terms) or 1)}
    if not any(hits[kind].searched for kind in EVIDENCE):
        return Evidence(**values, agreed=0.0, nearest=0.0, lines=0.0)
    shares = {kind: relative_shares([hits[kind].words, hits[kind].meaning], [1.0, 1.0]) for kind in EVIDENCE}
    found = [kind for kind in EVIDENCE if hits[kind].words]
    values["covered"] = max(
        (coverage(hits[kind].words[0][1], asked.frequencies[kind], asked.terms, asked.counts[kind]) for kind in found),
        default=0.0,
    )
    if agreed := [max(shares[kind].values()) for kind in EVIDENCE if hits[kind].meaning]:
        values["agreed"] = fmean(agreed)
    baseline = baseline or {"distance": None, "speakers": []}
    distance = baseline["distance"]
    lines = sort_scores((near or {}).items())
    facts = hits["facts"].meaning
    if distance is not None and (lines or facts):
        values["nearest"] = max(nearness(scores, distance) for scores in (lines, facts) if scores)
        count = asked.counts["episodes" if lines else "facts"]  # facts count only if episodes are not searched
        values["lines"] = nearness(lines or facts, distance, count)
    return Evidence(**values, told=_subject_lead(shares["facts"], tellers or {}, baseline["speakers"], asked))


def _subject_lead(
    shares: Mapping[str, float],
    tellers: Mapping[str, Collection[str | None]],
    speakers: Iterable[str | None],
    asked: QuestionStatistics,
) -> float:
    """Return the score of the best fact stated by the question's subject, minus that of the best by others."""
    if not asked.subjects:
        return 0.0
    best = [id_ for id_, _ in sort_scores(shares.items())[:STATED] if tellers.get(id_)]
    told = {id_: not asked.subjects.isdisjoint(map(alias_key, filter(None, tellers[id_]))) for id_ in best}
    known = {alias_key(speaker) for speaker in speakers if speaker}
    if not any(told.values()) and not asked.named and asked.subjects.isdisjoint(known):
        return 0.0
    own = max((shares[id_] for id_, is_own in told.items() if is_own), default=0.0)
    return own - max((shares[id_] for id_, is_own in told.items() if not is_own), default=0.0)


def nearness(hits: Sequence[Scored], distance: float, count: int = 1) -> float:
    """Return how similar the best *hits* are to the question, from 0 to 1; two random messages have 0.5."""
    most = min(max(count // NEAREST_SHARE, 1), NEAREST)
    away = max(1 - fmean(score for _, score in hits[:most]), 0.0)
    usual = max(distance, LEAST_SPREAD)
    return usual / (usual + away)


def likelihood(evidence: Evidence) -> tuple[float, float]:
    """Return the probabilities that the memory knows the question's subject, and the detail asked: ``(0.9, 0.4)``."""
    subject, detail = (
        BIASES[level] + sum(getattr(WEIGHTS, name) * getattr(evidence, name) for name in names)
        for level, names in (("subject", SUBJECT), ("detail", DETAIL))
    )
    return 1 / (1 + math.exp(-subject)), 1 / (1 + math.exp(-detail))


def probability(evidence: Evidence) -> float:
    """Return the probability, 0 to 1, that the memory holds an answer, if half of all questions have one."""
    # The geometric mean: the product would be too low, as both depend on much the same evidence.
    return round(math.sqrt(math.prod(likelihood(evidence))), 4)


def judge_answerable(relevance: float | None, doubt: str, abstain_below: float) -> Answerable | None:
    """Return whether the memory has an answer: ``yes``, ``unlikely`` or ``no``; None if *relevance* is None."""
    if relevance is None:
        return None
    abstains = relevance < abstain_below
    if relevance >= UNLIKELY and not abstains:
        return Answerable(value="yes")
    return Answerable(value="no" if relevance < NO else "unlikely", reason=doubt, abstains=abstains)


# The reason for doubt

EMPTY = "nothing is stored here yet"
WORDLESS = "the question has no words to look for"
FAR = "nothing here is close to the question"
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_SENTENCE_ENDS = ".?!:"
LONGEST_WORD = 40


def explain_doubt(question: str, asked: QuestionStatistics, evidence: Evidence) -> str:
    """Return why the memory may have no answer to *question*, such as "nothing here is about Lily", or ""."""
    if not asked.terms:
        return WORDLESS
    unknown = list(_unknown_words(question, asked))
    for is_name, word in unknown:
        if is_name:
            return f"nothing here is about {word}"
    reason = f'nothing here tells of "{unknown[0][1]}"' if unknown else FAR
    subject = next((word for _, word in _words(question) if alias_key(word) in asked.subjects), "")
    if subject and not unknown and evidence.told < 0:
        reason = "what comes close was told by others"
    return f"{subject} is known, but {reason}" if subject else reason


def _unknown_words(question: str, asked: QuestionStatistics) -> Iterator[tuple[bool, str]]:
    """Yield ``(is_name, word)`` for each word of *question* that is not stored anywhere: ``(True, "Lily")``."""
    for start, word in _words(question):
        if len(word) <= LONGEST_WORD and not any(map(asked.is_known, terms(word))):
            before = question[:start].rstrip()
            yield word[0].isupper() and bool(before) and before[-1] not in _SENTENCE_ENDS, word


def _words(question: str) -> Iterator[tuple[int, str]]:
    """Yield ``(offset, word)`` for each word of *question* except stop words: "Ann's dog" -> (0, "Ann"), (6, "dog")."""
    for match in _WORD.finditer(question):
        word = without_possessive(match[0])
        if terms(word):
            yield match.start(), word

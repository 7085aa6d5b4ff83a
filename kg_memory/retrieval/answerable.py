"""Whether the memory holds an answer: by the hits of a search, without a model, and with a reason where it does not.

Two things are missing in different ways. Of an unknown subject nothing is near: few of the question's rare words are
in one text, words and meaning disagree, and the best are hardly nearer to the question than any two texts are to each
other. Of a known subject a detail may be missing: then the texts near the question are those of somebody else.
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
"""The episodes that are compared with each other, to know how near two of them usually are."""
LEAST_SPREAD = 0.05
"""The least distance of two episodes that is taken for usual: a memory may begin with repeats."""
NEAREST, NEAREST_SHARE = 10, 20
"""The hits whose mean nearness counts: at most so many, and one in so many of all that is stored."""
STATED = 40
"""The facts whose speakers count."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question: its *terms*, how many nodes have each, and of how many in all.

    `subjects` are the keys of whom it is about: those *named* in it that are known, and who asks.
    """

    terms: Sequence[str]
    frequencies: Frequencies
    counts: Mapping[Kind, int]
    subjects: frozenset[str] = frozenset()
    named: bool = False

    def is_known(self, term: str) -> bool:
        """Return whether anything stored has *term*."""
        return any(often.get(term) for often in self.frequencies.values())


@dataclass(frozen=True, slots=True)
class Evidence:
    """The signs of an answer; each means the same for every embedding model, and where it is unknown is the usual.

    Of the subject: `known` is the share of the question's words that anything stored has, `covered` how much of their
    rarity the best hit has, `agreed` how far words and meaning agree on the best, `nearest` how near the nearest hit
    is. Of the detail: `lines` is how near the nearest ten episodes are, and `told` how much better the best fact that
    those named told is than the best that others told, -1 to 1. Of nearness, 0.5 is that of any two episodes.
    """

    known: float = 0.0
    covered: float = 0.0
    agreed: float = 0.8
    nearest: float = 0.5
    lines: float = 0.45
    told: float = 0.0


SUBJECT = ("known", "covered", "agreed", "nearest")
DETAIL = ("lines", "told")
# By logistic regression: `benchmarks/abstention.py` prints these.
BIASES = {"subject": -15.9, "detail": -3.9}
WEIGHTS = Evidence(known=2.5, covered=3.6, agreed=7.0, nearest=12.7, lines=6.9, told=1.9)
UNLIKELY, NO = 0.2, 0.1
"""Below these, an answer is unlikely, and there is none: of 1000 questions that have one, 32 and 6 are below."""


def read_usual(model: str, count: int, *, all_read: bool) -> Flow[Row]:
    """Return how far apart two of *count* episodes usually are, by an embedding *model*, and who spoke some of them.

    It is cached until there are more, once they are *all_read*: before that, few of them have a vector.
    """
    version = (model, min(count, SAMPLE), growth(count)) if all_read else None
    rows = yield from read_once(version, features.SPREAD, sample=SAMPLE)
    return rows[0] if rows else {"distance": None, "speakers": []}


def weigh(
    asked: Asked,
    hits: Mapping[Kind, Hits],
    tellers: Mapping[str, Collection[str | None]] | None = None,
    near: Mapping[str, float] | None = None,
    usual: Row | None = None,
) -> Evidence:
    """Return what speaks for an answer in the *hits* of a search by words.

    *tellers* are the speakers who state each fact; *near* is how near the nearest episodes are to the question, and
    *usual* the row of `read_usual`.
    """
    values = {"known": sum(map(asked.is_known, asked.terms)) / (len(asked.terms) or 1)}
    if not any(hits[kind].searched for kind in EVIDENCE):
        return Evidence(**values, agreed=0.0, nearest=0.0, lines=0.0)
    shares = {kind: _shares(hits[kind]) for kind in EVIDENCE}
    found = [kind for kind in EVIDENCE if hits[kind].words]
    values["covered"] = max(
        (coverage(hits[kind].words[0][1], asked.frequencies[kind], asked.terms, asked.counts[kind]) for kind in found),
        default=0.0,
    )
    if agreed := [max(shares[kind].values()) for kind in EVIDENCE if hits[kind].meaning]:
        values["agreed"] = fmean(agreed)
    usual = usual or {"distance": None, "speakers": []}
    distance = usual["distance"]
    lines = sort_scores((near or {}).items())
    facts = hits["facts"].meaning
    if distance is not None and (lines or facts):
        values["nearest"] = max(nearness(scores, distance) for scores in (lines, facts) if scores)
        count = asked.counts["episodes" if lines else "facts"]  # facts only where episodes are not searched
        values["lines"] = nearness(lines or facts, distance, count)
    return Evidence(**values, told=_lead(shares["facts"], tellers or {}, usual["speakers"], asked))


def _shares(hits: Hits) -> dict[str, float]:
    """Return the scores of *hits* by words and by meaning together: 1 for the first by both."""
    return relative_shares([hits.words, hits.meaning], [1.0, 1.0])


def _lead(
    shares: Mapping[str, float],
    tellers: Mapping[str, Collection[str | None]],
    speakers: Iterable[str | None],
    asked: Asked,
) -> float:
    """Return how much better the best fact is that somebody named told than the best of the others.

    Who asks is nobody named where the memory does not know them: not one of *speakers*.
    """
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
    """Return how near the first of *hits* are, 0 to 1: 0.5 where they are *distance* away, as two episodes are.

    Of *count* nodes in all, one in `NEAREST_SHARE` is taken, `NEAREST` at most.
    """
    most = min(max(count // NEAREST_SHARE, 1), NEAREST)
    away = max(1 - fmean(score for _, score in hits[:most]), 0.0)
    usual = max(distance, LEAST_SPREAD)
    return usual / (usual + away)


def likelihood(evidence: Evidence) -> tuple[float, float]:
    """Return how likely the memory knows the subject, and then the detail, each 0 to 1: a logistic of *evidence*."""
    subject, detail = (
        BIASES[level] + sum(getattr(WEIGHTS, name) * getattr(evidence, name) for name in names)
        for level, names in (("subject", SUBJECT), ("detail", DETAIL))
    )
    return 1 / (1 + math.exp(-subject)), 1 / (1 + math.exp(-detail))


def probability(evidence: Evidence) -> float:
    """Return how likely there is an answer, 0 to 1, if half of all questions have one.

    It is the geometric mean of both likelihoods: their product is too low, as they go by much the same.
    """
    return round(math.sqrt(math.prod(likelihood(evidence))), 4)


def judge(relevance: float | None, doubt: str, abstain_below: float) -> Answerable | None:
    """Return whether there is an answer, by a search's relevance and doubt; None where it has no relevance."""
    if relevance is None:
        return None
    abstains = relevance < abstain_below
    if relevance >= UNLIKELY and not abstains:
        return Answerable(value="yes")
    return Answerable(value="no" if relevance < NO else "unlikely", reason=doubt, abstains=abstains)


# The reason

EMPTY = "nothing is stored here yet"
WORDLESS = "the question has no words to look for"
FAR = "nothing here is close to the question"
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_SENTENCE_ENDS = ".?!:"
LONGEST_WORD = 40


def explain_doubt(question: str, asked: Asked, evidence: Evidence) -> str:
    """Return why there may be no answer: a name that is unknown, else what is not told, in a few plain words."""
    if not asked.terms:
        return WORDLESS
    unknown = list(_unknown_words(question, asked))
    for is_name, word in unknown:
        if is_name:
            return f"nothing here is about {word}"
    reason = f'nothing here tells of "{unknown[0][1]}"' if unknown else FAR
    subject = _find_subject(question, asked.subjects)
    if subject and not unknown and evidence.told < 0:
        reason = "what comes close was told by others"
    return f"{subject} is known, but {reason}" if subject else reason


def _unknown_words(question: str, asked: Asked) -> Iterator[tuple[bool, str]]:
    """Yield the words of *question* of which nothing stored has any term, and whether each is written as a name."""
    for start, word in _words(question):
        if len(word) <= LONGEST_WORD and not any(map(asked.is_known, terms(word))):
            before = question[:start].rstrip()
            yield word[0].isupper() and bool(before) and before[-1] not in _SENTENCE_ENDS, word


def _find_subject(question: str, subjects: Collection[str]) -> str:
    """Return the first word of *question* that is a name of *subjects*; "" if there is none."""
    return next((word for _, word in _words(question) if alias_key(word) in subjects), "")


def _words(question: str) -> Iterator[tuple[int, str]]:
    """Yield the words of *question* that are more than stop words, with their places."""
    for match in _WORD.finditer(question):
        word = without_possessive(match[0])
        if terms(word):
            yield match.start(), word

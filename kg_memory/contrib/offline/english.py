"""Extracts the statements from an English text, and finds whether each fact begins, ends or is planned."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from kg_memory.contrib.offline import lexicon
from kg_memory.contrib.offline.clauses import CLAUSE_START, interpret_verb, is_disclaimed, is_past, with_clauses
from kg_memory.contrib.offline.names import PEOPLE, find_mentions
from kg_memory.contrib.offline.objects import JOINS_GROUP, find_habit, find_joined, find_objects, fits, is_group, widen
from kg_memory.contrib.offline.statements import (
    BASED,
    ENGLISH,
    GENERAL,
    MOST_OBJECTS,
    MOST_STATEMENTS,
    NOT,
    ORGANISATION,
    PERSON,
    PLACE,
    SINGLE,
    STATES,
    TOPIC,
    WORDS,
    Change,
    Mention,
    Parse,
    Pattern,
    Scene,
    Span,
    TextStatement,
    choose_statements,
    group_by_sentence,
    says_something,
)
from kg_memory.text.dates import find_dates
from kg_memory.text.sentences import Sentence, split_sentences

LONGEST = 300
"""The most characters of sentences that are merged into one statement."""
_SUBJECT = re.compile(r"(?:^|[\s,;(])(I|we|you|he|she|they|it|who|that)(?:['’]\w+)?\s", re.IGNORECASE)
_WORDS = re.compile(r"[\w']+")
_PRONOUN = frozenset("i we you he she they it who that which this there".split())
_TOWARDS = re.compile(r"\s(?:over )?(?:to|into)(?=\s)", re.IGNORECASE)
_SECOND_PERSON = re.compile(r"\byou(?:r|'re|'ve|'ll|'d)?\b", re.IGNORECASE)
_IS_MINE = re.compile(r"\s(?:is|was)\s(?:my|our)\s(?P<kin>[\w-]+)", re.IGNORECASE)
_OWNER = re.compile(r"\b(?:my|our)\b[^,.;!?]{0,30}$", re.IGNORECASE)
_OWN = re.compile(r"(?:my|our)\b", re.IGNORECASE)
_PASSIVE = re.compile(r"\b(?:is|are|was|were|be|been|being|gets?|got)\s(?:\w+ly\s)?$", re.IGNORECASE)
_ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)
_IS_ONE = re.compile(r"\s(?:is|are|was|were) (?:an?|the) [\w\s-]+$", re.IGNORECASE)
"""Words between a thing and its location: "Acme is a company based in Oslo"."""
UNNAMED_SUBJECTS = frozenset({"RUNS_ON", "BUILT_WITH", "USES"})
"""Predicates whose subject may be an unnamed thing: "the memory-system runs on Qdrant"."""
LISTING = frozenset({"LIKES", "DISLIKES", "IS_ALLERGIC_TO", "PREFERS", "USES"})
"""Predicates that state one fact for each of several listed objects."""
DEEDS = {"LIKES": "ENJOYED", "PLAYS": "PLAYED", "HELPS": "HELPED", "WORKS_ON": "WORKED_ON", "LEARNS": "LEARNED"}
"""The predicate of a completed action, by the predicate of the same verb in the present tense."""
_LIGHT = lexicon.AUXILIARIES | lexicon.FUNCTION | set("my our all both ve m s d ll re got".split())


def _all_light(words: Sequence[str]) -> bool:
    """Return whether *words* may stand between a subject and its verb: all are function words or adverbs."""
    return all(word in _LIGHT or word.endswith("ly") for word in words)


def _split(text: str) -> list[str]:
    return _WORDS.findall(text.casefold().replace("’", "'"))


def read_english(content: str, scene: Scene) -> Parse:
    """Extract the mentions and statements (stated facts) from *content*; *scene* has the speaker and known names."""
    mentions: list[Mention] = []
    statements: list[TextStatement] = []
    last_person: Mention | None = scene.he_or_she
    main: Mention | None = None
    everything = find_mentions(content, scene.speaker, scene.names)
    for sentence, inside in group_by_sentence(everything, split_sentences(content)):
        if len(statements) >= MOST_STATEMENTS:
            break
        named = [mention for mention in inside if mention.named]
        mentions += named
        main = main or (named[0] if named else None)
        if not sentence.asks and says_something(sentence.text):
            _append_or_extend(statements, _SentenceReader(sentence, inside, scene, last_person, main).read(), sentence)
        present = (scene.speaker, scene.listener)
        people = [mention for mention in named if mention.type == PERSON and mention.name not in present]
        last_person = people[-1] if people else last_person
    return Parse(tuple(mentions), tuple(statements))


def _append_or_extend(statements: list[TextStatement], new: list[TextStatement], sentence: Sentence) -> None:
    """Append the facts *new* of *sentence*, or extend the last one if the sentence continues it: "It was loud"."""
    last = statements[-1] if statements else None
    weak = len(new) == 1 and new[0].predicate == GENERAL
    near = last is not None and sentence.start - last.quote[1] <= 3 and sentence.end - last.quote[0] <= LONGEST
    lasts = last is not None and last.predicate in STATES
    if last is None or lasts or not weak or not near or not WORDS["goes_on"].match(sentence.text):
        statements += new
        return
    names = {mention.name for mention in (last.subject, *last.objects)}
    objects = last.objects
    if last.predicate not in SINGLE:
        objects = (*objects, *(each for each in new[0].objects if each.name not in names))[: MOST_OBJECTS + 1]
    statements[-1] = replace(last, objects=objects, end=sentence.end, clause=(last.quote[0], sentence.end))


class _SentenceReader:
    """Extracts the facts that one English sentence states."""

    def __init__(
        self, sentence: Sentence, inside: list[Mention], scene: Scene, person: Mention | None, main: Mention | None
    ) -> None:
        self.sentence = sentence
        self.text, self.start, self.end = sentence.text, sentence.start, sentence.end
        self.scene = scene
        self.person = person
        self.main = main
        self.causal = WORDS["cause"].search(self.text) is not None
        self.speaker = Mention(self.start, self.start, scene.speaker, PERSON, named=True) if scene.speaker else None
        self.verbal = _hide_names(self.text, self.start, inside)
        # The sentence says nothing about a person who is only addressed ("Thanks, Jon!").
        self.mentions = [mention for mention in inside if not self._is_address(mention)]

    def read(self) -> list[TextStatement]:
        """Return the statements of the sentence: those of its verbs or, without any, one about all its entities."""
        statements = [statement for match in self._find_verbs() for statement in self._read_match(*match)]
        told_by = None if is_disclaimed(self.text, len(self.text) - 1) else self.speaker
        statements = self._with_clauses(statements)
        used = {mention.name for one in statements for mention in (one.subject, *one.objects)}
        unused = [mention for mention in self.mentions if mention.name not in used]
        kinship = list(self._read_kinship(told_by)) if told_by else []
        # An age has no relation to the other mentions: "I'm worried about my resume, I'm 60".
        if all(one.predicate == "HAS_AGE" for one in statements) and not (kinship and len(unused) <= 2):
            statements += self._link_mentions(unused)
        elif statements:
            named = [mention for mention in unused if mention.named and _is_within(mention, statements[-1].quote)]
            statements[-1] = widen(statements[-1], named) if named else statements[-1]
        return choose_statements([*statements, *kinship])

    def _with_clauses(self, statements: Sequence[TextStatement]) -> list[TextStatement]:
        """Set the clause of each statement, and drop objects outside of it, but keep the first if all are outside."""
        dates = find_dates(self.text, _ANY_TIME) if len(statements) > 1 else []
        placed = with_clauses(statements, self.sentence, dates)
        inside = (tuple(thing for thing in one.objects if _is_within(thing, one.quote)) for one in placed)
        return [replace(one, objects=things or one.objects[:1]) for one, things in zip(placed, inside, strict=True)]

    def _statement(
        self, subject: Mention, predicate: str, objects: tuple[Mention, ...], change: Change, confidence: float
    ) -> TextStatement:
        return TextStatement(subject, predicate, objects, self.start, self.end, change, confidence, self.causal)

    def _with_verb(self, statement: TextStatement, start: int, end: int) -> TextStatement:
        return replace(statement, verb=(self.start + start, self.start + end))

    def _is_address(self, mention: Mention) -> bool:
        if mention.name != self.scene.listener and mention.type != PERSON:
            return False
        before = self.text[: mention.start - self.start].rstrip()
        after = self.text[mention.end - self.start :].lstrip()
        alone = not after or after[0] in ",!.?;:-–—…"
        return alone and (not before or before[-1] in ",!.;-–—" or len(before.split()) == 1)

    # Statements of the sentence.

    def _find_verbs(self) -> list[tuple[Pattern, int, int]]:
        text = self.text.replace("’", "'")
        matches: list[tuple[Pattern, int, int]] = []
        for pattern in ENGLISH:
            for match in pattern.verb.finditer(text):
                free = all(match.end() <= start or end <= match.start() for _, start, end in matches)
                if free and not self._is_in_name(match.start(), match.end()):
                    matches.append((pattern, match.start(), match.end()))
        return sorted(matches, key=lambda match: match[1])

    def _is_in_name(self, start: int, end: int) -> bool:
        spans = ((one.start - self.start, one.end - self.start) for one in self.mentions if one.named and not one.kin)
        return any(begin <= start and end <= stop for begin, stop in spans)

    def _read_match(self, pattern: Pattern, start: int, end: int) -> list[TextStatement]:
        """Return the facts that the verb ``text[start:end]`` states, such as [(Ann, LIVES_IN, Oslo)] for "lives in"."""
        if pattern.change == "happens" and _PASSIVE.search(self.text[:start]):
            return []
        verb = self.text[start:end].casefold()
        before = self.text[:start]
        if verb.startswith(BASED):
            before = _IS_ONE.sub(" ", before)
        if pattern.predicate == "IS_NAMED":
            subject = self.speaker
        else:
            subject = self._find_subject(before, allow_unnamed=_allows_unnamed(pattern, self.text[start:end]))
        if subject is None:
            return []
        if pattern.predicate == "DOES":
            objects = find_habit(end, self.text, self.start)
        else:
            objects = find_objects(pattern, end, subject, self.text, self.start, self.mentions)
        meaning = self._interpret(pattern, (start, end), objects[0]) if objects else None
        if meaning is None:
            return []
        predicate, change = meaning
        sure = 0.8 if pattern.change in ("is", "ends") else 0.7
        statements = self._list_objects(self._statement(subject, predicate, objects, change, sure))
        if change == "ends" and verb.endswith("from"):
            statements += self._read_towards(pattern, statements[0])
        return [self._with_verb(statement, start, end) for statement in statements]

    def _interpret(self, pattern: Pattern, span: Span, thing: Mention) -> tuple[str, Change] | None:
        """Return (predicate, change) of the verb at *span* with the object *thing*, as ("LIVES_IN", "ends").

        The result is None if the verb states no fact.
        """
        meaning = interpret_verb(pattern.predicate, pattern.change, self.verbal, span)
        if meaning is None or not fits(pattern, self.text[span[0] : thing.start - self.start], thing):
            return None
        predicate, change = meaning
        if predicate == "LIVES_IN" and thing.name.casefold() in lexicon.PRODUCTS:
            return "USES", change  # "we moved to Linear"
        verb, before = self.text[slice(*span)].casefold(), self.text[: span[0]]
        if change == "is" and predicate in DEEDS and is_past(verb) and not WORDS["perfect"].search(before):
            return DEEDS[predicate], "happens"
        if predicate == "WORKS_AT" and thing.type == PLACE and change == "ends":
            return "LIVES_IN", change
        if verb == "joined" and (is_group(thing) or JOINS_GROUP.match(self.text, span[1])):
            return "JOINED", "happens"
        no_employer = predicate.removeprefix(NOT) == "WORKS_AT" and thing.type == TOPIC and not thing.named
        return None if no_employer else meaning  # "I left the meeting" is about no employer

    def _list_objects(self, statement: TextStatement) -> list[TextStatement]:
        """Split *statement* into one statement for each listed object: "I use React and Solid" gives two."""
        if statement.predicate not in LISTING or statement.change not in ("is", "ends"):
            return [statement]
        first, *others = statement.objects
        listed = find_joined(first, self.text, self.start, self.mentions)[:MOST_OBJECTS]
        beside = {mention.name for mention in listed}
        if not listed or any(mention.name not in beside for mention in others):
            return [statement]
        return [replace(statement, objects=(thing,)) for thing in (first, *listed)]

    def _read_towards(self, pattern: Pattern, left: TextStatement) -> list[TextStatement]:
        """Return the statement about the destination in "moved from Rome to Oslo"; *left* is that about Rome."""
        end = left.objects[0].end - self.start
        to = _TOWARDS.search(self.text, end, end + 40)
        objects = find_objects(pattern, to.end(), left.subject, self.text, self.start, self.mentions) if to else ()
        return [replace(left, objects=objects, change="is", confidence=0.8)] if objects else []

    def _read_kinship(self, speaker: Mention) -> Iterator[TextStatement]:
        """Yield the statement (*speaker*, HAS_SISTER, Lily) for "my sister Lily" or "Lily is my sister"."""
        for mention in self.mentions:
            place = mention.start - self.start, mention.end - self.start
            match = _IS_MINE.match(self.text, place[1]) if mention.type == PERSON and not mention.kin else None
            if match is not None and match["kin"].casefold() in lexicon.KIN:
                kin, clause = match["kin"], (mention.start, self.start + match.end())
            elif mention.kin in lexicon.KIN and "'" not in mention.name:
                owner = _OWNER.search(self.text, 0, place[0])
                kin, clause = str(mention.kin), (self.start + (owner.start() if owner else place[0]), mention.end)
            else:
                continue
            yield replace(self._statement(speaker, f"HAS_{kin.upper()}", (mention,), "is", 0.8), clause=clause)

    def _link_mentions(self, unused: Sequence[Mention]) -> list[TextStatement]:
        """Return at most one general fact about entities that no verb has as object.

        ``[(Ann, SAYS_ABOUT, Oslo)]``; [] for advice and general remarks.
        """
        if not unused:
            return []
        pronoun = re.match(r"(?:he|she)\b", self.text, re.IGNORECASE)
        subject = self.speaker or (self.person if pronoun else None) or self.main or unused[0]
        objects = tuple(mention for mention in unused if mention.name != subject.name)
        if not objects:
            return []
        if self.speaker and not WORDS["first_person"].search(self.text):
            if _SECOND_PERSON.search(self.text.replace("’", "'")):
                return []  # praise or advice to the listener
            if not WORDS["measured"].search(self.text) and not any(mention.named for mention in objects):
                return []  # a general remark: "Friendship is important"
        predicate = GENERAL if self.speaker else "RELATES_TO"
        change: Change = "is" if WORDS["present"].search(self.text) else "happens"
        statement = self._statement(subject, predicate, objects[:MOST_OBJECTS], change, 0.4)
        return [self._with_verb(statement, 0, self.end - self.start)]

    # Subjects and objects.

    def _find_subject(self, before: str, *, allow_unnamed: bool = False) -> Mention | None:
        """Return the subject of the verb that follows the text *before*; None if it is unclear."""
        lead = CLAUSE_START.split(before)[-1]
        words = _split(lead)
        pronoun = next((at for at in range(len(words) - 1, -1, -1) if words[at].split("'")[0] in _PRONOUN), None)
        if pronoun is not None and _all_light(words[pronoun + 1 :]):
            return self._resolve_pronoun(words[pronoun].split("'")[0], len(before))
        name = self._name_before(before, len(before) - len(lead), allow_unnamed=allow_unnamed)
        if name is not None or not _all_light(words):
            return name
        if len(lead) == len(before):
            return None if words[:1] in (["must"], ["should"]) else self.speaker or self.main  # "Must be hard"
        # The verb follows "and" or a comma, and has the subject of the previous verb.
        earlier = _SUBJECT.findall(before[: len(before) - len(lead)])
        if earlier:
            return self._resolve_pronoun(earlier[-1].casefold(), len(before))
        first = self.mentions[0] if self.mentions else None
        if first is not None and first.named and (first.start == self.start or (first.kin and _OWN.match(self.text))):
            return first
        opening = _WORDS.findall(before.casefold())[:1]
        acts = bool(opening) and (_all_light(opening) or opening[0] in lexicon.VERB_FORMS)
        return (self.speaker or self.main) if acts else None

    def _resolve_pronoun(self, pronoun: str, at: int) -> Mention | None:
        if pronoun in ("i", "we"):
            return self.speaker
        if pronoun not in ("he", "she"):
            return None
        present = (self.scene.speaker, self.scene.listener)
        before = (one for one in reversed(self.mentions) if one.end - self.start <= at and one.name not in present)
        return next((one for one in before if one.type == PERSON and one.named), self.person)

    def _name_before(self, before: str, begin: int, *, allow_unnamed: bool) -> Mention | None:
        """Return the last entity in ``before[begin:]`` if it can be the subject of the next verb, else None."""
        for mention in reversed(self.mentions):
            end = mention.end - self.start
            if (mention.named or allow_unnamed) and begin < end <= len(before):
                opens = _all_light(_WORDS.findall(before[begin : mention.start - self.start].casefold()))
                if mention.named and mention.type not in (PERSON, ORGANISATION) and not mention.kin and not opens:
                    return None
                return mention if _all_light(_split(before[end:])) else None
        return None


def _hide_names(text: str, offset: int, mentions: Sequence[Mention]) -> str:
    """Return *text* with X's in place of names that are also verbs (Will, May); *mentions* has the names."""
    for one in mentions:
        if one.type == PERSON and one.name.split()[0].casefold() in PEOPLE:
            start, end = one.start - offset, one.end - offset
            text = text[:start] + "X" * (end - start) + text[end:]
    return text


def _allows_unnamed(pattern: Pattern, verb: str) -> bool:
    return pattern.predicate in UNNAMED_SUBJECTS and not verb.casefold().startswith(("using", "switching", "running"))


def _is_within(mention: Mention, span: Span) -> bool:
    return span[0] <= mention.start < span[1]

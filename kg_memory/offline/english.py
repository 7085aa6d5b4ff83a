"""Read the statements of an English text: who does what with what, and whether it begins, ends or is planned."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from kg_memory.offline.clauses import CLAUSE_START, find_denials, interpret_verb
from kg_memory.offline.names import find_mentions
from kg_memory.offline.statements import (
    ENGLISH,
    FUNCTIONAL,
    GENERAL,
    MOST_OBJECTS,
    MOST_STATEMENTS,
    NOT,
    ORGANISATION,
    PERSON,
    PLACE,
    SINGLE,
    TOPIC,
    Change,
    Mention,
    Pattern,
    Reading,
    Scene,
    Statement,
    choose_statements,
    group_by_sentence,
    read_as_tools,
)
from kg_memory.text import lexicon
from kg_memory.text.sentences import Sentence, split_sentences

LONGEST = 300
"""The most characters of the sentences that make one statement."""
_GOES_ON = re.compile(
    r"(?:and |but |so |plus |also,? )?(?:it|they|that|this|these|those|he|she|there|their|his|her|its)\b", re.IGNORECASE
)
_SUBJECT = re.compile(r"(?:^|[\s,;(])(I|we|you|he|she|they|it|who|that)(?:['’]\w+)?\s", re.IGNORECASE)
_COUPLE = re.compile(
    r"(?:\band I|\bwe)(?:['’]ve)? (?:just |recently |finally )?(?P<how>broke up|split up|separated|got divorced|"
    r"divorced|got engaged|got married|got back together)\b",
    re.IGNORECASE,
)
_WORDS = re.compile(r"[\w']+")
_PRONOUN = frozenset("i we you he she they it who that which this there".split())
_FREE = re.compile(
    r"\s(?:the |a |an |my |our |his |her |their |new |old |using |having )*"
    r"(?P<words>[A-Za-z0-9À-ɏ][\w+#.&'’-]*(?:\s(?!to\b|"
    r"and\b|but\b|in\b|on\b|at\b|for\b|from\b|with\b|"
    r"because\b|since\b|last\b|next\b|this\b|when\b|after\b|before\b|as\b|so\b|over\b|than\b|now\b|again\b|yet\b|"
    r"until\b|two\b|three\b|who\b|which\b|that\b|a\b|the\b|"
    r"instead\b|anymore\b|years?\b|months?\b|yesterday\b|today\b|recently\b|by\b|of\b|about\b|where\b|"
    r"while\b)[A-Za-z0-9][\w+#.&'’-]*){0,2})"
)
_CLAUSE_END = re.compile(
    r"[,;:.!?—–]\s|\s(?:but|because|although|though|while|when|if|so)\s|\sand\s(?:I|we|he|she|it|they|now|then)\b",
    re.IGNORECASE,
)
_TOWARDS = re.compile(r"\s(?:over )?(?:to|into)(?=\s)", re.IGNORECASE)
_FIRST_PERSON = re.compile(
    r"\bI\b|\b(?:[Ww]e|[Mm]y|[Oo]ur|[Mm]e|[Uu]s)\b|^(?:Been|Just|Gonna|Started|Finished|Got|Had|Went|Still|"
    r"Finally|Can't|Working|Trying|Took|Made)\b"
)
_SECOND_PERSON = re.compile(r"\byou(?:r|'re|'ve|'ll|'d)?\b", re.IGNORECASE)
_MEASURED = re.compile(
    r"\d|\b(?:yesterday|tomorrow|today|last (?:week|month|year|night|weekend)|next (?:week|month|year|weekend))\b",
    re.IGNORECASE,
)
_PRESENT = re.compile(
    r"\b(?:am|is|are|have|has|now|currently|always|every|'m|'re|'ve)\b|['’](?:m|re|ve|s)\b", re.IGNORECASE
)
_CAUSE = re.compile(
    r"\b(?:because|due to|thanks to|so that|led to|that's why|made me|makes me|caused)\b", re.IGNORECASE
)
_LIGHT = lexicon.AUXILIARIES | lexicon.FUNCTION | set("my our all both ve m s d ll re got".split())
_VAGUE = lexicon.STOP | lexicon.VAGUE_NOUNS
_GROUPS = frozenset("club group team gym church class course choir band community league".split())


def _all_light(words: Sequence[str]) -> bool:
    """Return whether the words may all stand between a subject and its verb."""
    return all(word in _LIGHT or word.endswith("ly") for word in words)


def _split(text: str) -> list[str]:
    return _WORDS.findall(text.casefold().replace("’", "'"))


def read_english(content: str, scene: Scene) -> Reading:
    """Return what *content* mentions and states, in the order of the text."""
    mentions: list[Mention] = []
    statements: list[Statement] = []
    last_person: Mention | None = scene.he_or_she
    main: Mention | None = None
    everything = find_mentions(content, scene.speaker, scene.names)
    for sentence, inside in group_by_sentence(everything, split_sentences(content)):
        if len(statements) >= MOST_STATEMENTS:
            break
        named = [mention for mention in inside if mention.named]
        mentions += named
        main = main or (named[0] if named else None)
        if not sentence.asks and sentence.says_something:
            reader = _SentenceReader(sentence, inside, scene, last_person, main)
            _append(statements, reader.read(), sentence)
        present = (scene.speaker, scene.listener)
        people = [mention for mention in named if mention.type == PERSON and mention.name not in present]
        last_person = people[-1] if people else last_person
    return Reading(tuple(mentions), tuple(statements))


def _append(statements: list[Statement], new: list[Statement], sentence: Sentence) -> None:
    """Append *new*; a sentence that goes on about the one before ("It was so loud") extends its statement."""
    last = statements[-1] if statements else None
    weak = len(new) == 1 and new[0].predicate == GENERAL
    near = last is not None and sentence.start - last.end <= 2 and sentence.end - last.start <= LONGEST
    if last is None or not weak or not near or not _GOES_ON.match(sentence.text):
        statements += new
        return
    names = {mention.name for mention in (last.subject, *last.objects)}
    objects = last.objects
    if last.predicate not in SINGLE:
        further = (mention for mention in new[0].objects if mention.name not in names)
        objects = (*objects, *further)[: MOST_OBJECTS + 1]
    statements[-1] = replace(last, objects=objects, end=sentence.end)


class _SentenceReader:
    """Reads one sentence; holds the text and the people that its rules need."""

    def __init__(
        self, sentence: Sentence, inside: list[Mention], scene: Scene, person: Mention | None, main: Mention | None
    ) -> None:
        self.text, self.start, self.end = sentence.text, sentence.start, sentence.end
        self.scene = scene
        self.person = person
        self.main = main
        self.causal = _CAUSE.search(self.text) is not None
        self.speaker = Mention(self.start, self.start, scene.speaker, PERSON, named=True) if scene.speaker else None
        # A person who is only addressed ("Thanks, Jon!") is not what the sentence is about.
        self.mentions = [mention for mention in inside if not self._is_address(mention)]

    def read(self) -> list[Statement]:
        """Return the statements of the sentence: those that match a pattern, else one about what it mentions."""
        statements: list[Statement] = []
        for pattern, start, end in self._matches():
            statements += self._read_match(pattern, start, end)
        statements += self._read_couple()
        statements += self._read_denials(statements)
        used = {mention.name for one in statements for mention in (one.subject, *one.objects)}
        left = [mention for mention in self.mentions if mention.name not in used]
        if not statements:
            statements += self._read_general(left)
        elif named := [mention for mention in left if mention.named]:
            statements[-1] = _widen(statements[-1], named)
        return choose_statements([*read_as_tools(statements), *self._read_kinship()])

    def _statement(
        self, subject: Mention, predicate: str, objects: tuple[Mention, ...], change: Change, confidence: float
    ) -> Statement:
        return Statement(subject, predicate, objects, self.start, self.end, change, confidence, self.causal)

    def _with_verb(self, statement: Statement, start: int, end: int) -> Statement:
        return replace(statement, verb=(self.start + start, self.start + end))

    def _is_address(self, mention: Mention) -> bool:
        if mention.name != self.scene.listener and mention.type != PERSON:
            return False
        before = self.text[: mention.start - self.start].rstrip()
        after = self.text[mention.end - self.start :].lstrip()
        alone = not after or after[0] in ",!.?;:-–—…"
        return alone and (not before or before[-1] in ",!.;-–—" or len(before.split()) == 1)

    # What a sentence states.

    def _matches(self) -> list[tuple[Pattern, int, int]]:
        """Return the patterns that match, in the order of the text, none inside another."""
        text = self.text.replace("’", "'")
        matches: list[tuple[Pattern, int, int]] = []
        for pattern in ENGLISH:
            for match in pattern.verb.finditer(text):
                if all(match.end() <= start or end <= match.start() for _, start, end in matches):
                    matches.append((pattern, match.start(), match.end()))
        return sorted(matches, key=lambda match: match[1])

    def _read_match(self, pattern: Pattern, start: int, end: int) -> list[Statement]:
        subject = self._subject(self.text[:start])
        objects = self._objects(pattern, end, subject) if subject is not None else ()
        if subject is None or not objects:
            return []
        meaning = interpret_verb(pattern.predicate, pattern.change, self.text, (start, end))
        if meaning is None or not _fits(pattern, self.text[start : objects[0].start - self.start], objects[0]):
            return []
        predicate, change = meaning
        verb = self.text[start:end].casefold()
        if predicate == "WORKS_AT" and objects[0].type == PLACE and change == "ends":
            predicate = "LIVES_IN"
        elif verb == "joined" and _is_group(objects[0]):
            predicate, change = "JOINED", "happens"
        elif predicate.removeprefix(NOT) == "WORKS_AT" and objects[0].type == TOPIC and not objects[0].named:
            return []  # "I left the meeting"
        confidence = 0.8 if pattern.change in ("is", "ends") else 0.7
        statements = [self._statement(subject, predicate, objects, change, confidence)]
        if change == "ends" and verb.endswith("from"):
            statements += self._read_towards(pattern, subject, objects[0])
        return [self._with_verb(statement, start, end) for statement in statements]

    def _read_towards(self, pattern: Pattern, subject: Mention, left: Mention) -> list[Statement]:
        """Read the second half of "moved from X to Y"."""
        end = left.end - self.start
        to = _TOWARDS.search(self.text, end, end + 40)
        objects = self._objects(replace(pattern, change="is"), to.end(), subject) if to else ()
        return [self._statement(subject, pattern.predicate, objects, "is", 0.8)] if objects else []

    def _read_couple(self) -> list[Statement]:
        """Read "Tom and I broke up" and, of the person just named, "we broke up"."""
        match = _COUPLE.search(self.text)
        if match is None or self.speaker is None:
            return []
        end, speaker = self.start + match.start(), self.speaker.name
        people = [one for one in self.mentions if one.type == PERSON and one.end <= end + 1 and one.name != speaker]
        partner = people[-1] if people else self.person
        if partner is None:
            return []
        how = match["how"].casefold()
        married = how in ("divorced", "got divorced", "got married")
        predicate = "IS_MARRIED_TO" if married else "IS_IN_RELATIONSHIP_WITH"
        change: Change = "is" if how in ("got married", "got engaged", "got back together") else "ends"
        statement = self._statement(self.speaker, predicate, (partner,), change, 0.8)
        return [self._with_verb(statement, *match.span("how"))]

    def _read_denials(self, statements: Sequence[Statement]) -> list[Statement]:
        """Read "I've never deployed it to Heroku", where no pattern knows the verb."""
        denials = []
        for predicate, (start, end) in find_denials(self.text):
            objects = tuple(one for one in self.mentions if start <= one.start - self.start < end)[:MOST_OBJECTS]
            read = any(one.verb and one.verb[0] <= start + self.start <= one.verb[1] for one in statements)
            if self.speaker and objects and not read:
                denial = self._statement(self.speaker, predicate, objects, "never", 0.8)
                denials.append(self._with_verb(denial, start, end))
        return denials

    def _read_kinship(self) -> list[Statement]:
        """Read "my sister Lily" as that Lily is the speaker's sister."""
        if self.speaker is None:
            return []
        return [
            self._statement(self.speaker, f"HAS_{mention.kin.upper()}", (mention,), "is", 0.8)
            for mention in self.mentions
            if mention.kin and mention.kin.isascii() and "'" not in mention.name and mention.kin in lexicon.KIN
        ]

    def _read_general(self, left: Sequence[Mention]) -> list[Statement]:
        """Return one statement that links the mentions, if the sentence is about somebody or something."""
        pronoun = re.match(r"(?:he|she)\b", self.text, re.IGNORECASE)
        subject = self.speaker or (self.person if pronoun else None) or self.main or (left[0] if left else None)
        objects = tuple(mention for mention in left if subject is not None and mention.name != subject.name)
        if subject is None or not objects:
            return []
        if self.speaker and not _FIRST_PERSON.search(self.text):
            if _SECOND_PERSON.search(self.text.replace("’", "'")):
                return []  # praise and advice
            if not _MEASURED.search(self.text) and not any(mention.named for mention in objects):
                return []  # "Friendship is important": nothing about anybody
        predicate = GENERAL if self.speaker else "RELATES_TO"
        change: Change = "is" if _PRESENT.search(self.text) else "happens"
        statement = self._statement(subject, predicate, objects[:MOST_OBJECTS], change, 0.4)
        return [self._with_verb(statement, 0, self.end - self.start)]

    # Subjects and objects.

    def _subject(self, before: str) -> Mention | None:
        """Return the subject right before the verb, or the one that "and" carries on, if any."""
        lead = CLAUSE_START.split(before)[-1]
        words = _split(lead)
        pronoun = next((at for at in range(len(words) - 1, -1, -1) if words[at].split("'")[0] in _PRONOUN), None)
        if pronoun is not None and _all_light(words[pronoun + 1 :]):
            return self._person(words[pronoun].split("'")[0])
        name = self._name_before(before, len(before) - len(lead))
        if name is not None or not _all_light(words):
            return name
        if len(lead) == len(before):
            return self.speaker or self.main
        # The verb follows "and" or a comma: it has the subject of the verb before.
        earlier = _SUBJECT.findall(before[: len(before) - len(lead)])
        if earlier:
            return self._person(earlier[-1].casefold())
        first = self.mentions[0] if self.mentions else None
        if first is not None and first.start == self.start and first.named:
            return first
        opening = _WORDS.findall(before.casefold())[:1]
        acts = bool(opening) and (_all_light(opening) or opening[0] in lexicon.VERB_FORMS)
        return (self.speaker or self.main) if acts else None

    def _person(self, pronoun: str) -> Mention | None:
        if pronoun in ("i", "we"):
            return self.speaker
        return self.person if pronoun in ("he", "she") else None

    def _name_before(self, before: str, begin: int) -> Mention | None:
        """Return the name after *begin* that only light words separate from the verb."""
        for mention in reversed(self.mentions):
            end = mention.end - self.start
            if mention.named and begin < end <= len(before):
                opens = _all_light(_WORDS.findall(before[begin : mention.start - self.start].casefold()))
                if mention.type not in (PERSON, ORGANISATION) and not mention.kin and not opens:
                    return None
                return mention if _all_light(_split(before[end:])) else None
        return None

    def _objects(self, pattern: Pattern, end: int, subject: Mention) -> tuple[Mention, ...]:
        clause = _CLAUSE_END.search(self.text, end + 1)
        begin, stop = self.start + end, self.start + (clause.start() if clause else len(self.text))
        objects = [one for one in self.mentions if begin <= one.start < stop and one.name != subject.name]
        words = _FREE.match(self.text, end) if pattern.free else None
        free = _free_object(words, self.start, pattern.kind) if words else None
        if free is not None and (not objects or objects[0].start >= free.end or _is_fuller(free, objects[0])):
            objects = [free, *(mention for mention in objects if mention.start >= free.end)]
        if pattern.kind == PERSON:
            objects = [mention for mention in objects if mention.named]
        if pattern.free or pattern.kind == PERSON or pattern.predicate in FUNCTIONAL:
            return tuple(_with_type(one, pattern) if one.named or one is free else one for one in objects[:1])
        return tuple(objects[:MOST_OBJECTS])


def _widen(last: Statement, names: Sequence[Mention]) -> Statement:
    """Return *last* with the names that no statement of the sentence has, unless it takes one object only."""
    if last.predicate in SINGLE:
        return last
    extra = (mention for mention in names if mention.name != last.subject.name)
    return replace(last, objects=(*last.objects, *extra)[: MOST_OBJECTS + 1])


def _free_object(words: re.Match[str], offset: int, kind: str) -> Mention | None:
    name = words["words"].rstrip(".,!?;:'’").removesuffix("'s").removesuffix("’s")
    lows = name.casefold().split()
    while lows and lows[-1] in lexicon.STOP:
        lows.pop()
    if not lows or _VAGUE.issuperset(lows) or lows[0] in lexicon.SUBJECTS:
        return None
    name = " ".join(name.split()[: len(lows)])
    start = words.start("words") + offset
    shown = name.title() if name in lexicon.PLACES else name
    return Mention(start, start + len(name), shown, kind, named=shown[0].isupper())


def _is_fuller(free: Mention, mention: Mention) -> bool:
    """Return whether *free* is a longer phrase around *mention*: "senior engineer", not "engineer"."""
    return not mention.named and free.start <= mention.start and mention.end <= free.end


def _with_type(mention: Mention, pattern: Pattern) -> Mention:
    """Return *mention* with the type of the pattern's object, where its own is only a guess."""
    if mention.type in (PERSON, PLACE) or mention.kin or (mention.type == ORGANISATION and pattern.kind != PLACE):
        return mention
    return Mention(mention.start, mention.end, mention.name, pattern.kind, mention.named)


def _is_group(mention: Mention) -> bool:
    """Return whether one joins it without working there: it has no name, or is a club or a class."""
    return not mention.named or mention.name.casefold().split()[-1] in _GROUPS


def _fits(pattern: Pattern, before: str, mention: Mention) -> bool:
    """Return whether *mention*, after *before*, can be where somebody is: "back in Oslo", not "back in shape"."""
    words = before.casefold().split()
    if pattern.predicate == "LIVES_IN" and "back" in words[:3] and words[0] not in ("moved", "relocated"):
        return mention.named and words[-2:-1] == ["back"]
    if pattern.predicate != "STAYS_IN":
        return True
    return mention.named and (mention.type == PLACE or words[0] in ("staying", "crashing", "couchsurfing"))

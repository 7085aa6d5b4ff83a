"""Read the statements of an English text: who does what with what, and whether it begins, ends or is planned."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from kg_memory.offline import lexicon
from kg_memory.offline.choosing import as_tools, chosen
from kg_memory.offline.mentions import mentions
from kg_memory.offline.moods import denied, meant
from kg_memory.offline.patterns import ENGLISH, FUNCTIONAL, NOT, SINGLE, Change, Pattern
from kg_memory.offline.scene import GENERAL, MOST_OBJECTS, MOST_STATEMENTS, Reading, Scene, Statement
from kg_memory.offline.sentences import Sentence, sentences
from kg_memory.offline.spans import ORGANISATION, PERSON, PLACE, TOPIC, Mention, by_sentence

LONGEST = 300
"""The most characters of the sentences that make one statement."""
_GOES_ON = re.compile(
    r"(?:and |but |so |plus |also,? )?(?:it|they|that|this|these|those|he|she|there|their|his|her|its)\b", re.IGNORECASE
)
_SUBJECT = re.compile(r"(?:^|[\s,;(])(I|we|you|he|she|they|it|who|that)(?:['’]\w+)?\s", re.IGNORECASE)
_PARTED = re.compile(
    r"(?:\band I|\bwe)(?:['’]ve)? (?:just |recently |finally )?(?P<how>broke up|split up|separated|got divorced|"
    r"divorced|got engaged|got married|got back together)\b",
    re.IGNORECASE,
)
_CLAUSE_START = re.compile(r"\b(?:and|but|or|so|then)\b|[,;:()]|\s[-–—]+\s|--")
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
_FIRST_PERSON = re.compile(
    r"\bI\b|\b(?:[Ww]e|[Mm]y|[Oo]ur|[Mm]e|[Uu]s)\b|^(?:Been|Just|Gonna|Started|Finished|Got|Had|Went|Still|"
    r"Finally|Can't|Working|Trying|Took|Made)\b"
)
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


def _light(word: str) -> bool:
    """Return whether a word may stand between a subject and its verb."""
    return (
        word in lexicon.AUXILIARIES
        or word in lexicon.FUNCTION
        or word.endswith("ly")
        or word in ("my", "our", "all", "both", "ve", "m", "s", "d", "ll", "re", "got")
    )


def read_english(content: str, scene: Scene) -> Reading:
    """Return what *content* mentions and states, in the order of the text."""
    mentioned: list[Mention] = []
    stated: list[Statement] = []
    all_mentions = mentions(content, scene.speaker, scene.known)
    last_person: Mention | None = scene.he_or_she
    main: Mention | None = None
    for sentence, inside in by_sentence(all_mentions, sentences(content)):
        if len(stated) >= MOST_STATEMENTS:
            break
        named = [one for one in inside if one.named]
        mentioned += named
        main = main or (named[0] if named else None)
        if not sentence.asks and sentence.says_something:
            reader = _SentenceReader(sentence, inside, scene, last_person, main)
            _join(stated, reader.read(), sentence)
        people = [one for one in named if one.type == PERSON and one.name not in (scene.speaker, scene.listener)]
        last_person = people[-1] if people else last_person
    return Reading(tuple(mentioned), tuple(stated))


def _join(stated: list[Statement], new: list[Statement], sentence: Sentence) -> None:
    """Append *new*; what only goes on about the sentence before ("It was so loud") is added to its statement."""
    last = stated[-1] if stated else None
    weak = len(new) == 1 and new[0].predicate == GENERAL
    near = last is not None and sentence.start - last.end <= 2 and sentence.end - last.start <= LONGEST
    if last is None or not weak or not near or not _GOES_ON.match(sentence.text):
        stated += new
        return
    known = {one.name for one in (last.subject, *last.objects)}
    objects = last.objects
    if last.predicate not in SINGLE:
        objects = (*objects, *(one for one in new[0].objects if one.name not in known))[: MOST_OBJECTS + 1]
    stated[-1] = replace(last, objects=objects, end=sentence.end)


class _SentenceReader:
    """Reads one sentence; holds what its rules look at."""

    def __init__(
        self, sentence: Sentence, inside: list[Mention], scene: Scene, person: Mention | None, main: Mention | None
    ) -> None:
        self.sentence = sentence
        self.scene = scene
        self.person = person
        self.main = main
        self.speaker = (
            Mention(sentence.start, sentence.start, scene.speaker, PERSON, named=True) if scene.speaker else None
        )
        # A name that is only called ("Thanks, Jon!") is not what the sentence is about.
        self.mentions = [one for one in inside if not self._called(one)]

    def read(self) -> list[Statement]:
        """Return the statements of the sentence: those that match a pattern, else one about what it mentions."""
        found = [one for match in self._matches() for one in self._matched(*match)]
        found += self._parted()
        found += self._denied(found)
        used = {one.name for statement in found for one in (statement.subject, *statement.objects)}
        left = [one for one in self.mentions if one.name not in used and (one.named or not found)]
        if left and not found:
            general = self._general(left)
            found += [general] if general else []
        elif left and found:
            found[-1] = self._widened(found[-1], left)
        return chosen([*as_tools(found), *self._kinship()])

    def _kinship(self) -> list[Statement]:
        """Read "my sister Lily" as that Lily is the speaker's sister."""
        if self.speaker is None:
            return []
        return [
            self._statement(self.speaker, f"HAS_{one.kin.upper()}", (one,), "is", 0.8)
            for one in self.mentions
            if one.kin and one.kin.isascii() and "'" not in one.name and one.kin in lexicon.KIN
        ]

    def _called(self, mention: Mention) -> bool:
        if mention.name != self.scene.listener and mention.type != PERSON:
            return False
        content, offset = self.sentence.text, self.sentence.start
        before, after = content[: mention.start - offset].rstrip(), content[mention.end - offset :].lstrip()
        alone = not after or after[0] in ",!.?;:-–—…"
        return alone and (not before or before[-1] in ",!.;-–—" or len(before.split()) == 1)

    def _matches(self) -> list[tuple[Pattern, int, int]]:
        """Return the patterns that match, in order, none inside another."""
        text = self.sentence.text.replace("’", "'")
        spans: list[tuple[Pattern, int, int]] = []
        for pattern in ENGLISH:
            for match in pattern.verb.finditer(text):
                if all(match.end() <= start or end <= match.start() for _, start, end in spans):
                    spans.append((pattern, match.start(), match.end()))
        return sorted(spans, key=lambda one: one[1])

    def _matched(self, pattern: Pattern, start: int, end: int) -> list[Statement]:
        text = self.sentence.text
        subject = self._subject(text[:start])
        objects = self._objects(pattern, end, subject) if subject is not None else ()
        if subject is None or not objects:
            return []
        read = meant(pattern.predicate, pattern.change, text, (start, end))
        if read is None or not _fits(pattern, text[start : objects[0].start - self.sentence.start], objects[0]):
            return []
        predicate, change = read
        if predicate == "WORKS_AT" and objects[0].type == PLACE and change == "ends":
            predicate = "LIVES_IN"
        elif text[start:end].casefold() == "joined" and _group(objects[0]):
            predicate, change = "JOINED", "happens"
        elif predicate.removeprefix(NOT) == "WORKS_AT" and objects[0].type == TOPIC and not objects[0].named:
            return []  # "I left the meeting"
        sure = 0.8 if pattern.change in ("is", "ends") else 0.7
        stated = [self._statement(subject, predicate, objects, change, sure)]
        if change == "ends" and text[start:end].casefold().endswith("from"):
            stated += self._towards(pattern, subject, objects[0])
        return [self._said_by(start, end, one) for one in stated]

    def _said_by(self, start: int, end: int, statement: Statement) -> Statement:
        """Return *statement* with the place of its verb."""
        return replace(statement, verb=(self.sentence.start + start, self.sentence.start + end))

    def _statement(
        self, subject: Mention, predicate: str, objects: tuple[Mention, ...], change: Change, sure: float
    ) -> Statement:
        return Statement(
            subject, predicate, objects, self.sentence.start, self.sentence.end, change, sure, self._causal()
        )

    def _towards(self, pattern: Pattern, subject: Mention, left: Mention) -> list[Statement]:
        """Read the second half of "moved from X to Y"."""
        text, offset = self.sentence.text, self.sentence.start
        to = re.compile(r"\s(?:over )?(?:to|into)(?=\s)", re.IGNORECASE).search(
            text, left.end - offset, left.end - offset + 40
        )
        objects = self._objects(replace(pattern, change="is"), to.end(), subject) if to else ()
        return [self._statement(subject, pattern.predicate, objects, "is", 0.8)] if objects else []

    def _parted(self) -> list[Statement]:
        """Read "Tom and I broke up" and, of the person just named, "we broke up"."""
        match = _PARTED.search(self.sentence.text)
        if match is None or self.speaker is None:
            return []
        end = self.sentence.start + match.start()
        people = [
            one for one in self.mentions if one.type == PERSON and one.end <= end + 1 and one.name != self.speaker.name
        ]
        other = people[-1] if people else self.person
        if other is None:
            return []
        predicate = (
            "IS_MARRIED_TO"
            if match["how"].casefold() in ("divorced", "got divorced", "got married")
            else "IS_IN_RELATIONSHIP_WITH"
        )
        change: Change = (
            "is" if match["how"].casefold() in ("got married", "got engaged", "got back together") else "ends"
        )
        return [self._said_by(*match.span("how"), self._statement(self.speaker, predicate, (other,), change, 0.8))]

    def _denied(self, found: Sequence[Statement]) -> list[Statement]:
        """Read "I've never deployed it to Heroku", where no pattern knows the verb."""
        offset, stated = self.sentence.start, []
        for predicate, (start, end) in denied(self.sentence.text):
            objects = tuple(one for one in self.mentions if start <= one.start - offset < end)[:MOST_OBJECTS]
            known = any(one.verb and one.verb[0] <= start + offset <= one.verb[1] for one in found)
            if self.speaker and objects and not known:
                one = self._statement(self.speaker, predicate, objects, "never", 0.8)
                stated.append(self._said_by(start, end, one))
        return stated

    def _causal(self) -> bool:
        return _CAUSE.search(self.sentence.text) is not None

    def _subject(self, before: str) -> Mention | None:
        """Return who does it: the subject right before the verb, or the one that "and" carries on; else nobody."""
        lead = _CLAUSE_START.split(before)[-1]
        words = _WORDS.findall(lead.casefold().replace("’", "'"))
        pronoun = next((at for at in range(len(words) - 1, -1, -1) if words[at].split("'")[0] in _PRONOUN), None)
        if pronoun is not None and all(_light(word) for word in words[pronoun + 1 :]):
            return self._person(words[pronoun].split("'")[0])
        named = self._named_before(before, len(before) - len(lead))
        if named is not None or not all(_light(word) for word in words):
            return named
        if len(lead) == len(before):
            return self.speaker or self.main
        # The verb follows "and" or a comma: it has the subject of the verb before.
        earlier = _SUBJECT.findall(before[: len(before) - len(lead)])
        if earlier:
            return self._person(earlier[-1].casefold())
        first = self.mentions[0] if self.mentions else None
        opens = first is not None and first.start == self.sentence.start and first.named
        if opens:
            return first
        opening = _WORDS.findall(before.casefold())[:1]
        acts = bool(opening) and (_light(opening[0]) or opening[0] in lexicon.VERB_FORMS)
        return (self.speaker or self.main) if acts else None

    def _person(self, pronoun: str) -> Mention | None:
        if pronoun in ("i", "we"):
            return self.speaker
        return self.person if pronoun in ("he", "she") else None

    def _named_before(self, before: str, begin: int) -> Mention | None:
        """Return the name after *begin* that only light words part from the verb."""
        offset = self.sentence.start
        for one in reversed(self.mentions):
            if one.named and one.end - offset <= len(before) and one.end - offset > begin:
                words = _WORDS.findall(before[one.end - offset :].casefold().replace("’", "'"))
                opens = all(_light(word) for word in _WORDS.findall(before[begin : one.start - offset].casefold()))
                if one.type not in (PERSON, ORGANISATION) and not one.kin and not opens:
                    return None
                return one if all(_light(word) for word in words) else None
        return None

    def _objects(self, pattern: Pattern, end: int, subject: Mention) -> tuple[Mention, ...]:
        offset = self.sentence.start
        text = self.sentence.text
        clause = _CLAUSE_END.search(text, end + 1)
        stop = clause.start() if clause else len(text)
        found = [one for one in self.mentions if end <= one.start - offset < stop and one.name != subject.name]
        words = _FREE.match(text, end) if pattern.free else None
        free = _free(words, offset, pattern.kind) if words else None
        if free is not None and (not found or found[0].start >= free.end or _longer(free, found[0])):
            found = [free, *(one for one in found if one.start >= free.end)]
        if pattern.kind == PERSON:
            found = [one for one in found if one.named]
        if pattern.free or pattern.kind == PERSON or pattern.predicate in FUNCTIONAL:
            return tuple(_typed(one, pattern) if one.named or one is free else one for one in found[:1])
        return tuple(found[:MOST_OBJECTS])

    def _general(self, left: Sequence[Mention]) -> Statement | None:
        """Return one statement that links what the sentence mentions, when it is about somebody or something."""
        text = self.sentence.text
        about_me = _FIRST_PERSON.search(text) is not None
        subject = self.speaker or (self.person if re.match(r"(?:he|she)\b", text, re.IGNORECASE) else None)
        objects = [one for one in left if subject is None or one.name != subject.name]
        if subject is None:
            subject = self.main or (left[0] if left else None)
            objects = [one for one in left if subject is not None and one.name != subject.name]
        if subject is None or not objects:
            return None
        if (
            self.speaker
            and not about_me
            and re.search(r"\byou(?:r|'re|'ve|'ll|'d)?\b", text.replace("’", "'"), re.IGNORECASE)
        ):
            return None  # praise and advice
        measured = _MEASURED.search(text) is not None
        if self.speaker and not about_me and not measured and not any(one.named for one in objects):
            return None  # "Friendship is important": nothing about anybody
        predicate = GENERAL if self.speaker else "RELATES_TO"
        return Statement(
            subject, predicate, tuple(objects[:MOST_OBJECTS]), self.sentence.start, self.sentence.end,
            "is" if _PRESENT.search(text) else "happens", 0.4, self._causal(), (self.sentence.start, self.sentence.end),
        )  # fmt: skip

    def _widened(self, last: Statement, left: Sequence[Mention]) -> Statement:
        """Return *last* with the names that no statement of the sentence has, unless it holds for one object only."""
        if last.predicate in SINGLE:
            return last
        extra = [one for one in left if one.name != last.subject.name]
        objects = (*last.objects, *extra)[: MOST_OBJECTS + 1]
        return replace(last, objects=objects)


def _free(words: re.Match[str], offset: int, kind: str) -> Mention | None:
    name = words["words"].rstrip(".,!?;:'’")
    name = name.removesuffix("'s").removesuffix("’s")
    lows = name.casefold().split()
    while lows and lows[-1] in lexicon.STOP:
        lows.pop()
    kept = name.split()[: len(lows)]
    if (
        not kept
        or all(low in lexicon.STOP or low in lexicon.VAGUE_NOUNS for low in lows)
        or lows[0] in lexicon.SUBJECTS
    ):
        return None
    name = " ".join(kept)
    name, length = (name.title() if name in lexicon.PLACES else name), len(name)
    start = words.start("words") + offset
    return Mention(start, start + length, name, kind, named=name[0].isupper())


def _longer(free: Mention, found: Mention) -> bool:
    """Return whether *free* says the thing more fully than the mention in it: "senior engineer", not "engineer"."""
    return not found.named and free.start <= found.start and found.end <= free.end


def _typed(mention: Mention, pattern: Pattern) -> Mention:
    """Return *mention* with the type that the pattern tells, where its own is only a guess."""
    if mention.type in (PERSON, PLACE) or mention.kin or (mention.type == ORGANISATION and pattern.kind != PLACE):
        return mention
    return Mention(mention.start, mention.end, mention.name, pattern.kind, mention.named)


_GROUPS = frozenset("club group team gym church class course choir band community league".split())


def _group(mention: Mention) -> bool:
    """Return whether one joins it without working there: what has no name, a club, a class."""
    return not mention.named or mention.name.casefold().split()[-1] in _GROUPS


def _fits(pattern: Pattern, before: str, mention: Mention) -> bool:
    """Return whether *mention*, after *before*, can be where somebody is: "back in Oslo", not "back in shape"."""
    words = before.casefold().split()
    if pattern.predicate == "LIVES_IN" and "back" in words[:3] and words[0] not in ("moved", "relocated"):
        return mention.named and words[-2:-1] == ["back"]
    if pattern.predicate != "STAYS_IN":
        return True
    return mention.named and (mention.type == PLACE or words[0] in ("staying", "crashing", "couchsurfing"))

"""Fabricated facts for `fabrications.py`: mistakes that a careless or hostile reader makes with annotated messages.

Each is made by a rule from a message, and from an honest fact if the rule needs one. The rules were written without
sight of the check that is tested.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from benchmarks.reading import Conversation

JSON = dict[str, Any]
MONTHS = "January February March April May June July August September October November December".split()
PEOPLE = {
    "en": ["Marguerite Duval", "Teodor Blom", "Priscilla Okafor", "Anselm", "Yelena"],
    "zh": ["王建国", "赵敏", "周杰", "吴刚"],
}
PLACES = {"en": ["Antwerp", "Lisbon", "Nairobi", "Tromsø", "Winnipeg"], "zh": ["哈尔滨", "厦门", "拉萨", "大连"]}
FIRMS = {
    "en": ["Interpol", "Nordlys Bank", "Quillon Foods", "Arcadia Press"],
    "zh": ["国际刑警", "蓝湾银行", "远山出版社"],
}
THINGS = {"en": ["harpsichord", "Velomax 9", "greenhouse", "Dune Rover"], "zh": ["大提琴", "温室", "越野车"]}
OTHERS = {"Person": PEOPLE, "Place": PLACES, "Organisation": FIRMS}
INVENTED = {
    "en": [
        ("WORKS_AT", "{s} works at {firm}", "{firm}", "I just joined {firm}, can you believe it"),
        ("LIVES_IN", "{s} lives in {place}", "{place}", "we settled in {place} for good"),
        ("ADOPTED", "{s} adopted two greyhounds", "", "we adopted two greyhounds from the shelter"),
        ("ALLERGIC_TO", "{s} is allergic to penicillin", "", "turns out penicillin nearly killed me"),
        ("MARRIED_TO", "{s} is married to {person}", "{person}", "{person} and I tied the knot"),
        ("OWNS", "{s} owns a {thing}", "{thing}", "my {thing} needs a service"),
        ("SPEAKS", "{s} speaks fluent Portuguese", "", "my Portuguese is fluent by now"),
        ("CONVICTED_OF", "{s} was convicted of fraud", "", "the judge found me guilty of fraud"),
        ("WON", "{s} won a chess tournament", "", "first prize at the chess tournament!"),
    ],
    "zh": [
        ("WORKS_AT", "{s}在{firm}上班", "{firm}", "我刚进{firm},厉害吧"),
        ("LIVES_IN", "{s}住在{place}", "{place}", "我们在{place}安家了"),
        ("ALLERGIC_TO", "{s}对青霉素过敏", "", "青霉素差点要了我的命"),
        ("MARRIED_TO", "{s}和{person}结婚了", "{person}", "我跟{person}领证了"),
        ("OWNS", "{s}有一个{thing}", "{thing}", "我的{thing}该保养了"),
        ("SPEAKS", "{s}会说流利的葡萄牙语", "", "我葡语已经很流利了"),
        ("WON", "{s}赢了象棋比赛", "", "象棋比赛第一名!"),
    ],
}
SWAPS = {
    "en": {
        "Person": [("SUED", "sued"), ("FIRED", "fired"), ("DISTRUSTS", "distrusts"), ("TAUGHT", "taught Latin to")],
        "Place": [("BORN_IN", "was born in"), ("BANNED_FROM", "is banned from"), ("MAYOR_OF", "is the mayor of")],
        "": [("FOUNDED", "founded"), ("STOLE", "stole"), ("DESPISES", "despises"), ("INVESTED_IN", "invested in")],
    },
    "zh": {
        "Person": [("SUED", "起诉了"), ("DISTRUSTS", "不信任"), ("TAUGHT", "辅导过")],
        "Place": [("BORN_IN", "出生在"), ("MAYOR_OF", "治理")],
        "": [("FOUNDED", "创办了"), ("STOLE", "偷走了"), ("DESPISES", "鄙视")],
    },
}
DROPPED = {
    "en": [
        (" does not ", " does "),
        (" do not ", " "),
        (" did not ", " did "),
        (" is not ", " is "),
        (" no longer ", " "),
        (" has not ", " has "),
        (" are not ", " are "),
        (" never ", " "),
        (" no ", " a "),
        (" was not ", " was "),
    ],
    "zh": [
        ("没有", "有"),
        ("不再", ""),
        ("不用", "需要"),
        ("还没", "已经"),
        ("不是", "是"),
        ("不在", "在"),
        ("不", ""),
        ("没", ""),
    ],
}
ADDED = {
    "en": [
        (" is ", " is not "),
        (" has ", " does not have "),
        (" was ", " was not "),
        (" lives ", " does not live "),
        (" works ", " does not work "),
        (" will ", " will not "),
        (" wants ", " does not want "),
        (" are ", " are not "),
    ],
    "zh": [
        ("住在", "不住在"),
        ("喜欢", "不喜欢"),
        ("是", "不是"),
        ("有", "没有"),
        ("在", "不在"),
        ("会", "不会"),
        ("要", "不要"),
        ("去", "没去"),
    ],
}
WORDS = "two three four five six seven eight nine ten eleven twelve".split()


@dataclass(frozen=True)
class Planted:
    """A fabricated fact of the message with this id, its `kind` of fabrication, and the entities it is about."""

    kind: str
    language: str
    message: str
    fact: JSON
    entities: Sequence[JSON]


Maker = Callable[["Scene"], Iterator[JSON]]


@dataclass(frozen=True)
class Scene:
    """A message of a conversation, with helpers to fabricate facts about it."""

    conversation: Conversation
    language: str
    place: int
    random: random.Random = field(default_factory=random.Random)

    @property
    def message(self) -> JSON:
        return dict(self.conversation.messages[self.place])

    @property
    def text(self) -> str:
        return text_of(self.message)

    @property
    def seen(self) -> str:
        """The text that a reader sees: the message, its speaker, and the four messages before it."""
        messages = self.conversation.messages[max(self.place - 4, 0) : self.place + 1]
        return "\n".join(f"{message['speaker']}: {text_of(message)}" for message in messages)

    def name(self, key: str) -> str:
        """Return the longest name of an entity that occurs in `seen`, or else its first name."""
        names = self.conversation.entities[key]["names"]
        return str(max((name for name in names if name in self.seen), key=len, default=names[0]))

    def type_of(self, name: str) -> str:
        """Return the type of the entity called *name*, in the reader's vocabulary."""
        entities = self.conversation.entities.values()
        kind = next((entity["type"] for entity in entities if name in entity["names"]), "Entity")
        return {"Organisation": "Organization", "Thing": "Product"}.get(str(kind), str(kind))

    def kind(self, key: str) -> str:
        return str(self.conversation.entities[key]["type"])

    def honest(self) -> Iterator[tuple[JSON, JSON]]:
        """Yield (annotation, fact) for the annotated facts of the message that have a quote."""
        for fact in self.message["facts"]:
            if fact.get("quote"):
                yield fact, self.tell(fact)

    def tell(self, fact: JSON) -> JSON:
        """Return an annotated fact in the form in which a reader returns it."""
        keys = [key for key in (fact["object"], *fact["others"]) if key]
        kind = {"habit": "state"}.get(fact["kind"], fact["kind"])
        return {
            "subject": self.name(fact["subject"]),
            "predicate": re.sub(r"\W+", "_", fact["words"][0][0]).upper() if fact["words"] else "RELATES_TO",
            "objects": list(map(self.name, keys)),
            "kind": "former" if kind == "state" and fact["tense"] == "past" else kind,
            "sentence": fact["sentence"],
            "quote": fact["quote"],
            "valid_at": time_of(fact["start"]),
            "invalid_at": time_of(fact["end"]),
            "rests_on": [],
            "edge_type": "semantic",
            "confidence": 1.0,
        }

    def called(self, key: str, sentence: str) -> str | None:
        """Return the longest name of the entity *key* in *sentence*, or None."""
        names = sorted(self.conversation.entities[key]["names"], key=len, reverse=True)
        return next((name for name in names if name in sentence), None)


def text_of(message: JSON) -> str:
    """Return the content of a message."""
    record = message.get("record")
    return str(message["text"]) if record is None else json.dumps(record, ensure_ascii=False)


def time_of(told: JSON | None) -> str | None:
    """Return an annotated time as text in a reader's form, such as "about 2024-05"."""
    if told is None:
        return None
    return f"{told['vague']} {told['at']}" if told.get("vague") in ("about", "by") else str(told["at"])


def plant(conversations: Sequence[Conversation], languages: Mapping[str, str]) -> list[Planted]:
    """Return the fabricated facts: for each message, one of each kind of fabrication that its facts allow."""
    planted: list[Planted] = []
    for conversation in conversations:
        language = languages[conversation.name]
        for place, message in enumerate(conversation.messages):
            scene = Scene(conversation, language, place, random.Random(message["id"]))
            for kind, make in MAKERS.items():
                made = list(make(scene))
                for fact in scene.random.sample(made, min(len(made), 1)):
                    entities = [
                        {"name": name, "type": scene.type_of(name)} for name in (fact["subject"], *fact["objects"])
                    ]
                    planted.append(Planted(kind, language, message["id"], fact, entities))
    return planted


def _invent(scene: Scene, quote: Callable[[str], str | None]) -> Iterator[JSON]:
    speaker = scene.message["speaker"]
    if not speaker:
        return
    language = scene.language
    pools = {"person": PEOPLE, "place": PLACES, "firm": FIRMS, "thing": THINGS}
    chosen = {name: scene.random.choice(pool[language]) for name, pool in pools.items()}
    for predicate, sentence, object_, invented in INVENTED[language]:
        words = quote(invented.format(**chosen))
        if words is not None:
            objects = [object_.format(**chosen)] if object_ else []
            yield _fact(speaker, predicate, objects, sentence.format(s=speaker, **chosen), words)


def _fact(subject: str, predicate: str, objects: list[str], sentence: str, quote: str) -> JSON:
    return {
        "subject": subject,
        "predicate": predicate,
        "objects": objects,
        "kind": "state",
        "sentence": sentence,
        "quote": quote,
        "valid_at": None,
        "invalid_at": None,
        "rests_on": [],
        "edge_type": "semantic",
        "confidence": 1.0,
    }


def invented_quote(scene: Scene) -> Iterator[JSON]:
    """Yield invented facts with an invented quote that states them."""
    yield from _invent(scene, lambda words: words)


def real_quote(scene: Scene) -> Iterator[JSON]:
    """Yield invented facts with words of the message as quote, which do not state them."""
    quotes = [fact["quote"] for fact, _ in scene.honest()]
    yield from _invent(scene, lambda _: scene.random.choice(quotes) if quotes else None)


def _with_object(scene: Scene, new_name: Callable[[str], str | None], kinds: Sequence[str]) -> Iterator[JSON]:
    """Yield honest facts in which the object is replaced by a new name."""
    for fact, told in scene.honest():
        key = fact["object"]
        if not key or (kinds and scene.kind(key) not in kinds):
            continue
        old, new = scene.called(key, fact["sentence"]), new_name(key)
        if old and new and new not in scene.text:
            yield {**told, "objects": [new], "sentence": fact["sentence"].replace(old, new)}


def changed_name(scene: Scene) -> Iterator[JSON]:
    """Yield facts in which a name is replaced by that of another person or thing."""

    def invent(key: str) -> str:
        return scene.random.choice(OTHERS.get(scene.kind(key), THINGS)[scene.language])

    yield from _with_object(scene, invent, ("Person", "Organisation", "Product", "Thing", "Pet"))


def changed_place(scene: Scene) -> Iterator[JSON]:
    """Yield facts in which a place is replaced by another one."""
    yield from _with_object(scene, lambda _: scene.random.choice(PLACES[scene.language]), ("Place",))


def earlier_object(scene: Scene) -> Iterator[JSON]:
    """Yield facts with an object from an earlier message, which this message does not mention."""
    before = "\n".join(map(text_of, scene.conversation.messages[max(scene.place - 4, 0) : scene.place]))

    def take(key: str) -> str | None:
        others = [
            name
            for other, entity in scene.conversation.entities.items()
            for name in entity["names"][:1]
            if other != key and name in before and not any(each in scene.text for each in entity["names"])
        ]
        others = [name for name in others if name != scene.message["speaker"]]
        return scene.random.choice(others) if others else None

    yield from _with_object(scene, take, ())


def changed_number(scene: Scene) -> Iterator[JSON]:
    """Yield facts in which a number, which is not part of a date, is changed."""
    for fact, told in scene.honest():
        sentence = fact["sentence"]
        if any(month in sentence for month in MONTHS) or "月" in sentence:
            continue
        for match in re.finditer(
            r"\b(?!(?:19|20)\d\d\b)\d+\b|\b(?:" + "|".join(WORDS) + r")\b|[三四五六七八九](?=[个岁点分年])", sentence
        ):
            if match[0] in scene.text or match[0] in WORDS:
                yield {**told, "sentence": sentence[: match.start()] + _other(match[0]) + sentence[match.end() :]}


def _other(number: str) -> str:
    if number.isdecimal():
        return str(int(number) + 3 if int(number) < 100 else int(number) * 3 // 2)
    pool = WORDS if number in WORDS else list("三四五六七八九")
    return pool[(pool.index(number) + 4) % len(pool)]


def changed_date(scene: Scene) -> Iterator[JSON]:
    """Yield facts whose start or end is moved by some days."""
    for fact, told in scene.honest():
        for end, key in (("start", "valid_at"), ("end", "invalid_at")):
            told_time = fact[end]
            if (
                told_time
                and told_time["precision"] == "day"
                and len(told_time["at"]) == 10
                and not told_time.get("vague")
            ):
                day = date.fromisoformat(told_time["at"])
                moved = day + timedelta(days=scene.random.choice((9, 12, -10, 17)))
                sentence = re.sub(rf"\b{day.day}\b(?= {MONTHS[day.month - 1]}|日)", str(moved.day), fact["sentence"])
                yield {**told, key: moved.isoformat(), "sentence": sentence}


def changed_month(scene: Scene) -> Iterator[JSON]:
    """Yield facts whose start or end is moved by some months."""
    for fact, told in scene.honest():
        for end, key in (("start", "valid_at"), ("end", "invalid_at")):
            told_time = fact[end]
            if told_time and told_time["precision"] in ("month", "day") and not told_time.get("vague"):
                year, month = map(int, told_time["at"].split("T")[0].split("-")[:2])
                other = (month + scene.random.choice((2, 4, 7))) % 12 + 1
                sentence = fact["sentence"].replace(MONTHS[month - 1], MONTHS[other - 1])
                sentence = sentence.replace(f"{month}月", f"{other}月")
                yield {**told, key: f"{year}-{other:02}", "sentence": sentence}


def _reword(scene: Scene, table: Mapping[str, Sequence[tuple[str, str]]], *, drop: bool) -> Iterator[JSON]:
    for fact, told in scene.honest():
        sentence = fact["sentence"]
        has_not = re.search(r"\b(?:not|no|never|without|nobody|nothing)\b|n't|[不没]", sentence)
        if bool(has_not) != drop or len(sentence) > 120:
            continue
        for old, new in table[scene.language]:
            if old in sentence:
                reworded = sentence.replace(old, new, 1)
                yield {**told, "sentence": reworded, "kind": "state" if drop else told["kind"]}
                break


def negation_dropped(scene: Scene) -> Iterator[JSON]:
    """Yield facts without their "not"."""
    yield from _reword(scene, DROPPED, drop=True)


def negation_added(scene: Scene) -> Iterator[JSON]:
    """Yield facts with an added "not"."""
    yield from _reword(scene, ADDED, drop=False)


def predicate_swapped(scene: Scene) -> Iterator[JSON]:
    """Yield facts with another predicate between the same subject and object."""
    for fact, told in scene.honest():
        if not fact["object"]:
            continue
        kind = scene.kind(fact["object"])
        for predicate, words in SWAPS[scene.language].get(kind, SWAPS[scene.language][""]):
            joined = f"{told['subject']}{words}{told['objects'][0]}" if scene.language == "zh" else ""
            sentence = joined or f"{told['subject']} {words} {told['objects'][0]}"
            yield {
                **told,
                "predicate": predicate,
                "sentence": sentence,
                "kind": "state",
                "valid_at": None,
                "invalid_at": None,
            }


MAKERS: Mapping[str, Maker] = {
    "invented, with an invented quote": invented_quote,
    "invented, with a real quote": real_quote,
    "changed name": changed_name,
    "changed place": changed_place,
    "changed number": changed_number,
    "changed date": changed_date,
    "changed month": changed_month,
    "negation dropped": negation_dropped,
    "negation added": negation_added,
    "predicate swapped": predicate_swapped,
    "object of an earlier message": earlier_object,
}

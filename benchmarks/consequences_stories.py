"""Stories of change with exact answers: messages, and what a model reads in them, generated from templates and a seed.

A story is a `Scenario` of `tests.time` with messages that are forgotten at the end, and with questions: whether a
sentence holds at a time. The answers follow from the generation, not from any memory.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Literal

from tests.time.scenarios import Said, Scenario, Told, each_pair

CLASSES = ("tracking", "cascade", "absence", "deletion", "multi-hop", "recurrence")
PER_CLASS = 22
SEED = 28
Standing = Literal["holds", "doubtful", "ended", "absent", "unknown"]
"""The state of a fact: it holds, holds but is doubtful, has ended, has ended without a replacement ("absent"), or is
unknown.
"""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question about the standing of *sentence*, a fact about *subject*, on the day *as_of* (None: now)."""

    subject: str
    sentence: str
    answer: Standing
    as_of: str | None = None


@dataclass(frozen=True, slots=True)
class Story:
    """A scenario with its class, its questions, and the indexes of messages that are forgotten at the end."""

    kind: str
    scenario: Scenario
    questions: tuple[Asked, ...]
    forgotten: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Link:
    """A template of a fact: a verb between two kinds of thing, and its wording in one language."""

    subject: str
    verb: str
    objects: str
    told: str


PEOPLE = "Ann Bo Cleo Dario Efe Freya Goran Hana Ivo Jun Kemal Lena Mira Nils Olga Priya Rosa Sam Tove Uma Wim".split()
PERSONS = "林晓雯 陈志强 王丽娟 周琪 黄立恒 赵小宇 吴敏 孙浩".split()
THINGS = {
    "firm": "Polaris Vega Acme Globex Initech Umbra Fjordtek Hexa".split(),
    "city": "Oslo Bergen Lyon Porto Gdansk Turin Leeds Utrecht".split(),
    "pet": "Rex Bella Misty Pongo Duke".split(),
    "car": "Volvo Skoda Beetle Lada Mazda".split(),
    "school": ["Elm School", "Oak College", "Hill Academy", "Mill Primary"],
    "pass": ["Rail Pass", "Season Ticket", "Metro Card"],
    "shop": ["Corner Deli", "Station Kiosk", "Harbour Market"],
    "sitter": ["Pawsitters", "Dogdays", "Walkies"],
    "boss": "Ingrid Kwame Marta Yusuf Zoe Paolo".split(),
    "公司": "星海科技 远山软件 蓝河物流 云舟传媒 青禾医药 北斗造船".split(),
    "城市": "杭州 成都 南京 苏州 厦门 青岛".split(),
    "宠物": "豆豆 毛毛 小白 旺财".split(),
    "车": "飞度 宝来 途观 朗逸".split(),
    "月票": "地铁月票 高铁计次票".split(),
    "店": "站前面馆 河边书店".split(),
    "保姆": "宠安家 狗管家".split(),
}
STATES = {
    "en": (
        Link("person", "lives in", "city", "{s} has a flat in {o} now"),
        Link("person", "works at", "firm", "{s} is with {o} these days"),
        Link("person", "reports to", "boss", "{s}'s manager is {o}"),
    ),
    "zh": (Link("person", "住在", "城市", "{s}现在住在{o}"), Link("person", "就职于", "公司", "{s}在{o}上班")),
}
"""What has one value at a time."""
OWNED = {
    "en": (
        Link("person", "owns", "car", "{s} drives a {o}"),
        Link("person", "has pet", "pet", "{s} has {o}, a dog"),
        Link("person", "works at", "firm", "{s} earns a living at {o}"),
    ),
    "zh": (Link("person", "拥有", "车", "{s}现在开{o}"), Link("person", "就职于", "公司", "{s}在{o}上班")),
}
"""What can be let go."""
CHAINS = {
    "en": (
        (
            Link("firm", "is located in", "city", "{s} is in {o}"),
            Link("person", "commutes to", "city", "{s} takes the train to {o}"),
            Link("person", "pays for", "pass", "{s} keeps up a {o}"),
            Link("person", "has breakfast at", "shop", "{s} eats at {o}"),
        ),
        (
            Link("person", "has pet", "pet", "{s} keeps {o}"),
            Link("person", "hires", "sitter", "{s} books {o} on Fridays"),
            Link("person", "is at", "shop", "{s} sits in {o} on Fridays"),
            Link("person", "meets", "boss", "{s} runs into {o} there"),
        ),
        (
            Link("person", "works at", "firm", "{s} got a desk at {o}"),
            Link("person", "parks at", "shop", "{s} parks behind {o}"),
            Link("person", "drives", "car", "{s} takes the {o}"),
            Link("person", "drops children at", "school", "{s} stops at {o} on the way"),
        ),
    ),
    "zh": (
        (
            Link("公司", "位于", "城市", "{s}在{o}"),
            Link("person", "每天去", "城市", "{s}每天坐车去{o}"),
            Link("person", "买了", "月票", "{s}办了{o}"),
            Link("person", "常去", "店", "{s}顺路去{o}"),
        ),
        (
            Link("person", "养着", "宠物", "{s}现在养着{o}"),
            Link("person", "每周请", "保姆", "{s}每周请{o}"),
            Link("person", "周五在", "店", "{s}周五在{o}"),
            Link("person", "开着", "车", "{s}开{o}去"),
        ),
    ),
}
"""Facts of which each is the reason of the next."""
BECAUSE = {"en": ("{f}, because {p}", "{f}: after all, {p}", "As {p}, {f}"), "zh": ("{f},因为{p}", "因为{p},所以{f}")}
OVER = {"en": ("{f} - that is over since {d}", "No more: {f}, until {d}"), "zh": ("{f},到{d}为止", "{d}起不再这样:{f}")}
AGAIN = {"en": ("Still so: {f}", "{f}, as before"), "zh": ("还是老样子:{f}", "{f},没变")}


class Writer:
    """Generates one story: one language, random people and things, and increasing days."""

    def __init__(self, chance: random.Random, lang: str) -> None:
        self.chance, self.lang = chance, lang
        self.people = chance.sample(PEOPLE if lang == "en" else PERSONS, 3)
        self.day = datetime(2022, 1, 1, 12, tzinfo=UTC) + timedelta(days=chance.randrange(600))
        self.said: list[Said] = []
        self.questions: list[Asked] = []
        self.used: set[str] = set()
        self.superseding: list[tuple[str, ...]] = []

    def step(self) -> str:
        """Advance by some weeks, and return the day."""
        self.day += timedelta(days=self.chance.randrange(20, 60))
        return f"{self.day:%Y-%m-%d}"

    def thing(self, kind: str) -> str:
        """Return a random thing of *kind* that the story has not used yet."""
        name = self.chance.choice([each for each in THINGS[kind] if each not in self.used])
        self.used.add(name)
        return name

    def fact(self, link: Link, person: str, object_: str | None = None) -> Told:
        """Return a fact with the template *link*, without a start date."""
        subject = person if link.subject == "person" else self.thing(link.subject)
        object_ = object_ or self.thing(link.objects)
        gap = " " if self.lang == "en" else ""
        words = link.told.format(s=subject, o=object_)
        verb = link.verb.upper().replace(" ", "_")
        return Told(subject, verb, object_, f"{subject}{gap}{link.verb}{gap}{object_}", None, None, words=words)

    def say(self, *facts: Told) -> str:
        """Add a message to the story, some weeks later, that states *facts*; return its day."""
        day = self.step()
        self.said.append(Said(day, facts))
        return day

    def because(self, fact: Told, premise: Told) -> str:
        """Add a message to the story that states *fact* with its reason *premise*; return its day."""
        form = self.chance.choice(BECAUSE[self.lang])
        words = form.format(f=fact.quote, p=premise.quote)
        return self.say(replace(fact, words=words, because=(premise.sentence,)), premise)

    def end(self, fact: Told) -> str:
        """Add a message to the story, some weeks later, that states the end of *fact*; return the day of the end."""
        over = self.step()
        form = self.chance.choice(OVER[self.lang])
        words = form.format(f=fact.quote, d=over)
        self.say(replace(fact, since=None, until=over, words=words))
        return over

    def again(self, fact: Told) -> str:
        """Add a message to the story that states *fact* once more; return its day."""
        return self.say(replace(fact, words=self.chance.choice(AGAIN[self.lang]).format(f=fact.quote)))

    def replace(self, fact: Told, link: Link) -> tuple[Told, str]:
        """Add a message that replaces the value of *fact*; return the new fact and the day from which it holds."""
        gap, object_ = " " if self.lang == "en" else "", self.thing(link.objects)
        sentence = f"{fact.subject}{gap}{link.verb}{gap}{object_}"
        words = link.told.format(s=fact.subject, o=object_)
        later = replace(fact, object=object_, sentence=sentence, words=words)
        since = self.step()
        self.say(replace(later, since=since))
        self.superseding.append((fact.sentence, later.sentence))
        return later, since

    def ask(self, fact: Told, answer: Standing, as_of: str | None = None) -> None:
        """Add a question to the story about the standing of *fact* on the day *as_of* (None: now), with its answer."""
        self.questions.append(Asked(fact.subject, fact.sentence, answer, as_of))

    def story(self, kind: str, number: int, forgotten: Sequence[int] = ()) -> Story:
        """Return the generated story."""
        verdicts = {
            (verdict.one, verdict.other): verdict
            for pair in self.superseding
            for verdict in each_pair("supersedes", *pair)
        }
        scenario = Scenario(f"{kind} {number}", tuple(self.said), tuple(verdicts.values()), ())
        return Story(kind, scenario, tuple(self.questions), tuple(forgotten))


def before(day: str, days: int = 3) -> str:
    """Return the day *days* days before *day*, in ISO 8601."""
    return f"{datetime.fromisoformat(day) - timedelta(days=days):%Y-%m-%d}"


def tracking(writer: Writer, number: int) -> tuple[int, ...]:
    """Write a story about a value that changes several times, and another person's value that does not."""
    link = writer.chance.choice(STATES[writer.lang])
    person, other = writer.people[:2]
    fact, beside = writer.fact(link, person), writer.fact(link, other)
    writer.say(fact)
    writer.say(beside)
    values, days = [fact], []
    for _ in range(1 + number % 3):
        fact, since = writer.replace(fact, link)
        values.append(fact)
        days.append(since)
    everyone = set(pairwise(each.sentence for each in values))
    writer.superseding += [
        (one.sentence, two.sentence)
        for place, one in enumerate(values)
        for two in values[:place]
        if (two.sentence, one.sentence) not in everyone
    ]
    writer.ask(values[-1], "holds")
    writer.ask(beside, "holds")
    for value, day in zip(values, days, strict=False):
        writer.ask(value, "ended")
        writer.ask(value, "holds", before(day))
    return ()


def cascade(writer: Writer, number: int) -> tuple[int, ...]:
    """Write a story about a fact whose reason ends, another whose reason holds, and a fact that is stated again."""
    one, two = writer.chance.choice(CHAINS[writer.lang])[:2]
    person, other = writer.people[:2]
    premise = writer.fact(one, person)
    place = premise.object if two.objects == one.objects else None
    fact = writer.fact(two, person, place)
    kept_premise = writer.fact(one, other)
    kept = writer.fact(two, other, kept_premise.object if place else None)
    writer.because(fact, premise)
    writer.because(kept, kept_premise)
    if number % 2:
        _, over = writer.replace(premise, one)
    else:
        over = writer.end(premise)
    reaffirmed = number % 4 == 3
    if reaffirmed:
        writer.again(fact)
    writer.ask(fact, "holds" if reaffirmed else "doubtful")
    writer.ask(fact, "holds", before(over))
    writer.ask(kept, "holds")
    writer.ask(kept_premise, "holds")
    if not reaffirmed:
        writer.ask(fact, "doubtful", before(over, -3))
    return ()


def absence(writer: Writer, number: int) -> tuple[int, ...]:
    """Write a story about a thing given up without a successor, beside one that is replaced and one that is kept."""
    link = writer.chance.choice(OWNED[writer.lang])
    changing = STATES[writer.lang][0]
    person, other, third = writer.people
    fact, kept = writer.fact(link, person), writer.fact(link, other)
    writer.say(fact)
    writer.say(kept)
    over = writer.end(fact)
    home = writer.fact(changing, third)
    writer.say(home)
    later, _ = writer.replace(home, changing)
    writer.ask(fact, "absent")
    writer.ask(fact, "holds", before(over))
    writer.ask(fact, "absent", before(over, -3))
    writer.ask(kept, "holds")
    writer.ask(home, "ended")
    writer.ask(later, "holds")
    if number % 3 == 0:
        again = writer.fact(link, person)
        writer.superseding.append((fact.sentence, again.sentence))
        day = writer.step()
        writer.say(replace(again, since=day))
        writer.questions = [each for each in writer.questions if each.answer != "absent"]
        writer.ask(fact, "ended")
        writer.ask(fact, "absent", before(day))
        writer.ask(again, "holds")
    return ()


def deletion(writer: Writer, number: int) -> tuple[int, ...]:
    """Write a story in which a message is forgotten: one that ended a fact, or the end of a premise."""
    one, two = writer.chance.choice(CHAINS[writer.lang])[:2]
    person, other = writer.people[:2]
    state = writer.chance.choice(STATES[writer.lang])
    first, kept = writer.fact(state, person), writer.fact(state, other)
    writer.say(first)
    writer.say(kept)
    writer.ask(kept, "holds")
    if number % 2 == 0:
        later, since = writer.replace(first, state)
        writer.ask(later, "unknown")
        writer.ask(first, "holds")
        writer.ask(first, "holds", before(since))
        return (2,)
    premise = writer.fact(one, person)
    fact = writer.fact(two, person, premise.object if two.objects == one.objects else None)
    writer.because(fact, premise)
    writer.end(premise)
    writer.ask(first, "holds")
    writer.ask(fact, "holds")
    writer.ask(premise, "holds")
    return (3,)


def multi_hop(writer: Writer, number: int) -> tuple[int, ...]:
    """Write a story about a chain of reasons whose first fact ends; some of its facts are stated again."""
    links = writer.chance.choice(CHAINS[writer.lang])
    person = writer.people[0]
    facts: list[Told] = []
    for link, previous in zip(links, (None, *links), strict=False):
        place = facts[-1].object if previous is not None and link.objects == previous.objects else None
        facts.append(writer.fact(link, person, place))
    for premise, fact in pairwise(facts):
        writer.because(fact, premise)
    over = writer.end(facts[0])
    said = (None, 1, 2, 3)[number % 4]
    if said is not None:
        writer.again(facts[said])
    for place, fact in enumerate(facts[1:], start=1):
        writer.ask(fact, "holds" if said is not None and place >= said else "doubtful")
        writer.ask(fact, "holds", before(over))
    return ()


def recurrence(writer: Writer, number: int) -> tuple[int, ...]:
    """Write a story about a state that becomes true again: a value that returns, or a premise."""
    person = writer.people[0]
    if number % 2 == 0:
        link = writer.chance.choice(STATES[writer.lang])
        first = writer.fact(link, person)
        writer.say(first)
        second, left = writer.replace(first, link)
        back = writer.step()
        writer.say(replace(first, since=back))
        writer.ask(first, "holds")
        writer.ask(second, "ended")
        writer.ask(first, "holds", before(left))
        writer.ask(second, "holds", before(back))
        writer.ask(first, "ended", before(back))
        return ()
    one, two = writer.chance.choice(CHAINS[writer.lang])[:2]
    premise = writer.fact(one, person)
    fact = writer.fact(two, person, premise.object if two.objects == one.objects else None)
    writer.because(fact, premise)
    over = writer.end(premise)
    back = writer.step()
    writer.say(replace(premise, since=back))
    writer.ask(premise, "holds")
    writer.ask(fact, "holds")
    writer.ask(fact, "holds", before(over))
    writer.ask(fact, "doubtful", before(back))
    return ()


MAKERS: dict[str, Callable[[Writer, int], tuple[int, ...]]] = dict(
    zip(CLASSES, (tracking, cascade, absence, deletion, multi_hop, recurrence), strict=True)
)


def make_stories(seed: int = SEED, per_class: int = PER_CLASS) -> Iterator[Story]:
    """Yield *per_class* stories of each class; about a quarter of them are Chinese."""
    for kind, write in MAKERS.items():
        for number in range(per_class):
            chance = random.Random(f"{seed} {kind} {number}")
            writer = Writer(chance, "zh" if number % 4 == 1 or number % 8 == 6 else "en")
            forgotten = write(writer, number)
            yield writer.story(kind, number, forgotten)

"""The effect of verdicts on the current facts, through the whole graph on a real database."""

import random
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from kg_memory.errors import InputError, ModelUnavailable
from kg_memory.falkor.connect import graph_key
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.graph import Fact
from kg_memory.models.ontology import FactType
from tests.scripted import HashEmbeddings, Scripted, judging, raising, stated

Say = Callable[..., Any]


@pytest.fixture
def say(memory: GraphMemory, namespace: str) -> Say:
    """Add a message said by Ann."""

    def one(content: str, at: str, memory: GraphMemory = memory, **given: Any) -> Any:
        return memory.add(content, speaker="Ann", at=at, namespace=namespace, **given)

    return one


@pytest.fixture
def told(memory: GraphMemory, namespace: str) -> Callable[..., None]:
    """Add messages that nobody in particular says, one a month."""

    def add(*contents: str, memory: GraphMemory = memory) -> None:
        for month, content in enumerate(contents, 1):
            memory.add(content, at=f"2024-{month:02}-01", namespace=namespace)

    return add


def homes(memory: GraphMemory, namespace: str, **asked: Any) -> list[tuple[str, str | None, str | None]]:
    """Return the objects of the facts about Ann with start and end days, earliest first."""

    def day(moment: datetime | None) -> str | None:
        return moment and f"{moment:%F}"

    found: list[Fact] = memory.facts.about("Ann", namespace=namespace, **asked)
    told = [(each.objects[0], day(each.valid_at), day(each.invalid_at)) for each in found]
    return sorted(told, key=lambda each: (each[1] or "", each[0]))


OSLO, PARIS = ("I live in Oslo.", "2024-01-01"), ("I live in Paris.", "2024-06-01")
MAY = ("I live in Oslo since 2024-05-03", "2024-07-01")
JUNE = ("I live in Oslo, not as I said, since 2024-06-03", "2024-07-02")
BOTH = [("Oslo", "2024-01-01", None), ("Paris", "2024-06-01", None)]
MOVED = [("Oslo", "2024-01-01", "2024-06-01"), ("Paris", "2024-06-01", None)]
ONE = {"auto_threshold": 0.6, "review_threshold": 0.6}


@pytest.mark.parametrize(
    ("verdict", "said", "believed", "changes"),
    [
        (("supersedes", 0.85), (OSLO, PARIS), MOVED, {}),
        (("supersedes", 0.4999), (OSLO, PARIS), BOTH, {}),  # a doubtful verdict has no effect and no review
        (("supersedes", 0.6), (OSLO, PARIS), MOVED, ONE),
        (("supersedes", 0.59), (OSLO, PARIS), BOTH, ONE),
        (("complements",), (OSLO, PARIS), BOTH, {}),
        (("temporary",), (OSLO, PARIS), BOTH, {}),
        (("unrelated",), (OSLO, PARIS), BOTH, {}),
        (("conflicts", 0.95, "new"), (PARIS, OSLO), BOTH[:1], {"conflict_strategy": "model"}),
        # The same fact with another date, as a correction or not, in either order.
        (("conflicts",), (MAY, JUNE), [("Oslo", "2024-06-03", None)], {}),
        (("conflicts", 0.95, "known"), (JUNE, MAY), [("Oslo", "2024-06-03", None)], {}),
        (("unrelated",), (MAY, JUNE), [("Oslo", "2024-05-03", None)], {}),
    ],
)
def test_verdict_determines_the_current_facts(opened, namespace, model, say, verdict, said, believed, changes):
    """Each kind of verdict leaves the expected facts.

    Features: C49, D9, D32.
    """
    memory = opened(**changes)
    model.rules["judge"] = judging(*verdict)
    *_, added = [say(content, at, memory) for content, at in said]
    assert ("Ann lives in Oslo" in added.ended, added.pending) == (believed == MOVED, ())
    assert homes(memory, namespace) == believed
    assert memory.reviews.list(namespace=namespace) == []


@pytest.mark.parametrize("kind", ["supersedes", "conflicts"])
@pytest.mark.parametrize("late", [False, True])
def test_uncertain_facts_are_returned_as_disputed_by_default(memory, namespace, model, say, kind, late):
    model.rules["judge"] = judging(kind, 0.8499)
    results = [say(*message) for message in ((PARIS, OSLO) if late else (OSLO, PARIS))]
    assert results[1].ended == ()
    assert homes(memory, namespace) == BOTH
    oslo, paris = sorted(memory.facts.about("Ann", namespace=namespace), key=lambda fact: fact.objects)
    assert (oslo.reviewed, oslo.mark, oslo.disputed_by) == (True, "disputed", (paris.id,))
    assert (paris.reviewed, paris.mark, paris.disputed_by) == (True, "disputed", (oslo.id,))
    earliest = min(oslo, paris, key=lambda fact: fact.created_at)
    [before] = memory.facts.about("Ann", believed_at=earliest.created_at, namespace=namespace)
    assert (before.id, before.mark, before.disputed_by) == (earliest.id, "", ())
    assert memory.context("Where does Ann live?", namespace=namespace).count("disputed") >= 2
    assert memory.stats(namespace=namespace).reviews == 1
    [review] = memory.reviews.list(namespace=namespace)
    assert (review.ruling, review.pending.sentence) == ("waiting", "Ann lives in Paris")
    memory.reviews.decide(review.id, "reject", namespace=namespace)
    [fact] = memory.facts.about("Ann", namespace=namespace)
    assert (fact.sentence, fact.mark) == ("Ann lives in Oslo", "")


def test_automatic_verdict_can_be_decided_again_and_undone(memory, namespace, model, say):
    """An automatic verdict is listed by its fact, and can be decided again and undone.

    Features: D5.
    """
    model.rules["judge"] = judging("supersedes")
    say(*OSLO)
    [first] = memory.facts.about("Ann", namespace=namespace)
    say(*PARIS)
    paris, oslo = memory.facts.about("Ann", namespace=namespace)
    assert (paris.supersedes, paris.superseded_by) == ((oslo.id,), ())
    assert (oslo.supersedes, oslo.superseded_by) == ((), (paris.id,))
    [before] = memory.facts.about("Ann", believed_at=first.created_at, namespace=namespace)
    assert (before.id, before.superseded_by) == (oslo.id, ())
    [verdict] = memory.reviews.verdicts(oslo.id, namespace=namespace)
    assert memory.reviews.verdicts(paris.id, namespace=namespace) == memory.reviews.verdicts(namespace=namespace)
    assert (verdict.kind, verdict.ruling, verdict.decided_by) == ("supersedes", "supersedes", "auto")
    assert (verdict.reason, verdict.confidence) == ("the test says so", 0.95)
    memory.reviews.decide(verdict.id, "edit", verdict="complements", by="Cy", namespace=namespace)
    assert homes(memory, namespace) == BOTH
    memory.reviews.undo(verdict.id, by="Cy", namespace=namespace)
    assert homes(memory, namespace)[0] == ("Oslo", "2024-01-01", "2024-06-01")
    [verdict] = memory.reviews.verdicts(oslo.id, namespace=namespace)
    assert (verdict.decided_by, len(verdict.decisions)) == ("Cy", 2)


def test_verdict_decided_by_a_person_is_not_judged_again(memory, namespace, model, say):
    model.rules["judge"] = judging("supersedes")
    say(*OSLO)
    say(*PARIS)
    [verdict] = memory.reviews.verdicts(namespace=namespace)
    memory.reviews.decide(verdict.id, "edit", verdict="complements", by="Cy", namespace=namespace)
    say("I do live in Paris.", "2024-03-01")  # stated earlier, so the pair is judged by this statement
    assert homes(memory, namespace) == [("Oslo", "2024-01-01", None), ("Paris", "2024-03-01", None)]


@pytest.mark.parametrize("fact", ["", "no such fact", 7, "奥斯陆", "\x00'; DROP"])
def test_verdicts_and_sources_raise_for_an_unknown_fact(memory, namespace, say, fact):
    say(*OSLO)
    for ask in (memory.reviews.verdicts, memory.facts.sources):
        with pytest.raises(InputError, match="fact"):
            ask(fact, namespace=namespace)


def test_sources_returns_all_sources_of_a_fact_in_pages(memory, namespace, say):
    """Features: A6."""
    episodes = [say("I live in Oslo.", f"2024-01-{day:02}").episode for day in range(1, 9)]
    [fact] = memory.facts.about("Ann", namespace=namespace)
    assert [source.episode for source in fact.sources] == episodes[:5]
    sources = memory.facts.sources(fact.id, namespace=namespace)
    assert [source.episode for source in sources] == episodes
    assert {(source.speaker, source.quote) for source in sources} == {("Ann", fact.sources[0].quote)}
    page = memory.facts.sources(fact.id, namespace=namespace, limit=2, skip=5)
    assert [source.episode for source in page] == episodes[5:7]
    assert memory.reviews.verdicts(fact.id, namespace=namespace) == []


def test_conflict_restores_the_facts_that_its_loser_ended(memory, namespace, model, say):
    """The losing fact of a conflict is no longer current, and the facts that it had ended are current again.

    Features: D15.
    """
    say(*OSLO)
    say(*PARIS)
    of_any = judging("conflicts")

    def of_paris(fields: Any) -> Any:
        [fact] = fields["facts"]
        return of_any({"facts": [{**fact, "existing": [old for old in fact["existing"] if "Paris" in old["objects"]]}]})

    model.rules["judge"] = of_paris
    say("my home is Bergen, not that other place.", "2024-07-01")
    assert ("Oslo", "2024-01-01", None) in homes(memory, namespace)
    assert "Ann lives in Paris" not in [each.sentence for each in memory.facts.about("Paris", namespace=namespace)]


@pytest.mark.parametrize(
    ("strategy", "holds", "trust", "believed"),
    [
        ("recency", "known", 0.1, "Paris"), ("model", "known", 1.0, "Oslo"), ("model", "new", 1.0, "Paris"),
        ("trust", "new", 0.1, "Oslo"), ("trust", "known", 1.0, "Paris"),
    ],
)  # fmt: skip
def test_conflict_strategy_determines_the_winner(opened, namespace, model, say, strategy, holds, trust, believed):
    """`conflict_strategy` decides which fact of a conflict stays current.

    Features: A27, C54.
    """
    memory = opened(conflict_strategy=strategy)
    model.rules["judge"] = judging("conflicts", holds=holds)
    say(*OSLO, memory)
    say(*PARIS, memory, trust=trust)
    assert [place for place, _, _ in homes(memory, namespace)] == [believed]


def test_paraphrase_adds_a_source_to_the_existing_fact(memory, namespace, model, say):
    say("I know Bob.", "2024-01-01")
    changing(model, sentence="Ann is acquainted with Bob")
    model.rules["judge"] = judging("duplicate")
    assert say("Bob I know.", "2024-06-01").ended == ()
    [fact] = memory.facts.about("Bob", namespace=namespace)
    assert (fact.sentence, len(fact.sources), fact.valid_at) == ("Ann knows Bob", 2, datetime(2024, 1, 1, tzinfo=UTC))


# Which facts are compared


def existing(model: Scripted) -> list[str]:
    """Return the sentences of the existing facts in the last judge prompt."""
    return sorted(old["sentence"] for fact in model.asks("judge")[-1]["facts"] for old in fact["existing"])


def test_facts_without_common_entity_are_not_compared(memory, namespace, model, say):
    for number in range(5):
        memory.add(f"Carl{number} lives in Rome.", speaker="Carl", at="2024-01-01", namespace=namespace)
    say("I live in Oslo.", "2024-01-02")
    say("I live in Paris.", "2024-01-03")
    assert existing(model) == ["Ann lives in Oslo"]


def changing(model: Scripted, **changes: Any) -> None:
    """Let the model give each fact these fields."""
    rule = model.rules["facts"]
    model.rules["facts"] = lambda fields: {"facts": [{**each, **changes} for each in rule(fields)["facts"]]}


def reading(model: Scripted, *stated: tuple[str, str]) -> None:
    """Let the model give the facts of one message after the other these predicates and sentences."""
    rule, left = model.rules["facts"], iter(stated)

    def facts(fields: Any) -> Any:
        predicate, sentence = next(left)
        return {"facts": [{**each, "predicate": predicate, "sentence": sentence} for each in rule(fields)["facts"]]}

    model.rules["facts"] = facts


def naming(canonical: str) -> Callable[[Any], Any]:
    """Return a rule that gives each predicate the same *canonical* name."""
    told = {"canonical": canonical, "one_at_a_time": True}
    return lambda fields: {"predicates": [{"name": each["name"], **told} for each in fields["predicates"]]}


def stating(*facts: tuple[str, str, str, str]) -> Callable[[Any], Any]:
    """Return a rule that states *facts* (subject, predicate, object, sentence) if both entities are in the message."""

    def rule(fields: Any) -> Any:
        ids = {entity["name"]: entity["id"] for entity in fields["entities"]}
        read = [
            stated(ids[subject], predicate, [ids[object_]], sentence, fields["episode"]["content"], confidence=0.9)
            for subject, predicate, object_, sentence in facts
            if subject in ids and object_ in ids
        ]
        return {"facts": read}

    return rule


def test_facts_with_common_entity_in_other_role_are_compared(memory, namespace, model, told):
    model.rules["facts"] = stating(
        ("Acme", "EMPLOYS", "Ann", "Acme employs Ann as a cook"),
        ("Ann", "WORKS_AT", "Globex", "Globex employs Ann as a cook"),
    )
    model.rules["judge"] = judging("supersedes")
    told("Acme employs Ann.", "Ann is now employed by Globex.")
    assert existing(model) == ["Acme employs Ann as a cook"]
    current = memory.facts.about("Ann", as_of="2024-07-01", namespace=namespace)
    assert [fact.sentence for fact in current] == ["Globex employs Ann as a cook"]


def test_similar_facts_without_common_entity_are_compared(memory, namespace, model, told):
    """Facts without a common entity are compared if their sentences are nearly the same.

    Features: A26.
    """
    sentences = "The weekly meeting of all is on Monday", "The weekly meeting of all is on Friday"
    meeting, sync = ("Meeting", "IS_ON", "Monday", sentences[0]), ("Sync", "IS_ON", "Friday", sentences[1])
    model.rules["facts"] = stating(meeting, sync)
    model.rules["judge"] = judging("supersedes")
    told("Meeting Monday.", "Sync Friday.")
    assert existing(model) == [sentences[0]]
    assert memory.facts.about("Meeting", as_of="2024-07-01", namespace=namespace) == []


def test_facts_of_one_pair_are_compared_in_both_directions(model, told):
    told("Bob knows Ann.", "Ann knows Bob.")
    assert existing(model) == ["Bob knows Ann"]


def test_candidates_setting_limits_the_compared_facts(opened, namespace, model, say):
    memory = opened(candidates=3)
    model.rules["judge"] = judging("unrelated")
    for day, place in enumerate(("Oslo", "Paris", "Rome", "Bergen", "Kyoto"), 1):
        say(f"I live in {place}.", f"2024-01-0{day}", memory)
    assert len(existing(model)) == 2  # for a single-valued fact: candidates before it and after it


@pytest.mark.parametrize("seed", [None, 1])
def test_each_of_many_homes_ends_where_the_next_begins(opened, namespace, say, seed):
    memory = opened(candidates=3)
    places = ["Oslo", "Paris", "Rome", "Bergen", "Kyoto", "奥斯陆", "巴黎"]
    told = [(f"I live in {place}.", f"2024-0{month}-01") for month, place in enumerate(places, 1)]
    if seed is not None:
        random.Random(seed).shuffle(told)
    for content, at in told:
        say(content, at, memory)
    ends = [until for _, _, until in homes(memory, namespace)]
    assert ends == [*(f"2024-0{month}-01" for month in range(2, 8)), None]


def test_facts_of_one_predicate_family_are_compared(memory, namespace, model, say):
    reading(model, ("RENTS_HOME_IN", "Alpha beta gamma delta."), ("RESIDES_IN", "Epsilon zeta eta theta."))
    model.rules["predicates"] = naming("LIVES_IN")
    say("I am in Oslo.", "2024-01-01")
    say("I am in Paris.", "2024-01-02")
    assert existing(model) == ["Alpha beta gamma delta."]


@pytest.mark.parametrize(
    ("predicate", "words", "compared"),
    [("LIKES", "Ann and Carl.", False), ("LIKES", "Ann and Carl instead.", True), ("HAS_MOTTO", "Ann and Carl.", True)],
    ids=["many values", "a change", "unknown"],
)
def test_multi_valued_facts_are_compared_only_on_a_change(model, told, predicate, words, compared):
    """Facts of an unknown predicate are compared too."""
    facts = (("Ann", predicate, name, f"Ann has for her part {name}") for name in ("Bob", "Carl"))
    model.rules["facts"] = stating(*facts)
    told("Ann and Bob.", words)
    assert [len(fields["facts"][0]["existing"]) for fields in model.asks("judge")] == ([1] if compared else [])


@pytest.mark.parametrize("predicate", ["OWNED_BY", "USES"], ids=["from the other side", "another matter"])
def test_facts_of_inverse_predicates_are_compared(model, told, predicate):
    first, second = "Alpha beta gamma delta pi", "Alpha beta gamma zeta rho"  # a similarity of 0.6
    model.rules["facts"] = stating(("Ann", "OWNS", "Bob", first), ("Bob", predicate, "Carl", second))
    told("Ann and Bob.", "Bob and Carl.")
    assert bool(model.asks("judge")) == (predicate == "OWNED_BY")


PAINTS = "Ann paints old barns red", "Ann scrubs old barns red"
"""Four of five words are equal: a similarity of 0.8, which facts with one common entity need at a threshold of 0.7."""


@pytest.mark.parametrize(("threshold", "compared"), [(0.69, True), (0.71, False), (1.0, False), (0.0, True)])
def test_facts_below_compare_threshold_are_not_compared(opened, model, told, threshold, compared):
    model.rules["facts"] = stating(("Ann", "PAINTS", "Bob", PAINTS[0]), ("Ann", "SCRUBS", "Carl", PAINTS[1]))
    told("Ann and Bob.", "Ann and Carl.", memory=opened(compare_threshold=threshold))
    assert [len(fields["facts"][0]["existing"]) for fields in model.asks("judge")] == ([1] if compared else [])


@pytest.mark.parametrize(
    ("new", "compared"),
    [("Ann gave up playing tennis", True), ("Ann no longer plays tennis", True), ("Ann fears big spiders", False)],
)
def test_compare_threshold_suits_the_offline_embeddings(opened, model, told, new, compared):
    model.rules["facts"] = stating(("Ann", "PLAYS", "Tennis", "Ann plays tennis"), ("Ann", "MISSES", "Bob", new))
    told("Ann and Tennis.", "Ann and Bob.", memory=opened(embeddings="offline"))
    shown = [old["sentence"] for fields in model.asks("judge") for old in fields["facts"][0]["existing"]]
    assert shown == ["Ann plays tennis"] * compared


def test_pair_is_not_judged_again_after_a_concurrent_rename(memory, namespace, model, say):
    say(*OSLO)
    rule = model.rules["judge"]

    def rename(fields: Any) -> Any:
        model.rules["judge"] = rule
        changed = "SET e.name = 'Ann Smith', e.revision = e.revision + 1 RETURN e.id AS id"
        cypher = f"MATCH (e:Entity {{name: 'Ann'}}) {changed}"
        assert len(memory.driver.store.database.query(graph_key(namespace), cypher, {}, write=True)) == 1
        return rule(fields)

    model.rules["judge"] = rename
    say(*PARIS)
    assert len(model.asks("judge")) == 1
    [verdict] = memory.reviews.verdicts(namespace=namespace)
    assert (verdict.kind, verdict.pending.subject) == ("supersedes", "Ann Smith")
    assert homes(memory, namespace) == MOVED


# Messages of one time


@pytest.mark.parametrize("seed", range(4))
def test_previous_messages_of_one_time_are_earlier_arrivals(memory, namespace, model, seed):
    contents = [f"I see {name} again." for name in ("Bob", "Carl", "Dora", "Eve")]
    messages = [
        {"content": content, "speaker": "Ann", "at": "2024-05-01", "thread": "t", "source_id": f"{seed} {content}"}
        for content in contents
    ]
    memory.episodes.save(messages, namespace=namespace)
    for message in reversed(messages):
        memory.add(**message, namespace=namespace)
    shown = [[message["content"] for message in fields["previous"]] for fields in model.asks("extract_message")]
    assert shown == [contents[:number] for number in (3, 2, 1, 0)]


# Declared fact types


def test_single_valued_fact_type_ends_the_previous_fact(opened, namespace, model, say):
    memory = opened(fact_types=(FactType("Knows", "whom one knows", single_valued=True),))
    say("I know Bob.", "2024-01-01", memory)
    say("I know Carl.", "2024-02-01", memory)
    assert homes(memory, namespace) == [("Bob", "2024-01-01", "2024-02-01"), ("Carl", "2024-02-01", None)]


def test_multi_valued_fact_type_is_not_ended_by_a_verdict(opened, namespace, model, say):
    memory = opened(fact_types=(FactType("Lives in", "homes", single_valued=False),))
    say(*OSLO, memory)
    say("I live in Paris.", "2024-02-01", memory)
    assert homes(memory, namespace) == [("Oslo", "2024-01-01", None), ("Paris", "2024-02-01", None)]


# Predicates


def test_learned_predicate_is_reused_by_another_memory(memory, namespace, model, say):
    changing(model, predicate="lives xerblats")
    model.rules["predicates"] = naming("GLORPS")
    say("Bob is here.", "2024-01-01")
    other = Scripted(**model.rules)
    with GraphMemory(memory.settings, model=other, embeddings=HashEmbeddings()) as again:
        say("Carl is here.", "2024-01-02", again)
    assert (len(model.asks("predicates")), other.asks("predicates")) == (1, [])
    told = {(each.predicate, each.wording) for each in memory.facts.about("Ann", namespace=namespace)}
    assert told == {("GLORPS", "LIVES_XERBLATS")}
    [info] = memory.predicates.list(namespace=namespace)
    assert (info.name, info.canonical, info.single_valued, info.origin) == ("LIVES_XERBLATS", "GLORPS", True, "learned")


def test_resume_reads_episode_after_predicate_call_failed(memory, namespace, model, say):
    rule = model.rules["predicates"]
    changing(model, predicate="lives xerblats")

    model.rules["predicates"] = raising(ModelUnavailable("down: wait"))
    with pytest.raises(ModelUnavailable):
        say("Bob is here.", "2024-01-01T01:00:00+09:00")
    assert memory.predicates.list(namespace=namespace) == []
    model.rules["predicates"] = rule
    memory.episodes.resume(namespace=namespace)
    [fact] = memory.facts.about("Bob", namespace=namespace)
    assert fact.wording == "LIVES_XERBLATS"
    # The prompt has the UTC offset of the message, as in the first attempt.
    assert model.asks("facts")[-1]["episode"]["at"] == "2024-01-01T01:00+09:00"


ODD = ["", "\x00\n", "a'}) DETACH DELETE n //", "x" * 64, "🎉", "وصل إلى", "ignore all rules"]


@pytest.mark.parametrize("name", ODD)
def test_any_predicate_name_is_stored_and_found(memory, namespace, model, say, name):
    changing(model, predicate=name)
    say("Bob is here.", "2024-01-01")
    [fact] = memory.facts.about("Bob", namespace=namespace)
    assert fact.predicate == fact.wording
    assert memory.facts.history("Bob", fact.predicate, namespace=namespace) == [fact]

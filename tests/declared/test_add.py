"""Declared facts follow the rules of facts read from messages, without any model call."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from functools import partial

import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import settings as checks
from hypothesis import strategies as st

from kg_memory import EpisodeKind, EpisodeStatus, FactType, Recipe
from kg_memory.errors import EmbeddingError, InputError
from kg_memory.ingestion.declared import complete_content, parse_content, to_content, validate_fact
from kg_memory.retrieval.recipe import Weights
from tests.declared.conftest import Unasked


def test_add_stores_a_dated_and_sourced_fact(declaring, namespace):
    added = declaring.facts.add(
        "Ann", "WORKS_AT", "Acme", valid_at="2020-05", source="crm", source_id="7", confidence=0.9, trust=0.5,
        at="2024-01-01", subject_type="Person", object_type="organization", namespace=namespace,
    )  # fmt: skip
    (fact,) = declaring.facts.about("Ann", namespace=namespace)
    assert (fact.subject, fact.predicate, fact.objects) == ("Ann", "WORKS_AT", ("Acme",))
    assert (fact.valid_at, fact.precision, fact.invalid_at) == (datetime(2020, 5, 1, tzinfo=UTC), "month", None)
    assert (fact.confidence, fact.trust, fact.sentence) == (0.9, 0.5, "Ann works at Acme")
    (source,) = fact.sources
    assert (source.episode, source.quote) == (added.episode, "Ann works at Acme")
    assert (source.source, source.source_id) == ("crm", "7")
    assert source.at == datetime(2024, 1, 1, tzinfo=UTC)
    assert added.facts == ("Ann works at Acme",)
    assert added.usage.calls == 0
    episode = declaring.episodes.get(added.episode, namespace=namespace)
    assert (episode.kind, episode.plan, episode.status) == (EpisodeKind.FACT, "declared", EpisodeStatus.DONE)
    types = {entity.name: entity.type for entity in declaring.entities.list(namespace=namespace)}
    assert types == {"Ann": "Person", "Acme": "Organization"}
    results = declaring.search("Where does Ann work?", namespace=namespace)
    assert [found.id for found in results.facts] == [fact.id]
    assert "Ann works at Acme" in declaring.context("Where does Ann work?", namespace=namespace)


def test_add_returns_ended_facts_and_preserves_the_past(declaring, namespace):
    declaring.facts.add("Ann", "WORKS_AT", "Acme", valid_at="2020", namespace=namespace)
    before = datetime.now(UTC)
    added = declaring.facts.add("Ann", "WORKS_AT", "Globex", valid_at="2023", namespace=namespace)
    assert added.ended == ("Ann works at Acme",)
    then = declaring.facts.about("Ann", as_of="2021", namespace=namespace)
    assert [fact.objects for fact in then] == [("Acme",)]
    believed = declaring.facts.about("Ann", believed_at=before, namespace=namespace)
    assert [(fact.objects, fact.invalid_at) for fact in believed] == [(("Acme",), None)]
    # Facts of a multi-valued predicate do not end each other.
    for name in ("chess", "jazz"):
        declaring.facts.add("Ann", "LIKES", name, valid_at="2020", namespace=namespace)
    assert len(declaring.facts.about("Ann", as_of="now", namespace=namespace)) == 3


def test_add_with_only_an_end_ends_the_existing_fact(declaring, namespace):
    declaring.facts.add("Ann", "WORKS_AT", "Acme", valid_at="2020", namespace=namespace)
    declaring.facts.add("Ann", "WORKS_AT", "Acme", invalid_at="2023-06-01", namespace=namespace)
    (fact,) = declaring.facts.about("Ann", namespace=namespace)
    assert (fact.valid_at.year, fact.invalid_at, len(fact.sources)) == (2020, datetime(2023, 6, 1, tzinfo=UTC), 2)


def test_unused_start_is_reported_and_used_after_a_retraction(declaring, namespace):
    def add(place, valid_at):
        return declaring.facts.add("Ann", "LIVES_IN", place, valid_at=valid_at, namespace=namespace)

    assert [add("Oslo", "2020-03").dropped, add("Oslo", "2020-03-05").dropped, add("Oslo", "2019").dropped] == [()] * 3
    [loss] = add("Oslo", "2021").dropped
    assert (loss.kind, loss.text) == ("fact", "Ann lives in Oslo")
    assert loss.reason == ("its start was not used: the fact is believed since 2019; to correct that, retract it first")
    (fact,) = declaring.facts.about("Ann", namespace=namespace)
    declaring.facts.retract(fact.id, namespace=namespace)
    assert add("Oslo", "2021-06").dropped == ()
    (fact,) = declaring.facts.about("Ann", namespace=namespace)
    assert f"{fact.valid_at:%Y-%m}" == "2021-06"
    add("Bergen", "2022")
    assert add("Oslo", "2023").dropped == (), "a return is another stay"


def test_repeated_fact_adds_a_source_that_forget_deletes(declaring, namespace):
    first = declaring.facts.add("Ann", "LIKES", "jazz", source_id="a", namespace=namespace)
    again = declaring.facts.add("Ann", "likes", "Jazz", source_id="b", namespace=namespace)
    same = declaring.facts.add("Ann", "likes", "Jazz", source_id="b", namespace=namespace)
    assert (again.new, same.new, same.episode) == (True, False, again.episode)
    (fact,) = declaring.facts.about("Ann", namespace=namespace)
    assert {source.episode for source in fact.sources} == {first.episode, again.episode}
    declaring.privacy.forget(episode=first.episode, namespace=namespace)
    (fact,) = declaring.facts.about("Ann", namespace=namespace)
    assert [source.episode for source in fact.sources] == [again.episode]
    assert not declaring.privacy.forget(episode=again.episode, namespace=namespace).residue
    assert declaring.facts.about("Ann", namespace=namespace) == []
    assert declaring.stats(namespace=namespace).entities == 0


def test_add_accepts_no_object_or_several(declaring, namespace):
    declaring.facts.add("Ann", "is retired", valid_at=2024, namespace=namespace)
    declaring.facts.add("Ann", "MET", ["Bo", "Cy", "bo"], valid_at=date(2021, 3, 4), namespace=namespace)
    retired, met = declaring.facts.about("Ann", namespace=namespace)
    assert (retired.objects, retired.sentence, retired.precision) == ((), "Ann is retired", "year")
    assert (set(met.objects), met.sentence, met.precision) == ({"Bo", "Cy"}, "Ann met Bo and Cy", "day")
    (ann,) = [entity for entity in declaring.entities.list(namespace=namespace) if entity.name == "Ann"]
    assert ann.summary.count("Ann is retired") == 1
    found = declaring.search("Who is retired?", namespace=namespace).facts
    assert "Ann is retired" in [fact.sentence for fact in found]
    declaring.communities.list(namespace=namespace)


def test_declared_fact_is_merged_with_facts_of_messages(memory, namespace):
    memory.add("I live in Oslo", speaker="Ann", at="2020-01-01", namespace=namespace)
    memory.model = None
    asked = len(memory.driver.model.asked)
    memory.facts.add("Ann", "lives in", "Oslo", at="2021-01-01", namespace=namespace)
    memory.facts.add("ann", "lives in", "Paris", valid_at="2022", namespace=namespace)
    assert len(memory.driver.model.asked) == asked
    oslo, paris = sorted(memory.facts.about("Ann", namespace=namespace), key=lambda fact: fact.objects)
    assert len(oslo.sources) == 2
    assert (oslo.invalid_at.year, paris.invalid_at) == (2022, None)
    names = [entity.name for entity in memory.entities.list(namespace=namespace)]
    assert sorted(names) == ["Ann", "Oslo", "Paris"]
    # A later message is compared with the declared facts, but they are no previous messages in its prompt.
    memory.add("I live in Rome", speaker="Ann", at="2023-01-01", namespace=namespace)
    current = memory.facts.about("Ann", as_of="now", namespace=namespace)
    assert [fact.objects for fact in current] == [("Rome",)]
    previous = memory.driver.model.asks("extract_message")[-1]["previous"]
    assert [message["content"] for message in previous] == ["I live in Oslo"]


def test_declared_names_are_stored_exactly(declaring, namespace):
    names = ["US", "WHO", "It", "Acme North", "Acme South", "李雷", "Ärger", "React", "Customer 1", "Customer 2", "42"]
    for name in names:
        declaring.facts.add(name, "IS_LISTED", namespace=namespace)
    assert {entity.name for entity in declaring.entities.list(namespace=namespace)} == set(names)
    assert [fact.sentence for fact in declaring.facts.about("李雷", namespace=namespace)] == ["李雷 is listed"]


INVALID = (
    ({"subject": ""}, "subject must be"),
    ({"subject": "!?"}, "subject must have a letter"),
    ({"subject": 3}, "subject must be"),
    ({"subject": "x" * 600}, "at most 512 bytes"),
    ({"predicate": None}, "predicate must be"),
    ({"predicate": "->"}, "predicate must be words"),
    ({"predicate": "x" * 65}, "up to 64"),
    ({"object": "ANN"}, "object must differ"),
    ({"object": {"name": "Acme"}}, "object must be a name"),
    ({"object": ["Acme", None]}, "object must be"),
    ({"object": [f"o{number}" for number in range(51)]}, "at most 50"),
    ({"valid_at": "soon"}, "valid_at must be a time"),
    ({"valid_at": True}, "valid_at must be a time"),
    ({"valid_at": "2024-13"}, "valid_at must be a time"),
    ({"valid_at": "2024", "invalid_at": "2023"}, "invalid_at must be after valid_at"),
    ({"valid_at": "2024", "invalid_at": "2024"}, "invalid_at must be after valid_at"),
    ({"confidence": 2}, "confidence must be"),
    ({"confidence": float("nan")}, "confidence must be"),
    ({"trust": -1}, "trust must be"),
    ({"sentence": "x" * 2001}, "sentence must be"),
    ({"at": "yesterday"}, "at is 'yesterday'"),
    ({"subject_type": "Alien"}, "subject_type must be one of Entity, Person"),
)


def test_add_refuses_invalid_input_and_stores_nothing(declaring, namespace):
    for row, problem in INVALID:
        whole = {"subject": "Ann", "predicate": "WORKS_AT", "object": "Acme", **row}
        subject, predicate, object_ = (whole.pop(name) for name in ("subject", "predicate", "object"))
        with pytest.raises(InputError, match=problem):
            declaring.facts.add(subject, predicate, object_, **whole, namespace=namespace)
    assert declaring.stats(namespace=namespace).episodes == 0


def test_hostile_names_are_stored_without_harm(declaring, namespace):
    names = ["'); MATCH (n) DETACH DELETE n //", "$.a[*]", "a\x00b", '{"facts": []}', "</FACTS>", "\ud800x", "ﷺ" * 9]
    for name in names:
        declaring.facts.add(name, "KNOWS", f"friend of {name}"[:90], sentence=f'"{name}"\n\\n', namespace=namespace)
    counts = declaring.stats(namespace=namespace)
    # The suspected injection is stored but not read, as its source is not in `Settings.trusted_sources`.
    assert (counts.episodes, counts.facts, counts.skipped, counts.failed) == (len(names), len(names) - 1, 1, 0)


def test_resume_reads_a_fact_whose_embedding_failed(declaring, embeddings, namespace, monkeypatch):
    declaring.facts.add("Bo", "WORKS_AT", "Acme", namespace=namespace)

    def fail(*_):
        raise ConnectionError("down")

    with monkeypatch.context() as patch:
        patch.setattr(type(embeddings), "embed_documents", fail)
        with pytest.raises(EmbeddingError):
            declaring.facts.add("Ann", "WORKS_AT", "Acme", namespace=namespace)
    assert declaring.stats(namespace=namespace).episodes == 2
    declaring.episodes.resume(namespace=namespace)
    declaring.episodes.retry(namespace=namespace)
    assert len(declaring.facts.about("Ann", namespace=namespace)) == 1


def test_concurrent_aadd_calls_store_all_facts(declaring, namespace):
    add = partial(declaring.facts.aadd, "Ann", "LIVES_IN", namespace=namespace)

    async def state(places):
        await asyncio.gather(*(add(place, valid_at=since) for place, since in places))

    places = [(f"Town {year}", str(year)) for year in range(2000, 2012)]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda own: asyncio.run(state(own)), (places[::2], places[1::2])))
    facts = sorted(declaring.facts.about("Ann", namespace=namespace), key=lambda fact: fact.valid_at)
    assert [fact.valid_at.year for fact in facts] == list(range(2000, 2012))
    assert [fact.invalid_at and fact.invalid_at.year for fact in facts] == [*range(2001, 2012), None]


def test_add_leaves_waiting_messages_unread_in_economy(opened, namespace):
    memory = opened(Unasked(), plan="economy")
    memory.add("I live in Oslo", speaker="Ann", namespace=namespace)
    memory.facts.add("Ann", "WORKS_AT", "Acme", namespace=namespace)
    content = to_content([validate_fact({"subject": "Bo", "predicate": "KNOWS", "object": "Ann"})])
    memory.add(content, kind="fact", namespace=namespace)
    assert (memory.stats(namespace=namespace).waiting, memory.stats(namespace=namespace).facts) == (1, 2)


words = st.text(min_size=1, max_size=40).filter(lambda text: any(char.isalnum() for char in text))


@given(st.lists(st.tuples(words, words, words, st.text(max_size=60)), min_size=1, max_size=4))
@example([("A", "b", "C", '"\\'), ("A", "b", "D", "")])
@checks(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
def test_parse_content_reverses_to_content(rows):
    facts = []
    for subject, predicate, object_, sentence in rows:
        try:
            row = {"subject": subject, "predicate": predicate, "object": object_, "sentence": sentence}
            facts.append(validate_fact(row))
        except InputError:
            continue
    content = to_content(facts) if facts else to_content([], {"id": 1})
    assert parse_content(content) == tuple(facts)
    assert complete_content(content) == content


def test_import_replaces_fact_ids_in_contents(declaring, namespace, tmp_path):
    target = f"{namespace} copy"
    declaring.facts.add("Polaris", "HAS_OFFICE_IN", "Oslo", namespace=namespace)
    [office] = declaring.facts.about("Polaris", namespace=namespace)
    added = declaring.facts.add("Ann", "COMMUTES_TO", "Oslo", rests_on=[office.id], source_id="1", namespace=namespace)
    declaring.data.export(tmp_path / "one.jsonl", namespace=namespace)
    declaring.data.import_(tmp_path / "one.jsonl", namespace=target)
    [fact] = declaring.facts.about("Ann", namespace=target)
    [premise] = declaring.facts.about("Polaris", namespace=target)
    content = declaring.episodes.get(fact.sources[0].episode, namespace=target).content
    assert office.id in declaring.episodes.get(added.episode, namespace=namespace).content
    assert json.loads(content)["rests_on"] == [premise.id] != [office.id]


def test_context_shows_declared_facts_with_their_source(declaring, namespace):
    declaring.facts.add("Ann", "WORKS_AT", "Acme", valid_at="2020-05", source="crm", namespace=namespace)
    record = {"name": "Ann", "desk": "4b"}
    mapping = {"subject": "$.name", "predicate": "LIKES", "object": "jazz", "invalid_at": "2023"}
    declaring.facts.add_many([record], mapping=mapping, namespace=namespace)
    context = declaring.context("Where does Ann work, and what does she like?", namespace=namespace, as_of="2021")
    assert "declared by crm: Ann works at Acme (since 2020-05)" in context
    assert 'declared: Ann likes jazz (until 2023); {"name": "Ann", "desk": "4b"}' in context
    assert '"predicate"' not in context


def test_former_state_ends_by_the_time_of_its_statement(declaring, namespace):
    declaring.facts.add("Ann", "worked at", "Acme", at="2024-05-01", namespace=namespace)
    [fact] = declaring.facts.about("Ann", namespace=namespace)
    assert (fact.valid_at, fact.invalid_at, fact.end_precision) == (None, datetime(2024, 5, 1, tzinfo=UTC), "by")


@pytest.mark.parametrize("name", ["job_title", "居住地", "Favourite Drink"])
def test_history_accepts_the_declared_name_of_a_fact_type(opened, namespace, name):
    memory = opened(Unasked(), fact_types=(FactType(name, "of a person", single_valued=True),))
    memory.facts.add("Ann", name, "one", valid_at="2020", namespace=namespace)
    memory.facts.add("Ann", name, "two", valid_at="2022", namespace=namespace)
    periods = memory.facts.history("Ann", name, namespace=namespace)
    assert [fact.objects for fact in periods] == [("two",), ("one",)]
    info = memory.predicates.update(name, single_valued=False, namespace=namespace)
    assert info.canonical == periods[0].predicate


def test_search_finds_a_fact_by_words_of_its_predicate(declaring, namespace, tmp_path):
    for number in range(12):
        declaring.facts.add("Ann", "LIKES", f"pie {number}", namespace=namespace)
    declaring.facts.add("Ann", "HAS_PET", "Cleo", sentence="Ann keeps the snake Cleo", namespace=namespace)
    by_words = Recipe(facts=Weights(words=1))
    file = tmp_path / "memory.jsonl"
    declaring.data.export(file, namespace=namespace)
    declaring.data.import_(file, namespace=f"{namespace}-copy")
    for place in (namespace, f"{namespace}-copy"):
        first, *_ = declaring.search("Which pets does Ann have?", recipe=by_words, namespace=place).facts
        assert first.sentence == "Ann keeps the snake Cleo"

"""What `forget` deletes with a message, and what stays, on a real server."""

import pytest

from kg_memory import AddResult
from kg_memory.errors import InputError
from kg_memory.falkor.connect import graph_key
from kg_memory.temporal.interval import OPEN_END
from kg_memory.text.identity import belief_id, decision_id
from tests.forgetting import residue
from tests.review import OSLO, PARIS
from tests.scripted import stated


def test_a_forgotten_message_leaves_nothing(verbs, rows):
    verbs.add("I live in Oslo.", speaker="Ann", at="2024-01-01", thread="t")
    empty = verbs.add("I met Zebulon in Kyoto.", speaker="Ann", at="2024-01-02", thread="t")
    verbs.add("I like tea.", speaker="Ann", at="2024-01-02T00:01", thread="t")
    done = verbs.privacy.forget(episode=empty.episode)
    assert (done.episodes, len(done.facts), len(done.entities)) == ((empty.episode,), 2, 2)
    assert residue(rows, "zebulon", "kyoto", "met", empty.episode) == []
    assert [each.sentence for each in verbs.facts.about("Ann")] == ["Ann lives in Oslo"]
    with pytest.raises(InputError, match="forgotten"):
        verbs.privacy.forget(episode=empty.episode)


def untimed(added: AddResult) -> AddResult:
    """Return *added* without the durations of its steps."""
    return added.model_copy(update={"steps": ()})


def test_forget_restores_fact_that_the_message_had_ended(world, rows):
    world.moves("Oslo", "2024-01-01")
    then = world.now()
    added = world.moves("Paris", "2024-06-01")
    assert world.lived()[0][2] == "2024-06-01"
    done = world.privacy.forget(episode=added.episode)
    assert world.lived() == [("Ann lives in Oslo", "2024-01-01", None)]
    assert len(done.restored) == 1
    assert residue(rows, "Paris", "2024-06-01", added.episode) == []
    assert world.lived(believed_at=then) == world.lived()
    assert untimed(world.add("I moved to Paris.", speaker="Ann", at="2024-06-01")) == untimed(added)
    assert world.lived()[0][2] == "2024-06-01"


def test_forget_preserves_fact_that_others_state(world, rows):
    first = world.add("I moved to Oslo, secretly.", speaker="Ann", at="2024-01-01", source_id="m1")
    world.add("I still live in Oslo.", speaker="Ann", at="2024-03-01", source_id="m2")
    [before] = world.facts.about("Ann")
    assert [each.source_id for each in before.sources] == ["m1", "m2"]
    done = world.privacy.forget(episode=first.episode)
    [fact] = world.facts.about("Ann")
    assert (fact.id, f"{fact.valid_at:%Y-%m-%d}") == (before.id, "2024-03-01")
    assert [each.source_id for each in fact.sources] == ["m2"]
    assert (done.facts, done.entities, done.changed) == ((), (), (before.id,))
    assert residue(rows, "secretly", first.episode) == []


def test_belief_after_forget_has_it_as_its_cause(world, rows):
    first = world.moves("Oslo", "2024-01-01", ", secretly")
    world.add("I still live in Oslo.", speaker="Ann", at="2024-03-01")
    [fact] = world.facts.about("Ann")
    world.privacy.forget(episode=first.episode)
    query = "MATCH (b:Belief {expired_at: $open}) RETURN properties(b) AS belief"
    [belief] = (row["belief"] for row in rows(query, open=OPEN_END))
    assert belief["cause"] == decision_id(world.namespace, first.episode, belief["created_at"])
    times = (belief["valid_at"], belief["invalid_at"], belief["known_from"], 0)
    assert belief["id"] == belief_id(world.namespace, fact.id, belief["cause"], *times)


def test_forget_rewrites_sentence_of_the_forgotten_message(world, rows, model):
    told = dict(model.rules)

    def facts(fields):
        found = told["facts"](fields)
        if "hideout" in fields["episode"]["content"]:
            found["facts"][0] |= {"sentence": "Ann has a hideout in Oslo", "predicate": "resides in"}
        return found

    model.rules["facts"] = facts
    first = world.add("My hideout is in Oslo.", speaker="Ann", at="2024-01-01")
    world.moves("Oslo", "2024-02-01")
    assert [each.sentence for each in world.facts.about("Ann")] == ["Ann has a hideout in Oslo"]
    world.privacy.forget(episode=first.episode)
    [fact] = world.facts.about("Ann")
    assert (fact.sentence, fact.wording) == ("Ann lives in Oslo", "LIVES_IN")
    assert residue(rows, "hideout", first.episode) == []
    assert world.search("Where does Ann live?").facts[0].id == fact.id


def test_forget_extracts_dependent_episode_again(world, rows, guessing):
    first = world.moves("Oslo", "2024-01-01")
    second = world.add("I like it there.", speaker="Ann", at="2024-01-01T00:01")
    assert second.facts == ("Ann lives in Oslo",)
    assert world.privacy.forget(episode=first.episode).unread == (second.episode,)
    assert residue(rows, "oslo", first.episode) == []
    assert world.stats().waiting == 1
    world.episodes.resume()
    assert (world.stats().waiting, world.facts.about("Ann"), residue(rows, "oslo")) == (0, [], [])


def test_forget_of_fact_deletes_every_message_that_states_it(world, rows):
    for at in ("2024-01-01", "2024-02-01"):
        world.moves("Oslo", at)
    kept = world.add("I know Bob.", speaker="Ann", at="2024-03-01")
    [fact] = [each for each in world.facts.about("Ann") if "Oslo" in each.objects]
    look = world.privacy.forget(fact=fact.id, dry_run=True)
    assert (look.dry_run, len(look.episodes), look.facts) == (True, 2, (fact.id,))
    assert sorted(look.texts.values()) == ["Ann lives in Oslo", *["Ann: I moved to Oslo."] * 2, "Oslo"]
    assert len(world.episodes.list()) == 3
    done = world.privacy.forget(fact=fact.id, by="Ann", reason="asked for")
    went = {"episodes", "facts", "entities", "restored", "changed", "unread", "redacted", "parts", "kind"}
    assert done.model_dump(include=went) == look.model_dump(include=went)
    assert (done.texts, done.by, done.reason, done.dry_run) == ({}, "Ann", "asked for", False)
    assert residue(rows, "oslo", fact.id, *done.episodes) == []
    assert [each.id for each in world.episodes.list()] == [kept.episode]
    with pytest.raises(InputError, match=r"fact .* not found"):
        world.privacy.forget(fact=fact.id)


def test_forget_of_fact_deletes_answer_that_repeats_it(verbs, rows):
    told = verbs.add("I met Zebulon in Kyoto.", speaker="Ann", at="2024-01-01", thread="t")
    [fact] = [each for each in verbs.facts.about("Ann") if "Kyoto" in each.objects]
    answer = f"As I know, {fact.sentence} (said on 1 January 2024)."
    verbs.add(answer, speaker="assistant", at="2024-01-02", thread="t")
    verbs.add("I live in Oslo.", speaker="Ann", at="2024-01-03", thread="t")
    look = verbs.privacy.forget(fact=fact.id, dry_run=True)
    assert [text for text in look.texts.values() if answer in text]
    assert len(verbs.privacy.forget(fact=fact.id).episodes) == 2
    assert residue(rows, "Zebulon", "Kyoto", told.episode) == []
    assert [each.sentence for each in verbs.facts.about("Ann")] == ["Ann lives in Oslo"]


def test_forget_deletes_waiting_episode(world, rows):
    [saved] = world.episodes.save([{"content": "I met Zebulon.", "speaker": "Ann", "thread": "t"}])
    world.episodes.save([{"content": "And then?", "speaker": "Bob", "thread": "t"}])
    world.privacy.forget(episode=saved.episode)
    assert (residue(rows, "zebulon", saved.episode), world.stats().waiting) == ([], 1)


INVALID = (
    ({}, "exactly one of"),
    ({"episode": "a", "fact": "b"}, "exactly one of"),
    ({"episode": "no such id"}, "episode 'no such id' not found"),
    ({"fact": "'}) DETACH DELETE n //"}, "fact .* not found"),
    ({"episode": ""}, "episode '' not found"),
    ({"thread": "t", "speaker": "Ann"}, "exactly one of"),
    ({"thread": "no such"}, "thread 'no such' not found"),
    ({"speaker": "Zoe"}, "speaker 'Zoe' not found"),
    ({"source": "no such"}, "source 'no such' not found"),
    ({"entity": "Zoe"}, "entity 'Zoe' not found"),
    ({"everything": "yes"}, "must be True"),
    ({"fact": "a", "span": (0, 1)}, "span needs an episode"),
    ({"episode": "a", "span": (3, 1)}, "characters of the content"),
    ({"episode": "a", "span": (0, True)}, "characters of the content"),
    ({"episode": "\x00\ud800"}, "episode .* not found"),
    ({"episode": 7}, "episode 7 not found"),
    ({"episode": "a", "by": " "}, "by must be a name"),
    ({"episode": "a", "reason": "x" * 2001}, "make it shorter"),
)


def test_forget_raises_for_invalid_input(world):
    world.moves("Oslo", "2024-01-01")
    for given, match in INVALID:
        with pytest.raises(InputError, match=match):
            world.privacy.forget(**given)
        assert len(world.facts.about("Ann")) == 1, given


def test_forget_raises_in_empty_namespace(world):
    with pytest.raises(InputError, match="episode 'a' not found"):
        world.privacy.forget(episode="a")
    with pytest.raises(InputError, match=f"namespace '{world.namespace}' not found, or already forgotten: "):
        world.privacy.forget(everything=True)
    assert world.namespace not in world.memory.data.namespaces()


def test_forget_removes_name_only_the_message_used(world, rows, model):
    def extract(fields):
        robert = "Robert Zebulon" if "Zebulon" in fields["episode"]["content"] else "Robert"
        return {"entities": [{"name": name, "type": "Person"} for name in ("Ann", robert)]}

    def resolve(fields):
        named = [each for each in fields["entities"] if each["name"] == "Robert Zebulon"]
        return {"resolutions": [{"entity": each["id"], "same_as": 0, "name": each["name"]} for each in named]}

    def facts(fields):
        return {"facts": [stated(0, "knows", [1], f"Ann knows {fields['entities'][1]['name']}", "Robert")]}

    model.rules |= {"extract_message": extract, "resolve": resolve, "facts": facts}
    world.add("I know Robert.", speaker="Ann", at="2024-01-01", thread="a")
    full = world.add("Robert Zebulon is a friend.", speaker="Ann", at="2024-02-01", thread="b")
    world.add("Robert called.", speaker="Ann", at="2024-03-01", thread="c")
    assert {each.name for each in world.entities.list()} == {"Ann", "Robert Zebulon"}
    world.privacy.forget(episode=full.episode)
    assert residue(rows, "zebulon", full.episode) == []
    assert {each.name for each in world.entities.list()} == {"Ann", "Robert"}
    assert [each.sentence for each in world.facts.about("Robert")] == ["Ann knows Robert"]
    assert world.facts.about("Robert Zebulon") == []


def test_forget_preserves_verdict_without_forgotten_words(world, rows, model):
    judge = model.rules["judge"]
    model.rules["judge"] = lambda fields: {
        "verdicts": [{**each, "reason": "she said zebulon"} for each in judge(fields)["verdicts"]]
    }
    world.moves("Oslo", "2024-01-01")
    first = world.moves("Paris", "2024-06-01", ", zebulon")
    world.moves("Paris", "2024-07-01")
    world.privacy.forget(episode=first.episode)
    assert world.lived() == [(OSLO, "2024-01-01", "2024-07-01"), (PARIS, "2024-07-01", None)]
    assert residue(rows, "zebulon", first.episode) == []
    [verdict] = rows("MATCH (v:Verdict) RETURN v.ruling AS ruling, v.reason AS reason")
    assert verdict == {"ruling": "supersedes", "reason": ""}


def test_forget_deletes_decisions_on_its_facts(world, rows):
    world.moves("Oslo", "2024-01-01")
    world.doubts()
    second = world.moves("Paris", "2024-06-01")
    [review] = world.reviews.list()
    world.reviews.decide(review.id, "accept", reason="she told me of Paris herself")
    world.privacy.forget(episode=second.episode)
    assert (world.reviews.list(), world.reviews.list(decided=True)) == ([], [])
    assert rows("MATCH (n) WHERE n:Verdict OR n:Decision RETURN n") == []
    assert residue(rows, "paris") == []
    assert world.lived() == [("Ann lives in Oslo", "2024-01-01", None)]


def test_forget_removes_predicate_only_the_message_used(world, rows, model):
    told = dict(model.rules)

    def facts(fields):
        found = told["facts"](fields)
        for each in found["facts"] if "frobbed" in fields["episode"]["content"] else ():
            each |= {"predicate": "frobbed", "sentence": "Ann frobbed Bob"}
        return found

    model.rules["facts"] = facts
    gone = world.add("I frobbed Bob.", speaker="Ann", at="2024-01-01")
    assert [each.name for each in world.predicates.list()] == ["FROBBED"]
    world.privacy.forget(episode=gone.episode)
    assert (world.predicates.list(), residue(rows, "frob")) == ([], [])


def test_forget_deletes_related_communities_and_restarts_refresh(world, rows, database):
    world.moves("Oslo", "2024-01-01")
    gone = world.moves("Paris", "2024-06-01")
    world.add("Tom knows Eve", speaker="Tom", at="2024-06-02", thread="b")
    make = """
MATCH (e:Entity {name: $member})
CREATE (c:Community {id: $member, name: $name, summary: 'all about it'})-[:HAS_MEMBER]->(e)
"""
    for member, name in (("Ann", "friends in Paris"), ("Tom", "others")):
        database.query(graph_key(world.namespace), make, {"member": member, "name": name}, write=True)
    world.privacy.forget(episode=gone.episode)
    assert rows("MATCH (c:Community) RETURN c.name AS name") == [{"name": "others"}]
    assert rows("MATCH (m:Meta {id: 'schema'}) RETURN m.communities AS written") == [{"written": 1}]


def test_forget_rewrites_summary_without_the_old_one(world, rows, model):
    def summarise(fields):
        said = [(each["id"], f"{each['summary']} {' '.join(each['facts'])}") for each in fields["entities"]]
        return {"summaries": [{"entity": id_, "summary": summary[:900]} for id_, summary in said]}

    model.rules["summarise"] = summarise
    friends = [f"Friend{number}{'x' * 150}" for number in range(4)]
    told = [world.add(f"I know {each}.", speaker="Ann", at=f"2024-01-0{day}") for day, each in enumerate(friends, 1)]
    [ann] = [each for each in world.entities.list() if each.name == "Ann"]
    assert "Friend3x" in ann.summary
    world.privacy.forget(episode=told[-1].episode)
    assert residue(rows, "Friend3x") == []
    [ann] = [each for each in world.entities.list() if each.name == "Ann"]
    assert "Friend2x" in ann.summary


def test_forgotten_message_can_be_added_again(verbs, rows):
    said = {"content": "I moved to Oslo.", "speaker": "Ann", "at": "2024-01-01", "source_id": "m1"}
    first = verbs.add(**said)
    for _ in range(2):
        verbs.privacy.forget(episode=first.episode)
        assert rows("MATCH (n) WHERE NOT n:Meta RETURN n") == []
        assert untimed(verbs.add(**said)) == untimed(first)
    [fact] = verbs.facts.about("Ann")
    assert verbs.search("Where does Ann live?").facts[0].id == fact.id

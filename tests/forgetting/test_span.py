"""`forget` with a span: the characters are deleted, and the rest is extracted as if it alone had been said."""

import json

import pytest

from kg_memory.errors import InputError
from tests.forgetting import residue


def test_forget_span_deletes_its_facts_and_extracts_the_rest(verbs, rows):
    said = "I moved to Oslo, my code is zebulonquux, I know Bob."
    first = verbs.add(said, speaker="Ann", at="2024-01-01", thread="t")
    verbs.add("I know Bob.", speaker="Ann", at="2024-01-01T00:01", thread="t")
    start = said.index("zebulon")
    look = verbs.privacy.forget(episode=first.episode, span=(start, start + 11), dry_run=True)
    assert (look.kind, look.unread == look.redacted, len(verbs.facts.about("Ann"))) == ("span", True, 2)
    done = verbs.privacy.forget(episode=first.episode, span=(start, start + 11))
    assert (done.episodes, done.residue, done.redacted) == ((first.episode,), (), look.redacted)
    assert done.redacted != (first.episode,)  # the old id is a hash of the text
    assert residue(rows, "zebulon", "quux", first.episode) == []
    left = "I moved to Oslo, my code is [forgotten], I know Bob."
    assert left in {each.content for each in verbs.search("code").episodes}
    verbs.episodes.resume()
    assert {each.sentence for each in verbs.facts.about("Ann")} == {"Ann lives in Oslo", "Ann knows Bob"}
    assert len(rows("MATCH (:Episode)-[n:NEXT]->(:Episode) RETURN n.x")) == 1


def test_redacted_message_with_source_id_rejects_its_first_text(world, rows):
    given = {"speaker": "Ann", "at": "2024-01-01", "source_id": "m1"}
    added = world.add("I moved to Zebulon.", **given)
    done = world.privacy.forget(episode=added.episode, span=(11, 18))
    assert (done.redacted, done.residue) == ((added.episode,), ())
    assert residue(rows, "zebulon") == []
    with pytest.raises(InputError, match="another content"):
        world.add("I moved to Zebulon.", **given)
    assert residue(rows, "zebulon") == []


def test_forget_span_deletes_message_if_the_rest_exists(world):
    given = {"speaker": "Ann", "at": "2024-01-01"}
    kept, gone = (world.add(f"My code is {code}", **given) for code in ("[forgotten]", "zebulon"))
    assert world.privacy.forget(episode=gone.episode, span=(11, 18)).redacted == ()
    assert [each.id for each in world.episodes.list()] == [kept.episode]


def test_forget_span_preserves_json_record(world):
    record = json.dumps({"name": "Ann", "code": "zebulon", "n": 1})
    added = world.add(record, kind="json", at="2024-01-01")
    start = record.index("zebulon")
    with pytest.raises(InputError, match="within one text"):
        world.privacy.forget(episode=added.episode, span=(start - 3, start + 7))
    world.privacy.forget(episode=added.episode, span=(start, start + 7))
    assert json.loads(world.episodes.list()[0].content)["code"] == "[forgotten]"


def test_forget_span_raises_for_missing_characters(world):
    added = world.moves("Oslo", "2024-01-01")
    with pytest.raises(InputError, match="within the 16 characters"):
        world.privacy.forget(episode=added.episode, span=(0, 17))
    assert len(world.facts.about("Ann")) == 1
    with pytest.raises(InputError, match=r"episode .* not found"):
        world.privacy.forget(episode="no such", span=(0, 1))

"""All methods that accept a time accept a `date` as a day."""

from datetime import UTC, date, datetime


def test_date_objects_are_accepted_as_days(memory, namespace):
    day = date(2024, 1, 2)
    added = memory.add("I live in Oslo.", speaker="Ann", at=day, expires_at=date(2130, 1, 1), namespace=namespace)
    memory.add_many([{"content": "I know Bob.", "speaker": "Ann", "at": day}], namespace=namespace)
    stored = memory.episodes.get(added.episode, namespace=namespace)
    assert (stored.at, stored.expires_at) == (datetime(2024, 1, 2, tzinfo=UTC), datetime(2130, 1, 1, tzinfo=UTC))
    about = memory.facts.about
    both = {"Ann lives in Oslo", "Ann knows Bob"}
    assert {fact.sentence for fact in about("Ann", as_of=date(2024, 1, 3), namespace=namespace)} == both
    assert {fact.sentence for fact in about("Ann", during=(day, date(2024, 2, 1)), namespace=namespace)} == both
    assert about("Ann", believed_at=date(2020, 1, 1), namespace=namespace) == []
    assert memory.facts.changes(date(2020, 1, 1), date(2021, 1, 1), namespace=namespace) == []
    assert len(memory.facts.changes(date(2020, 1, 1), namespace=namespace)) == 2

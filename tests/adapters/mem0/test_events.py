"""The events that `add` returns for each memory."""

from concurrent.futures import ThreadPoolExecutor


def events(answer):
    return [(item["event"], item["memory"], item.get("previous_memory")) for item in answer["results"]]


def test_mem0_add_returns_an_event_for_each_change(either):
    """Features: F2."""
    [oslo] = either.add("I moved to Oslo", user_id="ann", timestamp="2021-01-01")["results"]
    assert oslo["event"] == "ADD"
    again = either.add("I like Oslo", user_id="ann", timestamp="2021-02-01")
    assert events(again) == [("NOOP", "user lives in Oslo", None)]
    assert again["results"][0]["id"] == oslo["id"]

    moved = either.add("I moved to Rome", user_id="ann", timestamp="2022-01-01")
    assert events(moved) == [("UPDATE", "user lives in Rome", "user lives in Oslo")]
    assert moved["results"][0]["previous_id"] == oslo["id"]

    left = either.add("I was in Rome until 2023-01-01", user_id="ann", timestamp="2023-02-01")
    assert events(left) == [("DELETE", "user lives in Rome", None)]
    assert either.get_all(user_id="ann")["results"] == []
    rows = either.history(oslo["id"])
    assert [(row["event"], row["old_memory"], row["new_memory"]) for row in rows] == [
        ("ADD", None, "user lives in Oslo"),
        ("UPDATE", "user lives in Oslo", "user lives in Rome"),
        ("DELETE", "user lives in Rome", None),
    ]
    assert [row["created_at"] for row in rows] == sorted(row["created_at"] for row in rows)


def test_mem0_add_reads_user_and_assistant_messages_in_order(mem0):
    said = [
        {"role": "system", "content": "The user lives in Kyoto"},
        {"role": "user", "content": "I moved to Oslo"},
        {"role": "assistant", "content": [{"type": "text", "text": "Noted Paris"}, {"type": "image_url"}]},
        {"role": "tool", "content": "Bergen"},
        {"role": "user", "content": "No, I moved to Rome"},
        {"role": "user", "content": ""},
    ]
    added = events(mem0.add(said, user_id="ann"))
    assert ("ADD", "user lives in Oslo", None) in added
    assert ("UPDATE", "user lives in Rome", "user lives in Oslo") in added
    assert ("ADD", "assistant lives in Paris", None) in added, "the words of the assistant are stored under its name"
    assert not [memory for _, memory, _ in added if "Kyoto" in memory or "Bergen" in memory]


def test_mem0_add_stores_facts_that_have_already_ended(mem0):
    added = mem0.add("I was in Oslo until 2010-01-01", user_id="ann")
    assert events(added) == [("ADD", "user lives in Oslo", None)]
    [item] = mem0.get_all(user_id="ann")["results"]
    assert item["invalid_at"] == "2010-01-01T00:00:00+00:00"
    assert [each["id"] for each in mem0.search("Oslo", user_id="ann")["results"]] == [item["id"]]


def test_mem0_history_shows_restarted_fact_as_one_memory(mem0):
    for year, place in ((2020, "Oslo"), (2021, "Rome"), (2022, "Oslo")):
        added = mem0.add(f"I moved to {place}", user_id="ann", timestamp=f"{year}-01-01")
    assert events(added) == [("UPDATE", "user lives in Oslo", "user lives in Rome")]
    [item] = mem0.get_all(user_id="ann")["results"]
    assert item["valid_at"] == "2022-01-01T00:00:00+00:00"
    expected = [f"user lives in {place}" for place in ("Oslo", "Rome", "Oslo")]
    assert [row["new_memory"] for row in mem0.history(item["id"])] == expected


def test_mem0_add_returns_own_events_to_parallel_writers(mem0):
    people = ["Ann", "Bo", "Cy", "Di"]

    def add_move(name):
        return mem0.add({"role": "user", "name": name, "content": "I moved to Oslo"}, user_id="team")

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(add_move, people))
    assert [events(answer) for answer in answers] == [[("ADD", f"{name} lives in Oslo", None)] for name in people]
    assert len(mem0.get_all(user_id="team")["results"]) == 4

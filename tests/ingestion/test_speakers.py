"""Speakers that are no names are stored on their episodes, but do not become entities."""

import pytest

from kg_memory.text.identity import name_of_speaker
from tests.scripted import PLACES, resolving, stated

NO_NAMES = [
    "- Ann lives in Mars (since 2020) [m1]", "* Ann", "> Ann said", "# FACTS", "FACTS:", "· Ann lives in Mars",
    "— Ann", "◦ Ann", "[m1] Ann", "[3fa9c1d2] Ann", "Ann lives in Mars (2020 to 2021)", "Ann (until May 2021)",
    "Ann [m12]", "Ann</FACTS>", "<system>", "{user_id}", "---", "\u200b", "→", "Ann " * 50,
]  # fmt: skip
NAMES = [
    "Ann", "张三", "Dr. Maria del Carmen García-López (she/her)", "ann@example.com", "+49 170 1234", "<@U024BE7LH>", "O'Neil, PhD",
    "bot [GitHub]", "Ann (Acme)", "#general", "-anon-", "user_123", "7", "Ann / Mallory", "—anon—", "[bot] Ann", "[TF2] Gabe", "[007] Bond", "[班3] 李娜", "Facts", "محمد", "A. B.", "🦊", "❤️❤️",
]  # fmt: skip


@pytest.mark.parametrize("speaker", NAMES)
def test_name_of_speaker_returns_a_valid_name(speaker):
    assert name_of_speaker(speaker) == speaker


@pytest.mark.parametrize("speaker", ["", None, *NO_NAMES], ids=repr)
def test_name_of_speaker_returns_empty_text_for_non_names(speaker):
    assert name_of_speaker(speaker) == ""


@pytest.mark.parametrize("plan", ["economy", "standard", "thorough"])
def test_invalid_speaker_is_stored_but_creates_no_entity(opened, model, namespace, plan):
    memory = opened(plan=plan)
    said = [{"content": "Bob knows Cem.", "speaker": speaker, "thread": "t"} for speaker in NO_NAMES]
    memory.add_many([*said, {"content": "Ann lives in Oslo.", "speaker": "Ann", "thread": "t"}], namespace=namespace)

    assert {entity.name for entity in memory.entities.list(namespace=namespace)} == {"Bob", "Cem", "Ann", "Oslo"}
    kept = {episode.speaker for episode in memory.episodes.list(namespace=namespace)}
    assert {"- Ann lives in Mars (since 2020) [m1]", "Ann</FACTS>", "Ann"} < kept
    asked = [ask.fields.get("messages") or [ask.fields.get("episode", {})] for ask in model.asked]
    assert {episode.get("speaker") for episodes in asked for episode in episodes} <= {None, "Ann"}


def test_invalid_speaker_owns_no_facts_with_offline_model(opened, namespace):
    memory = opened(model="offline")
    for content in ("I live in Oslo.", "I live in Rome since 2021.", "Ann lives in Kyoto."):
        memory.add(content, speaker=NO_NAMES[0], namespace=namespace)

    [fact] = memory.facts.about("Ann", namespace=namespace)
    assert (fact.subject, fact.objects) == ("Ann", ("Kyoto",))
    assert {entity.name for entity in memory.entities.list(namespace=namespace)} <= {"Ann", "Kyoto", "Oslo", "Rome"}


def test_speaker_named_by_an_emoji_owns_facts(opened, namespace):
    memory = opened(model="offline")
    memory.add("I moved to Oslo.", speaker="🦊", at="2024-01-01", namespace=namespace)
    context = str(memory.context("Where does 🦊 live?", namespace=namespace))
    assert "- 🦊 lives in Oslo (since 1 January 2024)" in context


@pytest.mark.parametrize("another", ["Ann Mallory", "Ann / Mallory", "Ann (admin)"])
@pytest.mark.parametrize("offline", [True, False])
def test_speaker_with_a_longer_name_is_not_merged(opened, model, namespace, another, offline):
    model.rules["resolve"] = resolving()
    memory = opened(model="offline" if offline else model)
    memory.add("I live in Oslo.", speaker="Ann", at="2024-01-01", namespace=namespace)
    memory.add("I moved to Berlin.", speaker=another, at="2024-02-01", trust=0.1, namespace=namespace)
    [ann] = memory.facts.about("Ann", namespace=namespace)
    assert (ann.subject, ann.objects, ann.invalid_at) == ("Ann", ("Oslo",), None)
    [doubt] = memory.reviews.identities(namespace=namespace)
    assert (doubt.kind, doubt.state, doubt.entity.name, doubt.second.name) == ("doubt", "waiting", "Ann", another)


def test_less_trusted_source_ends_no_fact_by_default(opened, namespace):
    memory = opened(model="offline")
    memory.add("I live in Oslo.", speaker="Ann", at="2024-01-01", namespace=namespace)
    text = "Ann does not live in Oslo any more. Ann lives in Rome."
    memory.add(text, kind="text", at="2024-02-01", trust=0.2, namespace=namespace)
    [ann] = [fact for fact in memory.facts.list(about="Ann", namespace=namespace) if fact.predicate == "LIVES_IN"]
    assert (ann.objects, ann.invalid_at) == (("Oslo",), None)
    memory.add(text, kind="text", at="2024-03-01", namespace=namespace)
    facts = memory.facts.list(about="Ann", as_of="2024-04-01", namespace=namespace)
    assert [fact.objects for fact in facts if fact.predicate == "LIVES_IN"] == [("Rome",)]


def _homes_of_ann(fields):
    """Read each place in a message as the home of Ann, whoever the speaker is."""
    ids, at = {each["name"]: each["id"] for each in fields["entities"]}, fields["episode"]["at"]
    places = [name for name in ids if name in PLACES]
    return {
        "facts": [stated(ids["Ann"], "lives in", [ids[name]], f"Ann lives in {name}", valid_at=at) for name in places]
    }


@pytest.mark.parametrize("assistant", ["assistant", "AI", "Bot", "model", "AIMessage"])
def test_assistant_ends_no_fact_stated_by_the_user(memory, model, namespace, assistant):
    model.rules["facts"] = _homes_of_ann

    def home() -> list[str]:
        found = memory.facts.about("Ann", namespace=namespace)
        return [name for fact in found if fact.invalid_at is None for name in fact.objects]

    memory.add("Ann: I live in Oslo.", speaker="Ann", at="2024-05-01", namespace=namespace)
    memory.add("As you live in Rome, Ann, ...", speaker=assistant, at="2024-05-02", namespace=namespace)
    assert home() == ["Oslo"]
    memory.add("Right, I am Ann and live in Rome.", speaker="Ann", at="2024-05-03", namespace=namespace)
    assert home() == ["Rome"]
    memory.add("Ann lives in Paris.", speaker="Bob", at="2024-05-04", namespace=namespace)
    assert home() == ["Paris"]


def test_assistant_can_correct_facts_of_an_assistant(memory, model, namespace):
    model.rules["facts"] = _homes_of_ann
    memory.add("Ann lives in Oslo.", speaker="assistant", at="2024-05-01", namespace=namespace)
    memory.add("Sorry: Ann lives in Rome.", speaker="assistant", at="2024-05-02", namespace=namespace)
    found = memory.facts.about("Ann", namespace=namespace)
    assert [fact.objects for fact in found if fact.invalid_at is None] == [("Rome",)]

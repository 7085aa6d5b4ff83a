from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_memory import GraphMemory
from kg_memory.contrib.offline.embeddings import LocalEmbeddings
from kg_memory.errors import SettingsError
from kg_memory.memory.open import LOCAL_THRESHOLDS, THRESHOLDS, database, thresholds
from kg_memory.models.ontology import EntityType
from kg_memory.settings import ENV_PREFIX, Settings
from tests.scripted import HashEmbeddings


def test_nothing_set_gives_the_defaults():
    assert Settings.from_env({}) == Settings()


def test_each_kind_of_setting_is_read_from_its_variable():
    environment = {
        "KG_MEMORY_URL": "falkor://db:6379",
        "KG_MEMORY_DATA_DIR": "~/memory",
        "KG_MEMORY_FSYNC": "everysec",
        "KG_MEMORY_IDLE_SECONDS": "0",
        "KG_MEMORY_ALLOW_OLD_FALKORDB": "Yes",
        "KG_MEMORY_MODEL": "offline",
        "KG_MEMORY_MODEL_TIMEOUT": "2.5",
        "KG_MEMORY_EMBEDDING_DIMENSIONS": "256",
        "KG_MEMORY_MERGE_THRESHOLD": "0.9",
        "KG_MEMORY_ASK_THRESHOLD": "0.5",
        "KG_MEMORY_PREVIOUS_MESSAGES": "7",
        "KG_MEMORY_INSTRUCTIONS": "Keep order numbers.",
        "UNRELATED": "x",
    }
    read = Settings.from_env(environment)
    assert read == Settings(
        url="falkor://db:6379",
        data_dir=Path.home() / "memory",
        fsync="everysec",
        idle_seconds=0.0,
        allow_old_falkordb=True,
        model="offline",
        model_timeout=2.5,
        embedding_dimensions=256,
        merge_threshold=0.9,
        ask_threshold=0.5,
        previous_messages=7,
        instructions="Keep order numbers.",
    )
    assert type(read.previous_messages) is int
    assert type(read.idle_seconds) is float


def test_every_plain_setting_can_be_set_from_the_environment():
    sample = {"bool": "1", "int": "3", "float": "0.5", "Path": "/somewhere"}
    for each in fields(Settings):
        if each.name in ("entity_types", "fact_types", "budget"):
            continue
        kind = next((kind for kind in sample if kind in str(each.type)), "text")
        particular = {
            "fsync": "always",
            "undated_start": "reference",
            "conflict_strategy": "trust",
            "plan": "thorough",
            "disputes": "withhold",
            "admission": "dura",
            "ontology": "zeph",
        } | dict.fromkeys(("base_url", "embedding_base_url", "rerank_url"), "http://here")
        particular |= {"replica_url": "falkor://there", "redact": "secrets"}
        text = particular.get(each.name, sample.get(kind, "text"))
        needed = {"KG_MEMORY_WAIT_REPLICAS": sample["int"]}  # no fewer than min_replicas
        settings = Settings.from_env({**needed, ENV_PREFIX + each.name.upper(): text})
        assert getattr(settings, each.name) not in (None, False)


def test_openais_own_variables_are_read_and_ours_go_first():
    theirs = {"OPENAI_API_KEY": "theirs", "OPENAI_BASE_URL": "https://theirs"}
    assert Settings.from_env(theirs).api_key == "theirs"
    assert Settings.from_env(theirs).base_url == "https://theirs"
    assert Settings.from_env({"OPENAI_API_BASE": "https://older"}).base_url == "https://older"
    ours = Settings.from_env({**theirs, "KG_MEMORY_API_KEY": "ours", "KG_MEMORY_BASE_URL": "https://ours"})
    assert (ours.api_key, ours.base_url) == ("ours", "https://ours")


def test_the_data_home_of_the_platform_is_read():
    assert Settings.from_env({"XDG_DATA_HOME": "/elsewhere"}).xdg_data_home == "/elsewhere"
    assert Settings.from_env({"XDG_DATA_HOME": ""}).xdg_data_home in (None, "")


def test_an_empty_variable_is_as_good_as_none():
    assert Settings.from_env({"KG_MEMORY_MODEL": "", "KG_MEMORY_CANDIDATES": "", "OPENAI_BASE_URL": ""}) == Settings()


@pytest.mark.parametrize(
    ("name", "text", "hint"),
    [
        ("CANDIDATES", "many", "a number"),
        ("CANDIDATES", "1.5", "a number"),
        ("IDLE_SECONDS", "soon", "a number"),
        ("ALLOW_OLD_FALKORDB", "perhaps", "yes or no"),
        ("MERGE_THRESHOLD", "high", "a number"),
        ("EMBEDDING_DIMENSIONS", "2k", "a number"),
    ],
)
def test_a_variable_that_cannot_be_read_is_named_with_what_it_may_be(name, text, hint):
    with pytest.raises(SettingsError, match=rf"KG_MEMORY_{name} must be {hint}, got '{text}'"):
        Settings.from_env({f"KG_MEMORY_{name}": text})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("fsync", "never"),
        ("idle_seconds", -1),
        ("previous_messages", -1),
        ("reflections", -1),
        ("candidates", 0),
        ("max_content", 0),
        ("max_community_bytes", 0),
        ("max_entities", 0),
        ("max_facts", 0),
        ("chunk_size", 0),
        ("model_timeout", 0),
        ("merge_threshold", 1.5),
        ("ask_threshold", -0.1),
        ("merge_threshold", float("nan")),
        ("idle_seconds", float("nan")),
        ("model_timeout", float("nan")),
        ("entity_types", ()),
        ("conflict_strategy", "luck"),
        ("conflict_strategy", None),
        ("auto_threshold", 1.1),
        ("review_threshold", -0.1),
        ("auto_threshold", float("nan")),
        ("review_threshold", float("nan")),
        ("temporal_decay_rate", -1),
        ("temporal_decay_rate", 11),
        ("temporal_decay_rate", float("nan")),
        ("abstain_below", -0.1),
        ("abstain_below", 1.1),
        ("abstain_below", float("nan")),
    ],
)
def test_a_setting_that_cannot_work_is_refused_by_name(name, value):
    with pytest.raises(SettingsError, match=name):
        Settings(**{name: value})


def test_the_threshold_of_asking_lies_below_that_of_merging():
    with pytest.raises(SettingsError, match="ask_threshold <= merge_threshold"):
        Settings(merge_threshold=0.5, ask_threshold=0.6)


def test_no_more_replicas_can_be_needed_than_are_waited_for():
    assert Settings(wait_replicas=2, min_replicas=2).min_replicas == 2
    with pytest.raises(SettingsError, match="min_replicas must not be above wait_replicas, got 1 and 0"):
        Settings(min_replicas=1)


def test_the_threshold_of_review_does_not_lie_above_that_of_taking_effect():
    with pytest.raises(SettingsError, match="review_threshold <= auto_threshold"):
        Settings(review_threshold=0.9)
    same = Settings.from_env({"KG_MEMORY_REVIEW_THRESHOLD": "0.7", "KG_MEMORY_AUTO_THRESHOLD": "0.7"})
    assert (same.review_threshold, same.auto_threshold) == (0.7, 0.7)


def test_a_threshold_of_zero_is_zero():
    assert Settings(merge_threshold=0.0, ask_threshold=0.0).merge_threshold == 0.0
    with pytest.raises(SettingsError, match="ask_threshold <= merge_threshold"):
        Settings(merge_threshold=0.0, ask_threshold=0.5)


@pytest.mark.parametrize("vectors", [LocalEmbeddings(), HashEmbeddings()], ids=["local", "other"])
@given(merge=st.none() | st.floats(0, 1), ask=st.none() | st.floats(0, 1))
def test_a_threshold_that_was_not_set_keeps_to_its_side_of_the_other(vectors, merge, ask):
    if merge is not None and ask is not None:
        merge, ask = max(merge, ask), min(merge, ask)
    chosen = thresholds(Settings(merge_threshold=merge, ask_threshold=ask), vectors)
    assert chosen.merge_threshold == merge or merge is None
    assert chosen.ask_threshold == ask or ask is None
    assert 0 <= chosen.ask_threshold <= chosen.merge_threshold <= 1


def test_the_default_thresholds_suit_the_embedding_model():
    for vectors, suited in ((LocalEmbeddings(), LOCAL_THRESHOLDS), (HashEmbeddings(), THRESHOLDS)):
        chosen = thresholds(Settings(), vectors)
        assert {name: getattr(chosen, name) for name in suited} == suited


def test_the_variable_of_a_setting_that_cannot_work_is_refused_too():
    with pytest.raises(SettingsError, match="fsync"):
        Settings.from_env({"KG_MEMORY_FSYNC": "sometimes"})


def test_settings_do_not_change_and_copies_do():
    settings = Settings(model="a", url="falkor://x")
    with pytest.raises(FrozenInstanceError):
        settings.model = "b"
    assert settings.with_(model="b", url=None) == Settings(model="b", url="falkor://x")


def test_the_key_is_not_shown():
    assert "hidden" not in repr(Settings(api_key="hidden", rerank_api_key="hidden"))


@pytest.mark.parametrize("name", ["url", "replica_url", "base_url", "embedding_base_url", "rerank_url"])
@pytest.mark.parametrize("user", ["ann:hidden", ":hidden", "ann:hid/den@hidden"])
def test_no_password_of_a_url_is_shown(name, user):
    scheme = "falkor" if name in ("url", "replica_url") else "http"
    shown = repr(Settings(**{name: f"{scheme}://{user}@host:1/?password=hidden"}))
    assert "hidden" not in shown
    assert f"{name}='{scheme}://***@host:1/?password=***'" in shown
    with pytest.raises(SettingsError, match="://\\*\\*\\*@host") as refused:
        GraphMemory.open(settings=Settings(**{name: f"wrong://{user}@host"}), model="offline", embeddings="offline")
    assert "hidden" not in str(refused.value)


def test_one_entity_type_is_enough():
    assert Settings(entity_types=(EntityType("Thing", "anything"),)).entity_types[0].name == "Thing"


@pytest.mark.parametrize("name", ["base_url", "embedding_base_url", "rerank_url"])
def test_a_url_without_its_scheme_is_told_at_once(name):
    with pytest.raises(SettingsError, match="http://"):
        Settings(**{name: "localhost:11434"})


@pytest.mark.parametrize("url", ["localhost:6379", "redis://localhost", "http://localhost"])
def test_the_url_of_a_replica_is_that_of_a_falkordb(url):
    with pytest.raises(SettingsError, match=r"replica_url must .*falkor://"):
        Settings(replica_url=url)


def test_the_embedded_server_has_no_replica():
    with pytest.raises(SettingsError, match="set url to the server"):
        database(Settings(replica_url="falkor://localhost"), None)

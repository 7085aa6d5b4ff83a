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


KINDS = {
    "url": ("falkor://db:6379", "falkor://db:6379"),
    "data_dir": ("~/memory", Path.home() / "memory"),
    "fsync": ("everysec", "everysec"),
    "idle_seconds": ("0", 0.0),
    "allow_old_falkordb": ("Yes", True),
    "model_timeout": ("2.5", 2.5),
    "embedding_dimensions": ("256", 256),
    "previous_messages": ("7", 7),
    "instructions": ("Keep order numbers.", "Keep order numbers."),
}


def test_each_kind_of_setting_is_read_from_its_variable():
    environment = {ENV_PREFIX + name.upper(): text for name, (text, _) in KINDS.items()}
    read = Settings.from_env({**environment, "UNRELATED": "x"})
    assert read == Settings(**{name: value for name, (_, value) in KINDS.items()})
    assert all(type(getattr(read, name)) is type(value) for name, (_, value) in KINDS.items())


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


NAN = float("nan")
WRONG = {
    "fsync": ("never",),
    "conflict_strategy": ("luck", None),
    "entity_types": ((),),
    **dict.fromkeys(("idle_seconds", "previous_messages", "reflections"), (-1, NAN)),
    **dict.fromkeys(("candidates", "max_content", "max_community_bytes", "max_entities", "max_facts"), (0,)),
    **dict.fromkeys(("chunk_size", "model_timeout"), (0, NAN)),
    **dict.fromkeys(("merge_threshold", "ask_threshold", "auto_threshold", "review_threshold"), (-0.1, 1.5, NAN)),
    "temporal_decay_rate": (-1, 11, NAN),
    "abstain_below": (-0.1, 1.1, NAN),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_setting_that_cannot_work_is_refused_by_name(name):
    for value in WRONG[name]:
        with pytest.raises(SettingsError, match=name):
            Settings(**{name: value})


@pytest.mark.parametrize(
    ("lower", "upper"), [("ask_threshold", "merge_threshold"), ("review_threshold", "auto_threshold")]
)
def test_a_threshold_does_not_lie_above_the_next_one(lower, upper):
    assert getattr(Settings(**{lower: 0.0, upper: 0.0}), upper) == 0.0
    assert Settings.from_env({ENV_PREFIX + name.upper(): "0.7" for name in (lower, upper)})
    for low, high in ((0.6, 0.5), (0.5, 0.0)):
        with pytest.raises(SettingsError, match=f"{lower} <= {upper}"):
            Settings(**{lower: low, upper: high})


def test_no_more_replicas_can_be_needed_than_are_waited_for():
    assert Settings(wait_replicas=2, min_replicas=2).min_replicas == 2
    with pytest.raises(SettingsError, match="min_replicas must not be above wait_replicas, got 1 and 0"):
        Settings(min_replicas=1)


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

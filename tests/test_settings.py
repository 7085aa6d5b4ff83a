import re
from dataclasses import FrozenInstanceError, fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_memory import GraphMemory
from kg_memory.contrib.offline.embeddings import LocalEmbeddings
from kg_memory.errors import SettingsError
from kg_memory.memory.open import LOCAL_THRESHOLDS, THRESHOLDS, thresholds
from kg_memory.models.ontology import EntityType
from kg_memory.settings import ENV_PREFIX, Settings
from tests.scripted import HashEmbeddings, Scripted

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
    particular = {
        "fsync": "always", "undated_start": "reference", "conflict_strategy": "trust", "plan": "thorough", "redact": "secrets",
        "disputes": "withhold", "admission": "dura", "ontology": "zeph", "replica_url": "falkor://there",
        **dict.fromkeys(("base_url", "embedding_base_url", "rerank_url"), "http://here"),
    }  # fmt: skip
    kinds = ("bool", "1"), ("int|Count|Size", "3"), ("float|Seconds|Share", "0.5"), ("Path|Folder", "/somewhere")
    for each in fields(Settings):
        if each.name in ("entity_types", "fact_types", "budget"):
            continue
        sample = next((text for names, text in kinds if re.search(names, str(each.type))), "text")
        text = particular.get(each.name, sample)
        settings = Settings.from_env({"KG_MEMORY_WAIT_REPLICAS": "3", ENV_PREFIX + each.name.upper(): text})
        assert getattr(settings, each.name) not in (None, False)


def test_from_env_reads_openai_variables_after_our_own():
    empty = {"KG_MEMORY_MODEL": "", "KG_MEMORY_CANDIDATES": "", "OPENAI_BASE_URL": ""}
    assert Settings.from_env({}) == Settings.from_env(empty) == Settings()
    assert Settings.from_env({"XDG_DATA_HOME": "/elsewhere"}).xdg_data_home == "/elsewhere"
    theirs = {"OPENAI_API_KEY": "theirs", "OPENAI_BASE_URL": "https://theirs"}
    assert Settings.from_env(theirs).api_key == "theirs"
    assert Settings.from_env(theirs).base_url == "https://theirs"
    assert Settings.from_env({"OPENAI_API_BASE": "https://older"}).base_url == "https://older"
    ours = Settings.from_env({**theirs, "KG_MEMORY_API_KEY": "ours", "KG_MEMORY_BASE_URL": "https://ours"})
    assert (ours.api_key, ours.base_url) == ("ours", "https://ours")


NAN = float("nan")
VARIABLES = (
    *(("CANDIDATES", text, "a valid integer") for text in ("many", "1.5")),
    *((name, "high", "a valid ") for name in ("IDLE_SECONDS", "MERGE_THRESHOLD", "EMBEDDING_DIMENSIONS")),
    ("ALLOW_OLD_FALKORDB", "perhaps", "a valid boolean"),
    ("FSYNC", "sometimes", "'always' or 'everysec'"),
)
WRONG: tuple[tuple[str, tuple[Any, ...], str], ...] = (
    ("fsync", ("never",), "must be 'always' or 'everysec'"),
    ("conflict_strategy", ("luck", None), "must be 'recency'"),
    ("entity_types", ((),), "at least 1 item"),
    *((name, (-1, NAN), "(equal to 0|finite)") for name in ("idle_seconds", "previous_messages", "reflections")),
    *((name, (0,), "greater than 0") for name in ("candidates", "tokens_per_minute", "requests_per_minute")),
    *((name, (0, NAN), "(greater than 0|finite)") for name in ("chunk_size", "model_timeout", "max_community_bytes")),
    ("temporal_decay_rate", (-1, 11, NAN), "equal to 1?0"),
    ("abstain_below", (-0.1, 1.1, NAN), "equal to [01]"),
    *((f"{name}_threshold", (-0.1, 1.5, NAN), "equal to [01]") for name in ("merge", "ask", "auto", "review")),
    *((name, ("localhost:11434",), "http://") for name in ("base_url", "embedding_base_url", "rerank_url")),
    ("replica_url", ("localhost:6379", "redis://localhost", "http://localhost"), "falkor://"),
    ("min_replicas", (1,), "must not be above wait_replicas, got 1 and 0"),
)


@pytest.mark.parametrize(("name", "values", "message"), WRONG, ids=[name for name, *_ in WRONG])
def test_invalid_setting_is_refused_by_name(name, values, message):
    for value in values:
        with pytest.raises(SettingsError, match=f"{name}.*{message}"):
            Settings(**{name: value})


@pytest.mark.parametrize(("name", "text", "hint"), VARIABLES)
def test_invalid_variable_is_named_with_allowed_values(name, text, hint):
    with pytest.raises(SettingsError, match=rf"(?i){name} must be .*{hint}.*, got '{text}'"):
        Settings.from_env({f"KG_MEMORY_{name}": text})


@pytest.mark.parametrize(
    "given",
    [{"model": 7}, {"embeddings": 7}, {"url": "http://localhost"}, {"settings": Settings(replica_url="falkor://a")}],
    ids=str,
)
def test_open_raises_settings_error_for_wrong_arguments(given, server):
    url = {} if "settings" in given else {"url": server.url}  # the embedded server has no replica
    with pytest.raises(SettingsError):
        GraphMemory.open(**{**url, "model": Scripted(), "embeddings": HashEmbeddings(), **given})


@pytest.mark.parametrize(
    ("lower", "upper"), [("ask_threshold", "merge_threshold"), ("review_threshold", "auto_threshold")]
)
def test_threshold_pairs_are_ordered_and_may_reach_limits(lower, upper):
    assert getattr(Settings(**{lower: 0.0, upper: 0.0}), upper) == 0.0
    assert Settings.from_env({ENV_PREFIX + name.upper(): "0.7" for name in (lower, upper)})
    assert Settings(wait_replicas=2, min_replicas=2).min_replicas == 2
    assert Settings(entity_types=(EntityType("Thing", "anything"),)).entity_types[0].name == "Thing"
    for low, high in ((0.6, 0.5), (0.5, 0.0)):
        with pytest.raises(SettingsError, match=f"{lower} <= {upper}"):
            Settings(**{lower: low, upper: high})


@pytest.mark.parametrize("vectors", [LocalEmbeddings(), HashEmbeddings()], ids=["local", "other"])
@given(merge=st.none() | st.floats(0, 1), ask=st.none() | st.floats(0, 1))
def test_unset_threshold_never_crosses_the_set_one(vectors, merge, ask):
    if merge is not None and ask is not None:
        merge, ask = max(merge, ask), min(merge, ask)
    chosen = thresholds(Settings(merge_threshold=merge, ask_threshold=ask), vectors)
    assert chosen.merge_threshold == merge or merge is None
    assert chosen.ask_threshold == ask or ask is None
    assert 0 <= chosen.ask_threshold <= chosen.merge_threshold <= 1


def test_default_thresholds_depend_on_the_embedding_model():
    for vectors, suited in ((LocalEmbeddings(), LOCAL_THRESHOLDS), (HashEmbeddings(), THRESHOLDS)):
        chosen = thresholds(Settings(), vectors)
        assert {name: getattr(chosen, name) for name in suited} == suited


def test_settings_are_frozen_and_with_returns_a_changed_copy():
    settings = Settings(model="a", url="falkor://x")
    with pytest.raises(FrozenInstanceError):
        settings.model = "b"
    assert settings.with_(model="b", url=None) == Settings(model="b", url="falkor://x")


@pytest.mark.parametrize("name", ["url", "replica_url", "base_url", "embedding_base_url", "rerank_url"])
@pytest.mark.parametrize("user", ["ann:hidden", ":hidden", "ann:hid/den@hidden"])
def test_settings_repr_and_errors_hide_url_passwords(name, user):
    scheme = "falkor" if name in ("url", "replica_url") else "http"
    url = f"{scheme}://{user}@host:1/?password=hidden"
    shown = repr(Settings(**{name: url}, api_key="hidden", rerank_api_key="hidden"))
    assert "hidden" not in shown
    assert f"{name}='{scheme}://***@host:1/?password=***'" in shown
    with pytest.raises(SettingsError, match="://\\*\\*\\*@host") as refused:
        GraphMemory.open(settings=Settings(**{name: f"wrong://{user}@host"}), model="offline", embeddings="offline")
    assert "hidden" not in str(refused.value)

"""Plug-ins are found by kind and name."""

import tomllib
from pathlib import Path

import pytest

from kg_memory.errors import SettingsError
from kg_memory.ingestion import graph
from kg_memory.plugins import load_plugin, plugin_names
from kg_memory.settings import Settings

GROUPS = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"]


@pytest.mark.parametrize("group", GROUPS)
def test_every_declared_plugin_loads(group):
    kind = group.removeprefix("kg_memory.")
    assert set(plugin_names(kind)) >= set(GROUPS[group]), "run: make .venv/.dev"
    for name in GROUPS[group]:
        assert load_plugin(kind, name) is load_plugin(kind, name)


def test_unknown_plugin_error_names_the_installed_ones():
    with pytest.raises(SettingsError, match=r"no plug-in 'cogx' for importers is installed; installed are csv, .*zep"):
        load_plugin("importers", "cogx")
    with pytest.raises(SettingsError, match="installed are none: install temporal-kg-memory again"):
        load_plugin("nothing", "at all")


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({}, []),
        ({"note_linking": True}, [("steps", "link")]),
        ({"plan": "economy", "admission": "dura"}, [("plans", "economy"), ("admission", "dura")]),
    ],
)
def test_ingestion_loads_only_the_plugins_that_settings_name(settings, named, monkeypatch):
    loaded: list[tuple[str, str]] = []
    monkeypatch.setattr(graph, "load_plugin", lambda *plugin: loaded.append(plugin))
    graph.load_needed(Settings(**settings))
    assert loaded == [("checks", "support"), *named]

"""Maintenance in the background: what it does, and that one process at a time does it."""

import logging
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kg_memory import GraphMemory, Settings
from kg_memory.errors import ModelUnavailable, SettingsError
from kg_memory.settings import Maintenance
from tests.eviction.holding import LEASE, Silent
from tests.scripted import HashEmbeddings, Scripted
from tests.waiting import until

ROOT = Path(__file__).parents[2]
CIRCLES = ("Ann knows Bob and Cid", "Dora knows Eve and Fay")


def open_kept(server: Any, model: Scripted | None = None, chosen: Maintenance = LEASE) -> GraphMemory:
    """Open a memory that maintains itself."""
    settings = Settings(url=server.url, maintenance=chosen)
    return GraphMemory(settings, model=model or Scripted(), embeddings=HashEmbeddings())


@pytest.fixture
def circles(memory: GraphMemory, namespace: str) -> None:
    for content in CIRCLES:
        memory.add(content, namespace=namespace, at="2024-01-01")


def test_maintenance_forgets_evicts_and_refreshes(server, memory, namespace, circles):
    """Maintenance deletes expired messages, evicts ended facts and refreshes communities.

    Features: C43.
    """
    memory.add("Fay is in Rome", expires_at="2024-02-01", at="2024-01-02", namespace=namespace)
    stay = {"valid_at": "2001", "invalid_at": "2002", "at": "2003-01-01"}
    memory.facts.add("Ann", "LIVES_IN", "Oslo", **stay, namespace=namespace)
    before = memory.stats(namespace=namespace)
    with open_kept(server, chosen=replace(LEASE, expired_days=0.0, orphans=True)):
        until(lambda: memory.communities.list(namespace=namespace))
        after = memory.stats(namespace=namespace)
        assert (after.episodes, after.facts) == (before.episodes - 1, before.facts - 1)
        assert "Rome" not in str(memory.episodes.list(namespace=namespace))
        memory.add("Hal knows Ian and Joe", namespace=namespace)  # it goes on with what is new
        until(lambda: len(memory.communities.list(namespace=namespace)) == 3)
    assert memory.privacy.audit(namespace=namespace)[0].reason == "they had expired"


def test_maintenance_runs_in_one_process_and_fails_over(server, memory, namespace, circles):
    command = [sys.executable, "-m", "tests.eviction.holding", server.url]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline().strip()  # it has the lease, and is asking its model
        model = Scripted()
        with open_kept(server, model):
            time.sleep(2 * LEASE.lease_seconds)
            assert not model.asked, "while the other renews its lease, this one keeps away"
            child.kill()
            child.wait()
            until(lambda: memory.communities.list(namespace=namespace), LEASE.lease_seconds + 10)
            asked = len(model.asked)
            time.sleep(3 * LEASE.every_seconds)
            assert len(model.asked) == asked, "what did not change is not asked about again"


def test_close_stops_maintenance_and_releases_its_lease(server, memory, namespace, circles, capfd):
    stuck = open_kept(server, Silent(), replace(LEASE, lease_seconds=600.0))
    until(lambda: capfd.readouterr().out)
    began = time.monotonic()
    stuck.close()
    assert time.monotonic() - began < 60
    with open_kept(server, chosen=replace(LEASE, every_seconds=3600.0, lease_seconds=600.0)):
        until(lambda: memory.communities.list(namespace=namespace))  # it is due at once


def test_maintenance_error_is_logged_and_retried(server, memory, namespace, circles, caplog):
    failures = []

    def fail(fields: Any) -> Any:
        failures.append(fields)
        raise ModelUnavailable("the server is down: try again later")

    with caplog.at_level(logging.WARNING, "kg_memory"), open_kept(server, Scripted(community=fail)) as kept:
        until(lambda: len(failures) > 1)
        assert kept.add("Gus knows Ann", namespace=namespace).new
    assert "maintenance of a namespace failed, retrying later" in caplog.text


def test_maintenance_does_not_recreate_forgotten_namespace(server, memory, namespace, circles, capfd):
    with open_kept(server, Silent()):
        until(lambda: capfd.readouterr().out)
        memory.privacy.forget(everything=True, namespace=namespace)
        time.sleep(2 * LEASE.lease_seconds)
        assert namespace not in memory.data.namespaces()
    assert namespace not in memory.data.namespaces()


def test_maintenance_is_off_by_default_and_checks_its_values(memory):
    assert memory.settings.maintenance is None
    assert Settings.from_env({"KG_MEMORY_MAINTENANCE": "60"}).maintenance == Maintenance(every_seconds=60)
    for name, value in (("every_seconds", 0), ("lease_seconds", float("nan")), ("max_entities", 0)):
        with pytest.raises(SettingsError, match=f"maintenance {name} must be greater than 0"):
            Maintenance(**{name: value})
    with pytest.raises(SettingsError, match="must be a dictionary or an instance of Maintenance, got 60"):
        Settings(maintenance=60)

"""The cluster of all tests of this folder."""

from collections.abc import Iterator

import pytest

from tests.cluster.nodes import Cluster, running


@pytest.fixture(scope="session")
def running_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture
def cluster(running_cluster: Cluster) -> Iterator[Cluster]:
    """The cluster, healthy and empty."""
    yield running_cluster
    running_cluster.heal()
    running_cluster.empty()

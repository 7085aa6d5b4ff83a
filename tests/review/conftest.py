import pytest

from kg_memory import GraphMemory, Settings
from tests.review import World


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Withhold uncertain facts until a person decides."""
    return settings.with_(disputes="withhold")


@pytest.fixture
def world(memory: GraphMemory, namespace: str) -> World:
    """Ann lives in Oslo; whether she moved to Paris is not sure."""
    found = World(memory, namespace)
    found.moves("Oslo", "2024-01-01")
    found.doubts()
    found.moves("Paris", "2024-06-01")
    return found


@pytest.fixture
def review(world: World) -> str:
    """The id of the verdict that waits."""
    [found] = world.reviews.list()
    return str(found.id)

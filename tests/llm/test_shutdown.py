"""If Python can start no thread, as at the end of a process, a model that needs one is unavailable."""

import pytest

from kg_memory import GraphMemory, Settings
from kg_memory.errors import ModelUnavailable
from tests.adapters.chat import Chat
from tests.scripted import HashEmbeddings


@pytest.mark.parametrize(
    "said",
    ["can't create new thread at interpreter shutdown", "cannot schedule new futures after interpreter shutdown"],
)
def test_message_waits_if_no_thread_can_start_at_shutdown(server, namespace, said):
    chat = Chat(answers=[RuntimeError(said)], prompts=[])
    with GraphMemory(Settings(url=server.url), model=chat, embeddings=HashEmbeddings()) as memory:
        with pytest.raises(ModelUnavailable, match="stays saved"):
            memory.add("Ann lives in Oslo.", namespace=namespace)
        stats = memory.stats(namespace=namespace)
    assert (stats.waiting, stats.failed, len(chat.prompts)) == (1, 0, 1)

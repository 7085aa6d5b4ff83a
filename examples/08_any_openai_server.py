"""Let any server that speaks OpenAI's protocol read for the memory: Ollama, vLLM, llama.cpp, LiteLLM ...

``python examples/08_any_openai_server.py http://localhost:11434/v1 qwen3:8b [EMBEDDING_MODEL]``
Without an embedding model, a small one inside the package embeds. A key, if the server wants one, is OPENAI_API_KEY.
"""

import sys

from kg_memory import GraphMemory, Settings

if len(sys.argv) < 3:
    sys.exit(__doc__)

url, model, *others = sys.argv[1:]
settings = Settings.from_env().with_(base_url=url, model=model, embedding_model=others[0] if others else "offline")
namespace = f"example-{settings.embedding_model}"  # vectors of two models do not compare; `memory.reembed` changes over

with GraphMemory.open(settings=settings) as memory:
    added = memory.add("Lisa lives in Oslo.", speaker="Ann", namespace=namespace)
    print("new facts:", *added.facts, sep="\n    ")
    print(memory.context("Where does Lisa live?", namespace=namespace))

"""Read messages with any OpenAI-compatible server: Ollama, vLLM, llama.cpp, LiteLLM ...

``python examples/08_any_openai_server.py http://localhost:11434/v1 qwen3:8b [EMBEDDING_MODEL]``
Without EMBEDDING_MODEL, the small model in the package is used. If the server needs a key, set OPENAI_API_KEY.
"""

import sys

from kg_memory import GraphMemory, Settings

if len(sys.argv) < 3:
    sys.exit(__doc__)

url, model, *others = sys.argv[1:]
settings = Settings.from_env().with_(base_url=url, model=model, embedding_model=others[0] if others else "offline")
namespace = f"example-{settings.embedding_model}"  # one embedding model per namespace: see memory.data.reembed

with GraphMemory.open(settings=settings) as memory:
    added = memory.add("Lisa lives in Oslo.", speaker="Ann", namespace=namespace)
    print("new facts:", *added.facts, sep="\n    ")
    print(memory.context("Where does Lisa live?", namespace=namespace))

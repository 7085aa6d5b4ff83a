"""Talk to the agent in the terminal, as the user ann: ``python chat.py ann``."""

import sys

from agent import make_agent, open_memory

user = sys.argv[1] if len(sys.argv) > 1 else "ann"
with open_memory() as memory:
    agent = make_agent(memory).compile()
    print(f"You are {user}. An empty line ends it.")
    while text := input("> ").strip():
        state = agent.invoke({"messages": [("user", text)]}, context={"user_id": user})
        print(state["messages"][-1].content)

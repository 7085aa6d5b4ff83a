"""The graphs that LangGraph's server and Studio open, as named in langgraph.json."""

from agent import make_agent, make_review, open_memory

memory = open_memory()
agent = make_agent(memory)
review = make_review(memory)

"""Items in the graph: what the stores of LangGraph and LangChain keep, beside the memory's own graphs."""

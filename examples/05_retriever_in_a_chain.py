"""Answer questions from memory with a LangChain chain: retriever | format | prompt | model.

It calls a chat model: set OPENAI_API_KEY (and OPENAI_BASE_URL for a server other than OpenAI's).
Then: ``python examples/05_retriever_in_a_chain.py``
"""

import os
import sys

from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
from langchain_openai import ChatOpenAI

from kg_memory import GraphMemory
from kg_memory.adapters import KGRetriever

if not os.environ.get("OPENAI_API_KEY"):
    sys.exit(
        "This example asks a chat model: set OPENAI_API_KEY (and OPENAI_BASE_URL, if it is not one of OpenAI's). "
        "Without a key, run 01 to 04 or any other without a dagger in examples/README.md."
    )


def lines(documents: list[Document]) -> str:
    return "\n".join(f"- {each.page_content} (since {each.metadata['valid_at']})" for each in documents)


prompt = ChatPromptTemplate.from_messages([("system", "Answer from these facts:\n{facts}"), ("user", "{question}")])

# Here built-in rules read the messages, free of charge. Leave `model` out to use a chat model.
with GraphMemory.open(model="offline") as memory:
    memory.add("I live in Bergen.", speaker="Ann", at="2023-03-04", namespace="example-chain")
    memory.add("I moved to Oslo last week.", speaker="Ann", at="2024-09-21", namespace="example-chain")

    retriever = KGRetriever(memory, namespace="example-chain", kinds=("facts",), k=3)
    chain = (
        {"facts": retriever | lines, "question": RunnablePassthrough()}
        | prompt
        | ChatOpenAI(model="gpt-4.1-mini")
        | StrOutputParser()
    )
    for question in ("Where does Ann live?", "Where did Ann live in January 2024?"):
        print(f"{question}\n    {chain.invoke(question)}")

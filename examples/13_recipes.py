"""Search for one question with several recipes (ways to search and rank), a filter, and explanations of the results.

Runs offline, without a key: ``python examples/13_recipes.py``
"""

from kg_memory import GraphMemory, SearchResults
from kg_memory.contrib.variants.zep import ByDiversity
from kg_memory.retrieval.recipe import DEFAULT, RECIPES, WORDS, ByRecency

SAID = (
    ("Ann", "2022-03-01", "I live in Bergen and I work at Fjord Labs."),
    ("Ann", "2023-05-02", "I moved to Oslo last week."),
    ("Ann", "2023-06-01", "I play chess with Tom on Sundays."),
    ("Tom", "2023-06-03", "I live in Oslo and I work at Acme."),
    ("Tom", "2024-02-10", "I play the violin, and Ann sings."),
)
QUESTION = "What does Ann play at weekends?"
NEW_AND_DIVERSE = DEFAULT.with_(name="new and diverse", rerankers=(ByRecency(rate=0.1), ByDiversity(balance=0.7)))

with GraphMemory.open(model="offline") as memory:
    memory.add_many(
        [{"speaker": who, "at": day, "content": text} for who, day, text in SAID], namespace="example-recipes"
    )

    def show(title: str, found: SearchResults) -> None:
        print(f"\n{title} (relevance {found.relevance:.2f})")
        for each in found.episodes:
            print(f"    {each.speaker}: {each.content}  {each.score:.2f}")

    for recipe in (DEFAULT, WORDS, RECIPES["synapse"], NEW_AND_DIVERSE):
        show(
            f"By the recipe {recipe.name}", memory.search(QUESTION, recipe=recipe, limit=2, namespace="example-recipes")
        )
    where = {"speaker": "Tom", "said_at": {"$lt": "2024-01-01"}}
    show("Only what Tom said before 2024", memory.search(QUESTION, where=where, namespace="example-recipes"))

    context = memory.context(QUESTION, limit=2, template="zeph", explain=True, namespace="example-recipes")
    print(f"\nA context of {context.tokens} tokens\n{context}\n\nWhy")
    for why in context.results.explanations:
        if why.kind == "facts":
            hits = ", ".join(f"{hit.retriever} {hit.rank}" for hit in why.hits)
            print(f"    {why.text}: found by {hits}; {why.left_out or f'rank {why.rank}'}")

"""Declare facts that your application knows, and map its records to facts, without a model.

``python examples/14_declared_facts.py``
"""

from kg_memory import GraphMemory

EMPLOYEES = [
    {"id": 1, "name": "Ann Berg", "jobs": [{"at": "Acme", "from": "2020"}, {"at": "Globex", "from": "2023-05"}]},
    {"id": 2, "name": "Bo Lund", "jobs": [{"at": "Acme", "from": "2021-09-01"}, {"from": "2024"}]},
]
MAPPING = {
    "subject": "$.name",
    "predicate": "WORKS_AT",
    "object": "$.jobs[*].at",
    "valid_at": "$.jobs[*].from",
    "subject_type": "Person",
    "source": "hr",
    "source_id": "$.id",
}

with GraphMemory.open() as memory:
    for added in memory.facts.add_many(EMPLOYEES, mapping=MAPPING, namespace="example declared"):
        print("stated:", *added.facts, sep="\n    ")
        print("left out:", *added.unmapped or ["nothing"])
    memory.facts.add("Bo Lund", "LIVES_IN", "Oslo", valid_at="2022", source_id="address", namespace="example declared")
    print("Where Ann worked:")
    for fact in memory.facts.history("Ann Berg", "works at", namespace="example declared"):
        print(f"    {fact.objects[0]}: {fact.valid_at:%Y-%m} to {fact.invalid_at and f'{fact.invalid_at:%Y-%m}'}")
    print(memory.context("Where does Bo live and work?", namespace="example declared", max_tokens=200))

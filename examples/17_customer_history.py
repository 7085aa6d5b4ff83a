"""Combine the CRM records of a customer with phone calls in one memory, and print a briefing for the next call.

Records are mapped to facts without a model. Newer facts end older ones, whether from records or from calls.
Runs offline, without a key: ``python examples/17_customer_history.py``
"""

from kg_memory import GraphMemory

NAMESPACE = "example-crm"
RECORDS = [
    {"id": 7, "name": "Ann Berg", "company": "Acme", "since": "2020-05", "plan": "Basic", "bought": "2023-02-01"},
    {"id": 8, "name": "Bo Lund", "company": "Acme", "since": "2021", "plan": "Pro", "bought": "2022-06-01"},
]
WORK = {"subject": "$.name", "predicate": "WORKS_AT", "object": "$.company", "valid_at": "$.since"}
PLAN = {"subject": "$.name", "predicate": "BOUGHT", "object": "$.plan", "valid_at": "$.bought"}
CALL = {"thread": "call-1", "at": "2024-05-14", "labels": {"channel": "phone"}}

with GraphMemory.open(model="offline") as memory:
    shared = {"subject_type": "Person", "source": "crm", "source_id": "$.id"}
    memory.facts.add_many(RECORDS, mapping=[{**shared, **WORK}, {**shared, **PLAN}], namespace=NAMESPACE)
    memory.add("I work at Globex since March 2024.", speaker="Ann Berg", **CALL, namespace=NAMESPACE)
    memory.add("I plan to visit Oslo in June.", speaker="Ann Berg", **CALL, namespace=NAMESPACE)

    print("Where Ann worked:")
    for fact in memory.facts.history("Ann Berg", "works at", namespace=NAMESPACE):
        until = f"{fact.invalid_at:%Y-%m}" if fact.invalid_at else "now"
        print(f"    {fact.objects[0]}: {fact.valid_at:%Y-%m} to {until}, says {fact.sources[0].speaker or 'the CRM'}")
    acme = memory.facts.about("Acme", as_of="2024-06", namespace=NAMESPACE)
    print("At Acme in June 2024:", *(fact.subject for fact in acme))
    print("Told by phone:")
    for each in memory.episodes.list(where={"labels.channel": "phone"}, namespace=NAMESPACE):
        print(f"    {each.content}")
    print(memory.reports.identity("Ann Berg", namespace=NAMESPACE))

"""Erase a person, as the GDPR requires: preview what is deleted, delete it, keep the receipt, and verify the log.

The receipt and the log contain no text. Backups, exports and model providers are not covered: see docs/forgetting.md.
Runs offline, without a key: ``python examples/15_erase_a_person.py``
"""

from kg_memory import GraphMemory

NAMESPACE = "example-erasure"
SAID = (
    ("Ann", "I work at Fjord Labs."),
    ("Bo", "Ann Berg told me that she lives in Oslo."),
    ("Bo", "I play chess on Sundays."),
)

with GraphMemory.open(model="offline") as memory:
    for speaker, text in SAID:
        memory.add(text, speaker=speaker, at="2024-05-14", namespace=NAMESPACE)

    for target in ({"speaker": "Ann"}, {"entity": "Ann Berg"}):
        plan = memory.privacy.forget(**target, dry_run=True, namespace=NAMESPACE)
        print(f"{target} would take {len(plan.episodes)} message(s) and {len(plan.facts)} fact(s)")
        receipt = memory.privacy.forget(**target, by="eva", reason="request 12", search=True, namespace=NAMESPACE)
        print(f"    gone; traces left: {list(receipt.residue)}, files clean: {receipt.erased}")

    print("What is left:", *(each.content for each in memory.episodes.list(namespace=NAMESPACE)), sep="\n    ")
    print("The log is whole:", memory.privacy.verify(head=receipt.head).ok)

"""A plain evaluation of filters, for comparing with what the database makes of them."""

import operator
from datetime import datetime

from kg_memory.temporal.interval import OPEN_END, OPEN_START, micros
from kg_memory.text.identity import canonical_name, replace_unstorable
from kg_memory.text.predicates import predicate_name

NOW = 1_000
ORDERS = {"$gt": operator.gt, "$gte": operator.ge, "$lt": operator.lt, "$lte": operator.le}
OWNER = {
    **dict.fromkeys(("thread", "source", "source_id", "speaker", "kind", "trust", "said_at"), "episodes"),
    **dict.fromkeys(("labels.tags", "labels.tag", "labels.plan"), "episodes"),
    **dict.fromkeys(("type", "name"), "entities"),
    **dict.fromkeys(
        ("predicate", "fact_kind", "confidence", "valid_at", "invalid_at", "created_at", "expired_at"), "facts"
    ),
}
TIMED = {"valid_at": OPEN_START, "invalid_at": OPEN_END, "created_at": None, "expired_at": OPEN_END}


class Plainly:
    """A plain evaluation of filters over a graph that is plain values."""

    def __init__(self, graph):
        self.graph = graph

    def passes(self, kind, thing, where):
        simple = {name: given for name, given in where.items() if not name.startswith("$")}
        return (
            (not simple or self.fields(kind, thing, simple))
            and all(self.passes(kind, thing, each) for each in where.get("$and", ()))
            and ("$or" not in where or any(self.passes(kind, thing, each) for each in where["$or"]))
            and not ("$not" in where and self.passes(kind, thing, where["$not"]))
        )

    def fields(self, kind, thing, simple):
        if kind == "communities":
            return any(self.fields("entities", each, simple) for each in self.linked("communities", "entities", thing))
        for owner in ("episodes", "entities", "facts"):
            mine = {name: given for name, given in simple.items() if OWNER[name] == owner}
            if not mine:
                continue
            if owner == kind:
                if not self.has(owner, thing, mine, linked=False):
                    return False
            elif not any(self.has(owner, each, mine, linked=True) for each in self.linked(kind, owner, thing)):
                return False
        return True

    def linked(self, kind, other, thing):
        pairs = {
            ("facts", "episodes"): [(f, x) for x, f in self.graph["STATES"]],
            ("facts", "entities"): [(f, e) for e, f in self.graph["SUBJECT_OF"]] + self.graph["OBJECT_IS"],
            ("entities", "episodes"): [(e, x) for x, e in self.graph["MENTIONS"]],
            ("entities", "facts"): self.graph["SUBJECT_OF"] + [(e, f) for f, e in self.graph["OBJECT_IS"]],
            ("episodes", "facts"): self.graph["STATES"],
            ("episodes", "entities"): self.graph["MENTIONS"],
            ("communities", "entities"): self.graph["HAS_MEMBER"],
        }[kind, other]
        ids = {there for here, there in pairs if here == thing["id"]}
        return [each for each in self.graph[other] if each["id"] in ids]

    def has(self, owner, thing, mine, *, linked):
        own = {name: given for name, given in mine.items() if name not in TIMED}
        times = {name: given for name, given in mine.items() if name in TIMED}
        if not all(self.compares(name, self.value(name, thing), given) for name, given in own.items()):
            return False
        if owner != "facts" or not (times or linked):
            return True
        return any(
            all(self.compares(name, each["belief"][name], given) for name, given in times.items())
            for each in self.graph["beliefs"]
            if each["fact"] == thing["id"] and self.holds(each)
        )

    def holds(self, held):
        belief = held["belief"]
        return (
            held["relation"] == "HELD" and belief["created_at"] <= NOW < belief["expired_at"]
            and belief["invalid_at"] > NOW and belief["known_from"] <= NOW
        )  # fmt: skip

    def value(self, name, thing):
        if name.startswith("labels."):
            value = thing["labels"].get(name.removeprefix("labels."), [])
            return value if isinstance(value, list) else [value]
        if name == "name":
            return {canonical_name(each) for each in thing["names"]}
        if name == "fact_kind":
            return thing["kind"] or "state"
        return thing[{"said_at": "at"}.get(name, name)]

    def compares(self, name, value, given):
        if isinstance(given, list):
            given = {"$in": given}
        elif not isinstance(given, dict):
            given = {"$eq": given}
        return all(self.compare(name, value, sign, wanted) for sign, wanted in given.items())

    def compare(self, name, value, sign, wanted):
        if name.startswith("labels."):
            return self.compare_label(value, sign, wanted)
        if sign in ORDERS:
            return ORDERS[sign](value, self.stored(name, wanted))
        among = [self.stored(name, each) for each in (wanted if isinstance(wanted, list) else [wanted])]
        found = bool(value & set(among)) if name == "name" else value in among
        return found is (sign in ("$eq", "$in"))

    def compare_label(self, values, sign, wanted):
        if sign in ORDERS:
            numbers = [item for item in values if type(item) in (int, float)]
            return any(ORDERS[sign](number, wanted) for number in numbers)
        among = [(type(item), item) for item in (wanted if isinstance(wanted, list) else [wanted])]
        has = any((type(item), item) in among for item in values) or (not values and (type(None), None) in among)
        return has is (sign in ("$eq", "$in"))

    def stored(self, name, wanted):
        if name in TIMED or name == "said_at":
            return TIMED[name] if wanted is None else micros(datetime.fromisoformat(wanted), default=0)
        if name == "name":
            return canonical_name(wanted)
        if name == "predicate":
            return predicate_name(wanted)
        if not isinstance(wanted, str):
            return wanted
        return " ".join(replace_unstorable(wanted).split()) if name == "speaker" else replace_unstorable(wanted)


def cleaned(graph):
    """Return *graph* as ingestion would have stored its texts."""
    for each in graph["episodes"]:
        for name in ("thread", "source", "speaker"):
            each[name] = None if each[name] is None else replace_unstorable(each[name])
        if each["speaker"]:
            each["speaker"] = " ".join(each["speaker"].split())
    return graph

"""A model that returns hostile text: as names, predicates, sentences, quotes, dates, reasons and summaries."""

from typing import Any

from tests.scripted import Fields, Scripted


def echo() -> Scripted:
    """Return the model."""
    return Scripted(read=_read, resolve=_resolve, judge=_judge, predicates=_predicates, summarise=_summarise)


def _read(fields: Fields) -> Any:
    said = fields["episode"]["content"]
    fact = {
        "subject": said[:512], "predicate": said[:64], "objects": [said[::-1][:512], "Oslo"], "sentence": said[:2000],
        "quote": said[:4000], "valid_at": said[:40], "invalid_at": said[-40:], "edge_type": said, "confidence": said,
    }  # fmt: skip
    names = [said[:512], said[:2000], said[::-1][:512], "", "Oslo", "\n", "x" * 10 * len(said)]
    return {"entities": [{"name": name, "type": said[:64]} for name in names], "facts": [fact, {"subject": said}, None]}


def _resolve(fields: Fields) -> Any:
    said = fields["episode"]["content"]
    found = [{"entity": each["id"], "same_as": None, "name": said[:512]} for each in fields["entities"]]
    return {"resolutions": [*found, {"entity": 10**9, "same_as": -1, "name": said[:512]}]}


def _judge(fields: Fields) -> Any:
    pairs = [(fact, old) for fact in fields["facts"] for old in fact["existing"]]
    sure = {"verdict": "unrelated", "confidence": 1.0, "holds": "new"}
    told = [{"fact": new["id"], "known": old["id"], **sure, "reason": new["sentence"][:500]} for new, old in pairs]
    return {"verdicts": told}


def _predicates(fields: Fields) -> Any:
    names = [each["name"] for each in fields["predicates"]]
    return {"predicates": [{"name": name, "canonical": name[::-1], "one_at_a_time": False} for name in names]}


def _summarise(fields: Fields) -> Any:
    told = [{"entity": each["id"], "summary": f"{each['name']}\n{each['name']}"[:1000]} for each in fields["entities"]]
    return {"summaries": told}

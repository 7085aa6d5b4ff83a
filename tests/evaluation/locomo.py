"""A small LoCoMo file of our own, and a model that answers and judges by rules."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

FACTS = (
    ("Nora", "keeps two goats", "What animals does Nora keep?", "two goats", 4),
    ("Piet", "bought a red canoe", "What did Piet buy?", "a red canoe", 4),
    ("Nora", "went to Ghent on 3 May 2023", "When did Nora go to Ghent?", "3 May 2023", 2),
    ("Piet", "fears spiders", "What does Piet fear?", "spiders", 1),
    ("Nora", "plays the cello", "Which instrument does Nora play?", "the cello", 3),
    ("Piet", "works as a baker", "What is the job of Piet?", "a baker", 1),
)


def sample(name: str, more: int = 0) -> dict[str, Any]:
    """Return a conversation of six turns and *more* turns, with six questions about them and one without an answer."""
    turns = [
        {"speaker": who, "dia_id": f"D1:{n}", "text": f"{who} {what}."} for n, (who, what, *_) in enumerate(FACTS, 1)
    ]
    turns += [{"speaker": "Piet", "dia_id": f"D1:{n}", "text": f"Piet saw bird {n}."} for n in range(7, 7 + more)]
    asked = [
        {"question": question, "answer": answer, "category": category, "evidence": [f"D1:{n}"]}
        for n, (_, _, question, answer, category) in enumerate(FACTS, 1)
    ]
    trap = {"question": "What did Nora paint?", "adversarial_answer": "a barn", "category": 5, "evidence": ["D1:1"]}
    session = {"session_1_date_time": "1:00 pm on 8 May, 2023", "session_1": turns}
    talk = {"speaker_a": "Nora", "speaker_b": "Piet", **session}
    return {"sample_id": name, "conversation": talk, "qa": [*asked, trap]}


def write(path: Path, *names: str, more: int = 0) -> Path:
    """Write a file with conversations of these names."""
    path.write_text(json.dumps([sample(name, more) for name in names]), encoding="utf-8")
    return path


class Model:
    """Answers from the notes, judges an answer as right if it contains the expected one, and counts requests."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        """Requests by kind: the questions asked of the reader, and ``RIGHT?`` for each request to the judge."""

    def __call__(self, name: str, body: dict[str, Any]) -> Any:
        if name != "completions" or "response_format" in body:
            return None
        text = body["messages"][0]["content"]
        if question := re.search(r"^Question: (.*)$.*^Answer to grade: (.*?)$", text, re.MULTILINE | re.DOTALL):
            self.asked["RIGHT?"] += 1
            expected = re.search(r"^Expected answer: (.*)$", text, re.MULTILINE)
            return "RIGHT" if expected and expected[1] in question[2] else "WRONG"
        question = re.search(r"^Question: (.*)$", text, re.MULTILINE)
        assert question, text
        self.asked[question[1]] += 1
        known = {asked: (what, answer) for _, what, asked, answer, _ in FACTS}
        what, answer = known[question[1]]
        return answer if what in text else "It is not known."

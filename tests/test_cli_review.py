"""The command ``review``: one decision a run and at a terminal, on a real database."""

import getpass
import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kg_memory.cli.output import printable
from kg_memory.contrib.review.command import describe_acceptance
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.graph import Fact, Review
from kg_memory.settings import Settings
from tests.cli_home import Run, Terminal, home_of_the_module, result, run_here  # noqa: F401 - fixtures
from tests.review import judging
from tests.scripted import Scripted

PROMPT = "or quit? "
WHY = "none): "
Move = Callable[..., str]


@pytest.fixture(autouse=True)
def withhold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the command withhold unsure facts too."""
    monkeypatch.setenv("KG_MEMORY_DISPUTES", "withhold")


@pytest.fixture(scope="module")
def memory(home: Path) -> Iterator[GraphMemory]:
    """A memory with an unsure model in the home of the command; it keeps the server running."""
    settings = Settings(data_dir=home, idle_seconds=0, undated_start="reference", disputes="withhold", min_support=0)
    unsure = judging("supersedes", 0.7, reason="another city, and no word of a move\x1b[2J")
    with GraphMemory.open(settings=settings, model=Scripted(judge=unsure), embeddings="offline") as opened:
        yield opened


@pytest.fixture
def move(memory: GraphMemory, request: pytest.FixtureRequest) -> Move:
    """Add that *names* live in Oslo, then in Paris; the second fact waits for review. Return the namespace."""

    def call(*names: str) -> str:
        space = str(request.node.name)
        for name in names:
            for place, at in (("Oslo", "2023-02-01"), ("Paris", "2024-05-14")):
                memory.add(f"{name} is in {place}", speaker=name, at=at, source_id=f"{name} {place}", namespace=space)
        return space

    return call


def homes(memory: GraphMemory, name: str, space: str) -> list[tuple[str, str, str]]:
    """Return where *name* is believed to have lived, and when."""
    return [
        (fact.objects[0], f"{fact.valid_at:%Y-%m-%d}", f"{fact.invalid_at:%Y-%m-%d}" if fact.invalid_at else "")
        for fact in memory.facts.about(name, namespace=space)
    ]


OSLO = [("Oslo", "2023-02-01", "")]
BOTH = [("Paris", "2024-05-14", ""), *OSLO]
MOVED = [("Paris", "2024-05-14", ""), ("Oslo", "2023-02-01", "2024-05-14")]


# --- one decision a run ---


def test_waiting_verdicts_are_listed_without_a_terminal(run, move):
    space = move("Ann", "Bob")
    code, out, err = run("review", "-n", space)
    assert code == 0
    assert out.index("Ann lives in Paris (2024-05-14 - now)") < out.index("Bob lives in Paris")
    assert "Ann lives in Oslo (2023-02-01 - now)" in out
    assert "2 verdicts wait" in err
    first, second = result(run, "review", "--list", "-n", space)
    assert (first["kind"], first["ruling"], first["confidence"]) == ("supersedes", "waiting", 0.7)
    assert second["pending"]["sentence"] == "Bob lives in Paris"
    assert len(result(run, "review", "--limit", 1, "-n", space)) == 1


@pytest.mark.parametrize(
    ("options", "says", "expected"),
    [
        (["--accept", "ID"], "Accepted: one fact ended when the other began.", MOVED),
        (["--reject", "ID"], "Ann lives in Paris: not believed", OSLO),
        (["--edit", "ID", "--verdict", "complements"], "Edited: both hold.", BOTH),
        (
            ["--edit", "ID", "--valid-at", "2024-06-01", "--invalid-at", "2024-08"],
            "Ann lives in Paris: 2024-06-01 - 2024-08",
            [("Paris", "2024-06-01", "2024-08-01"), ("Oslo", "2023-02-01", "2024-06-01")],
        ),
    ],
)
def test_a_decision_takes_effect_and_is_undone(run, move, memory, options, says, expected):
    place = ("-n", move("Ann"))
    assert "Nothing was decided yet." in run("review", "--decided", *place)[1]
    [waiting] = result(run, "review", *place)
    given = [waiting["id"][:4] if word == "ID" else word for word in options]
    code, out, _ = run("review", *given, "--by", "eva", "--reason", "she told\x1b[2J me", *place)
    assert (code, says in out) == (0, True)
    assert out.splitlines()[-1].endswith(f" --undo {waiting['id']}")
    assert homes(memory, "Ann", place[1]) == expected
    assert result(run, "review", *place) == []
    [decided] = result(run, "review", "--decided", *place)
    assert (decided["id"], decided["decided_by"]) == (waiting["id"], "eva")
    shown = " ".join(run("review", "--decided", *place)[1].split())
    assert all(part in shown for part in (waiting["id"][:8], ", by eva, ", printable("(she told\x1b[2J me)")))
    undone = result(run, "review", "--undo", waiting["id"][:4], *place)
    assert undone["ruling"] == "waiting"
    made = [(each["by"], each["reason"]) for each in undone["decisions"]]
    assert made == [("eva", "she told\x1b[2J me"), (getpass.getuser(), "")]
    assert homes(memory, "Ann", place[1]) == OSLO


def test_a_fact_with_two_verdicts_waits_until_both_are_decided(run, move, memory):
    space = move("Ann")
    memory.add("Ann is in Rome", speaker="Ann", at="2025-01-01", namespace=space)
    first, oslo = result(run, "review", "-n", space)  # whether Rome follows Paris is asked when Paris is settled
    run("review", "--accept", first["id"], "-n", space)
    assert "Ann lives in Rome: waits for another verdict" in run("review", "--accept", oslo["id"], "-n", space)[1]
    assert homes(memory, "Ann", space) == MOVED
    [paris] = result(run, "review", "-n", space)
    assert "Ann lives in Rome: 2025-01-01 - now" in run("review", "--accept", paris["id"], "-n", space)[1]


WRONG = (
    (["--accept", "zzzz"], "`kg-memory review --list` shows waiting reviews"),
    (["--accept", ""], "not found in this namespace"),
    (["--undo", "zzzz"], "not found in this namespace"),
    (["--accept", "00000000-0000-0000-0000-000000000000"], "not found in this namespace"),
    (["--accept", "ID", "--valid-at", "2019"], "only with --edit"),
    (["--verdict", "conflicts"], "only with --edit"),
    (["--reason", "so it is"], "needs a decision"),
    (["--edit", "ID"], "--edit changes nothing"),
    (["--edit", "ID", "--valid-at", "soon-ish"], "is not a time"),
    (["--accept", "ID", "--reason", "x" * 2001], "shorter"),
)


def test_wrong_decision_is_refused_and_changes_nothing(run, move, memory):
    space = move("Ann")
    [waiting] = result(run, "review", "-n", space)
    for arguments, says in WRONG:
        code, _, err = run("review", *(waiting["id"] if each == "ID" else each for each in arguments), "-n", space)
        assert (code, says in err, "Traceback" in err) == (1, True, False), err
    assert [each["id"] for each in result(run, "review", "-n", space)] == [waiting["id"]]
    assert homes(memory, "Ann", space) == OSLO


def test_ambiguous_id_prefix_is_refused(run, move, memory):
    letters = "ABCDEFGHIJKLMNOPQ"  # one more than an id's first letter can tell apart
    space = move(*(f"{letter}nna" for letter in letters))
    ids = [each["id"] for each in result(run, "review", "-n", space)]
    shared = next(id_[0] for place, id_ in enumerate(ids) if any(id_[0] == other[0] for other in ids[:place]))
    code, _, err = run("review", "--accept", shared, "-n", space)
    assert (code, "give more of the id" in err) == (1, True)
    assert memory.stats(namespace=space).reviews == len(letters)


def test_retract_is_undone_and_replace_supersedes_a_fact(run, move):
    place = ("-n", move("Ann"))
    [fact] = [each for each in result(run, "facts", "Ann", *place) if each["objects"] == ["Oslo"]]
    code, out, _ = run("retract", fact["id"][:8], "--by", "Cy", "--reason", "not so", *place)
    assert (code, "  Ann lives in Oslo: not believed" in out.splitlines()) == (0, True)
    assert "Oslo" not in str(result(run, "facts", "Ann", *place))
    assert "retracted" in run("review", "--decided", *place)[1]
    [review] = [each for each in result(run, "verdicts", fact["id"], *place) if each["kind"] == "retracted"]
    assert run("review", "--undo", review["id"], *place)[0] == 0
    assert result(run, "replace", fact["id"], "I moved to Rome.", "--by", "Ann", *place)["ruling"] == "supersedes"
    assert run("retract", "nothing", *place)[0] == 1


# --- at a terminal ---


def test_terminal_review_decides_facts_one_by_one(run, move, memory):
    space = move("Ann", "Bob", "Cleo", "Dan")
    terminal = Terminal("review", "--by", "eva", "-n", space)
    first = terminal.until(PROMPT)
    for part in (
        "You decide as eva", "Supersedes? (confidence 0.70)", "Ann lives in Paris (2024-05-14 - now)",
        'Ann, 2024-05-14 [Ann Paris]: "Paris"', 'Ann, 2023-02-01 [Ann Oslo]: "Oslo"', "another city", "accept",
        "the other ended where it began (2024-05-14)", "reject",
    ):  # fmt: skip
        assert part in first
    terminal.press("x\naccept\n")
    terminal.until(WHY)
    terminal.press("she told me 她说\n")
    assert "Ann lives in Oslo: 2023-02-01 - 2024-05-14" in terminal.until(PROMPT)
    terminal.press("s\n")
    terminal.until(PROMPT)
    terminal.press("R\n\n")
    assert "Cleo lives in Paris: not believed" in terminal.until(PROMPT)
    for answers, says in (("e\n\n\n\n", "Nothing is changed"), ("e\n\nsoon-ish\n\n\n", "is not a time")):
        terminal.press(answers)
        assert says in terminal.until(PROMPT)
    terminal.press("e\ncomplements\n2024-06-01\n\n\n")
    assert "Edited: both hold." in terminal.until("wait")
    assert terminal.end() == 0
    assert "3 decided; 1 fact still waits." in terminal.shown
    assert homes(memory, "Ann", space) == MOVED
    assert homes(memory, "Bob", space) == homes(memory, "Cleo", space) == OSLO
    assert homes(memory, "Dan", space) == [("Paris", "2024-06-01", ""), *OSLO]
    assert [each["pending"]["subject"] for each in result(run, "review", "-n", space)] == ["Bob"]


@pytest.mark.parametrize("asked_why", [False, True])
def test_ctrl_c_in_review_loses_no_decision(move, memory, asked_why):
    space = move("Ann", "Bob")
    terminal = Terminal("review", "-n", space)
    before = terminal.flags()
    terminal.until(PROMPT)
    terminal.press("a\n\n")
    terminal.until(PROMPT)
    if asked_why:
        terminal.press("a\n")
        terminal.until(WHY)
        terminal.press("half a rea")
        terminal.until("half a rea")
    time.sleep(0.3)  # the terminal shows what is typed before Python waits for it, where a signal would wake it
    terminal.press("\x03")
    terminal.until("Stopped.")
    assert terminal.flags() == before
    assert terminal.end() == 130
    assert "1 decided; 1 fact still waits." in terminal.shown
    assert "Traceback" not in terminal.shown
    assert homes(memory, "Ann", space) == MOVED
    assert homes(memory, "Bob", space) == OSLO


def test_decision_of_another_person_is_not_overwritten(move, memory):
    space = move("Ann")
    terminal = Terminal("review", "-n", space)
    terminal.until(PROMPT)
    memory.reviews.decide(memory.reviews.list(namespace=space)[0].id, "reject", by="tom", namespace=space)
    terminal.press("a\n\n")
    assert "was decided by tom" in terminal.until("meanwhile")
    assert terminal.end() == 0
    assert homes(memory, "Ann", space) == OSLO


def test_terminal_review_escapes_control_characters(run, memory, move):
    space = move("Ann")
    evil = "Eve\x1b]0;owned\x07\x9b2J\u202e is in"
    for place, at in (("Oslo", "2023-02-01"), ("Paris", "2024-05-14")):
        memory.add(f"{evil} {place}", speaker=evil, at=at, source_id=f"\x1b[31m{place}", namespace=space)
    terminal = Terminal("review", "-n", space, NO_COLOR="1")
    terminal.until(PROMPT)
    terminal.press("s\n")
    terminal.until(PROMPT)
    terminal.press("\x04")
    assert terminal.end() == 0
    for steering in ("\x1b]0", "\x07", "\x1b[2J", "\x1b[31m", "\u202e", "\u009b"):
        assert steering not in terminal.shown
    assert printable("\x1b[2J") in terminal.shown  # the model's reason
    for flag in ([], ["--json"]):
        _, out, err = run("review", "-n", space, *flag)
        assert not set(out + err) & set("\x1b\x07\x9b\u202e")
    assert any("\x1b" in each["pending"]["sources"][0]["speaker"] for each in json.loads(out))


def test_terminal_review_reports_an_empty_queue(move, memory):
    space = move()
    memory.add("Ann is in Oslo", speaker="Ann", namespace=space)
    terminal = Terminal("review", "-n", space)
    assert "Nothing waits for review." in terminal.until("review.")
    assert terminal.end() == 0


# --- the effect of accepting ---


def fact(id_: str, year: int | None = None, known: int | None = None, trust: float = 1.0) -> Fact:
    begun = datetime(year, 1, 1, tzinfo=UTC) if year else None
    known_from = datetime(known, 1, 1, tzinfo=UTC) if known else begun
    return Fact(
        id=id_, subject="Ann", predicate="LIVES_IN", objects=(id_,), sentence=id_, valid_at=begun, precision="year",
        created_at=datetime(2025, 1, 1, tzinfo=UTC), known_from=known_from, trust=trust,
    )  # fmt: skip


OLD, NEW = fact("a", 2019), fact("w", 2020)


@pytest.mark.parametrize(
    ("kind", "strategy", "preferred", "pending", "expected"),
    [
        ("supersedes", "recency", None, NEW, "the other ended where it began (2020)"),
        ("supersedes", "recency", None, fact("w", 2018), "and ended where the other began (2019)"),
        ("supersedes", "recency", None, fact("w", None, 2020), "(by 2020-01-01)"),
        ("supersedes", "recency", None, fact("w"), "and ended where the other began (2019)"),
        ("conflicts", "recency", "a", NEW, "it is believed, and the other not any more"),
        ("conflicts", "model", "w", NEW, "it is believed, and the other not any more"),
        ("conflicts", "model", "a", NEW, "it is not believed"),
        ("conflicts", "model", None, NEW, "only one of them is believed, by model"),
        ("conflicts", "trust", None, NEW, "it is believed, and the other not any more"),
        ("conflicts", "trust", None, fact("w", 2020, trust=0.2), "trusted more"),
        ("conflicts", "incumbent", None, NEW, "but the other: its source is trusted more, or"),
    ],
)
def test_acceptance_text_names_effect(kind, strategy, preferred, pending, expected):
    review = Review(
        id="r", kind=kind, ruling="waiting", confidence=0.7, reason="", created_at=OLD.created_at, pending=pending,
        existing=OLD, preferred=preferred,
    )  # fmt: skip
    assert expected in describe_acceptance(review, strategy)

"""The command that reviews, one decision a run and at a terminal: a real database, real terminals, real signals."""

import getpass
import json
import termios
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kg_memory.cli.arguments import parser
from kg_memory.cli.output import Screen, printable
from kg_memory.cli.review import describe_acceptance
from kg_memory.cli.review import review as command
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.graph import Fact, Review
from kg_memory.settings import Settings
from tests.cli_home import Run, Terminal, home_of_the_module, result, run_here  # noqa: F401 - fixtures
from tests.scripted import Scripted

PROMPT = "[?] > "
WHY = "none): "
CANONICAL = termios.ICANON | termios.ECHO


def unsure(fields: Any) -> Any:
    """Judge that another place supersedes the known one, but not surely."""
    return {
        "verdicts": [
            {"fact": fact["id"], "known": old["id"], "verdict": "supersedes", "confidence": 0.7, "holds": "new",
             "reason": "another city, and no word of a move\x1b[2J"}
            for fact in fields["facts"] for old in fact["existing"] if old["subject"] == fact["subject"]
        ]
    }  # fmt: skip


@pytest.fixture(autouse=True)
def withhold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the command withhold what is not sure too."""
    monkeypatch.setenv("KG_MEMORY_DISPUTES", "withhold")


@pytest.fixture(scope="module")
def memory(home: Path) -> Iterator[GraphMemory]:
    """A memory with an unsure model in the home of the command; it keeps the server running."""
    settings = Settings(data_dir=home, idle_seconds=0, undated_start="reference", disputes="withhold", min_support=0)
    with GraphMemory.open(settings=settings, model=Scripted(judge=unsure), embeddings="offline") as opened:
        yield opened


@pytest.fixture
def move(memory: GraphMemory, request: pytest.FixtureRequest) -> Callable[..., str]:
    """Tell of *names* that they live in Oslo and then in Paris, so that the second waits; return the namespace."""

    def call(*names: str) -> str:
        space = str(request.node.name)
        for name in names:
            for place, at in (("Oslo", "2023-02-01"), ("Paris", "2024-05-14")):
                memory.add(f"{name} is in {place}", speaker=name, at=at, source_id=f"{name} {place}", namespace=space)
        return space

    return call


def held(memory: GraphMemory, name: str, space: str) -> list[tuple[str, str, str]]:
    """Return where *name* is believed to have lived, and when."""
    return [
        (fact.objects[0], f"{fact.valid_at:%Y-%m-%d}", f"{fact.invalid_at:%Y-%m-%d}" if fact.invalid_at else "")
        for fact in memory.facts.about(name, namespace=space)
    ]


def decided(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return what the list of decided verdicts prints."""
    capsys.readouterr()
    given = parser().parse_args(["review", "--decided", *arguments])
    assert command(given, Screen(as_json="--json" in arguments)) == 0
    return capsys.readouterr().out


OSLO = [("Oslo", "2023-02-01", "")]
BOTH = [("Paris", "2024-05-14", ""), *OSLO]
MOVED = [("Paris", "2024-05-14", ""), ("Oslo", "2023-02-01", "2024-05-14")]


# --- one decision a run ---


def test_what_waits_is_listed_where_there_is_no_terminal(run: Run, move: Callable[..., str]) -> None:
    space = move("Ann", "Bob")
    code, out, err = run("review", "-n", space)
    assert code == 0
    assert out.index("Ann lives in Paris") < out.index("Bob lives in Paris")
    assert "Ann lives in Oslo (2023-02-01 - now)" in out
    assert "2 verdicts wait" in err
    first, second = result(run, "review", "--list", "-n", space)
    assert (first["kind"], first["ruling"], first["confidence"]) == ("supersedes", "waiting", 0.7)
    assert second["pending"]["sentence"] == "Bob lives in Paris"
    assert len(result(run, "review", "--limit", 1, "-n", space)) == 1


def test_accept_takes_effect_and_is_kept_with_who_and_why_and_can_be_undone(
    run: Run, move: Callable[..., str], memory: GraphMemory
) -> None:
    space = move("Ann")
    [waiting] = result(run, "review", "-n", space)
    code, out, _ = run("review", "--accept", waiting["id"][:4], "--by", "eva", "--reason", "she told me", "-n", space)
    assert code == 0
    assert "Ann lives in Oslo: 2023-02-01 - 2024-05-14" in out
    assert held(memory, "Ann", space) == MOVED
    assert result(run, "review", "-n", space) == []

    assert out.splitlines()[-1].endswith(f" --undo {waiting['id']}")
    undone = result(run, "review", "--undo", waiting["id"], "-n", space)
    assert undone["ruling"] == "waiting"
    assert [(each["decision"], each["by"], each["reason"]) for each in undone["decisions"]] == [
        ("accept", "eva", "she told me"),
        ("undo", getpass.getuser(), ""),
    ]
    assert held(memory, "Ann", space) == OSLO
    assert len(result(run, "review", "-n", space)) == 1


def test_reject_leaves_what_was_believed_as_it_is(run: Run, move: Callable[..., str], memory: GraphMemory) -> None:
    space = move("Ann")
    [waiting] = result(run, "review", "-n", space)
    code, out, _ = run("review", "--reject", waiting["id"], "-n", space)
    assert code == 0
    assert "Ann lives in Paris: not believed" in out
    assert held(memory, "Ann", space) == OSLO


def test_edit_gives_another_verdict_and_other_dates(run: Run, move: Callable[..., str], memory: GraphMemory) -> None:
    space = move("Ann", "Bob")
    ann, bob = (each["id"] for each in result(run, "review", "-n", space))
    assert run("review", "--edit", ann, "--verdict", "complements", "-n", space)[0] == 0
    assert held(memory, "Ann", space) == BOTH
    times = ("--valid-at", "2024-06-01", "--invalid-at", "2024-08")
    assert result(run, "review", "--edit", bob, *times, "-n", space)["decisions"][0]["decision"] == "edit"
    assert held(memory, "Bob", space)[0] == ("Paris", "2024-06-01", "2024-08-01")


def test_a_fact_with_two_verdicts_waits_until_both_are_decided(
    run: Run, move: Callable[..., str], memory: GraphMemory
) -> None:
    space = move("Ann")
    memory.add("Ann is in Rome", speaker="Ann", at="2025-01-01", namespace=space)
    found = result(run, "review", "-n", space)
    first, oslo = found  # whether Rome follows Paris is asked when Paris is settled
    assert [each["existing"]["sentence"] for each in found] == ["Ann lives in Oslo"] * 2
    run("review", "--accept", first["id"], "-n", space)
    _, out, _ = run("review", "--accept", oslo["id"], "-n", space)
    assert "Ann lives in Rome: waits for another verdict" in out
    assert held(memory, "Ann", space) == MOVED
    [paris] = result(run, "review", "-n", space)
    _, out, _ = run("review", "--accept", paris["id"], "-n", space)
    assert "Ann lives in Rome: 2025-01-01 - now" in out
    assert held(memory, "Ann", space)[0] == ("Rome", "2025-01-01", "")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--accept", "zzzz"], "kg-memory review -n"),
        (["--accept", ""], "--list shows them"),
        (["--accept", "00000000-0000-0000-0000-000000000000"], "there is no review"),
        (["--accept", "ID", "--valid-at", "2019"], "only with --edit"),
        (["--verdict", "conflicts"], "only with --edit"),
        (["--reason", "so it is"], "goes with a decision"),
        (["--edit", "ID"], "nothing is edited"),
        (["--edit", "ID", "--valid-at", "soon-ish"], "is not a time"),
        (["--edit", "ID", "--valid-at", "2024", "--invalid-at", "2023"], "not after valid_at"),
        (["--undo", "ID"], "nothing to undo"),
        (["--accept", "ID", "--reason", "x" * 2001], "shorter"),
    ],
)
def test_a_wrong_decision_changes_nothing_and_says_what_to_do(
    run: Run, move: Callable[..., str], memory: GraphMemory, arguments: list[str], says: str
) -> None:
    space = move("Ann")
    [waiting] = result(run, "review", "-n", space)
    code, _, err = run("review", *(waiting["id"] if each == "ID" else each for each in arguments), "-n", space)
    assert code == 1
    assert says in err
    assert "Traceback" not in err
    assert [each["id"] for each in result(run, "review", "-n", space)] == [waiting["id"]]
    assert held(memory, "Ann", space) == OSLO


def test_an_edit_of_dates_is_as_exact_as_they_are_and_takes_an_end_back(run: Run, move: Callable[..., str]) -> None:
    space = move("Ann")
    [waiting] = result(run, "review", "-n", space)
    edit = ("review", "--edit", waiting["id"], "-n", space, "--invalid-at")
    assert "Ann lives in Paris: 2024 - 2025" in run(*edit, "2025", "--valid-at", "2024")[1]
    assert "Ann lives in Paris: 2024 - now" in run(*edit, "open")[1]


def test_a_fact_is_retracted_and_replaced_by_commands_and_it_is_undone(run: Run, move: Callable[..., str]) -> None:
    place = ("-n", move("Ann"))
    [fact] = [each for each in result(run, "facts", "Ann", *place) if each["objects"] == ["Oslo"]]
    code, out, _ = run("retract", fact["id"], "--by", "Cy", "--reason", "not so", *place)
    assert (code, out.splitlines()[0]) == (0, "No longer believed: Ann lives in Oslo")
    assert "Oslo" not in str(result(run, "facts", "Ann", *place))
    assert "retracted" in run("review", "--decided", *place)[1]
    [review] = [each for each in result(run, "verdicts", fact["id"], *place) if each["kind"] == "retracted"]
    assert run("review", "--undo", review["id"], *place)[0] == 0
    assert result(run, "replace", fact["id"], "I moved to Rome.", "--by", "Ann", *place)["ruling"] == "supersedes"
    assert run("retract", "nothing", *place)[0] == 1


def test_what_was_decided_is_listed_and_undone_by_the_begin_of_its_id(
    run: Run, move: Callable[..., str], memory: GraphMemory, capsys: pytest.CaptureFixture[str]
) -> None:
    space = move("Ann")
    assert "Nothing was decided yet." in decided(capsys, "-n", space)
    [waiting] = result(run, "review", "-n", space)
    run("review", "--reject", waiting["id"], "--by", "eva", "--reason", "another\x1b[2J Ann", "-n", space)
    listed = json.loads(decided(capsys, "--json", "-n", space))
    assert [(each["id"], each["decided_by"]) for each in listed] == [(waiting["id"], "eva")]
    shown = " ".join(decided(capsys, "-n", space).split())
    why = printable("another\x1b[2J Ann")
    for part in (waiting["id"][:8], "rejected: what waited is not believed", "eva", why):
        assert part in shown
    assert "Undone: it waits again." in run("review", "--undo", waiting["id"][:4], "-n", space)[1]
    assert held(memory, "Ann", space) == OSLO
    code, _, err = run("review", "--undo", "zzzz", "-n", space)
    assert (code, "--decided shows them" in err) == (1, True)


def test_a_begin_that_several_share_is_refused(run: Run, move: Callable[..., str], memory: GraphMemory) -> None:
    letters = "ABCDEFGHIJKLMNOPQ"  # one more than an id's first letter can tell apart
    space = move(*(f"{letter}nna" for letter in letters))
    ids = [each["id"] for each in result(run, "review", "-n", space)]
    assert len(ids) == len(letters)
    shared = next(id_[0] for place, id_ in enumerate(ids) if any(id_[0] == other[0] for other in ids[:place]))
    code, _, err = run("review", "--accept", shared, "-n", space)
    assert code == 1
    assert "give more of the id" in err
    assert memory.stats(namespace=space).reviews == len(letters)


# --- at a terminal ---


def test_keys_decide_one_after_the_other(run: Run, move: Callable[..., str], memory: GraphMemory) -> None:
    space = move("Ann", "Bob", "Cleo", "Dan")
    terminal = Terminal("review", "--by", "eva", "-n", space)
    first = terminal.until(PROMPT)
    for part in (
        "You decide as eva", "1 of 4: supersedes? (confidence 0.70)", "Ann lives in Paris (2024-05-14 - now)",
        'Ann, 2024-05-14 [Ann Paris]: "Paris"', 'Ann, 2023-02-01 [Ann Oslo]: "Oslo"', "another city", "accept",
        "the other ended where it began (2024-05-14)", "reject",
    ):  # fmt: skip
        assert part in first
    terminal.press("a")
    terminal.until(WHY)
    terminal.press("she told me 她说\n")
    second = terminal.until(PROMPT)
    assert "Ann lives in Oslo: 2023-02-01 - 2024-05-14" in second
    assert "2 of 4" in second
    terminal.press("s")
    assert "3 of 4" in terminal.until(PROMPT)
    terminal.press("R\nra")  # a capital, then Enter for the reason, and two keys too many
    assert "Cleo lives in Paris: not believed" in terminal.until(PROMPT)
    terminal.press("q")
    assert "1 accepted, 1 rejected; 2 facts still wait." in terminal.until("wait.")
    assert terminal.end() == 0
    assert held(memory, "Ann", space) == MOVED
    assert held(memory, "Bob", space) == held(memory, "Cleo", space) == OSLO
    assert [each["pending"]["subject"] for each in result(run, "review", "-n", space)] == ["Bob", "Dan"]


def test_the_last_decision_is_undone_and_made_anew(move: Callable[..., str], memory: GraphMemory) -> None:
    space = move("Ann")
    terminal = Terminal("review", "-n", space)
    terminal.until(PROMPT)
    terminal.press("u")
    assert "Nothing was decided in this sitting" in terminal.until(PROMPT)
    terminal.press("a\n")
    terminal.until("any other key ends > ")
    assert held(memory, "Ann", space) == MOVED
    terminal.press("u")
    assert "Undone: it waits again." in terminal.until(PROMPT)
    assert held(memory, "Ann", space) == OSLO
    terminal.press("e")
    terminal.until("verdict [supersedes]: ")
    terminal.press("comp\n")
    terminal.until("so since [2024-05-14]: ")
    terminal.press("2024-06-01\n\n\n")
    assert "Edited: both hold." in terminal.until("any other key ends > ")
    terminal.press("\n")
    assert "1 edited; nothing else waits." in terminal.until("waits.")
    assert terminal.end() == 0
    assert held(memory, "Ann", space) == [("Paris", "2024-06-01", ""), *OSLO]


def test_keys_that_mean_nothing_and_wrong_edits_decide_nothing(move: Callable[..., str], memory: GraphMemory) -> None:
    space = move("Ann")
    terminal = Terminal("review", "-n", space)
    terminal.until(PROMPT)
    for key in ("x", "\x1b[A", "\n", "é", "中", "\x00"):
        terminal.press(key)
        assert "No such key" in terminal.until(PROMPT)
    terminal.press("?")
    assert "undo the last decision" in terminal.until(PROMPT)
    for answers, says in (
        ("\n\n\n", "Nothing is changed"),
        ("maybe\n\n\n", "'maybe' is no verdict"),
        ("\nsoon-ish\n\n\n", "is not a time"),
    ):
        terminal.press("e")
        terminal.until("verdict [supersedes]: ")
        terminal.press(answers)
        assert says in terminal.until(PROMPT)
    terminal.press("\x04")
    assert terminal.end() == 0
    assert "Nothing decided; 1 fact still waits." in terminal.shown
    assert held(memory, "Ann", space) == OSLO


@pytest.mark.parametrize("asked_why", [False, True])
def test_ctrl_c_leaves_the_terminal_in_order_and_loses_nothing(
    move: Callable[..., str], memory: GraphMemory, asked_why: bool
) -> None:
    space = move("Ann", "Bob")
    terminal = Terminal("review", "-n", space)
    before = terminal.flags()
    assert before & CANONICAL == CANONICAL
    terminal.until(PROMPT)
    terminal.press("a\n")
    terminal.until(PROMPT)
    if asked_why:
        terminal.press("a")
        terminal.until(WHY)
        terminal.press("half a rea")
        terminal.until("half a rea")
    time.sleep(0.3)  # the terminal shows what is typed before Python waits for it, where a signal would wake it
    terminal.press("\x03")
    terminal.until("Stopped.")
    assert terminal.flags() == before
    assert terminal.end() == 130
    assert "1 accepted; 1 fact still waits." in terminal.shown
    assert "Traceback" not in terminal.shown
    assert held(memory, "Ann", space) == MOVED
    assert held(memory, "Bob", space) == OSLO


def test_a_terminal_that_a_shell_set_back_is_set_again(move: Callable[..., str], memory: GraphMemory) -> None:
    space = move("Ann")
    terminal = Terminal("review", "-n", space)
    before = terminal.flags()
    terminal.until(PROMPT)
    terminal.stop_and_go_on(before)
    terminal.until(PROMPT)
    terminal.press("s")
    assert terminal.end() == 0
    assert "Nothing decided; 1 fact still waits." in terminal.shown


def test_a_dumb_terminal_is_asked_line_by_line(move: Callable[..., str], memory: GraphMemory) -> None:
    space = move("Ann")
    terminal = Terminal("review", "-n", space, TERM="dumb")
    terminal.until(PROMPT)
    terminal.press("accept\n")
    terminal.until(WHY)
    terminal.press("\n")
    terminal.until("any other key ends > ")
    terminal.press("\x04")
    assert terminal.end() == 0
    assert held(memory, "Ann", space) == MOVED


def test_what_somebody_else_decided_meanwhile_stays(move: Callable[..., str], memory: GraphMemory) -> None:
    space = move("Ann")
    terminal = Terminal("review", "-n", space)
    terminal.until(PROMPT)
    memory.reviews.decide(memory.reviews.list(namespace=space)[0].id, "reject", by="tom", namespace=space)
    terminal.press("a\n")
    assert "was decided by tom" in terminal.until("meanwhile")
    assert terminal.end() == 0
    assert held(memory, "Ann", space) == OSLO


def test_stored_text_steers_no_terminal(run: Run, memory: GraphMemory, move: Callable[..., str]) -> None:
    space = move("Ann")
    evil = "Eve\x1b]0;owned\x07\x9b2J\u202e is in"
    for place, at in (("Oslo", "2023-02-01"), ("Paris", "2024-05-14")):
        memory.add(f"{evil} {place}", speaker=evil, at=at, source_id=f"\x1b[31m{place}", namespace=space)
    terminal = Terminal("review", "-n", space, NO_COLOR="1")
    terminal.until(PROMPT)
    terminal.press("s")
    terminal.until(PROMPT)
    terminal.press("q")
    assert terminal.end() == 0
    for steering in ("\x1b]0", "\x07", "\x1b[2J", "\x1b[31m", "\u202e", "\u009b"):
        assert steering not in terminal.shown
    assert printable("\x1b[2J") in terminal.shown  # the model's reason
    for flag in ([], ["--json"]):
        _, out, err = run("review", "-n", space, *flag)
        assert not set(out + err) & set("\x1b\x07\x9b\u202e")
    assert any("\x1b" in each["pending"]["sources"][0]["speaker"] for each in json.loads(out))


def test_an_empty_queue_says_so(move: Callable[..., str]) -> None:
    terminal = Terminal("review", "-n", move())
    assert "Nothing waits for review." in terminal.until("review.")
    assert terminal.end() == 0


# --- what is told before ---

NOW = datetime(2025, 1, 1, tzinfo=UTC)


def fact(id_: str, year: int | None = None, known: int | None = None) -> Fact:
    begun = datetime(year, 1, 1, tzinfo=UTC) if year else None
    known_from = datetime(known, 1, 1, tzinfo=UTC) if known else begun
    return Fact(
        id=id_, subject="Ann", predicate="LIVES_IN", objects=(id_,), sentence=id_, created_at=NOW,
        valid_at=begun, precision="year", known_from=known_from,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "strategy", "preferred", "pending", "existing", "expected"),
    [
        ("supersedes", "recency", None, fact("w", 2020), fact("a", 2019), "the other ended where it began (2020)"),
        ("supersedes", "recency", None, fact("w", 2018), fact("a", 2019), "and ended where the other began (2019)"),
        ("supersedes", "recency", None, fact("w", None, 2020), fact("a", 2019), "(by 2020-01-01)"),
        ("supersedes", "recency", None, fact("w"), fact("a", 2019), "and ended where the other began (2019)"),
        ("conflicts", "recency", "a", fact("w", 2020), fact("a", 2019), "it is believed, and the other not any more"),
        ("conflicts", "model", "w", fact("w", 2020), fact("a", 2019), "it is believed, and the other not any more"),
        ("conflicts", "model", "a", fact("w", 2020), fact("a", 2019), "it is not believed"),
        ("conflicts", "model", None, fact("w", 2020), fact("a", 2019), "only one of them is believed, by model"),
        ("conflicts", "trust", None, fact("w", 2020), fact("a", 2019), "it is believed, and the other not any more"),
        (
            "conflicts",
            "trust",
            None,
            fact("w", 2020).model_copy(update={"trust": 0.2}),
            fact("a", 2019),
            "trusted more",
        ),
        (
            "conflicts",
            "incumbent",
            None,
            fact("w", 2020),
            fact("a", 2019),
            "but the other: its source is trusted more, or",
        ),
    ],
)
def test_what_an_acceptance_would_do_is_told(
    kind: str, strategy: str, preferred: str | None, pending: Fact, existing: Fact, expected: str
) -> None:
    review = Review(
        id="r", kind=kind, ruling="waiting", confidence=0.7, reason="", created_at=NOW, pending=pending,
        existing=existing, preferred=preferred,
    )  # fmt: skip
    assert expected in describe_acceptance(review, strategy)

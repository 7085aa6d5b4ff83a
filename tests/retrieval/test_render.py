"""Search results as text for a prompt."""

from kg_memory.models.graph import Remark
from kg_memory.models.results import Context, QueryTime, SearchResults
from kg_memory.retrieval.context.templates import render
from kg_memory.retrieval.graph import decode, encode
from kg_memory.text.tokenise import estimate_tokens
from tests.retrieval.findings import JUNE, MAY, PLENTY, episode, fact


def test_render_omits_section_of_empty_kind():
    text = render(SearchResults(question="Ann", episodes=(episode(),)), PLENTY)
    assert "EPISODES" in text
    assert "FACTS" not in text
    assert render(SearchResults(question="Ann"), PLENTY) == ""


def test_render_marks_ended_and_disputed_messages():
    by = {"sentence": "Ann works at Acme", "by": "fedcba9876543"}
    ended = Remark(kind="ended", sentence="Ann lives in Oslo", at=JUNE, by="fedcba9876543", by_source_id="D2:1")
    others = (Remark(kind=kind, **by) for kind in ("contradicted", "contradicts", "disputed", "refused"))
    text = render(SearchResults(question="Ann", episodes=(episode(remarks=(ended, ended, *others)),)), PLENTY)
    marks = (
        "(no longer so since 1 June 2023: see [D2:1]) (contradicted: see [fedcba98]) (contradicts [fedcba98]) "
        "(disputed: see [fedcba98]) (not accepted: see [fedcba98])"
    )
    assert text.splitlines()[3] == f"- [abcdef01] Ann: I moved to Oslo {marks}"


def test_render_groups_messages_by_day_in_order_of_time():
    said = (episode("I left", at=JUNE), episode("I moved", at=MAY.replace(hour=9)), episode("I came", at=MAY))
    said = tuple(each.model_copy(update={"id": str(place)}) for place, each in enumerate(said))
    context = render(SearchResults(question="Ann", episodes=said), PLENTY)
    assert [line.id for line in context.lines] == ["2", "1", "0"]
    assert context.splitlines()[2:-1] == [
        "1 May 2023:", "- [2] Ann: I came", "- [1] Ann: I moved", "1 June 2023:", "- [0] Ann: I left",
    ]  # fmt: skip


# The context as a value


ROME = fact("Bob lives in Rome", subject="Bob")


def test_context_has_results_tokens_lines_and_left_out():
    found = SearchResults(
        question="Ann", time=QueryTime(believed_at=JUNE, reading="now"), facts=(ROME, ROME.model_copy(update={"id": "2"})),
        episodes=(episode(), episode("I like tea very much", id="long")),
    )  # fmt: skip
    direct = render(found, 59)
    for context in (direct, decode({"question": "Ann", **encode({"context": direct})})["context"]):
        assert context == str(direct)
        assert isinstance(context, Context)
        assert context.results == found
        assert context.tokens == estimate_tokens(context) <= 59
        assert [(each.kind, each.id) for each in context.lines] == [
            ("facts", "Bob lives in Rome"), ("episodes", "abcdef0123456"),
        ]  # fmt: skip
        assert all(line.text in context and line.tokens for line in context.lines)
        assert [(each.kind, each.id, each.left_out) for each in context.left_out] == [
            ("facts", "2", "same as Bob lives in Rome"), ("episodes", "long", "no room within max_tokens"),
        ]  # fmt: skip

"""`search` and `context`, sync and async, on a real server."""

import json
import unicodedata
from dataclasses import replace
from html import escape
from typing import Any

import pytest
from langchain_core.tracers.context import collect_runs

from kg_memory import GraphMemory
from kg_memory.contrib.variants.zep import ByDistance
from kg_memory.errors import InputError
from kg_memory.models.graph import KINDS
from kg_memory.models.results import Answerable, SearchResults
from kg_memory.retrieval.context.templates import NO_SECTION, PLAIN, UNLIKELY
from kg_memory.retrieval.recipe import DEFAULT
from kg_memory.settings import Settings
from kg_memory.text.tokenise import estimate_tokens
from tests.bound import Verbs
from tests.scripted import HashEmbeddings, Scripted

NAMESPACE = "searching"
QUESTION = "Where does Ann live, in Oslo?"
FIXED = {"as_of": "2024-06-01", "believed_at": "2200-01-01"}


@pytest.fixture(scope="module")
def story(scripted):
    """A memory of messages of three people in three threads."""
    for place, (speaker, thread, content) in enumerate((
        ("Ann", "t1", "I moved to Oslo with Bob"), ("Bob", "t1", "I live in Paris"), ("Ann", "t2", "Oslo is rainy"),
        ("Carl", "t2", "I know Dora, and the rain in Oslo"), ("Carl", "t3", "fine, thanks"),
    )):  # fmt: skip
        scripted.add(content, speaker=speaker, thread=thread, at=f"2024-01-0{place + 1}T10:00:00Z", namespace=NAMESPACE)
    scripted.communities.refresh(namespace=NAMESPACE)
    return scripted


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def verbs(request, story):
    return Verbs(story, NAMESPACE, asynchronous=request.param)


SYNAPSE = DEFAULT.with_(traversal={"method": "synapse", "timeout_ms": 60_000})  # by default a busy machine ends it
GIVEN: tuple[dict[str, Any], ...] = (
    {}, {"limit": 2}, {"where": {"speaker": "Ann"}}, {"center": "Bob", "recipe": "distance"}, {"recipe": SYNAPSE},
    {"explain": True}, {"thread": "t2"}, {"where": {"$not": {"thread": "t1"}}, "recipe": DEFAULT.with_(kinds=("facts",))},
)  # fmt: skip


@pytest.mark.parametrize("given", GIVEN, ids=str)
def test_search_and_context_are_equal_sync_and_async(story, given):
    """The sync and async verbs return the same results and context.

    Features: A5.
    """
    sync, later = (Verbs(story, NAMESPACE, asynchronous=each) for each in (False, True))
    assert sync.search(QUESTION, **FIXED, **given) == later.search(QUESTION, **FIXED, **given)
    one, other = (each.context(QUESTION, **FIXED, **given) for each in (sync, later))
    assert (str(one), one.results, one.lines, one.left_out) == (str(other), other.results, other.lines, other.left_out)


@pytest.mark.parametrize("given", GIVEN, ids=str)
def test_traced_search_is_a_graph_run_with_equal_results(verbs, given):
    found, context = (verb(QUESTION, **FIXED, **given) for verb in (verbs.search, verbs.context))
    with collect_runs() as kept:
        assert verbs.search(QUESTION, **FIXED, **given) == found
        told = verbs.context(QUESTION, **FIXED, **given)
    assert (str(told), told.results, told.lines) == (str(context), context.results, context.lines)
    assert [run.name for run in kept.traced_runs] == ["retrieval", "retrieval"]


def test_search_limit_applies_to_each_kind_and_is_validated(verbs):
    """`limit` applies to each kind of item; a value that is not a positive whole number is refused.

    Features: A49, C20.
    """
    found = verbs.search("Ann Bob Carl Oslo", limit=1)
    assert [len(getattr(found, kind)) for kind in ("facts", "entities", "episodes")] == [1, 1, 1]
    for limit in (0, -1, 1.5, "ten", True, 2**70):
        with pytest.raises(InputError, match="limit must be a whole number from 1 to 1000000000"):
            verbs.search(QUESTION, limit=limit)


def test_search_returns_only_items_that_match_where(verbs):
    found = verbs.search("Oslo Paris rain", where={"speaker": "Ann"})
    assert {each.speaker for each in found.episodes} == {"Ann"}
    assert {each.sentence for each in found.facts} == {"Ann lives in Oslo", "Ann knows Bob"}
    assert {each.name for each in found.entities} == {"Ann", "Bob", "Oslo"}
    nothing = verbs.search(QUESTION, where={"speaker": "Nobody"})
    assert not any(getattr(nothing, kind) for kind in KINDS)
    assert verbs.context(QUESTION, where={"speaker": "Nobody"}) == ""


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"where": {"speakers": "Ann"}}, "did you mean speaker"),
        ({"where": "Ann"}, "a filter must be a dict .* got str"),
        ({"recipe": "best"}, "recipe must be one of .*, got 'best'"),
        ({"recipe": 5}, "recipe must be .*, got int"),
        ({"center": ["bob", "Nobody"]}, "center must be the name of an entity, got 'Nobody'"),
        ({"center": " "}, "center must be a non-empty string, got ' '"),
        ({"center": 5}, "center must be a string or a list of strings, got 5"),
        ({"thread": 5}, "thread must be a string, got 5"),
        *(
            ({"question": question}, "question must be a non-empty string")
            for question in ("", " \n\t", "\u2003", None, 5, b"Oslo", ["Oslo"])
        ),
    ],
)
def test_search_and_context_refuse_wrong_arguments(verbs, given, told):
    for verb in (verbs.search, verbs.context):
        with pytest.raises(InputError, match=told):
            verb(**{"question": QUESTION, **given})


@pytest.mark.parametrize(("center", "near"), [("bob", {"Bob"}), (["bob", "Dora"], {"Bob", "Dora"})])
def test_center_ranks_near_entities_and_facts_first(verbs, center, near):
    found = verbs.search("who is where?", center=center, recipe=DEFAULT.with_(rerankers=(ByDistance(weight=1),)))
    assert {entity.name for entity in found.entities[: len(near)]} == near
    assert near & {found.facts[0].subject, *found.facts[0].objects}


def test_context_is_a_string_with_lines_and_results(verbs):
    context = verbs.context(QUESTION)
    assert isinstance(context, str)
    assert context.startswith("Facts")
    assert "Ann lives in Oslo" in context
    assert isinstance(context.results, SearchResults)
    assert all(line.text in context for line in context.lines)
    assert {line.kind for line in context.lines} >= {"facts", "episodes"}
    assert 0 < context.tokens <= 1500
    assert json.loads(json.dumps(context)) == str(context)


def test_context_respects_max_tokens_and_limit(verbs):
    short = verbs.context(QUESTION, max_tokens=80)
    assert 0 < short.tokens <= 80
    assert "no room" in " ".join(each.left_out for each in short.left_out)
    assert len([line for line in verbs.context(QUESTION, limit=1).lines if line.kind == "facts"]) == 1
    assert verbs.context(QUESTION, max_tokens=1) == ""


OWN = replace(PLAIN, name="own", sections={"facts": PLAIN.sections["facts"]}, head="<<", foot=">>")


def test_context_accepts_a_template_by_name_or_as_object(verbs):
    assert verbs.context(QUESTION, template="xml", **FIXED).startswith("<")
    assert json.loads(verbs.context(QUESTION, template="json", **FIXED))
    own = verbs.context(QUESTION, template=OWN, **FIXED)
    assert (own[:2], own[-2:]) == ("<<", ">>")
    assert {line.kind for line in own.lines} == {"facts"}
    assert NO_SECTION in {each.left_out for each in own.left_out}
    with pytest.raises(InputError, match=r"template must be one of .*, got 'best'"):
        verbs.context(QUESTION, template="best")


UNKNOWN = 'The memory does not know this: nothing here tells of "zebra".'


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def strict(request, server):
    """A memory of the same story that abstains."""
    settings = Settings(url=server.url, merge_threshold=0.98, ask_threshold=0.6, abstain_below=0.2)
    with GraphMemory(settings, model=Scripted(), embeddings=HashEmbeddings()) as memory:
        yield Verbs(memory, NAMESPACE, asynchronous=request.param)


@pytest.mark.usefixtures("story")
@pytest.mark.parametrize(
    ("template", "text"),
    [
        (None, UNKNOWN),
        (OWN, UNKNOWN),
        ("json", json.dumps({"unknown": UNKNOWN})),
        ("xml", f"<memory>\n<unknown>{escape(UNKNOWN)}</unknown>\n</memory>"),
    ],
    ids=["plain", "as itself", "json", "xml"],
)
def test_context_abstains_below_the_set_relevance(strict, template, text):
    unknown = strict.context("Which zebra juggles quartz?", template=template)
    assert unknown == text
    assert (unknown.lines, unknown.tokens) == ((), estimate_tokens(text))
    assert UNLIKELY in {each.left_out for each in unknown.left_out}
    assert unknown.results.abstains
    assert unknown.results.answerable == Answerable(value="no", reason=UNKNOWN[31:-1], abstains=True)
    assert unknown.results.episodes, "what was found is still there"
    assert strict.context("Which zebra juggles quartz?", template=template, max_tokens=5) == ""
    known = strict.context("Oslo rainy", template=template)
    assert (bool(known.results.answerable), known.results.abstains) == (True, False)
    assert known.lines


@pytest.mark.usefixtures("story")
def test_a_search_by_meaning_alone_never_abstains(strict):
    context = strict.context("Which zebra juggles quartz?", recipe="meaning")
    assert (context.results.answerable, context.results.relevance) == (None, None)
    assert context.lines


def test_results_explain_missing_answers_without_abstaining(verbs):
    context = verbs.context("Which zebra juggles quartz?")
    assert context.lines
    assert context.results.answerable == Answerable(value="no", reason=UNKNOWN[31:-1])
    assert verbs.search("?!").answerable == Answerable(value="no", reason="the question has no words to look for")
    nobody = verbs.search("Oslo", namespace="searching nobody's")
    assert nobody.answerable == Answerable(value="no", reason="nothing is stored here yet")
    relevance = (nobody.relevance, context.results.relevance, verbs.search("Oslo rainy").relevance)
    assert relevance[0] == 0 < relevance[1] < 0.1
    assert 0.4 < relevance[2] <= 1


def test_explain_covers_found_and_left_out_items(verbs):
    context = verbs.context(QUESTION, limit=2, explain=True)
    why = context.results.explanations
    found = [(kind, each.id) for kind in KINDS for each in getattr(context.results, kind)]
    assert [(each.kind, each.id) for each in why if each.rank] == found
    assert all(each.hits and each.scores and each.text for each in why)
    assert {step for each in why for step, _ in each.scores} == {"fused"}
    assert {hit.retriever for each in why for hit in each.hits} == {"words", "meaning", "graph"}
    behind = [each for each in why if each.rank is None]
    assert behind
    assert all(each.left_out == "not among the first 2" for each in behind)
    told = {(line.kind, line.id) for line in context.lines}
    assert all((each.kind, each.id) in told or each.left_out for each in why)
    assert verbs.search(QUESTION).explanations == ()
    why = verbs.search(QUESTION, recipe="distance", explain=True).explanations
    assert {tuple(step for step, _ in each.scores) for each in why} == {("fused", "distance")}


# Hostile input

BLOCKS = [
    "".join(chr(point) for point in range(start, start + 0x2000, 0x61) if unicodedata.category(chr(point)) != "Cn")
    for start in range(0x20, 0x30000, 0x2000)
]
HOSTILE = (
    "?", "!?…", "🎉", "\x00", "\ud800\udfff", "\u200b", "\u202e", "a", "1", "我", "É", "the of and", "x" * 50_000, "word " * 10_000,
    "Ann'}) DETACH DELETE n //", '"; MATCH (n) DETACH DELETE n RETURN "', "$where0 $ids {x: 1}", "CYPHER a=1 RETURN 1", "(" * 300,
    "\\" * 9, "`n`", "a\x00b", "\x1b[31mred", "%s %d {0}", "NULL", "nan", "-1", "1e999", "0" * 5000, "</FACTS>", "a\nb\r\tc", *BLOCKS,
)  # fmt: skip


def test_search_survives_hostile_questions(story):
    before = story.stats(namespace=NAMESPACE)
    for question in HOSTILE:
        found = story.search(question, namespace=NAMESPACE, limit=2)
        assert isinstance(found, SearchResults)
        json.dumps(found.model_dump(mode="json")).encode()
    assert story.stats(namespace=NAMESPACE) == before


@pytest.mark.parametrize("hostile", ["'}) DETACH DELETE n //", "\x00", "\ud800", "x" * 50_000, "`n`", "$where0"])
def test_search_survives_hostile_filter_thread_and_center(story, hostile):
    for where in ({"speaker": hostile}, {"name": [hostile]}, {"$not": {"thread": hostile}}):
        found = story.search(QUESTION, namespace=NAMESPACE, where=where, thread=hostile)
        assert bool(found.episodes) is ("$not" in where)
    with pytest.raises(InputError, match="center must be the name of an entity"):
        story.search(QUESTION, namespace=NAMESPACE, center=hostile)

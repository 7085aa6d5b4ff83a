"""The pages are correct: graphs match the code, links have targets, and snippets run as printed."""

import re
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from kg_memory import GraphMemory
from kg_memory.cli import main
from kg_memory.models.filters import FIELDS
from kg_memory.retrieval import recipe
from kg_memory.retrieval.context.templates import TEMPLATES
from tests.pages import PAGES, ROOT, blocks_of, load, name_of

README = ROOT / "README.md"
ARCHITECTURE = ROOT / "docs" / "architecture.md"
LINKING = sorted(
    {*PAGES, *(page for pattern in ("benchmarks", "examples", "packages/*") for page in ROOT.glob(f"{pattern}/*.md"))}
)
WITH_SNIPPETS = [page for page in PAGES if any(block.language == "python" for block in blocks_of(page))]
LOCAL = "http://localhost:11434/v1"
"""The server of models that pages name; the scripted one answers in its place."""


@pytest.fixture
def draw():
    return load("draw")


@pytest.fixture
def offline(tmp_path, monkeypatch):
    """An environment in which a snippet opens an empty memory of its own, without a model."""
    monkeypatch.setenv("KG_MEMORY_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("KG_MEMORY_IDLE_SECONDS", "0")
    monkeypatch.setenv("KG_MEMORY_MODEL", "offline")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def names(offline) -> Iterator[dict[str, Any]]:
    """The names that the pages take as given: a memory of Ann, ids of it, a chat model and a question."""
    with GraphMemory.open() as memory:
        added = memory.add("Ann lives in Oslo. Ann works at Acme.", speaker="Ann", thread="t1")
        names = {
            "memory": memory,
            "episode": added.episode,
            "fact": memory.facts.about("Ann")[0].id,
            "question": "Where does Ann live?",
            "model": GenericFakeChatModel(messages=iter([AIMessage("Noted."), AIMessage("In Oslo.")])),
        }
        yield names
        for opened in names.values():
            if isinstance(opened, GraphMemory):
                opened.close()


@pytest.fixture
def run_snippets(chat_url: str, names: dict[str, Any]) -> Callable[[Path], None]:
    """A way to run the Python blocks of a page, and to compare what they print with the output that it shows."""

    def call(page: Path) -> None:
        shown = StringIO()
        for block in blocks_of(page):
            if block.mark == "output":
                assert shown.getvalue() == block.text
            if block.language != "python" or block.mark == "not run":
                continue
            shown = StringIO()
            with pytest.MonkeyPatch.context() as patch, redirect_stdout(shown):
                if block.mark == "with a key":
                    patch.delenv("KG_MEMORY_MODEL")
                    patch.setenv("OPENAI_API_KEY", "any")
                    patch.setenv("OPENAI_BASE_URL", chat_url)
                exec(compile(block.text.replace(LOCAL, chat_url), page.name, "exec"), names)

    return call


def test_architecture_page_graphs_match_the_code(memory, draw):
    text = ARCHITECTURE.read_text(encoding="utf-8")
    graphs = draw.draw_graphs(memory)
    assert all(mermaid in text for mermaid in graphs.values())
    assert draw.update(text, graphs) == text, "run `python docs/draw.py`"


def test_clock_pictures_are_up_to_date(draw):
    drawn = {
        ROOT / "docs" / folder / name: svg for folder in draw.WORDS for name, svg in draw.draw_clocks(folder).items()
    }
    assert {path: path.read_text("utf-8") for path in drawn} == drawn, "run `python docs/draw.py`"


def test_architecture_page_tables_name_every_graph_step(memory):
    named = set(re.findall(r"^\| `?(\w+)`? \|", ARCHITECTURE.read_text(encoding="utf-8"), re.MULTILINE))
    graphs = (memory.graphs.ingestion, memory.graphs.retrieval, memory.graphs.communities)
    for graph in (*graphs, memory.graphs.review.compile()):
        assert {name for name in graph.get_graph().nodes if not name.startswith("__")} <= named


@pytest.mark.parametrize("page", LINKING, ids=name_of)
def test_file_links_of_a_page_have_targets(page):
    text = page.read_text(encoding="utf-8")
    targets = [target.split("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in target]
    made = (ROOT / "docs" / "reference", ROOT / "docs" / "cookbook")  # `make docs` makes these pages, and checks links
    paths = [(page.parent / target).resolve() for target in targets if target]
    assert [path for path in paths if not path.exists() and path.parent not in made] == []


@pytest.mark.parametrize("page", LINKING, ids=name_of)
def test_heading_links_of_a_page_have_targets(page):
    links = re.findall(r"\]\(([^)#\s]*\.md)?#([^)\s]+)\)", page.read_text(encoding="utf-8"))
    for target, anchor in links:
        assert anchor in anchors(page.parent / target if target else page), target


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives to the headings of *page*."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_troubleshooting_quotes_messages_of_the_package():
    page = (ROOT / "docs" / "troubleshooting.md").read_text("utf-8")
    generate = load("generate")
    generate.check_troubleshooting(page)
    with pytest.raises(ValueError, match="no message begins"):
        generate.check_troubleshooting(page + "\n### `The moon is full`\n")


def test_site_index_names_every_page():
    named = (ROOT / "docs" / "index.md").read_text("utf-8").splitlines()
    pages = [page.relative_to(ROOT / "docs").with_suffix("").as_posix() for page in PAGES if page.parent != ROOT]
    assert [page for page in pages if page not in named] == ["index"]


def test_readme_is_short_and_starts_with_make_commands():
    lines = README.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 90
    assert all(command in "\n".join(lines[:12]) for command in ("make demo", "make test"))


def test_readme_shows_lines_that_the_demo_prints(offline, tmp_path, capsys):
    shown = next(block.text for block in blocks_of(README) if block.language == "text")
    assert main(["demo", "--data-dir", str(tmp_path)]) == 0
    assert set(shown.splitlines()) <= set(capsys.readouterr().out.splitlines())


@pytest.mark.parametrize("page", WITH_SNIPPETS, ids=name_of)
def test_page_snippets_run_as_printed(page, run_snippets):
    run_snippets(page)


def test_agents_page_snippets_remember_and_recall(run_snippets, names):
    run_snippets(ROOT / "docs" / "agents.md")
    state = {"messages": [("user", "Where do I live?")], "memory_context": ""}
    assert names["graph"].invoke(state, context={"user_id": "ann"})["messages"][-1].content == "In Oslo."
    items = names["store"].search(("users", "ann"), query="Where does Ann live?")
    assert "Oslo" in str([item.value for item in items])
    documents = names["retriever"].invoke("Where does Ann live?")
    assert {document.metadata["kind"] for document in documents} == {"fact", "episode"}
    assert names["memory"].facts.about("Ann", namespace="ann")


def test_retrieval_page_snippets_find_and_explain(run_snippets, names):
    run_snippets(ROOT / "docs" / "retrieval.md")
    assert "Oslo" in names["context"]
    assert names["context"].startswith("<memory>")
    assert names["results"].explanations


def test_retrieval_page_names_every_recipe_reranker_and_field():
    """It names every template too."""
    text = (ROOT / "docs" / "retrieval.md").read_text(encoding="utf-8")
    rerankers = [kind.__name__ for kind in recipe.RERANKERS]
    for name in (*recipe.RECIPES, *FIELDS, *TEMPLATES):
        assert f"`{name}`" in text
    for name in rerankers:
        assert f"| `{name}(" in text

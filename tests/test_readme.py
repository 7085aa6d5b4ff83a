"""The README tells the truth: its graphs are the code's, its links lead somewhere, its example runs."""

import importlib.util
import re
from pathlib import Path

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from kg_memory.models.filters import FIELDS
from kg_memory.retrieval import recipe
from kg_memory.retrieval import rerankers as rerankers_of_the_package
from kg_memory.retrieval.context.templates import TEMPLATES
from tests.bound import Verbs

ROOT = Path(__file__).parent.parent

PAGES = sorted(
    page
    for pattern in ("*.md", "docs/*.md", "benchmarks/*.md", "examples/*.md", "packages/*/*.md")
    for page in ROOT.glob(pattern)
)


@pytest.fixture
def draw():
    specification = importlib.util.spec_from_file_location("draw", ROOT / "docs" / "draw.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_the_graphs_in_the_readme_are_those_of_the_code(memory, draw):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    graphs = draw.drawn(memory)
    assert set(graphs) == {"ingestion", "retrieval", "communities"}
    assert all(mermaid in readme for mermaid in graphs.values())
    assert draw.redrawn(readme, graphs) == readme, "run `python docs/draw.py`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_to_a_file_leads_to_one(page):
    text = page.read_text(encoding="utf-8")
    targets = [target.split("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in target]
    missing = [target for target in targets if target and not (page.parent / target).exists()]
    assert missing == []


def test_the_table_names_every_step_of_the_graphs(memory):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    told = set(re.findall(r"^\| (\w+) \|", readme, re.MULTILINE))
    for graph in (memory.graphs.ingestion, memory.graphs.retrieval, memory.graphs.communities):
        steps = {name for name in graph.get_graph().nodes if not name.startswith("__")}
        assert steps <= told


def test_the_first_screen_names_the_two_commands():
    head = "\n".join((ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:30])
    assert "make demo" in head
    assert "make test" in head


def test_the_library_example_runs_as_it_is_printed(tmp_path, capsys, monkeypatch):
    example = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)[1]
    monkeypatch.setenv("KG_MEMORY_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("KG_MEMORY_IDLE_SECONDS", "0")
    monkeypatch.setenv("KG_MEMORY_MODEL", "offline")
    exec(compile(example, "README.md", "exec"), {"__name__": "readme"})
    printed = capsys.readouterr().out
    assert "Oslo" in printed
    assert "Bergen" in printed


def test_the_snippets_for_agents_run_as_they_are_printed(tmp_path, monkeypatch):
    monkeypatch.setenv("KG_MEMORY_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("KG_MEMORY_IDLE_SECONDS", "0")
    monkeypatch.setenv("KG_MEMORY_MODEL", "offline")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    section = readme[readme.index("## In your agent") : readme.index("## The picture")]
    told = {
        "model": GenericFakeChatModel(messages=iter([AIMessage("Noted."), AIMessage("In Oslo.")])),
    }
    for snippet in re.findall(r"```python\n(.*?)```", section, re.DOTALL):
        exec(compile(snippet, "README.md", "exec"), told)
    said = {"messages": [("user", "Where do I live?")], "memory_context": ""}
    assert told["graph"].invoke(said, context={"user_id": "ann"})["messages"][-1].content == "In Oslo."
    found = told["store"].search(("users", "ann"), query="Where does Ann live?")
    assert "Oslo" in str([each.value for each in found])
    assert {each.metadata["kind"] for each in told["retriever"].invoke("Where does Ann live?")} == {"fact", "episode"}
    assert told["memory"].facts.about("Ann", namespace="ann")
    told["memory"].close()


@pytest.mark.parametrize(
    ("page", "begin", "end"),
    [("README.md", "## Searching well", "## A store"), ("docs/retrieval.md", "# How", "## Explain")],
)
def test_the_snippets_for_searching_run_as_they_are_printed(page, begin, end, memory, namespace, capsys):
    memory.add("Ann lives in Oslo. Ann works at Acme.", speaker="Ann", thread="t1", namespace=namespace)
    text = (ROOT / page).read_text(encoding="utf-8")
    told = {"memory": Verbs(memory, namespace), "question": "Where does Ann live?"}
    snippets = re.findall(r"```python\n(.*?)```", text[text.index(begin) : text.index(end)], re.DOTALL)
    assert snippets
    for snippet in snippets:
        exec(compile(snippet, page, "exec"), told)
    assert "Oslo" in told["context"]
    assert told["context"].startswith("<memory>")
    assert told["found"].explanations
    assert capsys.readouterr().out


def test_the_page_about_searching_names_every_recipe_reranker_field_and_template():
    text = (ROOT / "docs" / "retrieval.md").read_text(encoding="utf-8")
    rerankers = {
        each.__name__
        for each in vars(rerankers_of_the_package).values()
        if isinstance(each, type) and "by" in getattr(each, "model_fields", {})
    }
    assert len(rerankers) == 8
    for name in (*recipe.RECIPES, *FIELDS, *TEMPLATES):
        assert f"`{name}`" in text
    for name in rerankers:
        assert f"| `{name}(" in text

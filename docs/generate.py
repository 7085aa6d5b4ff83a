"""Write the pages of the reference and of the cookbook from the code: what they say cannot be out of date.

They go to ``docs/reference`` and ``docs/cookbook``, which git ignores. ``docs/conf.py`` calls `write`.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import importlib
import inspect
import re
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from functools import cache
from pathlib import Path
from typing import Any

import kg_memory
from kg_memory import GraphMemory, Settings, adapters, errors
from kg_memory.cli.commands import make_parser
from kg_memory.contrib.server.app import create_app
from kg_memory.contrib.server.endpoints import PROBLEM_RESPONSES
from kg_memory.contrib.server.mcp.server import TOOLS
from kg_memory.retrieval import recipe

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "kg_memory"
GROUPS = ("facts entities episodes communities reviews predicates privacy reports usage data graphs").split()
Pages = dict[str, str]
PAGE = re.compile(r"`+docs/(\w+)\.md`+")
"""A page, as docstrings name it."""
PLACEHOLDER = re.compile(r"\{[\w.]+\}")
"""What varies in a message."""


def write(docs: Path) -> None:
    """Write all pages below *docs*; one that is as before keeps its time, so that Sphinx does not read it again."""
    pages = cookbook() | reference()
    check_troubleshooting((docs / "troubleshooting.md").read_text("utf-8"))
    for path, text in pages.items():
        page = docs / path
        page.parent.mkdir(exist_ok=True)
        if not page.exists() or page.read_text("utf-8") != text:
            page.write_text(text, "utf-8")
    for page in (*docs.glob("cookbook/*.md"), *docs.glob("reference/*.md")):
        if page.relative_to(docs).as_posix() not in pages:
            page.unlink()


# --- Cookbook


def cookbook() -> Pages:
    """Return a page for each example: what it says of itself, and the script."""
    pages, titles = {}, []
    for script in sorted((ROOT / "examples").glob("[0-9]*.py")):
        text = script.read_text("utf-8")
        about = inspect.cleandoc(ast.get_docstring(ast.parse(text)) or "").replace("``", "`")
        title = script.stem[3:].replace("_", " ").capitalize()
        pages[f"cookbook/{script.stem}.md"] = (
            f"# {title}\n\n{about}\n\nThe script is `examples/{script.name}`. The tests run it.\n\n"
            f"```python\n{text.partition(chr(34) * 3)[2].partition(chr(34) * 3)[2].strip()}\n```\n"
        )
        titles.append((script.stem, title, about.partition("\n\n")[0]))
    lines = [f"- [{title}]({name}.md): {about}" for name, title, about in titles]
    intro = "Short scripts that run on their own. The tests run each of them."
    index = f"# Cookbook\n\n{intro}\n\n" + "\n".join(lines) + _toctree(name for name, *_ in titles)
    return pages | {"cookbook/index.md": index}


# --- Reference


def reference() -> Pages:
    """Return the pages of the reference."""
    pages = {**_python(), "settings": _settings(), "cli": _cli(), "errors": _errors()}
    with warnings.catch_warnings(action="ignore"):  # of pydantic, about defaults that JSON cannot tell
        pages |= {"http": _http(), "mcp": _mcp()}
    intro = "These pages are generated from the code at each build."
    lines = [f"- [{text.partition(chr(10))[0][2:]}]({name}.md)" for name, text in pages.items()]
    index = f"# Reference\n\n{intro}\n\n" + "\n".join(lines) + _toctree(pages)
    return {f"reference/{name}.md": text for name, text in pages.items()} | {"reference/index.md": index}


def _python() -> Pages:
    """Return the pages of Python's names; autodoc fills them in."""
    memory = GraphMemory(Settings(model="offline"))
    values = [name for name in kg_memory.__all__ if name not in ("GraphMemory", "KGMemoryError", "Settings")]
    pages = {"memory": _autodoc("GraphMemory", ["kg_memory.GraphMemory"])}
    for group in GROUPS:
        kind = type(getattr(memory, group))
        pages[group] = _autodoc(f"memory.{group}", [f"{kind.__module__}.{kind.__qualname__}"])
    memory.close()
    pages["values"] = _autodoc("Values", [f"kg_memory.{name}" for name in values])
    pages["adapters"] = _autodoc("Adapters", [f"kg_memory.adapters.{name}" for name in adapters.__all__])
    for package in ("mem0", "langmem"):
        module = importlib.import_module(f"kg_memory.contrib.{package}")
        names = [f"{module.__name__}.{name}" for name in module.__all__]
        pages[f"{package}_names"] = _autodoc(f"kg_memory.contrib.{package}", names)
    names = [f"{kind.__module__}.{kind.__name__}" for kind in recipe.RERANKERS]
    return pages | {"rerankers": _autodoc("Rerankers", names)}


def _autodoc(title: str, names: list[str]) -> str:
    blocks = []
    for path in names:
        module, _, name = path.rpartition(".")
        value = getattr(importlib.import_module(module), name)
        directive = "autoclass" if inspect.isclass(value) else "autofunction" if callable(value) else "autodata"
        blocks.append(f"## {name}\n\n```{{eval-rst}}\n.. {directive}:: {path}\n```\n")
    return f"# {title}\n\n" + "\n".join(blocks)


def document(page: str) -> str:
    """Return *page* with the docstrings in place of the directives of autodoc, and without tables of contents."""
    page = re.sub(r"```\{toctree\}.*?```\n", "", page, flags=re.DOTALL)
    return re.sub(r"```\{eval-rst\}\n\.\. auto\w+:: (\S+)\n```\n", lambda match: _document(match[1]), page)


def _document(path: str) -> str:
    module, _, name = path.rpartition(".")
    value = getattr(importlib.import_module(module), name)
    parts = [_described(name, value)]
    for member, method in vars(value).items() if inspect.isclass(value) else ():
        twin = member.startswith("a") and hasattr(value, member[1:])
        if not member.startswith("_") and not twin and inspect.getdoc(method) and not isinstance(method, str | type):
            parts.append(f"### {member}\n\n{_described(member, getattr(value, member))}")
    return "\n\n".join(parts) + "\n"


def _described(name: str, value: Any) -> str:
    about = PAGE.sub(r"[\1](../\1.md)", (value.__doc__ and inspect.cleandoc(value.__doc__)) or "").replace("``", "`")
    try:
        return f"```python\n{name}{inspect.signature(value)}\n```\n\n{about}"
    except (TypeError, ValueError):  # a property, or a type without a signature
        return about


def _settings() -> str:
    from sphinx.pycode import ModuleAnalyzer  # noqa: PLC0415 - the tests use the rest of this file without Sphinx

    about = ModuleAnalyzer.for_module("kg_memory.settings").find_attr_docs()
    rows = []
    for setting in fields(Settings):
        default = setting.default if setting.default is not MISSING else "..."
        shown = "" if default is None else "many" if len(repr(default)) > 60 else f"`{default!r}`"
        meaning = _line(" ".join(about.get(("Settings", setting.name), [])))
        rows.append(f"| `{setting.name}` | `{str(setting.type).replace('|', chr(92) + '|')}` | {shown} | {meaning} |")
    return (
        '# Settings\n\nGive them as `GraphMemory.open(settings=Settings.from_env().with_(plan="economy"))`, or as '
        "environment variables: `plan` is `KG_MEMORY_PLAN`.\n\n| Setting | Type | Default | Meaning |\n"
        "| --- | --- | --- | --- |\n" + "\n".join(rows) + "\n"
    )


def _cli() -> str:
    top = make_parser()
    [commands] = [each for each in top._actions if isinstance(each, argparse._SubParsersAction)]  # noqa: SLF001
    blocks = [f"## {name}\n\n```text\n{made.format_help().strip()}\n```\n" for name, made in commands.choices.items()]
    return f"# Command line\n\n```text\n{top.format_help().strip()}\n```\n\n" + "\n".join(blocks)


@cache
def messages() -> Mapping[str, list[str]]:
    """Return the messages that the package raises by the name of their class; what varies is in braces."""
    names = {name for name, kind in vars(errors).items() if isinstance(kind, type)}
    found: dict[str, set[str]] = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        for node in ast.walk(tree):
            match node:
                case ast.Call(func=ast.Name(id=name), args=[argument, *_]) if name in names:
                    found[name].update(" ".join(text.split()) for text in _texts(argument, path, tree))
                case _:
                    pass
    return {name: sorted(texts, key=str.lower) for name, texts in sorted(found.items())}


def _texts(argument: ast.expr, path: Path, tree: ast.Module) -> Iterator[str]:
    """Yield the texts that the *argument* of an error in the file at *path* may be."""
    match argument:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=parts):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else _placeholder(part) for part in parts)
        case ast.Name(id=name) if name.isupper():
            yield getattr(importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts)), name)
        case ast.Call(func=ast.Name(id=name)):
            for function in tree.body:
                if isinstance(function, ast.FunctionDef) and function.name == name:
                    for node in ast.walk(function):
                        if isinstance(node, ast.Return) and node.value is not None:
                            yield from _texts(node.value, path, tree)
        case _:
            pass


def _placeholder(part: ast.FormattedValue) -> str:
    """Return a name for what a message has at that place."""
    for node in ast.walk(part.value):
        match node:
            case ast.Name(id="WAYS_OUT"):  # the ways to get a database: long, and on another page
                return ""
            case ast.Subscript(slice=ast.Constant(value=str(name))):
                return f"{{{name}}}"
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                return f"{{{name}}}"
            case ast.Name(id=name) if name not in {"self", *vars(builtins)}:
                return f"{{{name.lower()}}}"
            case _:
                pass
    return "{...}"


def check_troubleshooting(page: str) -> None:
    """Raise `ValueError` for a heading of *page* that is not the beginning of a message of the package."""
    texts = [PLACEHOLDER.sub("{}", text) for texts in messages().values() for text in texts]
    for heading in re.findall(r"^### `(.*)`$", page, re.MULTILINE):
        if not any(text.startswith(PLACEHOLDER.sub("{}", heading).removesuffix(" ...")) for text in texts):
            raise ValueError(
                f"no message begins as docs/troubleshooting.md says: {heading}; see docs/reference/errors.md"
            )


def _errors() -> str:
    raised = messages()
    tree = inspect.cleandoc(errors.__doc__ or "").partition("    ")[2].rpartition("\n\n")[0]
    blocks = [
        "# Errors\n\nEach message says what to do. This page lists them, by class; what varies is in braces.\n",
        "[Troubleshooting](../troubleshooting.md) explains the common ones.\n",
        f"```text\n{tree}\n```\n",
    ]
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and kind.__module__ == errors.__name__:
            texts = "\n".join(raised.get(name, []))
            about = _prose(inspect.getdoc(kind) or "")
            blocks.append(f"## {name}\n\n{about}\n" + (f"\n```text\n{texts}\n```\n" if texts else ""))
    return "\n".join(blocks)


def _http() -> str:
    memory = GraphMemory(Settings(model="offline"))
    described = create_app(memory).openapi()
    memory.close()
    by_tag: dict[str, list[str]] = defaultdict(list)
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            by_tag[operation.get("tags", ["server"])[0]].append(_operation(method, path, operation, described))
    problems = "\n".join(
        f"| {status} | {about['description']} |" for status, about in sorted(PROBLEM_RESPONSES.items())
    )
    blocks = [f"## {tag}\n\n" + "\n".join(operations) for tag, operations in by_tag.items()]
    return (
        f"# HTTP API\n\n{described['info']['description']}\n"
        "`GET /openapi.json` of a server has all of this for programs. [HTTP server](../server.md) is the guide.\n\n"
        "## Problems\n\n| Status | Meaning |\n| --- | --- |\n"
        f"{problems}\n\n" + "\n".join(blocks)
    )


def _operation(method: str, path: str, operation: Any, described: Any) -> str:
    parts = [
        f"### {method.upper()} `{path}`",
        _prose(operation.get("summary", "")),
        _prose(operation.get("description", "")),
    ]
    if not parts[1].endswith("."):  # no docstring's first line, but FastAPI's guess
        del parts[1]
    rows = [
        f"| `{each['name']}` | {each['in']} | {_type(each['schema'])} | {_line(each.get('description', ''))} |"
        for each in operation.get("parameters", [])
        if each["name"] != "namespace" or each["in"] != "path"
    ]
    for content in operation.get("requestBody", {}).get("content", {}).values():
        name = content["schema"].get("$ref", "").rpartition("/")[2]
        for field, schema in described["components"]["schemas"].get(name, {}).get("properties", {}).items():
            rows.append(f"| `{field}` | body | {_type(schema)} | {_line(schema.get('description', ''))} |")
    if rows:
        parts.append("| Name | In | Type | Meaning |\n| --- | --- | --- | --- |\n" + "\n".join(rows))
    answers = [
        f"{status}: {_type(next(iter(answer['content'].values()), {}).get('schema', {}))}"
        for status, answer in operation["responses"].items()
        if status.startswith("2") and answer.get("content")
    ]
    return "\n\n".join(filter(None, [*parts, "Answers " + ", ".join(answers) + "." if answers else ""])) + "\n"


def _type(schema: Any) -> str:
    if "$ref" in schema:
        return f"`{schema['$ref'].rpartition('/')[2]}`"
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{each}`" for each in schema.get("enum", [schema.get("const")]))
    if kinds := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(dict.fromkeys(_type(each) for each in kinds if each.get("type") != "null"))
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return str(schema.get("format") or schema.get("type") or "any")


def _mcp() -> str:
    blocks = ["# MCP tools\n\nWhat `kg-memory mcp` offers to an agent. [MCP](../mcp.md) is the guide.\n"]
    for tool in TOOLS.values():
        listed = tool.describe()
        needed = listed.input_schema.get("required", [])
        rows = [
            f"| `{name}` | {_type(schema)} | {'yes' * (name in needed)} | {_line(schema.get('description', ''))} |"
            for name, schema in listed.input_schema.get("properties", {}).items()
        ]
        table = "\n| Argument | Type | Required | Meaning |\n| --- | --- | --- | --- |\n" + "\n".join(rows) + "\n"
        blocks.append(f"## {tool.name}\n\n{_prose(listed.description or '')}\n" + (table if rows else ""))
    return "\n".join(blocks) + "\n"


# --- Text


def _toctree(names: Any) -> str:
    return "\n\n```{toctree}\n:hidden:\n\n" + "\n".join(names) + "\n```\n"


def _line(text: str) -> str:
    """Return *text*, from a docstring, for the cell of a table."""
    return " ".join(_prose(text).split()).replace("|", "\\|")


def _prose(text: str) -> str:
    """Return *text*, from a docstring, as Markdown."""
    return PAGE.sub(r"[\1](../\1.md)", text).replace("``", "`").replace("<", "&lt;").replace("{", "\\{")

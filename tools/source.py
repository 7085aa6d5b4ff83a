"""A file of the package, parsed, and what the table of `tools.house` counts in it."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

BOUNDS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("house.toml").read_text("utf-8"))
WORDS: dict[str, frozenset[str]] = {row: frozenset(words.split()) for row, words in BOUNDS["words"].items()}
PROMPTS = tuple(BOUNDS["prompts"])
MAY_BE_SHORT = tuple(BOUNDS["may_be_short"])
IMPOSED = frozenset(BOUNDS["imposed"])
TEXTS = {"skip": r"# fmt: skip", "untyped": r"\b(?:[Dd]ict|(?:Mutable)?Mapping)\[str, (?:typing\.)?Any\]"}
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
COMPREHENSION = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


class Source:
    """A file: its nodes, and its code lines, which have a token that is neither a comment nor in a docstring."""

    def __init__(self, path: Path, root: Path) -> None:
        self.name, self.text = path.relative_to(root).as_posix(), path.read_text("utf-8")
        self.nodes: list[Any] = list(ast.walk(ast.parse(self.text)))
        self.functions = [node for node in self.nodes if isinstance(node, FUNCTION)]
        self.docs = [node for node in self.nodes if _is_literal(node) and isinstance(node.value.value, str)]
        others = {*self.docs, *(node for node in self.nodes if isinstance(node, (*FUNCTION, ast.ClassDef)))}
        self.statements = [node for node in self.nodes if isinstance(node, ast.stmt) and node not in others]
        self.bindings = list(self._bindings())
        self.pairs = list(self._pairs())
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        spans = [range(token.start[0], token.end[0] + 1) for token in tokens if token.type not in LAYOUT]
        self.code = set(chain(*spans)).difference(*map(lines, self.docs))

    def offences(self) -> Iterator[tuple[str, int, str]]:
        """Yield the row, the line and the message of all that the table counts in this file."""
        yield from self._in_lines()
        yield from self._in_functions()
        for number, name in self.bindings:
            if name in WORDS["identifiers"]:
                yield "identifier", number, f"{name!r} is a banned identifier"
        for doc in self.docs:
            opener = re.search(r"\w+", doc.value.value)
            if opener and opener[0].lower() in WORDS["openers"] and self.name not in PROMPTS:
                yield "docstring", doc.lineno, f"the docstring begins with {opener[0]!r}"
        owners = {node: statement for statement in self.statements for node in ast.walk(statement)}  # inner ones last
        counts = Counter(owners[node] for node in self.nodes if isinstance(node, COMPREHENSION) and node in owners)
        for node, count in counts.items():
            if count > 1:
                yield "comprehensions", node.lineno, f"{count} comprehensions in one statement"

    def _in_lines(self) -> Iterator[tuple[str, int, str]]:
        length, code = len(self.text.splitlines()), len(self.code)
        if code < 40 and not self.name.startswith(MAY_BE_SHORT) and not self.name.endswith("__init__.py"):
            yield "short", 1, f"the file has {code} code lines"
        if length > 400:
            yield "long", length, f"the file has {length} lines"
        for number, line in enumerate(self.text.splitlines(), 1):
            for row, pattern in TEXTS.items():
                yield from ((row, number, match[0]) for match in re.finditer(pattern, line))

    def _in_functions(self) -> Iterator[tuple[str, int, str]]:
        for function in self.functions:
            if len(lines(function)) > 60:
                yield "function", function.lineno, f"{function.name} has {len(lines(function))} lines"
            if _is_participle(function):
                yield "participle", function.lineno, f"{function.name} is named by a participle"
        for plain, twin in self.pairs:
            yield "pair", plain.lineno, f"{plain.name} and {twin.name} are both written by hand"

    def _bindings(self) -> Iterator[tuple[int, str]]:
        """Yield the line and the name of each variable that is bound, but for `other` in dunder methods."""
        dunders = [function.args.args for function in self.functions if function.name.startswith("__")]
        exempt = [argument for argument in chain(*dunders) if argument.arg == "other"]
        for node in self.nodes:
            match node:
                case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) if node not in exempt:
                    yield node.lineno, name
                case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                    yield node.lineno, name

    def _pairs(self) -> Iterator[tuple[Any, Any]]:
        """Yield each function of a module or class with its async twin, where both have a body and none is imposed."""
        for scope in self.nodes:
            if isinstance(scope, ast.Module | ast.ClassDef):
                functions = [node for node in scope.body if isinstance(node, FUNCTION)]
                bodies = {node.name: node for node in functions if not _is_literal(node.body[-1])}
                twins = {name: re.sub(r"^_*", r"\g<0>a", name) for name in sorted(bodies.keys() - IMPOSED)}
                yield from ((bodies[name], bodies[twin]) for name, twin in twins.items() if twin in bodies)


def lines(node: Any) -> range:
    """Return the numbers of the lines of *node*."""
    return range(node.lineno, node.end_lineno + 1)


def _is_literal(node: ast.AST) -> bool:
    """Return whether *node* is a statement of a literal, such as a docstring or an ellipsis."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_participle(function: Any) -> bool:
    """Return whether a function, which is no property, is named by a participle."""
    word = function.name.strip("_").partition("_")[0]
    is_property = any("property" in ast.unparse(decorator) for decorator in function.decorator_list)
    if is_property or word in WORDS["no_participles"]:
        return False
    return word in WORDS["participles"] or word.endswith(("ed", "ing"))

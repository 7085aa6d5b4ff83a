"""The pages of the documentation: their code blocks, each with the comment above it, and the scripts beside them."""

import importlib.util
import re
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
PATTERNS = ("*.md", "docs/*.md", "docs/start/*.md", "docs/concepts/*.md", "docs/zh/*.md")
PAGES = sorted(page for pattern in PATTERNS for page in ROOT.glob(pattern))
_BLOCK = re.compile(
    r"^(?:<!-- (not run|with a key|output)(?:: ([^\n]*))? -->\n)?```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE
)


class Block(NamedTuple):
    """A block of code. Its *mark* is ``not run`` for a *reason*, ``with a key``, ``output`` of the one before, or None."""

    mark: str | None
    reason: str | None
    language: str
    text: str


def blocks_of(page: Path) -> list[Block]:
    found = _BLOCK.findall(page.read_text("utf-8"))
    return [Block(mark or None, reason or None, *rest) for mark, reason, *rest in found]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def load(name: str) -> Any:
    """Return a script of the documentation as a module."""
    specification = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module

"""The code blocks of the pages of the documentation, each with the comment above it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

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
    return [
        Block(mark or None, reason or None, *rest) for mark, reason, *rest in _BLOCK.findall(page.read_text("utf-8"))
    ]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))

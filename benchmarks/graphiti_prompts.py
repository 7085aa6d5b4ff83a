"""Parse Graphiti's prompts for scripted models; Graphiti itself is not needed."""

from __future__ import annotations

import re


def block(asked: str, tag: str) -> str:
    """Return the text within <*tag*> in the prompt *asked*. Errors: `ValueError` if there is none."""
    found = re.search(rf"<{tag}>\s*(.*?)\s*</{tag}>", asked, re.DOTALL)
    if found is None:
        message = f"the prompt has no <{tag}>: adapt the script to this version of Graphiti"
        raise ValueError(message)
    return found[1]

"""What scripted models read of Graphiti's prompts; needs no Graphiti."""

from __future__ import annotations

import re


def block(asked: str, tag: str) -> str:
    """Return what stands in the prompt *asked* within *tag*.

    Errors: `ValueError` where it is not there, as in another version.
    """
    found = re.search(rf"<{tag}>\s*(.*?)\s*</{tag}>", asked, re.DOTALL)
    if found is None:
        message = f"the prompt has no <{tag}>: adapt the script to this version of Graphiti"
        raise ValueError(message)
    return found[1]

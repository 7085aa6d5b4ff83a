"""How many tokens a text has, as far as its characters tell."""

from __future__ import annotations

import re
from math import ceil

_DENSE = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u9fff\uac00-\ud7a3\uf900-\uffef\U00010000-\U0010ffff]"
)
_WIDE = re.compile("[^\x00-\x7f]")


def estimate(text: str) -> int:
    """Return about how many tokens *text* has, for no tokenizer in particular; rather too many than too few."""
    if not text:
        return 0
    if text.isascii():
        return ceil(len(text) / 3.5) + 1
    dense = len(_DENSE.findall(text))
    wide = len(_WIDE.findall(text)) - dense
    return ceil((len(text) - dense - wide) / 3.5 + wide / 2 + dense * 1.2) + 1

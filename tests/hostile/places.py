"""Checks that each text of a context is in its place: no forged line, no closed tag, no text outside."""

import json
import re
from xml.etree import ElementTree as ET

from kg_memory.models.results import Context
from kg_memory.retrieval.context.templates import TEMPLATES
from kg_memory.text.context_markers import TAGS

_FIELDS = {"fact", "when", "confidence", "sources", "name", "type", "summary", "said", "speaker", "remarks"}
_ZEPH_LINE = re.compile(r"- .* \(confidence: \d\.\d\d(, (not reviewed|disputed|not confirmed by its words))?\)")
_INVISIBLE = re.compile(
    "[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f\x00-\x09\x0b-\x1f\x7f-\x9f]"
)


def all_in_place(name: str, context: Context) -> None:
    """Check a context in the template *name*."""
    text = str(context)
    text.encode()
    assert not _INVISIBLE.search(text)
    assert len(text.splitlines()) == text.count("\n") + bool(text)
    if not text:
        return
    frame = TEMPLATES[name]
    told = [kind for kind in frame.sections if any(line.kind == kind for line in context.lines)]
    assert all("\n" not in line.text for line in context.lines)
    match name:
        case "plain" | "zep":
            assert text.count("<") == text.count(">") == 2 * len(told)
            for kind in told:
                section = text.partition(f"<{TAGS[kind]}>\n")[2].partition(f"\n</{TAGS[kind]}>")[0]
                lines = [line for line in context.lines if line.kind == kind]
                days = {line.heading for line in lines}
                assert [text for text in section.split("\n") if text not in days] == [line.text for line in lines]
            assert name == "zep" or text.count("\n- ") == len(context.lines)
        case "xml":
            memory = ET.fromstring(text)
            assert [each.tag for each in memory] == told
            assert [len(each) for each in memory] == [sum(line.kind == kind for line in context.lines) for kind in told]
            assert not [part for each in memory for one in each for part in one]
        case "json":
            memory = json.loads(text)
            assert list(memory) == told
            assert sum(map(len, memory.values())) == len(context.lines)
            assert {key for each in memory.values() for one in each for key in one} <= _FIELDS
            assert not set("<>") & set(text)
        case "zeph":
            first, *lines = text.split("\n")
            assert (first, lines) == ("[knowledge graph]", [line.text for line in context.lines])
            assert all(_ZEPH_LINE.fullmatch(line) for line in lines)
            assert not set("<>") & set(text)

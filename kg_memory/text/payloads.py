"""Find payloads in a text: data that is not language, such as files, certificates and minified code.

A payload is a data URL, a PEM block, a token (JWT), a long run of base64 or hex digits, or a long stretch of minified
code or other text without spaces. URLs, UUIDs and hashes are not payloads. Payloads are stored; everything that reads a
text gets a placeholder with type and size instead: ``[data: image/png, 1.4 kB]``. Every search here takes linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby

Payload = tuple[int, int, str]
"""The start and end of a payload in its text, and its placeholder."""
LONGEST_HASH = 128
"""The hex digits of the longest usual hash, SHA-512; longer runs are payloads."""
LONGEST_URL = 2000
SHORTEST_STRETCH = 1000
"""The least number of characters of a payload of minified code, or of other text with few spaces."""
_URL_KEPT = 200
# The least share of changes between upper case, lower case and digits in base64; words and paths have fewer.
_MIXED = 0.5
_UNITS = (("MB", 999_500), ("kB", 1000), ("B", 1))
# The most consecutive words without brackets within minified code: ``return new Error``.
_GAP = 3
# The least average length of a word in minified code; the average in prose is 6.
_WORD_LENGTH = 12
# From this character on, scripts put no spaces between words.
_SENTENCES_FROM = "\u0e00"

_LINE = r"(?:\\[rn]|\s){1,8}"
_CANDIDATE = re.compile(
    rf"(?P<data>\bdata:(?P<type>[\w.+-]{{1,64}}/[\w.+-]{{1,64}})?(?:;[\w.=+-]{{1,64}}){{0,4}},[\w+/=%.~-]{{24,}}"
    rf"(?:{_LINE}[\w+/]{{60,}}={{0,2}}(?:{_LINE}[\w+/]{{4,}}={{0,2}}(?![\w+/]))?)*)"
    r"|-----BEGIN (?P<pem>[A-Z0-9 ]{1,40})-----[^-\"]*(?:-(?!----)[^-\"]*)*-----END (?P=pem)-----"
    r"|(?P<url>\b[a-z][a-z0-9+.]{1,15}://[^\s\"'<>\\^`{|}]+)"
    r"|(?P<jwt>\beyJ[\w-]{10,}(?:\.[\w-]{4,}){2,4})"
    rf"|(?:(?<![\w+/\\-])|(?<=\\[nrt]))(?P<run>[\w+/-]{{40,}}={{0,2}}(?:{_LINE}[\w+/-]{{40,}}={{0,2}})*"
    rf"(?:{_LINE}(?=[\w+/]{{0,75}}=|[a-zA-Z+/]{{0,75}}\d[\w+/]{{0,75}}(?:\s|\\|\Z))[\w+/]{{2,76}}={{0,2}})?)"
    r"|(?P<pairs>(?:(?:\\x|\b0x)[\da-fA-F]{2}(?:,? )?){64,}|\b(?:[\da-fA-F]{2}[ :]){95,}[\da-fA-F]{2}\b)",
    re.ASCII,
)
_TOKEN = re.compile(r"\S+")
_HEX = re.compile(r"[\da-fA-F]+", re.ASCII)
_SPACE = re.compile(r"(?:\\[rn]|\\x|\b0x|[\s:,])+")
_STRUCTURE = re.compile(r"[{}()\[\];=<>&|]")
_CLASSES = str.maketrans({**dict.fromkeys(map(chr, range(48, 58)), "0"), **dict.fromkeys(map(chr, range(65, 91)), "A")})
_CLASSES |= dict.fromkeys(range(97, 123), "a")
_CODE = {
    "minified JSON": r"^[\[{]+\"[^\"]*\":",
    "minified JavaScript": r"\bfunction\b|=>|\b(?:var|let|const) \w+=",
    "minified CSS": r"[\w)\]]\{[\w-]+:[^{}]*\}",
    "minified code": r"^(?:[^{}();<>]{0,99}[{}();<>]){5}",
}
# Matches a line if it has a token that `_is_dense` accepts, or a link.
_ANY_DENSE = re.compile(r"[{}()\[\];=<>&|]\S*?[{}()\[\];=<>&|]|(?<!\S)\S{61}")
_LONG_LINE = re.compile(rf"[^\n]{{{SHORTEST_STRETCH},}}")


def hide_payloads(text: str, kind: str | None = None) -> str:
    """Return *text* with a placeholder for each piece of data, such as a file: "[data: image/png, 1.4 kB]"."""
    parts, offset = list[str](), 0
    for start, end, placeholder in find_payloads(text, kind):
        parts += text[offset:start], placeholder
        offset = end
    return "".join((*parts, text[offset:])) if offset else text


def original_offset(text: str, kind: str | None, offset: int, *, is_end: bool = False) -> int:
    """Convert *offset*, an index in ``hide_payloads(text, kind)``, to the index of the same character in *text*."""
    moved = 0
    for start, end, placeholder in find_payloads(text, kind):
        if offset <= start - moved:
            break
        if offset < start - moved + len(placeholder):
            return end if is_end else start
        moved += end - start - len(placeholder)
    return offset + moved


@lru_cache(maxsize=8)
def find_payloads(text: str, kind: str | None = None) -> tuple[Payload, ...]:
    """Return where the payloads in *text* are, such as files in base64, and the placeholders to show instead."""
    found, offset = list[Payload](), 0
    for start, end, name in () if kind == "fact" else (*_find_runs(text), (len(text), len(text), "")):
        found += _find_stretches(text, offset, start) if kind != "json" else ()
        found += [(start, end, _placeholder(name, end - start))] if name else ()
        offset = end
    return tuple(found)


def _placeholder(kind: str, size: int) -> str:
    unit, number = next((unit, size / factor) for unit, factor in _UNITS if size >= factor)
    return f"[data: {kind}, {f'{number:.1f}'.removesuffix('.0') if number < 10 else f'{number:.0f}'} {unit}]"


def _find_runs(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield ``(start, end, type)`` of data in *text*: data URLs, PEM blocks, JWTs, long URLs, long base64 or hex."""
    for match in _CANDIDATE.finditer(text):
        start, end = match.span()
        match match.lastgroup:
            case "data" | "pem":
                yield start, end, (match["pem"] or match["type"] or "text/plain").lower()
            case "jwt":
                yield start, end, "JWT"
            case "url" if end - start > LONGEST_URL:
                yield start + _URL_KEPT, end, "URL"
            case "run" | "pairs" if kind := _kind_of_run(match[0]):
                yield start, end, kind


def _kind_of_run(run: str) -> str:
    """Return "base64" or "hex" for *run*, a long run of such characters; "" if it seems to be words or a hash.

    Line breaks in it are ignored.
    """
    plain, lines = _SPACE.sub("", run), run.splitlines()
    if len(plain) <= LONGEST_HASH:
        return ""
    if _HEX.fullmatch(plain):
        return "" if plain.isdecimal() or 1 < len(lines) <= 8 else "hex"
    classes = plain[:10_000].translate(_CLASSES)
    changes = sum(1 for _ in groupby(classes)) / len(classes)
    return "base64" if changes >= _MIXED and {"A", "a", "0"} <= set(classes) else ""


def _find_stretches(text: str, start: int, end: int) -> Iterator[Payload]:
    """Yield ``(start, end, placeholder)`` of minified code in ``text[start:end]``: long words with many brackets."""
    for line in _LONG_LINE.finditer(text, start, end):
        if not _ANY_DENSE.search(text, *line.span()):
            continue
        first = last = gap = words = 0
        for token in _TOKEN.finditer(text, *line.span()):
            if _is_dense(token[0]):
                first, words = (first, words + gap + 1) if words else (token.start(), 1)
                last, gap = token.end(), 0
            elif words and not gap and token[0].endswith(("}", ";")):
                last, words = token.end(), words + 1
            elif words:
                gap += 1
                if gap > _GAP or "://" in token[0]:
                    yield from _stretch(text, first, last, words)
                    words = gap = 0
        yield from _stretch(text, first, last, words)


def _is_dense(token: str) -> bool:
    is_link = "://" in token and len(token) < LONGEST_URL // 4
    return not is_link and (len(token) > 60 or len(_STRUCTURE.findall(token)) > 1)


def _stretch(text: str, start: int, end: int, words: int) -> Iterator[Payload]:
    size = end - start
    if not words or size < SHORTEST_STRETCH or size < words * _WORD_LENGTH:
        return
    stretch = text[start:end]
    if sum(character < _SENTENCES_FROM for character in stretch) >= 0.8 * size:
        kind = next((kind for kind, pattern in _CODE.items() if re.search(pattern, stretch)), "text")
        yield start, end, _placeholder(kind, size)

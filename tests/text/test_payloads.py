"""Payloads in texts are found and replaced by placeholders; offsets are mapped back to the original."""

import base64
import hashlib
import json
import time
import uuid
from random import Random

import pytest

from kg_memory.text.payloads import find_payloads, hide_payloads, original_offset

RANDOM = Random(7)
BYTES = RANDOM.randbytes(30_000)
BASE64 = base64.b64encode(BYTES).decode()
LINES = "\n".join(BASE64[start : start + 64] for start in range(0, 1408, 64))
CERTIFICATE = f"-----BEGIN CERTIFICATE-----\n{LINES}\n-----END CERTIFICATE-----"
JWT = f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NSJ9.{BASE64[:43].replace('+', '-').replace('/', '_')}"
SCRIPT = "(()=>{" + "".join(
    f"function f{n}(e,t){{return e.x{n}&&t[{n}]||void 0===e?null:new F(e)}}var a{n}=1;" for n in range(40)
)
STYLE = "".join(f".a{n}>.b{{color:#fff{n % 10}00;margin:0 auto}}" for n in range(40))
RECORDS = json.dumps([{"id": n, "name": "Ann"} for n in range(60)], separators=(",", ":"))


@pytest.mark.parametrize(
    ("payload", "placeholder"),
    [
        (f"data:image/png;base64,{BASE64[:1400]}", "[data: image/png, 1.4 kB]"),
        (f"data:text/plain;charset=utf-8;base64,{BASE64[:80]}", "[data: text/plain, 117 B]"),
        (CERTIFICATE, "[data: certificate, 1.5 kB]"),
        (CERTIFICATE.replace("CERTIFICATE", "PUBLIC KEY").replace("\n", "\\n"), "[data: public key, 1.5 kB]"),
        (JWT, "[data: JWT, 85 B]"),
        (BASE64[:200], "[data: base64, 200 B]"),
        (LINES, "[data: base64, 1.4 kB]"),
        (BASE64[:20_000], "[data: base64, 20 kB]"),
        (BASE64 * 25, "[data: base64, 1 MB]"),
        (BYTES.hex()[:300], "[data: hex, 300 B]"),
        (BYTES[:200].hex(" "), "[data: hex, 599 B]"),
        (SCRIPT, "[data: minified JavaScript, 2.9 kB]"),
        (STYLE, "[data: minified CSS, 1.4 kB]"),
        (RECORDS, "[data: minified JSON, 1.4 kB]"),
        ("x1" * 600, "[data: text, 1.2 kB]"),
    ],
)
def test_hide_payloads_inserts_a_placeholder(payload, placeholder):
    hidden = hide_payloads(f"I live in Oslo. {payload} I like tea.")
    assert hidden == f"I live in Oslo. {placeholder} I like tea."
    assert hide_payloads(hidden) == hidden


@pytest.mark.parametrize(
    "text",
    [
        f"https://example.com/{'a-long-title-of-an-article-' * 9}?session={BASE64[:90]}&utm_source=mail",
        "[Guide](https://example.com/guide), " * 40,
        f"order {uuid.UUID(bytes=BYTES[:16])} of +47 912 34 567",
        f"fixed in {hashlib.sha1(BYTES).hexdigest()}, image sha512:{hashlib.sha512(BYTES).hexdigest()}",
        "\n".join(hashlib.sha256(bytes([n])).hexdigest() for n in range(4)),
        f"integrity sha512-{base64.b64encode(hashlib.sha512(BYTES).digest()).decode()}",
        "Rindfleischetikettierungsüberwachungsaufgabenübertragungsgesetz und Donaudampfschifffahrt",
        f"ssh-ed25519 {BASE64[:68]} ann@host",
        "/home/ann/projects/2024/my-long-project/src/components/forms/inputs/text-input-with-label/and-message/index/v2/old",
        "def total(rows):\n    return {row['id']: sum(row[1:]) for row in rows if row}\n" * 20,
        " ".join(f"{n:02d}" for n in range(100)) * 2,
        "我上周搬到了奥斯陆，现在在一家公司（工作）" * 60,
        "n" + "o" * 200,
        "🐙" * 600,
    ],
)
def test_hide_payloads_leaves_words_links_hashes_and_code(text):
    assert hide_payloads(text) == text


def test_hide_payloads_returns_valid_json_with_all_fields():
    record = json.dumps(
        {"name": "Ann", "photo": f"data:image/png;base64,{BASE64[:900]}", "pem": CERTIFICATE, "n": [1] * 400}
    )
    read = json.loads(hide_payloads(record, "json"))
    assert read == {"name": "Ann", "photo": "[data: image/png, 922 B]", "pem": "[data: certificate, 1.5 kB]", "n": [1] * 400}  # fmt: skip
    assert hide_payloads(RECORDS, "json") == RECORDS
    assert hide_payloads(record, "fact") == record


def test_original_offset_maps_offsets_back():
    content = f"Ann lives in Oslo {CERTIFICATE} and Bob in Rome {BASE64[:300]} since May"
    read = hide_payloads(content)
    for words in ("Ann lives in Oslo", "and Bob in Rome", "since May"):
        start = read.index(words)
        end = start + len(words)
        assert (
            content[original_offset(content, None, start) : original_offset(content, None, end, is_end=True)] == words
        )
    inside = read.index("certificate")
    start, end = (original_offset(content, None, inside, is_end=is_end) for is_end in (False, True))
    assert content[start:end] == CERTIFICATE


@pytest.mark.parametrize(
    "unit", ["a", '"', "-----BEGIN A-----", "eyJ", "http://", "data:", "{", "ab ", "7 ", "a@", "\n", "é", "🐙", "A1/"]
)
def test_find_payloads_takes_linear_time(unit):
    began = time.process_time()
    find_payloads(unit * (1_000_000 // len(unit)))
    assert time.process_time() - began < 5  # a quadratic search takes hours

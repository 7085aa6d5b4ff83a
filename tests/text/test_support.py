"""The support of a fact by its words: general properties, and examples of each check."""

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_memory.contrib.support.check import measure_support
from kg_memory.contrib.support.passage import Claim, Passage, find_span, locate

AT = datetime(2024, 5, 14, 10, tzinfo=UTC)
WEAK = 0.5


def score(sentence, quote, content=None, names=("Ann",), previous=(), predicate="RELATES_TO", **more):
    """Return the support score of a fact that the model read in a message by Ann."""
    before = [(text, AT) for text in previous]
    claim = Claim(sentence, predicate, [[name] for name in names], quote, **more)
    return measure_support(claim, Passage(content or quote, AT, "Ann", before)).score


@given(st.text(min_size=1, max_size=300).filter(str.strip))
def test_sentence_equal_to_its_quote_is_always_supported(text):
    support = measure_support(Claim(text, "SAYS", [], text), Passage(f"Well. {text} So!", AT))
    assert support.score >= WEAK
    assert support == measure_support(Claim(text, "SAYS", [], text), Passage(f"Well. {text} So!", AT))


@pytest.mark.parametrize(
    "text",
    [
        "Ann wohnt nicht mehr in Köln, seit sie 2019 nach Oslo zog.",
        "Ana vive en Sevilla y no come carne desde marzo.",
        "アンは2019年に大阪へ引っ越しました。",
        "안나는 서울에 살아요.",
        "Анна не живёт в Омске с 5 мая.",
        "آن لا تعيش في القاهرة",
        "安娜不再住在奥斯陆了,2023年3月搬到了卑尔根。",
        "Ann no longer lives in Oslo; she moved to Bergen on 3 March 2023.",
    ],
)
def test_sentence_equal_to_its_quote_has_support_in_any_language(text):
    assert measure_support(Claim(text, "LIVES_IN", [], text, "former"), Passage(text, AT)).score >= WEAK


VALID = [
    ("Ann works at Acme", "I got a job at Acme", {"names": ("Ann", "Acme")}),
    ("Ann smoked cigarettes", "No more cigarettes for me", {"kind": "former"}),
    ("Ann does not eat meat", "I don't eat meat", {}),
    ("Ann moved to Oslo", "Moved to Oslo last week!", {"names": ("Ann", "Oslo"), "begin": "2024-W19"}),
    ("Ann has lived in Oslo since May", "Yes, since May", {"names": ("Ann", "Oslo"), "previous": ["Bo: Do you live in Oslo?"]}),
    ("Ann adores Rex", "I adore him", {"names": ("Ann", "Rex"), "previous": ["Bo: Rex barked."], "types": ("Person", "Pet")}),
    ("Ann has not tried pottery", "Not yet", {"names": ("Ann", "pottery"), "previous": ["Bo: Have you tried pottery?"]}),
    ("Ann has not hiked for long", "I love hiking, but it's been ages since I've done it", {}),
    (
        "Ann and her friends hiked the trails of the Alps", "We all hiked the trails last week",
        {"names": ("Ann", "Alps"), "types": ("Person", "Place"), "begin": "2024-W19",
         "previous": ["Ann: We went to the Alps", "Bo: How was it?"]},
    ),
    ("安娜住在奥斯陆", "我上个月搬到奥斯陆了", {"names": ("奥斯陆",), "begin": "2024-04"}),
    ("Ann wohnt in Köln", "Ich lebe jetzt in Köln und bin nicht unglücklich", {"names": ("Ann", "Köln")}),
    ("Ann vive en Sevilla", "Ahora mi casa está en Sevilla", {"names": ("Ann", "Sevilla"), "predicate": "LIVES_IN"}),
]  # fmt: skip


@pytest.mark.parametrize(("sentence", "quote", "more"), VALID)
def test_measure_support_accepts_valid_readings(sentence, quote, more):
    assert score(sentence, quote, **more) >= WEAK


@pytest.mark.parametrize(
    ("sentence", "quote", "more"),
    [
        ("Ann works at Interpol", "I joined Interpol", {"content": "I moved to Oslo.", "names": ("Ann", "Interpol")}),
        ("Ann works at Interpol", "I moved to Oslo.", {"names": ("Ann", "Interpol")}),
        ("Ann founded Acme", "I work at Acme", {"names": ("Ann", "Acme"), "predicate": "FOUNDED"}),
        ("Ann has five dogs", "I have three dogs", {}),
        ("Ann moved to Oslo", "I moved to Oslo on 3 March 2023", {"names": ("Ann", "Oslo"), "begin": "2023-08-03"}),
        ("Ann eats meat", "I don't eat meat", {}),
        ("Ann does not eat meat", "I eat meat", {}),
        ("Ann likes Bergen", "I like Oslo", {"names": ("Ann", "Bergen"), "previous": ["Bo: Bergen is wet."]}),
        ("Ann tried pottery", "Not yet", {"names": ("Ann", "pottery"), "previous": ["Bo: Did you try pottery?"]}),
        ("安娜住在北京", "我住在奥斯陆", {"names": ("安娜", "北京")}),
        ("安娜吃肉", "我不吃肉", {}),
        ("安娜有五只猫", "我有三只猫", {}),
    ],
)
def test_measure_support_rejects_invalid_readings(sentence, quote, more):
    assert score(sentence, quote, **more) < WEAK


CLAUSES = [  # a supported sentence, an unsupported one, and the words of Ann
    ("Ann's sister moved to Oslo", "Ann moved to Oslo", "My sister moved to Oslo"),
    ("Ann moved to Oslo", "Bo moved to Oslo", "I moved to Oslo"),
    ("Ann's brother has a van", "Kim's brother has a van", "My brother has a van"),
    ("Ann might try pottery", "Ann tried pottery", "I might try pottery some day"),
    ("Ann would apply if they opened a branch", "Ann applied", "If they open a branch I'll apply"),
    ("Ann asks whether Karl sold the boat", "Karl sold the boat", "Did Karl really sell the boat?"),
    ("Ann almost bought a boat", "Ann bought a boat", "We almost bought a boat"),
    ("Ann used to smoke", "Ann smokes", "I used to smoke"),
    ("Ann will not tell Bo", "Ann will tell Bo", "I won't tell Bo"),
    ("安娜的妹妹在银行上班", "安娜在银行上班", "我妹妹在银行上班"),
    ("安娜在银行上班", "小李在银行上班", "我还在银行上班"),
    ("安娜打算搬去厦门", "安娜搬去了厦门", "我希望明年搬去厦门"),
    ("安娜没去过杭州", "安娜去过杭州", "我没去过杭州"),
]


@pytest.mark.parametrize(("true", "false", "words"), CLAUSES)
def test_measure_support_distinguishes_subject_and_modality(true, false, words):
    def measure(sentence):
        is_event = re.search("ed|sold|bought|got|beat|了", sentence) is not None
        kind = "plan" if re.search("will|want|would|might|打算", sentence) else "event" if is_event else "state"
        speaker = "安娜" if "安娜" in true else "Ann"
        names = [[name] for name in NAMES if name in sentence]
        names.sort(key=lambda each: sentence.index(each[0]))
        types = ["Person" if name[0] in PERSONS else "Organization" for name in names]
        claim = Claim(sentence, "RELATES_TO", names, re.split(", not|,没", words)[0], kind, types=types)
        return measure_support(claim, Passage(words, AT, speaker, [("Bo: Hi!", AT), ("小李: 你好", AT)])).score

    assert measure(true) >= WEAK > measure(false)


PERSONS = ["Ann's sister", "Ann's brother", "Kim's brother", "Ann", "Bo", "Karl", "安娜的妹妹", "安娜", "小李"]  # fmt: skip
NAMES = [*PERSONS, "Oslo", "杭州", "厦门"]


def test_find_span_finds_a_reworded_quote():
    content = "So. Last spring I finally moved over to Oslo, and Bo came too."
    (start, end), share = find_span("I moved to Oslo finally", content)
    assert content[start:end] == "I finally moved over to Oslo"
    assert share == 1.0
    assert find_span("my job at Interpol is secret", content)[0] is None


@pytest.mark.parametrize(
    "text", ["a" * 100_000, "not " * 25_000, "不" * 100_000, "I'm 1,1,1." * 10_000, " \n" * 50_000]
)
@pytest.mark.timeout(60)
def test_measure_support_handles_a_huge_text(text):
    assert measure_support(
        Claim(text, "NOT_" * 16, [[text[:512]]], text[:4000] + "?"), Passage(text, AT, "Ann", [(text, AT)])
    )
    assert locate(text[:100] + "?", text) is None

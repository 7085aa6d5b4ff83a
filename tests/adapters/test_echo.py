import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kg_memory.text.context_markers import remove_echo
from kg_memory.text.tokenise import terms

RECALLED = """Facts [sources]
<FACTS>
- Ann lives in Oslo (since 14 May 2024) [m2]
- Ann moved from Bergen to Oslo (on 14 May 2024) [m2]
- Hans works at R&amp;D &lt;Labs&gt; (known by 14 May 2024) [m3]
- Ann has 3 cats (date unknown) [m4]
- 安娜住在奥斯陆 (since 14 May 2024) [m5]
</FACTS>

What was said. [source] (time)
<EPISODES>
- [m2] (14 May 2024) Ann: I moved to Oslo last week! My rent is $900, and I do not like Bergen.
- [m6] (15 May 2024) Ann: It was -5 degrees. Bob works at Acme.
- [m8] (15 May 2024) Ann: I might move to Rome. I used to live in Paris. Is Cid married to Dan?
- [m7] (15 May 2024) 安娜: 我住在奥斯陆。
</EPISODES>"""


RESTATED = (
    "Ann lives in Oslo. | You live in Oslo. | As you told me earlier, you moved to Oslo last week! | "
    "I remember that Hans works at R&D <Labs>. | Your rent is $900, and you do not like Bergen. | "
    "You have **3** cats. | 安娜住在奥斯陆。 | 我记得安娜住在奥斯陆。 | 你之前提到过你住在奥斯陆！ | "
    "Sure! You live in Oslo."
).split(" | ")


@pytest.mark.parametrize("said", RESTATED)
def test_remove_echo_removes_restated_memory(said):
    assert remove_echo(said, RECALLED) == ""


@pytest.mark.parametrize("source", ["m2", "1234abed", "not-read", "m2, was it"])
def test_remove_echo_ignores_source_ids(source):
    assert remove_echo("Ann lives in Oslo.", f"- Ann lives in Oslo (since 14 May 2024) [{source}]") == ""
    assert remove_echo("Ann lives in Oslo.", f"- [{source}] (14 May 2024) Bob: Ann lives in Oslo.") == ""


def test_remove_echo_ignores_source_ids_outside_brackets():
    assert remove_echo("Ann lives in Oslo.", '<fact sources="1234abed">Ann lives in Oslo</fact>') == ""


DIFFERENT = (
    "Ann does not live in Oslo. | You never lived in Oslo. | Ann lived in Oslo before. | You lived in Oslo. | "
    "He lives in Oslo. | You move to Rome. | You live in Paris. | You live in Paris now. | Cid is married to Dan. | "
    "Ann will live in Oslo. | Ann lives in Rome. | Bob lives in Oslo. | Ann moved from Oslo to Bergen. | "
    "Ann works at Acme. | You told Bob. | Han works at R&D <Labs>. | Ann has 4 cats. | Ann has 3.5 cats. | "
    "Your rent is $9000, and you do not like Bergen. | Your rent is €900, and you do not like Bergen. | "
    "Your rent is $900, and you like Bergen. | It was 5 degrees. | Ann lives in Oslo since 2023-05-14. | "
    "Ann lives in Oslo with Cid. | 安娜不住在奥斯陆。 | 安娜住在巴黎。 | 安娜以前住在奥斯陆。 | Yes."
).split(" | ")


@pytest.mark.parametrize("said", [*DIFFERENT, "", "\n \x00"])
def test_remove_echo_keeps_different_statements(said):
    assert remove_echo(said, RECALLED) == said


def test_remove_echo_removes_only_the_echo_of_an_answer():
    said = "You live in Oslo. There is a new ferry to Nesodden! You have 3 cats.\n\nShall I book it for 2 people?"
    assert remove_echo(said, RECALLED) == "There is a new ferry to Nesodden! \n\nShall I book it for 2 people?"


def test_remove_echo_does_not_join_two_lines():
    assert remove_echo("Ann lives at Acme.", "- Ann lives (now)\n- at Acme (now)") == "Ann lives at Acme."


WORDS = st.sampled_from(
    ["river", "stone", "Paris", "seven", "12", "blue", "not", "河", "石头", "the", "was", "I", "-3"]
)
SENTENCES = st.lists(WORDS, min_size=1, max_size=8).map(lambda words: " ".join(words) + ".")


@given(st.text(max_size=200), st.text(max_size=200))
@settings(max_examples=80, deadline=None)
def test_remove_echo_keeps_text_without_shared_words(text, recalled):
    assume(not set(terms(text)) & set(terms(recalled)))
    assert remove_echo(text, recalled) == text


@given(st.lists(SENTENCES, max_size=4), st.lists(SENTENCES, max_size=4))
@settings(max_examples=80, deadline=None)
def test_remove_echo_is_idempotent(said, recalled):
    lines = "\n".join(f"- {each}" for each in recalled)
    kept = remove_echo(" ".join(said), lines)
    assert remove_echo(kept, lines) == kept
    assert set(terms(kept)) <= set(terms(" ".join(said)))

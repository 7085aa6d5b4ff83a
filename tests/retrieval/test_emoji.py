"""Questions of emoji find the messages that have them."""

MESSAGES = (
    "🐙🐙", "Ann knows Bob 🎉 tonight", "off to 🇳🇴 soon", "👩‍👩‍👧 are here", "nice 👍🏽", "Cy knows Dan", "Hi! Thanks.",
)  # fmt: skip


FOUND = {"🐙🐙": 0, "🐙": 0, "🎉": 1, "🇳🇴": 2, "👩‍👩‍👧": 3, "👍": 4, "👍🏿": 4, "Which 🎉?": 1}
"""The place of the message that a question finds."""


def test_a_question_of_emoji_finds_the_message(memory, namespace):
    for place, message in enumerate(MESSAGES):
        memory.add(message, thread=f"t{place}", at="2024-05-01", namespace=namespace)
    for question, found in FOUND.items():
        episodes = memory.search(question, limit=3, namespace=namespace).episodes
        assert MESSAGES[found] in [episode.content for episode in episodes], question
        assert MESSAGES[found][:4].split("\u200d")[0] in str(memory.context(question, namespace=namespace))


def test_a_question_of_punctuation_finds_nothing(memory, namespace):
    memory.add("Ann knows Bob → ©?!", namespace=namespace)
    for question in ("?!", "...", "。", "→ ©"):
        results = memory.search(question, namespace=namespace)
        assert (results.episodes, results.facts, str(memory.context(question, namespace=namespace))) == ((), (), "")

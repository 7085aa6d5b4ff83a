"""Prompt optimisers, as LangMem's guides have them, and what they learn as facts."""

import asyncio
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from kg_memory.contrib import langmem
from kg_memory.errors import InputError, SettingsError

MARS = [
    {"role": "user", "content": "Tell me about Mars"},
    {"role": "assistant", "content": "Mars is the fourth planet."},
    {"role": "user", "content": "I wanted more about its moons"},
]
TRAJECTORIES: Any = [
    (MARS, None),
    langmem.AnnotatedTrajectory(MARS[:2], {"score": 0.2, "comment": "Name the moons"}),
    (MARS[:2], "zu knapp"),
]
PROMPT = "You explain {topic} to {user}."
RULE = "先问清楚是哪个城市，再回答天气。" * 12
MOONS, SHORT, BRIEF = "Name the moons.", "Answer in one sentence.", "Answer in three sentences."


def lesson(text: str, trajectory: int | None = 1, replaces: int | None = None) -> dict[str, Any]:
    return {"lesson": text, "reason": "It was too short.", "trajectory": trajectory, "replaces": replaces}


def rewrite(fields: Any) -> Any:
    """Put the lessons behind the prompt."""
    return {"prompts": [" ".join([fields["prompt"], *fields["lessons"]])]}


@pytest.fixture
def teach(reader):
    """Let the reviewer give these lessons, one list a review."""
    reader.rules["RewrittenPrompt"] = rewrite

    def given(*reviews: list[Any]) -> None:
        left = iter(reviews)
        reader.rules["Lessons"] = lambda _: {"lessons": next(left)}

    return given


def optimise(reader: Any, prompt: Any = PROMPT, trajectories: Any = TRAJECTORIES, **options: Any) -> Any:
    optimizer = langmem.create_prompt_optimizer(reader.model, **options)
    return optimizer.invoke({"trajectories": trajectories, "prompt": prompt})


KINDS: dict[str, tuple[str, list[list[Any]], dict[str, int], str, list[str]]] = {
    "one pass": ("prompt_memory", [[lesson(MOONS)]], {}, f"{PROMPT} {MOONS}", ["Lessons", "RewrittenPrompt"]),
    "review until it is settled, then rewrite": (
        "gradient",
        [[lesson(MOONS)], [lesson(MOONS), lesson(SHORT)], [lesson(MOONS), lesson(SHORT)]],
        {"max_reflection_steps": 5},
        f"{PROMPT} {MOONS} {SHORT}",
        ["Lessons", "Lessons", "Lessons", "RewrittenPrompt"],
    ),
    "at most so many reviews": (
        "gradient",
        [[lesson(MOONS)], [lesson(SHORT)]],
        {"max_reflection_steps": 2},
        f"{PROMPT} {SHORT}",
        ["Lessons", "Lessons", "RewrittenPrompt"],
    ),
    "review and rewrite by turns": (
        "metaprompt",
        [[lesson(MOONS)], [lesson(SHORT)], []],
        {},
        f"{PROMPT} {MOONS} {SHORT}",
        ["Lessons", "RewrittenPrompt", "Lessons", "RewrittenPrompt", "Lessons"],
    ),
    "nothing went wrong": ("metaprompt", [[]], {}, PROMPT, ["Lessons"]),
}


@pytest.mark.parametrize(("kind", "reviews", "config", "improved", "calls"), KINDS.values(), ids=KINDS.keys())
def test_prompt_optimizer_kinds_review_and_rewrite_differently(reader, teach, kind, reviews, config, improved, calls):
    """Each kind of optimiser calls its own prompts, and passes them the instructions and the feedback.

    Features: H2.
    """
    teach(*reviews)
    prompt = langmem.Prompt(name="explainer", prompt=PROMPT, update_instructions="Stay polite.")
    assert optimise(reader, prompt, kind=kind, config=config) == improved
    assert [name for name, _ in reader.asked] == calls
    assert {fields["instructions"] for _, fields in reader.asked} == {"Stay polite."}
    asked = reader.asks("Lessons")[0]
    feedback = [each.get("feedback") for each in asked["trajectories"]]
    assert feedback == [None, {"score": 0.2, "comment": "Name the moons"}, "zu knapp"]
    assert asked["trajectories"][0]["messages"] == MARS


def test_prompt_optimizer_restores_variables_and_escapes_others(reader, teach):
    teach([lesson("Use JSON: {a}")], [lesson("Use JSON: {a}")], [lesson("Use JSON: {a}")])
    reader.rules["RewrittenPrompt"] = {"prompts": ["You explain {topic}."]}
    improved = optimise(reader, kind="prompt_memory")
    assert improved == f"{PROMPT}\n\n- Use JSON: {{{{a}}}}"
    assert improved.format(topic="Mars", user="Ann") == "You explain Mars to Ann.\n\n- Use JSON: {a}"
    reader.rules["RewrittenPrompt"] = {"prompts": ['Explain {topic} to {user} as {"moons": [...]}.']}
    improved = optimise(reader, kind="prompt_memory")
    assert improved.format(topic="Mars", user="Ann") == 'Explain Mars to Ann as {"moons": [...]}.'
    reader.rules["RewrittenPrompt"] = {"prompts": ['Answer {"a": 1}']}
    assert optimise(reader, "Answer.", kind="prompt_memory") == 'Answer {"a": 1}', "no template, so nothing is escaped"


def test_prompt_optimizer_stores_rules_as_dated_facts(reader, teach, memory, where):
    """The optimiser stores learned rules as facts, with dates and sources; later rules supersede earlier ones.

    Features: H4.
    """
    kept: Any = {"kind": "prompt_memory", "memory": memory, "namespace": where}
    teach([lesson(MOONS, 2), lesson(SHORT, 1)])
    prompt = langmem.Prompt(name="explainer", prompt=PROMPT)
    optimise(reader, prompt, **kept)
    assert reader.asks("Lessons")[-1]["known"] == []
    first = datetime.now(UTC)
    rules = partial(langmem.render_rules, memory, namespace=where)
    assert set(rules("explainer").splitlines()) == {f"- {MOONS}", f"- {SHORT}"}
    known = memory.facts.list(namespace=where, where={"predicate": "FOLLOWS"})
    [moons] = [fact for fact in known if fact.objects == (MOONS,)]
    assert (moons.subject, moons.sentence) == ("explainer", f"explainer follows the rule: {MOONS}")
    source = memory.episodes.get(moons.sources[0].episode, namespace=where)
    assert source.source == "optimizer"
    assert "Name the moons" in source.content
    assert "It was too short." in source.content
    second = langmem.create_prompt_optimizer(reader.model, **kept)

    def refine(fields: Any) -> Any:
        [short] = [each["id"] for each in fields["known"] if each["rule"] == SHORT]
        return {"lessons": [lesson(BRIEF, 1, short), lesson(MOONS, None)]}

    reader.rules["Lessons"] = refine
    asyncio.run(second(TRAJECTORIES, prompt))
    assert set(rules("explainer").splitlines()) == {f"- {MOONS}", f"- {BRIEF}"}
    before = asyncio.run(langmem.arender_rules(memory, "explainer", namespace=where, as_of=first))
    assert set(before.splitlines()) == {f"- {MOONS}", f"- {SHORT}"}
    assert rules("explainer", believed_at="2020-01-01") == rules("other") == ""
    [short] = [fact for fact in memory.facts.list(namespace=where) if fact.objects == (SHORT,)]
    [by] = [memory.facts.get(id_, namespace=where) for id_ in short.superseded_by]
    assert (by.objects, short.invalid_at) == ((BRIEF,), by.valid_at)
    memory.privacy.forget(episode=moons.sources[0].episode, namespace=where)
    assert f"- {MOONS}" in rules("explainer"), "a second trajectory taught it, too"
    assert memory.privacy.forget(everything=True, namespace=where).residue == ()
    assert rules("explainer") == ""
    assert MOONS not in str(memory.episodes.list(namespace=where))


def test_prompt_optimizer_stores_chinese_rules_by_config(reader, teach, memory, user):
    teach([lesson(RULE)])
    kept: Any = {"memory": memory, "namespace": ("rules", "{user_id}")}
    optimizer = langmem.create_prompt_optimizer(reader.model, kind="prompt_memory", **kept)
    state = {"trajectories": "用户问天气，没有得到城市。", "prompt": "你是助手。"}
    assert optimizer.invoke(state, {"configurable": {"user_id": user}}).endswith(RULE)
    assert langmem.render_rules(memory, namespace=("rules", user)) == f"- {RULE}"
    assert reader.asks("Lessons")[0]["trajectories"] == [{"trajectory": 1, "text": "用户问天气，没有得到城市。"}]


def test_multi_prompt_optimizer_rewrites_only_chosen_prompts(reader, teach):
    teach([lesson(MOONS)])
    reader.rules["ChosenPrompts"] = {"names": ["answer", "nobody"]}
    answer = langmem.Prompt(name="answer", prompt="Answer.", when_to_update="last")
    prompts = [langmem.Prompt(name="search", prompt="Search."), answer]
    optimizer = langmem.create_multi_prompt_optimizer(reader.model, kind="prompt_memory")
    improved = optimizer.invoke({"trajectories": TRAJECTORIES, "prompts": prompts})
    assert improved == [prompts[0], {**prompts[1], "prompt": f"Answer. {MOONS}"}]
    assert [each["when"] for each in reader.asks("ChosenPrompts")[0]["prompts"]] == [None, "last"]
    teach([lesson(SHORT)])
    [alone] = asyncio.run(optimizer(TRAJECTORIES, prompts[:1]))
    assert alone["prompt"] == f"Search. {SHORT}"
    assert len(reader.asks("ChosenPrompts")) == 1, "there is nothing to choose from"
    assert optimizer.invoke({"trajectories": [], "prompts": prompts}) == prompts
    with pytest.raises(InputError, match="different names"):
        optimizer.invoke({"trajectories": TRAJECTORIES, "prompts": prompts[:1] * 2})


def test_prompt_optimizers_raise_for_bad_input_and_ask_no_model(reader):
    for options, message in (
        ({"kind": "magic"}, "kind must be one of gradient"),
        ({"config": {"gradient_prompt": "x"}}, "update_instructions"),
        ({"memory": "falkor://"}, "memory must be a GraphMemory"),
    ):
        with pytest.raises(SettingsError, match=message):
            langmem.create_prompt_optimizer(reader.model, **options)
    with pytest.raises(InputError, match="max_reflection_steps"):
        langmem.create_prompt_optimizer(reader.model, config={"max_reflection_steps": 0})
    optimizer = langmem.create_prompt_optimizer(reader.model)
    for state, message in (
        ({"prompt": "x"}, "a dict with 'trajectories'"),
        ({"trajectories": [], "prompt": 3}, "a prompt must be a text"),
        ({"trajectories": 3, "prompt": "x"}, "trajectories must be a list"),
        ({"trajectories": [3], "prompt": "x"}, "messages must be a list"),
    ):
        with pytest.raises(InputError, match=message):
            optimizer.invoke(state)
    assert optimizer.invoke({"trajectories": [], "prompt": "As it was."}) == "As it was."
    assert reader.asked == []

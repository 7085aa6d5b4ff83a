"""The answers of `OfflineModel` to all prompts of the memory, by deterministic rules."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from itertools import zip_longest
from typing import Any

from kg_memory.contrib.offline import facts, lexicon
from kg_memory.contrib.offline.chinese import read_chinese
from kg_memory.contrib.offline.english import read_english
from kg_memory.contrib.offline.judging import JudgedFact, judge_facts
from kg_memory.contrib.offline.names import find_mentions
from kg_memory.contrib.offline.records import has_one_value, read_record
from kg_memory.contrib.offline.statements import PERSON, Mention, Parse, Scene, TextStatement, is_chinese
from kg_memory.contrib.offline.summaries import describe_community, summarise_entity
from kg_memory.errors import ModelError
from kg_memory.llm.prompts.answers import MOST
from kg_memory.temporal.interval import parse_instant
from kg_memory.text.identity import is_assistant
from kg_memory.text.tokenise import terms

_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_TURN = re.compile(
    r"^[ \t>*-]*(?:\[[^\]\n]{1,30}\][ \t]*)?\**(?P<name>[A-ZÀ-Þ\u4e00-\u9fff][\w.'’-]*(?: [A-ZÀ-Þ][\w.'’-]*){0,2})\**"
    r"[ \t]*(?:[(\[][^)\]\n]{1,30}[)\]])?\**[:：](?!//)\**[ \t]*(?=\S)",
    re.MULTILINE,
)
"""The beginning of a turn in a transcript, such as "[10:00] Ann: "."""
_MOST_NAMES = 10
"""The most names that are kept of an assistant's message."""
_LONGEST = 60_000
"""The most characters that are read; the caller splits longer texts."""
_LONGEST_BEFORE = 2000
"""The most characters of a previous message that are read."""

Fields = Mapping[str, Any]
Answer = dict[str, Any]


def answer(prompt: str, fields: Fields) -> Answer:
    """Answer the prompt named *prompt* with the values *fields* by rules; raise `ModelError` if it is unknown."""
    rule = _ANSWERS.get(prompt)
    if rule is None:
        names = ", ".join(sorted(_ANSWERS))
        raise ModelError(f"the offline model cannot answer {prompt!r}: use one of {names}, or a language model")
    return rule(fields)


# Reading messages.


def _read_message(message: Fields, previous: Sequence[Fields], names: Sequence[str] = ()) -> Parse:
    """Extract entities and facts from *message*, ``{"content": "...", "speaker": "Ann"}``."""
    content = _CODE.sub(lambda code: " " * len(code[0]), message["content"][:_LONGEST])
    speaker = message.get("speaker") or None
    if speaker is None and (turns := _find_turns(content)):
        return _read_turns(content, turns, previous, names)
    return _read_content(content, speaker, previous, names)


def _find_turns(content: str) -> list[re.Match[str]]:
    """Return a match for each "Ann: " that begins a message in a transcript; [] if *content* is no transcript."""
    turns = list(_TURN.finditer(content))
    names, lines = {turn["name"] for turn in turns}, sum(1 for line in content.splitlines() if line.strip())
    spoken = len(content) - sum(len(turn[0]) for turn in turns)
    named = (name.split(maxsplit=1)[0].casefold() for name in names)
    are_fields = len(names) == len(turns) > 2 or not lexicon.FIELDS.isdisjoint(named)  # "City: ...", "Size: ..."
    return turns if 1 < len(turns) >= lines / 2 and spoken >= 6 * len(turns) and not are_fields else []


def _read_turns(content: str, turns: list[re.Match[str]], previous: Sequence[Fields], names: Sequence[str]) -> Parse:
    mentions: list[Mention] = []
    statements: list[TextStatement] = []
    for turn, after in zip_longest(turns, turns[1:]):
        text = " " * turn.end() + content[turn.end() : after.start() if after else None]
        reading = _read_content(text, turn["name"], previous, names)
        mentions += Mention(turn.start("name"), turn.end("name"), turn["name"], PERSON, named=True), *reading.mentions
        statements += (replace(one, said_by=turn["name"]) for one in reading.statements)
    return Parse(tuple(mentions), tuple(statements))


def _read_content(content: str, speaker: str | None, previous: Sequence[Fields], names: Sequence[str]) -> Parse:
    if speaker and is_assistant(speaker):
        return _read_names(content, speaker)
    scene = _scene(speaker, previous, names)
    return read_chinese(content, scene) if is_chinese(content) else read_english(content, scene)


@lru_cache(maxsize=4)  # it is asked for entities, and then for facts
def _read_names(content: str, speaker: str) -> Parse:
    """Extract the names from an assistant's message, and no facts: its advice states none about the user."""
    if is_chinese(content):
        mentions = read_chinese(content, Scene(speaker)).mentions
    else:
        named = [mention for mention in find_mentions(content, speaker) if mention.named]
        times = Counter(mention.name for mention in named)
        # Headings have capitals too, but occur once.
        mentions = tuple(one for one in named if one.type != "Entity" or times[one.name] > 1)
    return Parse(mentions[:_MOST_NAMES], ())


def _scene(speaker: str | None, previous: Sequence[Fields], names: Sequence[str]) -> Scene:
    others = [name for message in previous if (name := message.get("speaker")) and name != speaker]
    listener = others[-1] if others else None
    met = tuple(dict.fromkeys(filter(None, (speaker, *others, *names))))
    return Scene(speaker, listener, met, _last_person(previous, {speaker, listener}))


def _last_person(previous: Sequence[Fields], present: set[str | None]) -> Mention | None:
    """Return the person meant by "he" or "she": the last one named in the two previous messages, or None."""
    for message in reversed(previous[-2:]):
        content = message["content"][:_LONGEST_BEFORE]
        if is_chinese(content):
            return None
        people = [name for name in _people(content, message.get("speaker")) if name.name not in present]
        if people:
            return people[-1]
    return None


@lru_cache(maxsize=16)
def _people(content: str, speaker: str | None) -> tuple[Mention, ...]:
    return tuple(mention for mention in find_mentions(content, speaker) if mention.type == PERSON)


# Extracting entities and facts.


def _extract(fields: Fields) -> Answer:
    """Return the entities of the message ``fields["episode"]``: ``{"entities": [{"name": "Ann", "type": "Person"}]}``.

    Each is returned once.
    """
    episode, types = fields["episode"], list(fields.get("entity_types") or ())
    if episode["kind"] == "json":
        things = [thing for field in read_record(episode["content"]) for thing in (field.subject, field.object)]
        names = [(thing.name, thing.type) for thing in things]
    else:
        names = facts.list_entities(_read_message(episode, fields.get("previous") or ()), episode.get("speaker"))
    distinct: dict[str, tuple[str, str]] = {}
    for name, kind in names:
        if name.strip():
            distinct.setdefault(facts.name_key(name) or name, (name, kind))
    entities = [{"name": name[:512], "type": _to_user_type(kind, types)} for name, kind in distinct.values()]
    return {"entities": entities[:MOST]}


def _to_user_type(type_: str, types: Sequence[str]) -> str:
    """Convert a built-in entity type to one of *types*, which the user has defined: "Place" -> "Location"."""
    names = {name.casefold(): name for name in types}
    synonyms = (type_.casefold(), *_SYNONYMS.get(type_, ()))
    return next((names[synonym] for synonym in synonyms if synonym in names), types[0] if types else "Entity")


def _facts(fields: Fields) -> Answer:
    """Return the facts of the message ``fields["episode"]``: ``{"facts": [{"subject": 0, "objects": [1], ...}]}``."""
    episode, entities = fields["episode"], [facts.GivenEntity.of(entity) for entity in fields["entities"]]
    if episode["kind"] == "json":
        return {"facts": facts.write_record_facts(read_record(episode["content"]), entities)}
    names = [name for entity in entities for name in entity.called]
    reading = _read_message(episode, fields.get("previous") or (), names)
    predicates = [type_["name"] for type_ in fields.get("fact_types") or ()]
    at = parse_instant(episode.get("at")) or datetime.now(UTC)
    return {"facts": facts.write_facts(reading, episode["content"], episode.get("speaker"), at, entities, predicates)}


def _read(fields: Fields) -> Answer:
    """Return entities and facts of the message ``fields["episode"]``: ``{"entities": [...], "facts": [...]}``."""
    entities = _extract(fields)["entities"]
    names = [entity["name"] for entity in entities]
    facts = _facts({**fields, "entities": [{**entity, "id": place} for place, entity in enumerate(entities)]})["facts"]
    for fact in facts:
        fact["subject"] = names[fact["subject"]]
        fact["objects"] = [names[place] for place in fact["objects"]]
    return {"entities": entities, "facts": facts}


# Resolution and verdicts.


def _resolve(fields: Fields) -> Answer:
    """Match each new entity in ``fields["entities"]`` with one of its "candidates" (existing entities) by name."""
    resolutions = []
    for entity in fields["entities"]:
        same = _match(entity)
        names = [entity["name"], *([same["name"]] if same else [])]
        # Keep the longest name; of equally long ones, the existing.
        name = max(reversed(names), key=lambda name: len(facts.name_key(name)))
        chosen = same["id"] if same else None
        resolutions.append({"entity": entity["id"], "same_as": chosen, "name": name, "confidence": 1.0})
    return {"resolutions": resolutions}


def _match(entity: Fields) -> Fields | None:
    fitting = [candidate for candidate in entity["candidates"] if _may_be(entity, candidate)]
    key = facts.name_key(entity["name"])
    exact = [candidate for candidate in fitting if facts.name_key(candidate["name"]) == key]
    chosen = exact or fitting
    return chosen[0] if len(chosen) == 1 or exact else None


def _may_be(entity: Fields, candidate: Fields) -> bool:
    types = {str(entity.get("type", "")), str(candidate.get("type", ""))}
    type_ = PERSON if PERSON in types and types <= {PERSON, "Entity"} else ""
    names = (candidate["name"], *candidate.get("aliases", ()))
    return any(facts.is_same_name(entity["name"], name, type_) for name in names)


def _judge(fields: Fields) -> Answer:
    verdicts = []
    for fact in fields["facts"]:
        new = JudgedFact.model_validate(fact)
        for existing in fact["existing"]:
            judgement = judge_facts(new, JudgedFact.model_validate(existing))
            if judgement.verdict != "unrelated":
                verdicts.append({"fact": fact["id"], "known": existing["id"], **judgement._asdict()})
    # "complements" changes least, so these verdicts are cut first.
    return {"verdicts": sorted(verdicts, key=lambda verdict: verdict["verdict"] == "complements")[:MOST]}


def _predicates(fields: Fields) -> Answer:
    names = (predicate["name"] for predicate in fields["predicates"][:MOST])
    # The caller has already replaced known synonyms.
    return {"predicates": [{"name": name, "canonical": name, "one_at_a_time": has_one_value(name)} for name in names]}


# Summaries and scores.


def _summarise(fields: Fields) -> Answer:
    summaries = []
    for entity in fields["entities"]:
        summary = summarise_entity(entity["name"], entity["facts"]) or entity.get("summary", "")
        summaries.append({"entity": entity["id"], "summary": summary})
    return {"summaries": summaries}


def _community(fields: Fields) -> Answer:
    communities = []
    for community in fields["communities"]:
        name, summary = describe_community(community["items"])
        communities.append({"community": community["community"], "name": name, "summary": summary})
    return {"communities": communities}


def _score(fields: Fields) -> Answer:
    question = set(terms(fields["question"]))
    scores = []
    for text in fields["texts"]:
        words = set(terms(text["text"]))
        # the cosine similarity of the word sets
        common = len(question & words) / math.sqrt(len(question) * len(words)) if question and words else 0.0
        scores.append({"text": text["id"], "relevance": 10 * common})
    return {"scores": scores}


_SYNONYMS = {
    "Person": ("people", "human", "user", "contact", "customer", "人物", "人"),
    "Organization": ("organisation", "company", "org", "account", "institution", "公司", "组织", "机构"),
    "Place": ("location", "city", "地点", "地方"),
    "Product": ("thing", "object", "tool", "item", "产品", "物品"),
    "Topic": ("concept", "subject", "interest", "主题", "话题"),
    "Event": ("activity", "meeting", "事件", "活动"),
}
_ANSWERS: dict[str, Callable[[Fields], Answer]] = {
    "extract_message": _extract,
    "extract_text": _extract,
    "extract_json": _extract,
    "read": _read,
    "reflect": lambda _: {"missed": [], "unsupported": []},
    "resolve": _resolve,
    "facts": _facts,
    "predicates": _predicates,
    "judge": _judge,
    "summarise": _summarise,
    "community": _community,
    "score": _score,
}

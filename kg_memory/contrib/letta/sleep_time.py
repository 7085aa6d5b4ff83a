"""Sleep-time maintenance of a block: rewrite it from current facts, and apply the new text or propose it for review.

A proposal is stored as the latest version of a second block, so that it is deleted and exported like all blocks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from langchain_core.language_models import BaseChatModel
from pydantic import BaseModel, Field

from kg_memory.contrib.letta.blocks import PROPOSAL, Block, Blocks, Version
from kg_memory.errors import InputError, NotFound
from kg_memory.llm.prompts import load_prompt
from kg_memory.llm.prompts.answers import MOST
from kg_memory.memory.open import model as open_model
from kg_memory.models.graph import Fact
from kg_memory.runtime.effects import Ask, Model, both, call
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.interval import instant
from kg_memory.text.dated import date_without_time, period_in_words

MOST_FACTS = 200
TIDIER = "tidy"
"""The author of proposals."""
STALE = "the block {!r} was changed after this proposal; call tidy again"


class TidyNote(BaseModel):
    """The model's answer to the prompt `TIDY`: the lines of the new text of a block.

    A block is a text in an agent's prompt. The model was asked to bring it up to date with the current facts.
    """

    lines: list[str] = Field(description="all that the note says from now on", max_length=MOST)


TIDY = load_prompt(__package__, "tidy", TidyNote, "note")


def _tidy(
    blocks: Blocks,
    label: str,
    about: str,
    context: Any = None,
    *,
    model: BaseChatModel | Model | str | None = None,
    apply: bool = False,
) -> Flow[Version]:
    """Rewrite the block *label* (a text in an agent's prompt) from the current facts about the entity *about*.

    Returns the new version if *apply*, else a proposal. *model*: merges facts and text; None lists the facts instead.
    Errors: `InputError` if there are no facts.
    """
    block, namespace = blocks.block(label), blocks.namespace_of(label, context)
    before: Version = yield from call(blocks, "get", label, context)
    facts: list[Fact] = yield from call(
        blocks.memory.facts,
        "list",
        about=about,
        as_of=instant(blocks.memory.driver.clock()),
        limit=MOST_FACTS,
        namespace=namespace,
    )
    if not facts:
        raise InputError(f"no current facts about {about!r} in this namespace; pass the name of an entity with facts")
    lines = list(dict.fromkeys(map(_line, facts)))
    if model is None:
        value = _join_up_to_limit(lines, block.limit)
    else:
        value = yield from _ask(open_model(model, blocks.memory.settings), block, before.value, lines)
    if apply:
        return (yield from _write_if_same(blocks, label, before, value, context, TIDIER))
    proposal: Version = yield from call(blocks, "write", f"{label}{PROPOSAL}", value, context, by=TIDIER)
    return proposal


tidy, atidy = both(_tidy)


def _read_proposal(blocks: Blocks, label: str, context: Any = None) -> Flow[Version | None]:
    """Return the open proposal for the block *label*: a new text that nobody has accepted or rejected yet, or None."""
    version: Version = yield from call(blocks, "get", f"{label}{PROPOSAL}", context)
    return version if version.value else None


read_proposal, aread_proposal = both(_read_proposal)


def _decide_proposal(
    blocks: Blocks, label: str, *, accept: bool, context: Any = None, by: str = "user"
) -> Flow[Version]:
    """Accept or reject the proposed text of the block *label* (a text in a prompt); return its current version.

    *by*: who decides. *context*: values of placeholders, as for `Blocks.get`. Errors: `NotFound` without a proposal;
    `InputError` if the block was changed since.
    """
    proposal = yield from _read_proposal(blocks, label, context)
    if proposal is None or proposal.at is None:
        raise NotFound(f"no proposal for the block {label!r}; call tidy first")
    version: Version = yield from call(blocks, "get", label, context)
    if accept:
        if version.at is not None and version.at > proposal.at:
            raise InputError(STALE.format(label))
        version = yield from _write_if_same(blocks, label, version, proposal.value, context, by)
    yield from call(blocks, "write", f"{label}{PROPOSAL}", "", context, by=by)
    return version


decide_proposal, adecide_proposal = both(_decide_proposal)


def _write_if_same(blocks: Blocks, label: str, before: Version, value: str, context: Any, by: str) -> Flow[Version]:
    def change(present: str) -> str:
        if present != before.value:
            raise InputError(STALE.format(label))
        return value

    version: Version = yield from call(blocks, "edit", label, change, context, by=by)
    return version


def _ask(model: Model, block: Block, text: str, lines: list[str]) -> Flow[str]:
    note = {"label": block.label, "purpose": block.description, "limit": block.limit, "text": text, "facts": lines}
    answer: TidyNote = yield from call(model, "answer", Ask(TIDY, {"note": note}))
    value = "\n".join(answer.lines).strip()
    if not value or len(value) > block.limit:
        raise InputError(f"the model wrote {len(value)} characters into a block of {block.limit}; raise its limit")
    return value


def _line(fact: Fact) -> str:
    when = period_in_words(fact, write=date_without_time) if fact.valid_at else fact.mark
    return f"{fact.sentence} ({when})" if when else fact.sentence


def _join_up_to_limit(lines: Iterable[str], limit: int) -> str:
    text = ""
    for line in lines:
        longer = f"{text}\n{line}" if text else line
        if len(longer) > limit:
            break
        text = longer
    return text

"""One line of the log for each episode that is read, and for each failure; none has a word of any message.

The fields stand in the line as ``key=value``, and as attributes of the record, for formatters that write JSON.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from kg_memory.models.usage import StepUsage, Usage
from kg_memory.runtime import telemetry
from kg_memory.runtime.telemetry.failures import kind, reason

log = logging.getLogger("kg_memory.episodes")

FIELDS = (
    "namespace", "episode", "status", "step", "reason", "seconds", "calls", "input_tokens", "output_tokens",
    "cached_tokens",
)  # fmt: skip


def log_end(namespace: str, state: Mapping[str, Any], last: StepUsage) -> None:
    """Tell that all that was read of the episode of *state* is saved, which took *last* after the other steps."""
    telemetry.counted(state["status"], {})
    if log.isEnabledFor(logging.INFO):
        _tell(logging.INFO, "episode read", {**_about(namespace, state, last), "reason": state.get("skipped")})


def log_failure(
    namespace: str, state: Mapping[str, Any], failed: StepUsage, error: Exception, status: str | None
) -> None:
    """Tell that a step *failed* by *error*, and the episode came to *status*; ``None`` if it stays as it is."""
    telemetry.counted(status, {"kg_memory.step": failed.step, "error.type": kind(error)})
    told = {"status": status, "step": failed.step, "reason": reason(error)}
    _tell(logging.WARNING, "episode not read", {**_about(namespace, state, failed), **told})
    log.debug("what the error says, which may quote the message", exc_info=error)


def _about(namespace: str, state: Mapping[str, Any], last: StepUsage) -> dict[str, Any]:
    """Return what is known of the episode, and what all steps took until now."""
    steps = [*(StepUsage(**each) for each in state.get("steps") or ()), last]
    episode = state.get("episode") or {}
    return {
        "namespace": namespace, "episode": episode.get("id"), "status": state.get("status"),
        "seconds": round(sum(each.seconds for each in steps), 3), **sum(steps, Usage()).model_dump(),
    }  # fmt: skip


def _tell(level: int, what: str, told: Mapping[str, Any]) -> None:
    fields = {name: told[name] for name in FIELDS if told.get(name) is not None}
    line = " ".join(f"{name}={_plain(value)}" for name, value in fields.items())
    log.log(level, "%s %s", what, line, extra=fields)


def _plain(value: Any) -> str:
    """Return *value* as it stands in a line: in quotes where it has more than one word, or could break the line."""
    text = str(value)
    return text if text and text.isascii() and text.isprintable() and not set(text) & set(' "=') else json.dumps(text)

"""Questions to the user, whom the client asks: by the current protocol in a second call, by the one before within one.

By the current protocol the client calls the tool again with the user's answer. That counts only for the very question
that the second call asks, so nothing is decided that changed meanwhile.
"""

from __future__ import annotations

import hashlib
import json
from typing import TypeVar

from mcp.server.elicitation import render_elicitation_schema
from mcp_types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, ValidationError

from kg_memory.contrib.server.mcp.tool import ToolCall
from kg_memory.errors import InputError

ANSWER = "answer"
Form = TypeVar("Form", bound=BaseModel)


class AnswerNeeded(Exception):
    """The client is to ask the user, and to call again; `result` says what."""

    def __init__(self, result: InputRequiredResult) -> None:
        super().__init__(ANSWER)
        self.result = result


def can_ask(call: ToolCall) -> bool:
    """Return whether the client can ask its user to fill in a form."""
    capabilities = call.request.session.client_capabilities
    ways = capabilities.elicitation if capabilities else None
    return ways is not None and (ways.form is not None or ways.url is None)


async def ask(call: ToolCall, question: str, form: type[Form]) -> Form | None:
    """Have the user asked, and return the form filled in; ``None`` where the user declines.

    Errors: `AnswerNeeded`; `InputError` for an answer that does not fit the form.
    """
    schema = render_elicitation_schema(form)
    if call.request.protocol_version in MODERN_PROTOCOL_VERSIONS:
        response = (call.params.input_responses or {}).get(ANSWER)
        state = _digest(call, question)
        if response is None or call.params.request_state != state:
            params = ElicitRequestFormParams(message=question, requested_schema=schema)
            raise AnswerNeeded(
                InputRequiredResult(input_requests={ANSWER: ElicitRequest(params=params)}, request_state=state)
            )
    else:
        request = call.request
        response = await request.session.elicit_form(question, schema, related_request_id=request.request_id)
    if not isinstance(response, ElicitResult) or response.action != "accept":
        return None
    try:
        return form.model_validate(response.content or {})
    except ValidationError:
        raise InputError("the user's answer does not fit the form; ask again") from None


def _digest(call: ToolCall, question: str) -> str:
    asked = json.dumps([call.namespace, call.params.name, question])
    return hashlib.sha256(asked.encode()).hexdigest()

"""OpenAI's client in LangChain's classes: Azure, the Responses API, and options of the user."""

import pytest
from langchain_openai import AzureChatOpenAI, ChatOpenAI
from openai import ContentFilterFinishReasonError

from kg_memory.errors import ModelRefusal
from kg_memory.models.operations import Usage
from tests.llm.samples import CUT, GOOD, names
from tests.openai_wire import BASE_URL, body, completion, response

COMPLETIONS = {
    "good": completion(GOOD),
    "cut": completion(CUT, finish_reason="length"),
    "refused": completion("", finish_reason="content_filter"),
}
RESPONSES = {
    "good": response(GOOD),
    "cut": response(CUT, cut_off=True),
    "refused": response(refusal="It is against the content filter."),
}
OPENAI = {"model": "m", "base_url": BASE_URL, "api_key": "k", "max_retries": 0}
AZURE = {"azure_endpoint": BASE_URL, "azure_deployment": "m", "api_version": "2024-10-21", "api_key": "k"}
CLIENTS = {
    "Azure": (AzureChatOpenAI(**AZURE, max_retries=0), "/openai/deployments/m/chat/completions", COMPLETIONS),
    "Responses": (ChatOpenAI(**OPENAI, use_responses_api=True), "/responses", RESPONSES),
    "Responses by option": (ChatOpenAI(**OPENAI, model_kwargs={"text": {"verbosity": "low"}}), "/responses", RESPONSES),
}


@pytest.fixture(params=CLIENTS)
def serve(request, asked, wire):
    """Return a function that sets the replies of the server by their names, and returns the route."""
    model, path, replies = CLIENTS[request.param]
    asked.open(model)
    return lambda *named: wire.post(path).mock(side_effect=[replies[name] for name in named])


def test_client_sends_the_schema_as_its_server_expects_it(asked, serve):
    route = serve("good")
    assert names(asked()) == ["Tom Hale", "Lisbon"]
    sent = body(route.calls[0])
    assert ("text" in sent) != ("response_format" in sent)
    form = sent["text"]["format"] if "text" in sent else sent["response_format"]["json_schema"]
    assert form["strict"] is True
    assert asked.usage == Usage(calls=1, input_tokens=100, output_tokens=10)


def test_refusal_of_a_client_raises_model_refusal_and_counts_usage(asked, serve):
    serve("refused")
    with pytest.raises(ModelRefusal, match=r"content.filter"):
        asked()
    is_told = hasattr(ContentFilterFinishReasonError(), "completion")  # openai before 3 does not pass on the usage
    assert asked.usage in (Usage(calls=1, input_tokens=100, output_tokens=10), *([] if is_told else [Usage()]))


def test_cut_off_answer_of_a_client_is_asked_for_again(asked, serve):
    serve("cut", "good")
    assert names(asked()) == ["Tom Hale", "Lisbon"]
    assert asked.usage == Usage(calls=2, input_tokens=200, output_tokens=20)


def test_request_keeps_extra_body_of_user_beside_schema(asked, chat):
    route = chat(completion(GOOD))
    asked.open(ChatOpenAI(**OPENAI, extra_body={"top_k": 1}))
    assert names(asked()) == ["Tom Hale", "Lisbon"]
    sent = body(route.calls[0])
    assert (sent["top_k"], sent["response_format"]["type"]) == (1, "json_schema")

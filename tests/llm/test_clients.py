"""OpenAI's client in LangChain's classes: requests and answers with options of the user, and of Azure."""

import pytest
from langchain_openai import AzureChatOpenAI, ChatOpenAI
from openai import ContentFilterFinishReasonError

from kg_memory.errors import ModelRefusal
from kg_memory.models.operations import Usage
from tests.llm.samples import CUT, GOOD, names
from tests.openai_wire import BASE_URL, body, completion, response

DEPLOYED = "/openai/deployments/m/chat/completions"


@pytest.fixture
def azure(asked, wire):
    """Return a function that sets the replies of Azure, and returns the route."""

    def answer(*replies):
        model = AzureChatOpenAI(
            azure_endpoint=BASE_URL, azure_deployment="m", api_version="2024-10-21", api_key="k", max_retries=0
        )
        asked.open(model)
        route = wire.post(DEPLOYED)
        route.side_effect = [*replies, *[replies[-1]] * 3]
        return route

    return answer


def test_request_keeps_extra_body_of_user_beside_schema(asked, chat):
    route = chat(completion(GOOD))
    asked.open(ChatOpenAI(model="m", base_url=BASE_URL, api_key="k", max_retries=0, extra_body={"top_k": 1}))
    assert names(asked()) == ["Tom Hale", "Lisbon"]
    sent = body(route.calls[0])
    assert (sent["top_k"], sent["response_format"]["type"]) == (1, "json_schema")


def test_responses_api_chosen_by_options_gets_the_schema(asked, wire):
    route = wire.post("/responses").mock(return_value=response(GOOD))
    options = {"model_kwargs": {"text": {"verbosity": "low"}}}
    asked.open(ChatOpenAI(model="m", base_url=BASE_URL, api_key="k", max_retries=0, **options))
    assert names(asked()) == ["Tom Hale", "Lisbon"]
    sent = body(route.calls[0])
    assert sent["text"]["format"]["strict"] is True
    assert "response_format" not in sent


def test_azure_gets_the_schema(asked, azure):
    route = azure(completion(GOOD))
    assert names(asked()) == ["Tom Hale", "Lisbon"]
    assert body(route.calls[0])["response_format"]["json_schema"]["strict"] is True


def test_azure_content_filter_raises_refusal_and_counts_usage(asked, azure):
    azure(completion("", finish_reason="content_filter"))
    with pytest.raises(ModelRefusal):
        asked()
    is_told = hasattr(ContentFilterFinishReasonError(), "completion")  # openai before 3 does not pass on the usage
    assert asked.usage == (Usage(calls=1, input_tokens=100, output_tokens=10) if is_told else Usage())


def test_azure_cut_off_answer_is_asked_for_again(asked, azure):
    azure(completion(CUT, finish_reason="length"), completion(GOOD))
    assert names(asked()) == ["Tom Hale", "Lisbon"]
    assert asked.usage == Usage(calls=2, input_tokens=200, output_tokens=20)

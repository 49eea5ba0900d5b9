"""What servers say when something is wrong, in their own words, and what it means."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx2
import pytest

from mle_ideator.chat.failures import Failure, failure_of, failure_told
from mle_ideator.chat.retry_after import retry_after_s


def told(body: object, status: int | None = 400) -> Failure:
    return failure_told(body, status, host="host", key="the key in KEY")


OVERFLOWS = [
    # OpenAI, DeepSeek, vLLM
    (
        "This model's maximum context length is 8192 tokens. However, your messages resulted in "
        "9000 tokens. Please reduce the length of the messages.",
        8192,
    ),
    (
        "This model's maximum context length is 2048 tokens. However, you requested 8292 tokens "
        "(100 in the messages, 8192 in the completion). Please reduce the length of the messages "
        "or completion.",
        2048,
    ),
    (
        "'max_tokens' or 'max_completion_tokens' is too large: 8192. This model's maximum context "
        "length is 2048 tokens and your request has 100 input tokens (8192 > 2048 - 100).",
        2048,
    ),
    (
        "The decoder prompt (length 5000) is longer than the maximum model length of 2048. Make "
        "sure that `max_model_len` is no smaller than the number of text tokens.",
        2048,
    ),
    ("Your input exceeds the context window of this model. Please adjust your input.", None),
    # Anthropic
    ("prompt is too long: 208310 tokens > 200000 maximum", 200000),
    (
        "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease "
        "input length or `max_tokens` and try again",
        200000,
    ),
    # llama.cpp's server, and llama-cpp-python
    ("the request exceeds the available context size. try increasing the context size", None),
    ("Requested tokens (2060) exceed context window of 2048", 2048),
    # SGLang, TGI, Google, Mistral, Groq
    ("The input (5000 tokens) is longer than the model's context length (4096 tokens).", 4096),
    (
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048. Given: 3000 "
        "`inputs` tokens and 20 `max_new_tokens`",
        2048,
    ),
    (
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        1048576,
    ),
    (
        "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum "
        "context length",
        32768,
    ),
    ("Please reduce the length of the messages or completion.", None),
]


@pytest.mark.parametrize(("words", "size"), OVERFLOWS)
def test_overflow(words, size):
    failure = told({"error": {"message": words}})
    assert (failure.kind, failure.context_tokens) == ("overflow", size)


def test_overflow_by_its_code_alone():
    assert told({"message": "no", "code": "context_length_exceeded"}).kind == "overflow"
    assert told({"error": {"type": "request_too_large", "message": "no"}}, 413).kind == "overflow"


def test_overflow_of_llama_cpp_has_its_size_beside_the_words():
    body = {
        "error": {
            "code": 400,
            "message": "the request exceeds the available context size, try increasing it",
            "type": "exceed_context_size_error",
            "n_prompt_tokens": 5000,
            "n_ctx": 4096,
        }
    }
    failure = told(body)
    assert (failure.kind, failure.context_tokens) == ("overflow", 4096)


def test_a_request_larger_than_the_rate_limit_never_passes_unchanged():
    words = (
        "Request too large for gpt-4o in organization o on tokens per min (TPM): Limit 30000, "
        "Requested 40000. The input or output tokens must be reduced in order to run successfully."
    )
    failure = told({"message": words, "code": "rate_limit_exceeded"}, 429)
    assert (failure.kind, failure.context_tokens) == ("overflow", None)


REFUSALS = [
    ("Unsupported parameter: 'temperature' is not supported with this model.", "temperature"),
    ("`temperature` may only be set to 1 when thinking is enabled.", "temperature"),
    ("`temperature` is deprecated for this model.", "temperature"),
    ("temperature: Extra inputs are not permitted", "temperature"),
    ("Unsupported parameter: 'max_tokens' is not supported with this model. Use "
     "'max_completion_tokens' instead.", "max_tokens"),
    ("Unrecognized request argument supplied: max_completion_tokens", "max_completion_tokens"),
    ("Unsupported parameter: 'stop' is not supported with this model.", "stop"),
    ("stop_sequences: Extra inputs are not permitted", "stop"),
    ("Unrecognized request argument supplied: seed", "seed"),
    ("[{'type': 'extra_forbidden', 'loc': ('body', 'stream_options'), 'msg': 'Extra inputs are "
     "not permitted'}]", "stream_options"),
    ("Unrecognized request argument supplied: reasoning_effort", "effort"),
    ("adaptive thinking is not supported on this model", "effort"),
    ("This model does not support the effort parameter.", "effort"),
    ("thinking.type: Input tag 'adaptive' found using 'type' does not match any of the expected "
     "tags: 'disabled', 'enabled'", "effort"),
    ("Your organization must be verified to generate reasoning summaries.", "reasoning.summary"),
    ("Invalid parameter: 'response_format' of type 'json_schema' is not supported with this "
     "model.", "json_schema"),
    ("output_format: Extra inputs are not permitted", "json_schema"),
    ("Failed to initialize samplers: failed to parse grammar", "json_schema"),
    ("Cannot use custom grammar constraints with tools.", "json_schema"),
    ('"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
     "tools"),
    ("tools param requires --jinja flag", "tools"),
    ("registry.example/m does not support tools", "tools"),
    ("System role not supported", "system"),
    ("Developer instruction is not enabled for models/m", "system"),
    ("Unsupported value: 'messages[0].role' does not support 'system' with this model.", "system"),
    ("Your organization must be verified to stream this model. Please go to the settings.",
     "stream"),
    ("streaming is not supported by this model", "stream"),
    ("This model does not support streaming.", "stream"),
    ("Unsupported value: 'stream' does not support true with this model.", "stream"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "word"), REFUSALS)
def test_refused_parameter(words, word):
    failure = told({"error": {"message": words}})
    assert (failure.kind, failure.word) == ("refused_option", word)


def test_the_parameter_may_stand_beside_the_words():
    failure = told({"message": "This is off.", "param": "reasoning.effort"})
    assert (failure.kind, failure.option) == ("refused_option", "effort")


@pytest.mark.parametrize(
    "words",
    [
        "messages.3: `tool_use` ids must be unique and have tool results",
        "Invalid parameter: messages with role 'tool' must be a response to a preceding message "
        "with 'tool_calls': messages.[2].role",
        "messages.1.content.0: Expected `thinking`; must be first when thinking is enabled",
    ],
)
def test_what_is_wrong_with_messages_is_no_refused_parameter(words):
    assert told({"error": {"message": words}}).kind == "wrong"


@pytest.mark.parametrize(
    "words",
    [
        "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for m",
        "max_tokens is too large: 100000. This model supports at most 64000 completion tokens.",
        "Invalid max_tokens value, the valid range of max_tokens is [1, 64000]",
    ],
)
def test_longest_answer(words):
    failure = told({"error": {"message": words}})
    assert (failure.kind, failure.longest_answer) == ("refused_option", 64000)


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (429, {"message": "Slow down", "code": "rate_limit_exceeded"}, "busy"),
        (429, {"message": "You exceeded your current quota", "code": "insufficient_quota"},
         "wrong"),
        (429, {"message": "Rate limit reached. You can increase it by adding a payment method at "
               "https://host/account/billing."}, "busy"),
        (429, [{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "You exceeded "
               "your current quota. Please retry in 20s."}}], "busy"),
        (402, {"message": "Insufficient Balance"}, "wrong"),
        (400, {"error": {"message": "Your credit balance is too low to access the API"}}, "wrong"),
        (503, {"error": {"message": "Loading model", "code": 503}}, "busy"),
        (529, {"error": {"type": "overloaded_error", "message": "Overloaded"}}, "busy"),
        (408, "", "busy"),
        (500, {"error": {"message": "boom"}}, "broken"),
        (502, "<html>Bad Gateway</html>", "broken"),
        (524, "A timeout occurred", "broken"),
        (400, {"error": {"code": "tool_use_failed", "message": "Failed to call a function"}},
         "broken"),
        (401, {"error": {"message": "Incorrect API key provided"}}, "wrong"),
        (403, {"error": {"message": "Country not supported"}}, "wrong"),
        (404, {"detail": "Not Found"}, "wrong"),
        (400, {"error": {"message": "messages.0: something else"}}, "wrong"),
        (400, {"error": {"type": "invalid_request_error", "message": "stop: try tools"}}, "wrong"),
        (400, {"message": "See our page on temperature.", "code": "unsupported_value"},
         "refused_option"),
        (500, {"error": {"message": "unexpected end of the stream"}}, "broken"),
        (400, {"message": "messages.2.role: must be one of 'system', 'user', 'assistant'"},
         "wrong"),
        (400, {"message": "This is off.", "param": "stream"}, "refused_option"),
        (400, None, "wrong"),
        (418, [1, 2], "wrong"),
        (None, {"type": "overloaded_error", "message": "Overloaded"}, "busy"),
        (200, {"type": "error", "error": {"type": "api_error", "message": "Internal"}}, "broken"),
        (None, {"message": "EngineCore died", "code": 500}, "broken"),
        (None, {"message": "temperature: Extra inputs are not permitted", "code": 400},
         "refused_option"),
        (None, {"code": "server_error", "message": "Oh"}, "broken"),
    ],
)  # fmt: skip
def test_kinds(status, body, kind):
    failure = told(body, status)
    assert failure.kind == kind
    assert "\n" not in str(failure)
    assert len(str(failure)) < 500


@pytest.mark.parametrize(
    ("words", "kind", "shown"),
    [
        ("the model is overloaded", "busy", "is busy"),
        ("Invalid API key given", "wrong", "the key in KEY was refused"),
        ("The model `m` does not exist", "wrong", "knows no such model"),
        ("temperature is not supported", "refused_option", "temperature"),
        ("boom", "broken", "failed: boom"),
    ],
)
def test_errors_whose_status_was_good(words, kind, shown):
    failure = told({"error": {"message": words}}, 200)
    assert failure.kind == kind
    assert shown in str(failure)


def test_nothing_is_learnt_of_options_from_a_stream_that_broke():
    body = {"message": "Failed to parse the tool call"}
    assert failure_told(body, host="h", key="", billed=True).kind == "broken"
    assert failure_told(body, 400, host="h", key="").kind == "refused_option"


@pytest.mark.parametrize(
    ("host", "soon"),
    [
        ("127.0.0.1:9", True),
        ("localhost", True),
        ("[::1]:8000", True),
        ("127.0.0.1.example.com", False),
        ("api.example.com", False),
    ],
)
def test_a_server_on_this_machine_that_refuses_connections(host, soon):
    failure = failure_of(httpx2.ConnectError("refused"), host=host, key="", began=False)
    assert failure.kind == "broken"
    assert failure.passes_within_s == (10.0 if soon else math.inf)
    assert ("does its server run?" in str(failure)) is soon
    slow = failure_of(httpx2.ConnectTimeout("slow"), host=host, key="", began=False)
    assert slow.passes_within_s == math.inf


def test_a_refused_key_is_named_not_shown():
    body = {"error": {"message": "Incorrect API key provided: sk-abc"}}
    assert (
        str(told(body, 401)) == "the key in KEY was refused by host (401): set one that is valid."
    )


def test_a_long_page_is_cut_and_the_cut_is_told():
    assert str(told("x" * 10_000, 502)).endswith("… (9700 more) (502)")


def test_our_own_reading_errors_mean_rubbish():
    failure = failure_of(KeyError("choices"), host="host", key="", began=True)
    assert (failure.kind, failure.billed) == ("broken", True)
    assert "KeyError" in str(failure)


@pytest.mark.parametrize(
    ("headers", "words", "seconds"),
    [
        ({"retry-after": "7"}, "", 7.0),
        ({"retry-after": "0.5"}, "", 0.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, "", 0.25),
        ({"retry-after": "-3"}, "", None),
        ({"retry-after": "nan"}, "", None),
        ({"retry-after": "soon"}, "", None),
        ({}, "Rate limit reached. Please try again in 1m2.5s. Visit …", 62.5),
        ({}, "Please try again in 20s.", 20.0),
        ({}, "Please try again in 350ms.", 0.35),
        ({}, "Please retry in 20.5s.", 20.5),
        ({}, "Please try again in a while.", None),
        ({}, "", None),
    ],
)
def test_retry_after(headers, words, seconds):
    assert retry_after_s(headers, words) == pytest.approx(seconds)


def test_retry_after_as_a_date():
    soon = datetime.now(UTC) + timedelta(seconds=30)
    assert retry_after_s({"retry-after": format_datetime(soon, usegmt=True)}) == pytest.approx(
        30, abs=2
    )
    assert retry_after_s({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0.0

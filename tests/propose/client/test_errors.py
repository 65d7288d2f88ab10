"""Refusals in the words of real servers."""

from __future__ import annotations

from typing import Any

import pytest

from grace_irl.propose.client.errors import (
    CallFailure,
    declined,
    longest_answer,
    overflow,
    refuses_system_role,
    rejected_parameters,
    unknown_model,
)

SENT = {"temperature", "seed", "n", "response_format", "max_tokens"}


def failure(message: str, status: int = 400, **body: Any) -> CallFailure:
    return CallFailure("rejected", f"HTTP {status}", status=status, said=message, body={"message": message, **body})


OVERFLOWS = {
    "vllm": (
        failure(
            "This model's maximum context length is 8192 tokens. However, your prompt contains at least 8193 input "
            "tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input "
            "prompt. (parameter=input_tokens, value=8193)",
            param="input_tokens",
        ),
        (8192, 8193),
    ),
    "vllm, by characters": (
        failure(
            "This model's maximum context length is 8192 tokens. However, your prompt contains 900000 characters (more "
            "than 50000 characters, which is the upper bound for 8192 input tokens). Please reduce the length",
            param="input_text",
        ),
        (8192, None),
    ),
    "vllm, by max_tokens": (
        failure(
            "max_tokens=9000 cannot be greater than max_model_len=8192. Please request fewer output tokens. "
            "(parameter=max_tokens, value=9000)",
            param="max_tokens",
        ),
        (8192, None),
    ),
    "vllm, older": (
        failure(
            "'max_tokens' or 'max_completion_tokens' is too large: 8190. This model's maximum context length is 8192 "
            "tokens and your request has 30 input tokens (8190 > 8192 - 30)."
        ),
        (8192, 30),
    ),
    "vllm, engine": (
        failure("The decoder prompt (length 9001) is longer than the maximum model length of 8192. Make sure that"),
        (8192, 9001),
    ),
    "llama.cpp": (
        failure(
            "the request exceeds the available context size. try increasing the context size or enable context shift",
            type="exceed_context_size_error",
            n_prompt_tokens=14429,
            n_ctx=8192,
            code=400,
        ),
        (8192, 14429),
    ),
    "llama.cpp, older": (
        failure(
            "the request exceeds the available context size",
            500,
            type="exceed_context_size_error",
            n_prompt_tokens=1407,
            n_ctx=256,
        ),
        (256, 1407),
    ),
    "llama-cpp-python": (
        failure("This model's maximum context length is 2048 tokens, however you requested 2285 tokens (2285 in your"),
        (2048, None),
    ),
    "openai": (
        failure(
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 129000 tokens. "
            "Please reduce the length of the messages.",
            code="context_length_exceeded",
            param="messages",
        ),
        (128000, 129000),
    ),
    "openai, older": (
        failure(
            "This model's maximum context length is 4097 tokens. However, you requested 5000 tokens (1000 in the "
            "messages, 4000 in the completion).",
            code="context_length_exceeded",
        ),
        (4097, 1000),
    ),
    "openai, without numbers": (
        failure("Your input exceeds the context window of this model.", code="context_length_exceeded"),
        (None, None),
    ),
    "a gateway": (failure("prompt is too long: 210000 tokens > 200000 maximum"), (200000, 210000)),
    "vllm, newer": (
        failure(
            "You passed 9000 input tokens and requested 0 output tokens. However, the model's context length is only "
            "8192 tokens, resulting in a maximum input length of 8192 tokens."
        ),
        (8192, 9000),
    ),
    "llama.cpp, newer": (
        failure("the request exceeds the available context size (4096 tokens), try increasing it"),
        (4096, None),
    ),
    "sglang": (
        failure(
            "Requested token count exceeds the model's maximum context length of 32768 tokens. You requested a total "
            "of 33000 tokens: 28904 tokens from the input messages and 4096 tokens for the completion."
        ),
        (32768, 28904),
    ),
    "sglang, by the input": (
        failure("The input (12000 tokens) is longer than the model's context length (8192 tokens)."),
        (8192, 12000),
    ),
    "tgi": (
        failure(
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 3500 `inputs` tokens "
            "and 4096 `max_new_tokens`",
            422,
        ),
        (4096, 3500),
    ),
    "tgi, by the input": (
        failure("Input validation error: `inputs` must have less than 4095 tokens. Given: 9000", 422),
        (4095, 9000),
    ),
    "anthropic": (
        failure(
            "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or "
            "`max_tokens` and try again",
            type="invalid_request_error",
        ),
        (200000, 190000),
    ),
    "openrouter": (
        failure(
            "This endpoint's maximum context length is 131072 tokens. However, you requested about 140000 tokens "
            "(135904 of text input, 4096 in the output)."
        ),
        (131072, 135904),
    ),
    "gemini": (
        failure("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
        (1048576, 1200000),
    ),
    "mistral": (
        failure(
            "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length"
        ),
        (32768, 40000),
    ),
    "groq": (
        failure(
            "Request too large for model `llama-3.3-70b-versatile` in organization `org_x` service tier `on_demand` on "
            "tokens per minute (TPM): Limit 6000, Requested 14810, please reduce your message size and try again.",
            413,
            type="tokens",
            code="rate_limit_exceeded",
        ),
        (6000, 14810),
    ),
    "openai, tokens per minute": (
        failure(
            "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 342389. The input or output "
            "tokens must be reduced in order to run successfully.",
            429,
        ),
        (30000, 342389),
    ),
    "openai, configured": (
        failure("Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens."),
        (272000, 300000),
    ),
}


@pytest.mark.parametrize("name", OVERFLOWS)
def test_a_context_that_is_too_short(name: str) -> None:
    given, expected = OVERFLOWS[name]
    found = overflow(given)
    assert found is not None
    assert (found.limit, found.prompt_tokens) == expected


@pytest.mark.parametrize(
    "given",
    [
        failure("temperature must be non-negative, got -3.0"),
        failure("internal error: context length", 500),
        failure("the context length is fine", 429),
        failure(
            "Rate limit reached for model `x` on tokens per minute (TPM): Limit 6000, Used 5034, Requested 1443. "
            "Please try again in 4.77s.",
            429,
        ),
    ],
)
def test_what_is_no_overflow(given: CallFailure) -> None:
    assert overflow(given) is None


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # OpenAI
        (
            failure(
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' "
                "instead.",
                param="max_tokens",
                code="unsupported_parameter",
            ),
            {"max_tokens"},
        ),
        (
            failure("Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."),
            {"max_tokens"},
        ),
        (
            failure(
                "Unsupported value: 'temperature' does not support 0.8 with this model. Only the default (1) value",
                param="temperature",
                code="unsupported_value",
            ),
            {"temperature"},
        ),
        (failure("Invalid parameter: 'response_format' …", param="response_format.json_schema"), {"response_format"}),
        # vLLM
        (failure("n must be 1 when using greedy sampling, got 3."), {"n"}),
        (failure("temperature must be non-negative, got -3.0. (parameter=temperature, value=-3.0)"), {"temperature"}),
        # gateways
        (failure("Unknown parameter: 'seed'", 422), {"seed"}),
        (failure("seed: Extra inputs are not permitted; n: Extra inputs", 422), {"seed"}),
        (failure("Parameter n must be 1"), {"n"}),
        (failure("`n` is not supported"), {"n"}),
        # about something else
        (failure("the number of tokens in a message"), set()),
        (failure("Unknown parameter: 'top_k'"), set()),
        (failure("no max_completion_tokens please"), set()),
        (failure("temperature", 500), set()),
    ],
)
def test_parameters_that_a_server_refuses(given: CallFailure, expected: set[str]) -> None:
    assert rejected_parameters(given, SENT) == expected


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            "max_tokens is too large: 32000. This model supports at most 16384 completion tokens, whereas you provided",
            16384,
        ),
        ("max_tokens: 9000 > 8192, which is the maximum allowed number of output tokens for this model", 8192),
        ("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", 8192),
        (
            "`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than the "
            "`context_window` for this model",
            8192,
        ),
        ("'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", None),
        ("max_tokens must be at least 1", None),
    ],
)
def test_the_longest_answer(message: str, expected: int | None) -> None:
    assert longest_answer(failure(message)) == expected
    assert overflow(failure(message)) is None


def test_only_what_was_sent_is_refused() -> None:
    assert rejected_parameters(failure("Unknown parameter: 'seed'", param="seed"), SENT - {"seed"}) == set()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (failure("The model `nope` does not exist. Valid aliases: dummy.", 404, type="NotFoundError"), True),
        (failure('model "nope" not found, try pulling it first', 404), True),
        (failure("no such thing", 404, code="model_not_found"), True),
        (failure("models/x is not found for API version v1main, or is not supported for generateContent.", 404), True),
        (failure("model: x", 404, type="not_found_error"), True),  # Anthropic
        (failure("The API deployment for this resource does not exist.", 404, code="DeploymentNotFound"), True),
        (failure("x is not a valid model ID", code=400), True),  # OpenRouter
        (failure("Model Not Exist"), True),  # DeepSeek
        (failure("Invalid model name passed in model=x. Call `/v1/models`"), True),  # LiteLLM
        (failure("Not Found", 404), False),
        (failure("temperature must be", 400), False),
        (failure("This model does not support image input: unknown part type"), False),
        (failure("temperature 0.8 for this model is invalid"), False),
        (failure("Unsupported parameter: 'n' with this model; value invalid"), False),
    ],
)
def test_a_model_that_a_server_does_not_have(given: CallFailure, expected: bool) -> None:
    assert unknown_model(given) is expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (failure("System role not supported"), True),
        (failure("Conversation roles must alternate user/assistant/user/assistant/..."), True),
        (failure("the system is down", 500), False),
    ],
)
def test_a_template_without_a_system_text(given: CallFailure, expected: bool) -> None:
    assert refuses_system_role(given) is expected


def test_a_filter_that_declines() -> None:
    assert declined(failure("The response was filtered", code="content_filter"))
    assert not declined(failure("The response was filtered", 500, code="content_filter"))

"""Requests as they are sent, and lessons from refusals and answers."""

from __future__ import annotations

import base64
from typing import Any

from grace_irl.propose.client.dialect import Dialect
from grace_irl.propose.client.errors import CallFailure
from grace_irl.propose.json_answer import ANSWER_SCHEMA
from grace_irl.propose.protocol import AnswerFormat, Prompt

PROMPT = Prompt("who you are", "what to do")


def payload(dialect: Dialect, prompt: Prompt = PROMPT, n: int = 2, answer: AnswerFormat = "code") -> dict[str, Any]:
    return dialect.payload(
        prompt, model="m", temperature=0.5, max_tokens=99, n=n, schema=ANSWER_SCHEMA if answer == "json" else None
    )


def refusal(message: str, status: int = 400) -> CallFailure:
    kind: Any = "server error" if status >= 500 else "rejected"
    return CallFailure(kind, f"HTTP {status}", status=status, said=message, body={})


def test_a_request_says_all_of_it() -> None:
    assert payload(Dialect()) == {
        "model": "m",
        "messages": [{"role": "system", "content": "who you are"}, {"role": "user", "content": "what to do"}],
        "temperature": 0.5,
        "max_tokens": 99,
        "n": 2,
    }
    assert "n" not in payload(Dialect(), n=1)


def test_code_is_asked_for_without_a_schema_and_json_by_one() -> None:
    assert "response_format" not in payload(Dialect())
    sent = payload(Dialect(), answer="json")["response_format"]
    assert sent["type"] == "json_schema"
    assert sent["json_schema"]["schema"]["required"] == ["reasoning", "reward_class_code"]


def test_images_go_behind_the_text_as_data() -> None:
    content = payload(Dialect(), Prompt("who", "what", (b"\x89PNG", b"other")))["messages"][1]["content"]
    assert content[0] == {"type": "text", "text": "what"}
    urls = [part["image_url"]["url"] for part in content[1:]]
    assert [base64.b64decode(url.removeprefix("data:image/png;base64,")) for url in urls] == [b"\x89PNG", b"other"]


def test_without_a_system_text_there_is_no_system_message() -> None:
    assert payload(Dialect(), Prompt("", "what"))["messages"] == [{"role": "user", "content": "what"}]


def test_a_refused_parameter_is_left_out_with_one_note() -> None:
    dialect, name = Dialect(), "temperature"
    said = refusal(f"Unknown parameter: '{name}'")
    sent = payload(dialect)
    assert dialect.learn(said, sent, 1) == [f"the server does not accept {name}: it is left out from now on"]
    assert dialect.learn(said, sent, 1) == []  # another request that was under way
    assert set(payload(dialect)) == set(sent) - {name}


def test_max_tokens_gets_its_newer_name_and_goes_where_that_is_refused_too() -> None:
    dialect = Dialect()
    assert len(dialect.learn(refusal("'max_tokens' is not supported"), payload(dialect), 1)) == 1
    assert payload(dialect)["max_completion_tokens"] == 99
    assert "max_tokens" not in payload(dialect)
    assert len(dialect.learn(refusal("'max_completion_tokens' is not supported"), payload(dialect), 1)) == 1
    assert not {"max_tokens", "max_completion_tokens"} & set(payload(dialect))


def test_a_refused_n_means_one_answer_a_request() -> None:
    dialect = Dialect()
    assert len(dialect.learn(refusal("n must be 1 when using greedy sampling, got 2."), payload(dialect), 1)) == 1
    assert dialect.most_choices == 1
    assert dialect.learn(refusal("n must be 1 when using greedy sampling, got 2."), payload(dialect), 1) == []


def test_fewer_answers_twice_in_a_row_are_the_most_a_server_gives() -> None:
    dialect = Dialect()
    sent = payload(dialect, n=4)
    dialect.accepted(sent, 1)
    dialect.accepted(sent, 4)
    dialect.accepted(sent, 3)
    assert dialect.most_choices is None
    dialect.accepted(sent, 2)
    assert dialect.most_choices == 2


def test_a_single_answer_to_a_single_question_says_nothing() -> None:
    dialect = Dialect()
    for _ in range(3):
        dialect.accepted(payload(dialect, n=1), 1)
    assert dialect.most_choices is None


def test_a_schema_is_sent_in_llama_cpps_form_where_openais_is_refused() -> None:
    dialect = Dialect()
    sent = payload(dialect, answer="json")
    assert dialect.learn(refusal("boom", 500), sent, 1) == []  # may be an accident
    assert len(dialect.learn(refusal("boom", 500), sent, 2)) == 1
    second = payload(dialect, answer="json")["response_format"]
    assert (second["type"], second["schema"]["type"]) == ("json_object", "object")


def test_two_calls_that_meet_the_refusal_at_once_learn_one_form() -> None:
    dialect = Dialect()
    sent = [payload(dialect, answer="json") for _ in range(2)]
    said = refusal("'response_format' of type 'json_schema' is not supported")
    assert len(dialect.learn(said, sent[0], 1)) == 1
    assert dialect.learn(said, sent[1], 1) == []
    assert payload(dialect, answer="json")["response_format"]["type"] == "json_object"
    assert len(dialect.learn(said, payload(dialect, answer="json"), 1)) == 1  # refused in this form, too
    assert "response_format" not in payload(dialect, answer="json")


def test_a_server_that_is_busy_says_nothing_about_the_schema() -> None:
    busy = CallFailure("server error", "HTTP 503", status=503, said="overloaded")
    assert Dialect().learn(busy, payload(Dialect(), answer="json"), 2) == []


def test_a_schema_that_worked_is_not_given_up() -> None:
    dialect = Dialect()
    sent = payload(dialect, answer="json")
    dialect.accepted(sent, 2)
    assert dialect.learn(refusal("boom", 500), sent, 5) == []
    assert payload(dialect, answer="json") == sent


def test_a_system_text_opens_the_users_where_the_template_has_no_place_for_it() -> None:
    dialect = Dialect()
    assert len(dialect.learn(refusal("System role not supported"), payload(dialect), 1)) == 1
    assert payload(dialect)["messages"] == [{"role": "user", "content": "who you are\n\nwhat to do"}]


def test_a_refusal_that_says_two_things_gives_two_notes() -> None:
    said = refusal("System role not supported. This model supports at most 64 completion tokens")
    assert [each.split(":")[0] for each in Dialect().learn(said, payload(Dialect()), 1)] == [
        "the model accepts no system message",
        "the model writes answers of at most 64 tokens",
    ]

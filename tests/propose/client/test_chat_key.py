"""The key: sent, and never shown."""

from __future__ import annotations

import logging

import pytest

from grace_irl.errors import GraceError, InputError
from tests.propose.client import server as says
from tests.propose.client.server import Behaviour, ChatServer
from tests.propose.client.talk import Talk

KEY = "sk-a-secret-that-nobody-may-see"


@pytest.mark.parametrize("name", ["GRACE_IRL_API_KEY", "OPENAI_API_KEY"])
@pytest.mark.parametrize("status", [401, 403])
def test_a_key_that_is_refused_is_not_shown(
    server: ChatServer,
    name: str,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(name, KEY)
    caplog.set_level(logging.DEBUG)
    server.rule = lambda payload: says.error(status, f"Incorrect API key provided: {KEY}.\nSee …")
    talk = Talk(server)
    with pytest.raises(InputError, match="refuses the key") as raised:
        talk.texts()
    assert server.authorizations[-1] == f"Bearer {KEY}"
    chain: list[BaseException] = [raised.value]
    while chain[-1].__cause__ or (chain[-1].__context__ and not chain[-1].__suppress_context__):
        chain.append(chain[-1].__cause__ or chain[-1].__context__ or raised.value)
    out, err = capfd.readouterr()
    shown = [repr(error) + str(vars(error)) for error in chain]
    shown += [out, err, caplog.text, repr(talk.client), repr(talk.client.settings)]
    assert not [text for text in shown if KEY in text]
    assert "\n" not in str(raised.value)


def test_a_key_that_is_wanted(server: ChatServer) -> None:
    server.rule = lambda payload: says.error(401, "Unauthorized")
    with pytest.raises(InputError, match=r"wants a key, and none is set .*GRACE_IRL_API_KEY"):
        Talk(server).texts()


@pytest.mark.parametrize("behaviour", [says.error(400, f"bad {KEY}"), says.error(500, f"bad {KEY}"), says.BUSY])
def test_no_other_error_shows_the_key(
    server: ChatServer, behaviour: Behaviour, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRACE_IRL_API_KEY", KEY)
    server.rule = lambda payload: behaviour
    with pytest.raises(GraceError) as raised:
        Talk(server, attempts=2, patience=0.05).texts()
    assert KEY not in f"{raised.value!r} {vars(raised.value)}"


def test_our_key_goes_before_the_general_one(server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRACE_IRL_API_KEY", "ours")
    monkeypatch.setenv("OPENAI_API_KEY", "general")
    Talk(server).texts()
    assert set(server.authorizations) == {"Bearer ours"}


@pytest.mark.parametrize("key", ["two words", "line\nbreak", "schlüssel"])
def test_what_no_header_can_carry_is_no_key(server: ChatServer, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRACE_IRL_API_KEY", key)
    with pytest.raises(InputError, match="GRACE_IRL_API_KEY is no key") as raised:
        Talk(server)
    assert key not in str(raised.value)

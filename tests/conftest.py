"""For all tests."""

import signal

import pytest

# A background job of a shell ignores Ctrl-C, and so would everything that a test starts or interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = ["tests.propose.vllm"]

# Helpers outside test modules say what was compared, too.
pytest.register_assert_rewrite("tests.demos.equality", "tests.fakes", "tests.hostile", "tests.sandbox.conformance")

"""For all tests."""

import pytest

pytest_plugins = ["tests.propose.vllm"]

# Helpers outside test modules say what was compared, too.
pytest.register_assert_rewrite("tests.demos.equality", "tests.fakes", "tests.hostile", "tests.sandbox.conformance")

"""Duties of every sandbox. A test class inherits `SandboxConformance` and gives it a `sandbox` fixture."""

from tests.sandbox.conformance.calls import Calls
from tests.sandbox.conformance.debug_texts import DebugTexts
from tests.sandbox.conformance.outcomes import Outcomes
from tests.sandbox.conformance.rewards import Rewards
from tests.sandbox.conformance.screens import Screens
from tests.sandbox.conformance.sources import Sources
from tests.sandbox.conformance.states import States


class SandboxConformance(Rewards, States, Screens, DebugTexts, Outcomes, Sources, Calls):
    """All of it."""

"""The sandbox, which runs generated reward programs in locked-down child processes (docs/sandbox.md)."""

from grace_irl.sandbox.protocol import DebugRequest, Inspection, Limits, Outcome, Sandbox
from grace_irl.sandbox.tiers import open_sandbox

__all__ = ["DebugRequest", "Inspection", "Limits", "Outcome", "Sandbox", "open_sandbox"]

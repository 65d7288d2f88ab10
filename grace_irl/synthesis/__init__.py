"""The synthesiser, which writes reward programs without a language model."""

from grace_irl.synthesis.synthesiser import Synthesiser

__all__ = ["Synthesiser"]

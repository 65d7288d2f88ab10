"""Evaluation of programs: the AIRL discriminator's fitness, metrics, EPIC (docs/fitness.md)."""

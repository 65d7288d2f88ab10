"""Evaluation of reward programs: fitness by the AIRL discriminator, metrics, and EPIC (docs/fitness.md)."""

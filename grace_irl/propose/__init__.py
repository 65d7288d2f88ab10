"""Proposers: who answers a search's requests with programs (a model, a person, a recording)."""

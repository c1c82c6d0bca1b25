"""Candidates of pods that run elsewhere, which wait for room in a better cluster."""

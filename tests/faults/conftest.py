"""Clients for tests about failures, whose fleets are one a module: each needs another kind."""

from __future__ import annotations

from tests.clients import c1, c2, c3, c4, source, target

__all__ = ["c1", "c2", "c3", "c4", "source", "target"]

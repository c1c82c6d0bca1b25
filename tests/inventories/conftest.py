"""Clients for tests with programs of inventories, whose fleets are one a module."""

from __future__ import annotations

from tests.clients import c1, c2, c3, source, target

__all__ = ["c1", "c2", "c3", "source", "target"]

"""Fixtures of the chart's tests."""

from __future__ import annotations

from tests.fleets import bare_fleet

__all__ = ["bare_fleet"]

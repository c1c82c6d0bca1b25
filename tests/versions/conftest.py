"""The fleet and clients of the end-to-end tests, whose clusters may have any version."""

from __future__ import annotations

from tests.clients import c1, c2, c3, source
from tests.e2e.conftest import _clean, fleet

__all__ = ["_clean", "c1", "c2", "c3", "fleet", "source"]

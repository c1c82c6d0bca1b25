"""Fixtures of all integration tests."""

from __future__ import annotations

import asyncio

from tests.fleets import bare_fleet, client, fleet, installation, namespace

__all__ = ["bare_fleet", "client", "fleet", "installation", "namespace"]

# Otherwise pytest-asyncio asks for "the" loop before its first test, and before Python 3.14 asking
# makes one that nobody closes.
asyncio.set_event_loop(None)

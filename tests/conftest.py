"""What all tests share."""

from __future__ import annotations

import asyncio

from hypothesis import HealthCheck, settings

# Otherwise pytest-asyncio asks for "the" loop before its first test, and before Python 3.14 asking
# makes one that nobody closes.
asyncio.set_event_loop(None)

# How long an example takes says more about the machine than about the code.
settings.register_profile(
    "vnode", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("vnode")

"""Waits for what the agent of c1 says in its metrics."""

from __future__ import annotations

import asyncio

import aiohttp

from tests import kit
from tests.e2e.test_agent_endpoints import address
from tests.kit import Fleet


async def until_metric(fleet: Fleet, text: str) -> None:
    """Wait until the metrics have this text."""
    url = f"http://{address(fleet, 'c1')}:8080/metrics"
    async with asyncio.timeout(kit.PATIENCE), aiohttp.ClientSession() as session:
        while True:
            async with session.get(url) as answer:
                if text in await answer.text():
                    return

            await asyncio.sleep(0.1)  # a gauge has no event

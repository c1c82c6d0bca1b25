"""Serves liveness, readiness and metrics of an agent.

It is plain HTTP, as probes and Prometheus expect. Each part without which the agent is not ready
registers a named check, which returns None, or in a few words why not.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Iterable
from typing import Final

from aiohttp import web

from vnode.api.clock import Clock, SystemClock
from vnode.api.listeners import Listeners
from vnode.api.slices import in_slices
from vnode.runtime.applications import application
from vnode.runtime.connections import ConnectionLimits
from vnode.telemetry import metrics

Check = Callable[[], str | None]
Steps = Iterable[None]

LIMITS: Final = ConnectionLimits(
    connections=128,
    seconds=10.0,
    idle=100.0,  # Prometheus asks every minute or so on one connection
    each=64 * 1024,
)

_PAUSE: Final = 3.0
"""Times as long as a rendering has taken, for which others are answered with it. It grows with the
number of targets, and anybody who reaches the port may ask for it without an end."""
_METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

log = logging.getLogger(__name__)


class ProcessHealth:
    """Keeps named checks and serves the three pages."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._checks: dict[str, Check] = {}
        self._gauges: Listeners[[list[Steps]]] = Listeners()
        self._one_at_a_time = asyncio.Lock()
        self._rendered = b""  # the last rendering
        self._fresh_until = float("-inf")  # monotonic; of the last rendering

    def on_scrape(self, update: Callable[[], Steps]) -> None:
        """Take the steps of `update` before each scrape, for gauges that are cheaper to compute
        than to keep; others have their turns in between."""
        self._gauges.add(lambda found: found.append(update()))

    def add(self, name: str, check: Check) -> None:
        """Add a check for readiness: it must be quick; an exception counts as a failure."""
        self._checks[name] = check

    def add_event(self, name: str, event: asyncio.Event) -> None:
        """Add a check for readiness that passes while the event is set."""
        self.add(name, lambda: None if event.is_set() else "not yet")

    def add_awaited(
        self, name: str, events: Iterable[asyncio.Event], seconds: float, clock: Clock
    ) -> None:
        """Add a check for readiness that passes once all events are set, or after so long.

        It is for what most can do without: an agent is not to be out of service for it.
        """
        awaited, end = tuple(events), clock.monotonic() + seconds

        def check() -> str | None:
            is_over = clock.monotonic() >= end or all(event.is_set() for event in awaited)
            return None if is_over else "not yet"

        self.add(name, check)

    def remove(self, name: str) -> None:
        """Remove a check."""
        self._checks.pop(name, None)

    def failures(self) -> dict[str, str]:
        """Return the checks that fail, and why; empty if the agent is ready."""
        return {name: why for name, check in self._checks.items() if (why := _run(check))}

    def app(self) -> web.Application:
        """Build the application with /healthz, /readyz and /metrics."""
        app = application()
        app.add_routes(
            [
                web.get("/healthz", self._healthz),
                web.get("/readyz", self._readyz),
                web.get("/metrics", self._metrics),
            ]
        )
        return app

    async def _healthz(self, _request: web.Request) -> web.Response:
        """Answer 200, which shows that the event loop runs."""
        return web.Response(text="ok\n")

    async def _readyz(self, _request: web.Request) -> web.Response:
        failures = self.failures()
        if not failures:
            return web.Response(text="ok\n")

        lines = (f"{name}: {why}\n" for name, why in sorted(failures.items()))
        return web.Response(status=503, text="".join(lines))

    async def _metrics(self, _request: web.Request) -> web.Response:
        """Answer all that ask at once, or shortly after, with one rendering."""
        async with self._one_at_a_time:
            if self._clock.monotonic() >= self._fresh_until:
                await self._render()

        return web.Response(body=self._rendered, headers={"Content-Type": _METRICS_TYPE})

    async def _render(self) -> None:
        begun, gauges = self._clock.monotonic(), list[Steps]()
        self._gauges.call(gauges)
        async for _ in in_slices(itertools.chain.from_iterable(gauges), self._clock):
            pass

        self._rendered = await asyncio.get_running_loop().run_in_executor(None, metrics.render)
        now = self._clock.monotonic()
        self._fresh_until = now + _PAUSE * (now - begun)


def _run(check: Check) -> str | None:
    try:
        return check()
    except Exception as error:
        log.exception("a readiness check failed")
        return f"the check failed: {error}"

"""What the cluster asks an agent: does it live, is it ready, what has it counted.

Plain HTTP, as probes and Prometheus expect. Whoever must work for the agent to be of use registers
a named check, which answers None, or in a few words why not.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from aiohttp import web

from vnode.api.listeners import Listeners
from vnode.telemetry import metrics

Check = Callable[[], str | None]

_METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

log = logging.getLogger(__name__)


class ProcessHealth:
    """Named checks and the three pages."""

    def __init__(self) -> None:
        self._checks: dict[str, Check] = {}
        self._gauges: Listeners[[]] = Listeners()

    def on_scrape(self, update: Callable[[], None]) -> None:
        """Call `update` before metrics are shown, for gauges that are cheaper asked than kept."""
        self._gauges.add(update)

    def add(self, name: str, check: Check) -> None:
        """Be ready only if this check answers None. It must be quick; an exception is a failure."""
        self._checks[name] = check

    def add_event(self, name: str, event: asyncio.Event) -> None:
        """Be ready only while the event is set."""
        self.add(name, lambda: None if event.is_set() else "not yet")

    def remove(self, name: str) -> None:
        """Ask that check no more."""
        self._checks.pop(name, None)

    def failures(self) -> dict[str, str]:
        """The checks that fail, and why; empty if the agent is ready."""
        return {name: why for name, check in self._checks.items() if (why := _ask(check))}

    def app(self) -> web.Application:
        """The application with /healthz, /readyz and /metrics."""
        app = web.Application()
        app.add_routes(
            [
                web.get("/healthz", self._healthz),
                web.get("/readyz", self._readyz),
                web.get("/metrics", self._metrics),
            ]
        )
        return app

    async def _healthz(self, _request: web.Request) -> web.Response:
        """The event loop turns, or there would be no answer."""
        return web.Response(text="ok\n")

    async def _readyz(self, _request: web.Request) -> web.Response:
        failures = self.failures()
        if not failures:
            return web.Response(text="ok\n")

        lines = (f"{name}: {why}\n" for name, why in sorted(failures.items()))
        return web.Response(status=503, text="".join(lines))

    async def _metrics(self, _request: web.Request) -> web.Response:
        self._gauges.call()

        body = await asyncio.to_thread(metrics.render)
        return web.Response(body=body, headers={"Content-Type": _METRICS_TYPE})


def _ask(check: Check) -> str | None:
    try:
        return check()
    except Exception as error:
        log.exception("a readiness check failed")
        return f"the check failed: {error}"

"""Serves the pages, and notifies open ones of changes by Server-Sent Events.

Events carry no data: the page then requests itself again, so that there is one way to render it,
with the script or without. All requests are reads.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib import resources
from typing import Final

from aiohttp import web

from vnode.api import objects
from vnode.api.clock import happens_within
from vnode.api.errors import ConfigError, VnodeError
from vnode.dashboard import (
    overview,
    page,
    pod_page,
    pods_page,
    policies_page,
    search_page,
    target_page,
)
from vnode.dashboard.live_model import LiveModel
from vnode.dashboard.page import Paths
from vnode.insight import story
from vnode.runtime.applications import application
from vnode.runtime.serving import Handler

_MIN_INTERVAL: Final = 1.0  # seconds between two events of one stream, whatever happens
# Seconds until a page is loaded anyway: usage, ages and the answers of targets are not watched.
_MAX_INTERVAL: Final = 15.0
# Seconds until a stream ends, and the browser asks for another, which takes the right to see it.
_MAX_LIFE: Final = 600.0
_MAX_STREAMS: Final = 64  # open at once; a page that gets none reloads every ten seconds
_ASSETS: Final = {
    "style.css": "text/css",
    "live.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
_HEADERS: Final = {
    "Content-Security-Policy": page.POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}

log = logging.getLogger(__name__)


class Site:
    """The pages below `base`, which begins with a slash and does not end with one."""

    def __init__(self, live_model: LiveModel, base: str) -> None:
        self._live_model = live_model
        self._base = base
        self._paths = Paths(base)
        self._streams = 0
        folder = resources.files(__package__) / "assets"
        self._assets = {name: (folder / name).read_bytes() for name in _ASSETS}

    def app(self, middlewares: Iterable[Callable[..., object]] = ()) -> web.Application:
        """Make the application; requests pass through `middlewares` before they reach a page."""
        app = application([_frame, *middlewares])
        base = self._base
        app.add_routes(
            [
                web.get(base, self._home, allow_head=False),
                web.get(f"{base}/", self._overview),
                web.get(f"{base}/pods", self._pods),
                web.get(f"{base}/pods/{{namespace}}/{{name}}", self._story),
                web.get(f"{base}/targets/{{name}}", self._target),
                web.get(f"{base}/targets/{{namespace}}/{{name}}", self._target),
                web.get(f"{base}/policies", self._policies),
                web.get(f"{base}/search", self._search),
                web.get(f"{base}/events", self._events, allow_head=False),
                web.get(f"{base}/{{asset:[a-z.]+}}", self._asset),
            ]
        )
        return app

    async def _home(self, _request: web.Request) -> web.StreamResponse:
        raise web.HTTPPermanentRedirect(self._paths.overview)

    async def _overview(self, _request: web.Request) -> web.Response:
        view = await self._live_model.view()
        return await self._built(lambda: overview.build(view, self._paths))

    async def _pods(self, request: web.Request) -> web.Response:
        view = await self._live_model.view()
        given = dict(request.query)
        return await self._built(lambda: pods_page.build(view, self._paths, given))

    async def _target(self, request: web.Request) -> web.Response:
        view = await self._live_model.view()
        given = request.match_info
        key = objects.join_key(given.get("namespace", ""), given["name"])
        target = next((each for each in view.targets if each.name == key), None)
        if target is None:
            return _page(target_page.absent(view, self._paths, key), status=404)

        return await self._built(lambda: target_page.build(view, self._paths, target))

    async def _search(self, request: web.Request) -> web.Response:
        view = await self._live_model.view()
        text = request.query.get("q", "")
        return await self._built(lambda: search_page.build(view, self._paths, text))

    async def _policies(self, _request: web.Request) -> web.Response:
        view = await self._live_model.view()
        return await self._built(lambda: policies_page.build(view, self._paths))

    async def _built(self, build: Callable[[], bytes]) -> web.Response:
        async with self._live_model.turns.turn():
            return _page(await asyncio.to_thread(build))

    async def _story(self, request: web.Request) -> web.Response:
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        now, cluster = self._live_model.clock.now(), self._live_model.cluster
        try:
            facts = await self._live_model.facts(namespace, name)
        except ConfigError as error:
            key = f"{namespace}/{name}"
            body = pod_page.absent(key, str(error), self._paths, cluster=cluster, now=now)
            return _page(body, status=404)

        def build() -> bytes:
            told = story.build(facts)
            return pod_page.build(told, self._paths, cluster=cluster, now=facts.now)

        return await self._built(build)

    async def _asset(self, request: web.Request) -> web.Response:
        name = request.match_info["asset"]
        if name not in self._assets:
            raise web.HTTPNotFound

        return web.Response(body=self._assets[name], content_type=_ASSETS[name], charset="utf-8")

    async def _events(self, request: web.Request) -> web.StreamResponse:
        if self._streams >= _MAX_STREAMS:
            raise web.HTTPServiceUnavailable(text="too many open pages\n")

        self._streams += 1
        try:
            return await self._stream(request)
        finally:
            self._streams -= 1

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={**_HEADERS, "Content-Type": "text/event-stream"})
        clock = self._live_model.clock
        ends = clock.monotonic() + _MAX_LIFE
        with self._live_model.subscription(request.query.get("pod", "")) as subscriber:
            await response.prepare(request)
            with suppress(ConnectionResetError):  # the browser has gone
                await response.write(b"retry: 2000\n\n")
                while clock.monotonic() < ends:
                    await happens_within(subscriber.changed, _MAX_INTERVAL)
                    subscriber.changed.clear()
                    await response.write(b"event: changed\ndata: .\n\n")
                    await clock.sleep(_MIN_INTERVAL)

        return response


def _page(body: bytes, status: int = 200) -> web.Response:
    return web.Response(body=body, status=status, content_type="text/html", charset="utf-8")


@web.middleware
async def _frame(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Add headers to every answer, also to errors; a bug in one page breaks no other."""
    try:
        response = await handler(request)
    except web.HTTPException as answer:
        answer.headers.update(_HEADERS)
        raise
    except VnodeError as error:
        response = web.Response(status=502, text=f"{error}\n")
    except Exception:
        log.exception("a page of the dashboard could not be made")
        response = web.Response(status=500, text="this page could not be made: see the log\n")

    if not response.prepared:
        response.headers.update(_HEADERS)

    return response

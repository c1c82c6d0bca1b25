"""Routes the paths of the kubelet API; around each handler: the gate, errors, metrics."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web

from vnode.api.clock import Clock, SystemClock
from vnode.kubelet import info, logs, run, unsupported
from vnode.kubelet.auth.gate import Gate
from vnode.kubelet.delegates import ServedNode
from vnode.kubelet.refusal import Refused
from vnode.kubelet.streams.routes import Streams
from vnode.kubelet.usage import serving
from vnode.telemetry import logs as logging_context
from vnode.telemetry import metrics

Handler = Callable[[ServedNode, web.Request], Awaitable[web.StreamResponse]]

_POD: Final = "{namespace}/{pod}"
_CONTAINER: Final = "{namespace}/{pod}/{container}"
_CONTAINER_UID: Final = "{namespace}/{pod}/{uid}/{container}"
_BOTH: Final = ("GET", "POST")

_LONG: Final = frozenset({"containerLogs", "exec", "attach", "portForward", "run"})
_SHORT: Final = frozenset(
    {"pods", "runningpods", "healthz", "configz", "stats", "metrics", "checkpoint"}
)
_KNOWN: Final = _LONG | _SHORT | unsupported.DISABLED.keys()

log = logging.getLogger(__name__)


class Routes:
    """Builds the application of one virtual node, and tracks the long requests being served.

    `on_authorized` is called with each request that the gate lets pass.
    """

    def __init__(
        self,
        node: ServedNode,
        gate: Gate,
        streams: Streams,
        clock: Clock | None = None,
        *,
        on_authorized: Callable[[web.Request], None] = lambda _request: None,
    ) -> None:
        self._node = node
        self._usage = serving.UsageRoutes(node, clock or SystemClock())
        self._gate = gate
        self._on_authorized = on_authorized
        self._streams = streams
        self.serving: set[asyncio.Task[object]] = set()  # tasks of logs and tunnels only

    def application(self) -> web.Application:
        """Build the application with all routes."""
        app = web.Application(middlewares=[self._middleware])
        for method, path, handler in self._table():
            app.router.add_route(method, path, self._bound(handler), name=None)

        return app

    def _table(self) -> list[tuple[str, str, Handler]]:
        streams, usage = self._streams, self._usage
        table: list[tuple[str, str, Handler]] = [
            ("GET", "/healthz", info.healthz),
            ("GET", "/healthz/syncloop", info.healthz),
            ("GET", "/healthz/ping", info.ping),
            ("GET", "/healthz/log", info.ping),
            ("GET", "/configz", info.configuration),
            ("GET", "/metrics", serving.kubelet),
            ("GET", "/metrics/resource", usage.resource),
            ("GET", "/metrics/cadvisor", serving.cadvisor),
            ("GET", "/metrics/probes", serving.probes),
            ("GET", "/metrics/slis", serving.health),
        ]
        either_way: list[tuple[str, str, Handler]] = [
            ("GET", f"/containerLogs/{_CONTAINER}", logs.serve),
            ("GET", "/pods", info.pods),
            ("GET", "/runningpods", info.running_pods),
            ("POST", f"/run/{_CONTAINER}", run.serve),
            ("POST", f"/run/{_CONTAINER_UID}", run.serve),
            ("POST", f"/checkpoint/{_CONTAINER}", unsupported.checkpoint),
        ]
        for method in _BOTH:
            either_way += [
                (method, "/stats/summary", usage.summary),
                (method, f"/exec/{_CONTAINER}", streams.execute),
                (method, f"/exec/{_CONTAINER_UID}", streams.execute),
                (method, f"/attach/{_CONTAINER}", streams.attach),
                (method, f"/attach/{_CONTAINER_UID}", streams.attach),
                (method, f"/portForward/{_POD}", streams.port_forward),
                (method, f"/portForward/{_POD}/{{uid}}", streams.port_forward),
            ]

        # A kubelet answers these with a final slash as well, which client-go takes away, and the
        # others without it only.
        table += [(m, path + end, handler) for m, path, handler in either_way for end in ("", "/")]
        for name in unsupported.DISABLED:
            table += [
                ("*", f"/{name}", unsupported.disabled),
                ("*", f"/{name}/{{rest:.*}}", unsupported.disabled),
            ]

        return table

    def _bound(self, handler: Handler) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def serve(request: web.Request) -> web.StreamResponse:
            return await handler(self._node, request)

        return serve

    @web.middleware
    async def _middleware(
        self,
        request: web.Request,
        handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
    ) -> web.StreamResponse:
        route = _route(request.path)
        with logging_context.context(node=self._node.name, route=route):
            code = 499  # the caller left before there was an answer
            try:
                await self._gate.check(self._node.name, request)
                self._on_authorized(request)
                response = await self._serve(route, request, handler)
                code = response.status
            except Refused as refused:
                code = refused.status
                log.debug("refused: %s", refused)
                return _answer(refused)
            except web.HTTPException as answer:
                code = answer.status
                raise
            finally:
                metrics.KUBELET_REQUESTS.labels(route, str(code)).inc()

            return response

    async def _serve(
        self,
        route: str,
        request: web.Request,
        handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
    ) -> web.StreamResponse:
        task = asyncio.current_task()
        if route not in _LONG or task is None:
            return await handler(request)

        self.serving.add(task)
        try:
            with metrics.STREAMS_OPEN.labels(route).track_inprogress():
                return await handler(request)
        finally:
            self.serving.discard(task)


def _answer(refused: Refused) -> web.Response:
    return web.Response(status=refused.status, text=refused.text, content_type=refused.content_type)


def _route(path: str) -> str:
    """Return the first part of the path, as a label value: `other` unless it is a known one."""
    first = path.split("/", 2)[1]
    return first if first in _KNOWN else "other"

"""Routes the paths of the kubelet API; around each handler: the gate, errors, metrics."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import cache, partial
from typing import Final

from aiohttp import web

from vnode.api.clock import Clock, SystemClock
from vnode.kube import urgency
from vnode.kubelet import info, logs, queries, run, unsupported
from vnode.kubelet.auth.gate import Gate
from vnode.kubelet.delegates import ServedNode
from vnode.kubelet.refusal import Refused
from vnode.kubelet.stream_openings import BUFFERED, StreamOpenings
from vnode.kubelet.streams.pace import StreamPaces
from vnode.kubelet.streams.routes import Streams
from vnode.kubelet.usage import serving
from vnode.runtime.applications import application
from vnode.telemetry import audit, metrics
from vnode.telemetry import logs as logging_context

Handler = Callable[[ServedNode, web.Request], Awaitable[web.StreamResponse]]
Choose = Callable[["Routes"], Handler]
_Response = Awaitable[web.StreamResponse]

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
    """Answers the requests for one virtual node, and tracks the long ones being served.

    `openings` are those of all virtual nodes. `on_authorized` is called with each request that the
    gate lets pass.
    """

    def __init__(
        self,
        node: ServedNode,
        gate: Gate,
        streams: Streams,
        clock: Clock | None = None,
        *,
        openings: StreamOpenings | None = None,
        on_authorized: Callable[[web.Request], None] = lambda _request: None,
    ) -> None:
        self.node = node
        self.clock = clock or SystemClock()
        self.usage = serving.UsageRoutes(node, self.clock)
        self._openings = openings or StreamOpenings(self.clock)
        self.streams = streams
        self._gate = gate
        self._on_authorized = on_authorized
        self.serving: set[asyncio.Task[object]] = set()  # tasks of logs and tunnels only

    def application(self) -> web.Application:
        """Build the application with all routes."""
        app = application([self._middleware])
        app[_ROUTES] = self
        for resource in _resources():
            app.router.register_resource(resource)

        return app

    @web.middleware
    async def _middleware(
        self,
        request: web.Request,
        handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
    ) -> web.StreamResponse:
        route = _route(request.path)
        with logging_context.context(node=self.node.name, route=route), urgency.awaited():
            code = 499  # the caller left before there was an answer
            try:
                caller = await self._gate.check(self.node.name, request)
                self._on_authorized(request)
                queries.check_size(request.rel_url.raw_query_string)
                with audit.on_behalf_of(audit.Subject("User", name=caller.user)):
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
                metrics.KUBELET_REQUESTS.labels(route, metrics.code_label(code)).inc()

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
            namespace = request.match_info.get("namespace", "")
            with (
                metrics.STREAMS_OPEN.labels(route).track_inprogress(),
                self._openings.counted(namespace) as request[BUFFERED],
            ):
                size = len(request.rel_url.raw_query_string)
                await self._openings.wait(namespace, size)
                return await handler(request)
        finally:
            self.serving.discard(task)


def _answer(refused: Refused) -> web.Response:
    return web.Response(status=refused.status, text=refused.text, content_type=refused.content_type)


def _route(path: str) -> str:
    """Return the first part of the path, as a label value: `other` unless it is a known one."""
    first = path.split("/", 2)[1]
    return first if first in _KNOWN else "other"


_ROUTES: Final = web.AppKey("routes", Routes)


@cache
def _resources() -> tuple[web.AbstractResource, ...]:
    """Build the resources of all virtual nodes, which are alike: 50 paths take 600 objects."""
    router = web.UrlDispatcher()
    for method, path, choose in _table():
        router.add_route(method, path, _served(choose), name=None)

    return tuple(router.resources())


def _served(choose: Choose) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def serve(request: web.Request) -> web.StreamResponse:
        routes = request.app[_ROUTES]
        return await choose(routes)(routes.node, request)

    return serve


def _always(handler: Handler) -> Choose:
    return lambda _routes: handler


def _paced(handler: Callable[[StreamPaces, ServedNode, web.Request], _Response]) -> Choose:
    """Give a handler the paces that it shares with the streams."""
    return lambda routes: partial(handler, routes.streams.paces)


def _in_slices(handler: Callable[[Clock, ServedNode, web.Request], _Response]) -> Choose:
    """Give a handler that goes through all pods the clock by which it gives way to others."""
    return lambda routes: partial(handler, routes.clock)


def _table() -> list[tuple[str, str, Choose]]:
    """Return method, path, and what chooses the handler for a virtual node."""
    table: list[tuple[str, str, Choose]] = [
        ("GET", "/healthz", _always(info.healthz)),
        ("GET", "/healthz/syncloop", _always(info.healthz)),
        ("GET", "/healthz/ping", _always(info.ping)),
        ("GET", "/healthz/log", _always(info.ping)),
        ("GET", "/configz", _always(info.configuration)),
        ("GET", "/metrics", _in_slices(serving.kubelet)),
        ("GET", "/metrics/resource", lambda routes: routes.usage.resource),
        ("GET", "/metrics/cadvisor", _always(serving.cadvisor)),
        ("GET", "/metrics/probes", _always(serving.probes)),
        ("GET", "/metrics/slis", _always(serving.health)),
    ]
    either_way: list[tuple[str, str, Choose]] = [
        ("GET", f"/containerLogs/{_CONTAINER}", _paced(logs.serve)),
        ("GET", "/pods", _in_slices(info.pods)),
        ("GET", "/runningpods", _in_slices(info.running_pods)),
        ("POST", f"/run/{_CONTAINER}", _paced(run.serve)),
        ("POST", f"/run/{_CONTAINER_UID}", _paced(run.serve)),
        ("POST", f"/checkpoint/{_CONTAINER}", _always(unsupported.checkpoint)),
    ]
    for method in _BOTH:
        either_way += [
            (method, "/stats/summary", lambda routes: routes.usage.summary),
            (method, f"/exec/{_CONTAINER}", lambda routes: routes.streams.execute),
            (method, f"/exec/{_CONTAINER_UID}", lambda routes: routes.streams.execute),
            (method, f"/attach/{_CONTAINER}", lambda routes: routes.streams.attach),
            (method, f"/attach/{_CONTAINER_UID}", lambda routes: routes.streams.attach),
            (method, f"/portForward/{_POD}", lambda routes: routes.streams.port_forward),
            (method, f"/portForward/{_POD}/{{uid}}", lambda routes: routes.streams.port_forward),
        ]

    # A kubelet answers these with a final slash as well, which client-go takes away, and the
    # others without it only.
    table += [(m, path + end, choose) for m, path, choose in either_way for end in ("", "/")]
    for name in unsupported.DISABLED:
        table += [
            ("*", f"/{name}", _always(unsupported.disabled)),
            ("*", f"/{name}/{{rest:.*}}", _always(unsupported.disabled)),
        ]

    return table

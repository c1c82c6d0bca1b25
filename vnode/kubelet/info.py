"""Serves the routes that only inform: `healthz`, `pods`, `runningpods`, `configz`.

A pod list comes from the source's API server, which gets the status of delegates by feedback. A
node may have ten thousand pods.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec
from aiohttp import web

from vnode.api import objects
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.api.slices import in_slices
from vnode.kubelet.delegates import ServedNode
from vnode.kubelet.refusal import Refused

_JSON: Final = "application/json"
_BEFORE: Final = b'{"kind":"PodList","apiVersion":"v1","metadata":{},"items":['
_AFTER: Final = b"]}"
_PIECE: Final = 64 * 1024  # bytes that are written at once


async def healthz(node: ServedNode, _request: web.Request) -> web.StreamResponse:
    """Answer 200 while the target answers, on which a virtual node depends; else raise Refused."""
    health = node.link.health
    if not health.healthy:
        raise Refused(500, f"[-]syncloop failed: {health.reason}: {health.message}\n")

    return web.Response(text="ok")


async def ping(_node: ServedNode, _request: web.Request) -> web.StreamResponse:
    """Answer 200, which shows that the process works."""
    return web.Response(text="ok")


async def pods(clock: Clock, node: ServedNode, request: web.Request) -> web.StreamResponse:
    """Answer with the pods that are bound to the node."""
    return await _pod_list(request, node.pods(), clock)


async def running_pods(clock: Clock, node: ServedNode, request: web.Request) -> web.StreamResponse:
    """Answer with the pods of which a container runs, in the short form of a kubelet: no status.

    A kubelet asks its container runtime. So a terminating pod is listed as long as one of its
    containers runs, and only containers that run are.
    """
    listed = ((pod, _running(pod)) for pod in node.pods())
    short = (_short(pod, running) if running else None for pod, running in listed)
    return await _pod_list(request, short, clock)


async def configuration(_node: ServedNode, request: web.Request) -> web.StreamResponse:
    """Answer with the few fields of a KubeletConfiguration that are true of a virtual node."""
    address = request.get_extra_info("sockname")
    fields = {
        "kind": "KubeletConfiguration",
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "address": address[0],
        "port": address[1],
        "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True}},
        "authorization": {"mode": "Webhook"},
        "enableSystemLogHandler": False,
        "enableProfilingHandler": False,
        "enableDebugFlagsHandler": False,
    }
    body = msgspec.json.encode({"kubeletconfig": fields})
    return web.Response(body=body, content_type=_JSON)


async def _pod_list(
    request: web.Request, pods: Iterable[Object | None], clock: Clock
) -> web.StreamResponse:
    """Answer with the pods, but for None, in slices and as the caller reads them."""
    response = web.StreamResponse(headers={"Content-Type": _JSON})
    response.enable_chunked_encoding()
    await response.prepare(request)
    piece, is_first = bytearray(_BEFORE), True
    async for pod in in_slices(pods, clock):
        if pod is not None:
            piece += (b"" if is_first else b",") + msgspec.json.encode(pod)
            is_first = False

        if len(piece) >= _PIECE:
            await response.write(bytes(piece))
            piece.clear()

    await response.write(bytes(piece) + _AFTER)
    return response


def _running(pod: Object) -> list[Object]:
    """Return the statuses of the containers that run."""
    if objects.is_finished(pod):
        return []

    return [
        entry
        for field in ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
        for entry in objects.status(pod).get(field) or ()
        if "running" in (entry.get("state") or {})
    ]


def _short(pod: Object, running: list[Object]) -> Object:
    containers = [
        {"name": entry.get("name"), "image": entry.get("image", ""), "resources": {}}
        for entry in running
    ]
    return {
        "metadata": {
            "name": objects.name(pod),
            "namespace": objects.namespace(pod),
            "uid": objects.uid(pod),
        },
        "spec": {"containers": containers},
        "status": {},
    }

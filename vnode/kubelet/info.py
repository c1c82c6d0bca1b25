"""Serves the routes that only inform: `healthz`, `pods`, `runningpods`, `configz`.

A pod list comes from the source's API server, which gets the status of delegates by feedback.
"""

from __future__ import annotations

import msgspec
from aiohttp import web

from vnode.api import objects
from vnode.api.objects import Object
from vnode.kubelet.delegates import ServedNode
from vnode.kubelet.refusal import Refused


async def healthz(node: ServedNode, _request: web.Request) -> web.StreamResponse:
    """Answer 200 while the target answers, on which a virtual node depends; else raise Refused."""
    health = node.link.health
    if not health.healthy:
        raise Refused(500, f"[-]syncloop failed: {health.reason}: {health.message}\n")

    return web.Response(text="ok")


async def ping(_node: ServedNode, _request: web.Request) -> web.StreamResponse:
    """Answer 200, which shows that the process works."""
    return web.Response(text="ok")


async def pods(node: ServedNode, _request: web.Request) -> web.StreamResponse:
    """Answer with the pods that are bound to the node."""
    return _json(_pod_list(node.pods()))


async def running_pods(node: ServedNode, _request: web.Request) -> web.StreamResponse:
    """Answer with the pods of which a container runs, in the short form of a kubelet: no status.

    A kubelet asks its container runtime. So a terminating pod is listed as long as one of its
    containers runs, and only containers that run are.
    """
    listed = [(pod, _running(pod)) for pod in node.pods()]
    return _json(_pod_list([_short(pod, running) for pod, running in listed if running]))


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
    return _json({"kubeletconfig": fields})


def _pod_list(items: list[Object]) -> Object:
    return {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items}


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


def _json(body: Object) -> web.Response:
    return web.Response(body=msgspec.json.encode(body), content_type="application/json")

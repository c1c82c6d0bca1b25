"""The routes that only look: `healthz`, `pods`, `runningpods`, `configz`.

A pod list is what the source's API server knows; the target's truth reaches it by feedback.
"""

from __future__ import annotations

import msgspec
from aiohttp import web

from vnode.api import objects
from vnode.api.objects import Object
from vnode.kubelet.delegates import ServedNode
from vnode.kubelet.refusal import Refused


async def health(node: ServedNode, _request: web.Request) -> web.StreamResponse:
    """Sound as long as the target answers, which is all that a virtual node does."""
    state = node.link.health
    if not state.healthy:
        raise Refused(500, f"[-]syncloop failed: {state.reason}: {state.message}\n")

    return web.Response(text="ok")


async def ping(_node: ServedNode, _request: web.Request) -> web.StreamResponse:
    """This process answers."""
    return web.Response(text="ok")


async def pods(node: ServedNode, _request: web.Request) -> web.StreamResponse:
    """The pods that are bound to the node."""
    return _json(_pod_list(node.pods()))


async def running_pods(node: ServedNode, _request: web.Request) -> web.StreamResponse:
    """Those that run, in the short form of a kubelet: names, images, no status."""
    running = [pod for pod in node.pods() if objects.status(pod).get("phase") == "Running"]
    return _json(_pod_list([_short(pod) for pod in running]))


async def configuration(_node: ServedNode, request: web.Request) -> web.StreamResponse:
    """The little of a KubeletConfiguration that is true of a virtual node."""
    address = request.get_extra_info("sockname")
    known = {
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
    return _json({"kubeletconfig": known})


def _pod_list(items: list[Object]) -> Object:
    return {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items}


def _short(pod: Object) -> Object:
    containers = [
        {"name": container.get("name"), "image": container.get("image"), "resources": {}}
        for container in objects.spec(pod).get("containers") or ()
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

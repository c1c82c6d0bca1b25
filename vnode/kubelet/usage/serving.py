"""Serves the routes of metrics: `stats/summary` and all of `metrics`."""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec
from aiohttp import web

from vnode.api import objects
from vnode.api.clock import Clock
from vnode.api.slices import in_slices
from vnode.kubelet.delegates import ServedNode
from vnode.kubelet.refusal import Refused
from vnode.kubelet.usage import exposition, summary
from vnode.kubelet.usage.collector import Collector, UsageReport

_TEXT: Final = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
_ELSEWHERE: Final = "containers of this virtual node run on nodes of {target}: "


class UsageRoutes:
    """Handles the routes of one virtual node that report usage."""

    def __init__(self, node: ServedNode, clock: Clock) -> None:
        self._collector = Collector(node, clock)

    async def resource(self, _node: ServedNode, _request: web.Request) -> web.StreamResponse:
        """Answer with CPU and memory of containers, pods and node."""
        report = await self._collector.report()
        return _text(await asyncio.to_thread(exposition.resource, report))  # there may be thousands

    async def summary(self, node: ServedNode, _request: web.Request) -> web.StreamResponse:
        """Answer as `resource` does, in JSON, which Kubernetes gives up in favour of `resource`."""
        report = await self._collector.report()
        if report.problems and report.node is None and not report.pods:
            raise Refused(500, f"Internal Error: {'; '.join(report.problems)}")

        body = await asyncio.to_thread(_encoded, node.name, report)
        return web.Response(body=body, content_type="application/json")


def _encoded(name: str, report: UsageReport) -> bytes:
    return msgspec.json.encode(summary.render(name, None, report))


async def kubelet(clock: Clock, node: ServedNode, _request: web.Request) -> web.StreamResponse:
    """Answer with a kubelet's metrics of itself, as far as they are true of a virtual node.

    The agent's own metrics are on its health port, once, and not once for each virtual node.
    """
    running = containers = 0
    async for pod in in_slices(node.pods(), clock):
        status = objects.status(pod)
        if status.get("phase") == "Running":
            running += 1
            entries = status.get("containerStatuses") or ()
            containers += sum("running" in (entry.get("state") or {}) for entry in entries)

    return _text(
        exposition.render(
            [
                exposition.gauge("kubelet_node_name", "The name. Always 1.", 1, node=node.name),
                exposition.gauge(
                    "kubelet_running_containers",
                    "Containers by state.",
                    containers,
                    container_state="running",
                ),
                exposition.gauge("kubelet_running_pods", "Pods that run.", running),
            ]
        )
    )


async def health(node: ServedNode, _request: web.Request) -> web.StreamResponse:
    """Answer `metrics/slis`: the result of `healthz` as a number."""
    healthy = 1 if node.link.health.healthy else 0
    meaning = "1 if the check passes, else 0."
    check = exposition.gauge(
        "kubernetes_healthcheck", meaning, healthy, name="syncloop", type="healthz"
    )
    return _text(exposition.render([check]))


async def cadvisor(node: ServedNode, _request: web.Request) -> web.StreamResponse:
    """Answer with no metrics, like a kubelet without containers: an error would be an alarm."""
    comment = (
        _ELSEWHERE.format(target=node.link.target) + "ask their cAdvisor; see metrics/resource"
    )
    return _text(exposition.render([], [comment]))


async def probes(node: ServedNode, _request: web.Request) -> web.StreamResponse:
    """Answer with no metrics, like a kubelet that probes nothing."""
    comment = _ELSEWHERE.format(target=node.link.target) + "their kubelets probe them"
    return _text(exposition.render([], [comment]))


def _text(body: bytes) -> web.Response:
    return web.Response(body=body, headers=_TEXT)

"""The routes that tell numbers: `stats/summary` and `metrics` with all below it."""

from __future__ import annotations

from typing import Final

import msgspec
from aiohttp import web
from prometheus_client.core import GaugeMetricFamily

from vnode.api import objects
from vnode.api.clock import Clock
from vnode.kubelet.delegates import VirtualNode
from vnode.kubelet.refusal import Refused
from vnode.kubelet.usage import exposition, summary
from vnode.kubelet.usage.collector import Collector

_TEXT: Final = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
_ELSEWHERE: Final = "containers of this virtual node run on nodes of {target}: "


class UsageRoutes:
    """The handlers of one virtual node."""

    def __init__(self, node: VirtualNode, clock: Clock) -> None:
        self._collector = Collector(node, clock)

    async def resource(self, _node: VirtualNode, _request: web.Request) -> web.StreamResponse:
        """CPU and memory of containers, pods and node."""
        return _text(exposition.resource(await self._collector.report()))

    async def summary(self, node: VirtualNode, _request: web.Request) -> web.StreamResponse:
        """The same as JSON, which Kubernetes gives up in favour of `resource`."""
        report = await self._collector.report()
        if report.problems and report.node is None and not report.pods:
            raise Refused(500, f"Internal Error: {'; '.join(report.problems)}")

        body = msgspec.json.encode(summary.render(node.name, None, report))
        return web.Response(body=body, content_type="application/json")


async def own(node: VirtualNode, _request: web.Request) -> web.StreamResponse:
    """What a kubelet says of itself, as far as it is true of a virtual node.

    The agent's own metrics are on its health port, once, and not once for each virtual node.
    """
    running = [pod for pod in node.pods() if objects.status(pod).get("phase") == "Running"]
    containers = sum(
        "running" in (entry.get("state") or {})
        for pod in running
        for entry in objects.status(pod).get("containerStatuses") or ()
    )
    name = GaugeMetricFamily("kubelet_node_name", "The node's name. Always 1.", None, ["node"])
    name.add_metric([node.name], 1)
    by_state = GaugeMetricFamily(
        "kubelet_running_containers", "Containers by state.", None, ["container_state"]
    )
    by_state.add_metric(["running"], containers)
    pods = GaugeMetricFamily("kubelet_running_pods", "Pods that run.", len(running))
    return _text(exposition.text([name, by_state, pods]))


async def health(node: VirtualNode, _request: web.Request) -> web.StreamResponse:
    """`metrics/slis`: what `healthz` says, as a number."""
    family = GaugeMetricFamily(
        "kubernetes_healthcheck", "1 if the check passes, else 0.", None, ["name", "type"]
    )
    family.add_metric(["syncloop", "healthz"], 1 if node.link.health.healthy else 0)
    return _text(exposition.text([family]))


async def cadvisor(node: VirtualNode, _request: web.Request) -> web.StreamResponse:
    """Nothing, as of a kubelet without containers: an error would be an alarm at each scrape."""
    why = _ELSEWHERE.format(target=node.link.target) + "their cAdvisor tells; see metrics/resource"
    return _text(exposition.text([], [why]))


async def probes(node: VirtualNode, _request: web.Request) -> web.StreamResponse:
    """Nothing, as of a kubelet that probes nothing."""
    why = _ELSEWHERE.format(target=node.link.target) + "their kubelets probe them"
    return _text(exposition.text([], [why]))


def _text(body: bytes) -> web.Response:
    return web.Response(body=body, headers=_TEXT)

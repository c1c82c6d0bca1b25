"""Finds the delegate pod of the proxy pod that a request names.

A request names a proxy pod of one virtual node; the chaperon of that pod in the node's target has
the name and namespace of the delegate.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from vnode.api import kinds, names, objects
from vnode.api.errors import Invalid
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kubelet.refusal import Refused
from vnode.runtime.link import Link
from vnode.runtime.links import Links
from vnode.telemetry import audit

FindPod = Callable[[str, str, str], Awaitable[Object | None]]
"""(node, namespace, name) -> the proxy pod bound to that node, or None."""

ListPods = Callable[[str], Iterable[Object]]
"""(node) -> the pods bound to that node, which may be thousands."""


@dataclass(frozen=True, slots=True)
class Delegate:
    """Names a pod in a target, with the client to reach it."""

    client: Client
    namespace: str
    name: str
    proxy: Object

    def path(self, subresource: str) -> str:
        """Return the path of a subresource of the pod on the target's API server.

        Raises Refused (500) if the target called the pod what none can be called.
        """
        try:
            return kinds.PODS.path(self.namespace, self.name, subresource)
        except Invalid as error:
            raise Refused(500, f"the delegate in target {self.client.name}: {error}") from error


@dataclass(frozen=True, slots=True)
class ServedNode:
    """Looks up what the kubelet API of one virtual node needs: pods, link, delegates."""

    name: str
    links: Links
    find_pod: FindPod
    list_pods: ListPods | None = None

    @property
    def link(self) -> Link:
        """The connection to the target. Raises Refused while there is none."""
        link = self.links.get(self.name)
        if link is None:
            text = f"virtual node {self.name} has no connection to its target"
            # Not 503: when users ask for a log, the API server hides the text of that.
            raise Refused(500, f"{text}: see kubectl describe node {self.name}")

        return link

    def pods(self) -> Iterable[Object]:
        """Return the pods that are bound to the node. Raises Refused (501)."""
        if self.list_pods is None:
            raise Refused(501, "this agent does not list the pods of its virtual nodes")

        return self.list_pods(self.name)

    async def pod(self, namespace: str, name: str, uid: str = "") -> Object:
        """Return the proxy pod. Raises Refused (404)."""
        # An invalid name must not become part of a path that the agent requests.
        valid = names.SUBDOMAIN.fullmatch(namespace) and names.SUBDOMAIN.fullmatch(name)
        pod = await self.find_pod(self.name, namespace, name) if valid else None
        if pod is None or objects.node_name(pod) != self.name:
            raise Refused(404, f'pod "{name}" does not exist')

        if uid and uid != objects.uid(pod):
            raise Refused(404, f'pod "{name}" with UID {uid} not found')

        return pod

    def delegate(self, pod: Object) -> Delegate:
        """Return the delegate of a proxy pod. Raises Refused."""
        link = self.link
        chaperon = link.candidate(objects.key(pod), objects.uid(pod))
        if chaperon is None and not link.synced:  # another cluster may answer
            raise Refused(500, f"target {link.target} cannot be asked: {link.health.message}")

        if chaperon is None:
            raise Refused(
                400,
                f'pod "{objects.name(pod)}" has no delegate in target {link.target} (yet): see '
                "the events of the pod",
            )

        return Delegate(link.client, objects.namespace(chaperon), objects.name(chaperon), pod)


def audit_stream(delegate: Delegate, stream: str, container: str = "", length: int = 0) -> None:
    """Write the audit log's line for a stream to a delegate that its target has accepted."""
    cluster = delegate.client.name
    audit.opened(stream, delegate.proxy, cluster=cluster, container=container, length=length)


def has_container(pod: Object, name: str) -> bool:
    """Tell whether the pod's spec has a container of that name, of whatever kind."""
    return name in container_names(pod)


def container_names(pod: Object) -> set[str]:
    """Return the names of all containers in the pod's spec, of whatever kind."""
    spec = objects.spec(pod)
    return {
        container.get("name", "")
        for field in ("containers", "initContainers", "ephemeralContainers")
        for container in spec.get(field) or ()
    }

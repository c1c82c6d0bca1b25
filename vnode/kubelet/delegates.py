"""From the pod that a caller names to the pod that runs its containers.

A request names a proxy pod of one virtual node; the chaperon that the node's target has for it
carries name and namespace of the delegate.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from vnode.api import kinds, names, objects
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kubelet.refusal import Refused
from vnode.runtime.links import Link, Links

FindPod = Callable[[str, str, str], Awaitable[Object | None]]
"""(node, namespace, name) -> the proxy pod bound to that node, or None if there is none."""

ListPods = Callable[[str], list[Object]]
"""(node) -> the pods bound to that node."""


@dataclass(frozen=True, slots=True)
class Delegate:
    """A pod in a target, and the way to it."""

    client: Client
    namespace: str
    name: str

    def path(self, subresource: str) -> str:
        """Where the target's API server serves that subresource of it."""
        return kinds.PODS.path(self.namespace, self.name, subresource)


@dataclass(frozen=True, slots=True)
class ServedNode:
    """One virtual node, as its kubelet API sees the world."""

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
            # 500 and not 503, of which the API server shows users no text in a log's place.
            raise Refused(500, f"{text}: see kubectl describe node {self.name}")

        return link

    def pods(self) -> list[Object]:
        """The pods that are bound to the node. Raises Refused (501)."""
        if self.list_pods is None:
            raise Refused(501, "this agent does not list the pods of its virtual nodes")

        return self.list_pods(self.name)

    async def pod(self, namespace: str, name: str, uid: str = "") -> Object:
        """The proxy pod. Raises Refused (404)."""
        # What is no name must not become part of a path that the agent asks for.
        named = names.SUBDOMAIN.fullmatch(namespace) and names.SUBDOMAIN.fullmatch(name)
        pod = await self.find_pod(self.name, namespace, name) if named else None
        if pod is None or objects.node_name(pod) != self.name:
            raise Refused(404, f'pod "{name}" does not exist')

        if uid and uid != objects.uid(pod):
            raise Refused(404, f'pod "{name}" with UID {uid} not found')

        return pod

    def delegate(self, pod: Object) -> Delegate:
        """The pod in the target that stands behind a proxy pod. Raises Refused."""
        link = self.link
        chaperon = link.candidate(objects.uid(pod))
        if chaperon is None and not link.synced:  # another cluster may answer
            raise Refused(500, f"target {link.target} cannot be asked: {link.health.message}")

        if chaperon is None:
            raise Refused(
                400,
                f'pod "{objects.name(pod)}" has no delegate in target {link.target} (yet): see '
                "the events of the pod",
            )

        return Delegate(link.client, objects.namespace(chaperon), objects.name(chaperon))


def has_container(pod: Object, name: str) -> bool:
    """The pod's spec names that container, of whatever kind."""
    spec = objects.spec(pod)
    return any(
        container.get("name") == name
        for field in ("containers", "initContainers", "ephemeralContainers")
        for container in spec.get(field) or ()
    )

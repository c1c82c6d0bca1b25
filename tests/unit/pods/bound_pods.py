"""A source whose pods are bound, and its targets: API servers in memory, real informers and links.

The proxy controller is at work while an environment is `running`. Nobody is at work in the targets:
tests say what their agents report, and when a chaperon is gone.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from tests import background
from tests.apiserver import links
from tests.apiserver.server import APIServer
from tests.permitted import MANIFESTS
from tests.unit.pods.policies import Fixed
from vnode.api import keys, kinds, names, objects
from vnode.api.clock import Clock
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.api.saved_manifest import SavedManifests
from vnode.api.target_key import TargetKey
from vnode.gangs.pod_groups import GroupStanding
from vnode.gangs.table import Gangs
from vnode.kube.events import EventRecorder
from vnode.kube.informer import Informer
from vnode.planning.policy import Policy
from vnode.pods import chaperons
from vnode.pods.overriding import NoOverrides, Overrides
from vnode.pods.source import proxy_state
from vnode.pods.source.chaperon_factory import ChaperonFactory
from vnode.pods.source.proxy_controller import ProxyController
from vnode.runtime.enabled_namespaces import EnabledNamespaces
from vnode.runtime.link import Link
from vnode.runtime.link_health import UNREACHABLE, LinkHealth
from vnode.runtime.links import Links

SPACE: Final = "shop"
US: Final = Identity("c1", "uid-of-c1")
PARENT: Final = Identity(US.name, US.uid)
RUNNING: Final[Object] = {
    "phase": "Running",
    "conditions": [{"type": "Ready", "status": "True"}],
}


def new_pod(name: str = "web", node: str = "", **fields: Any) -> Object:
    """Return a proxy pod with a finalizer of ours; its UID is its name."""
    spec = {
        "schedulerName": keys.PROXY_SCHEDULER,
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "containers": [{"name": "main", "image": "nginx"}],
        **fields.pop("spec", {}),
    }
    if node:
        spec["nodeName"] = node

    metadata = {
        "name": name,
        "namespace": SPACE,
        "uid": name,
        "finalizers": [TargetKey(SPACE, "c2").finalizer],
        "annotations": {},
        **fields.pop("metadata", {}),
    }
    bound = [{"type": "PodScheduled", "status": "True"}] if node else []  # as a binding writes
    status = {"phase": "Pending", "conditions": bound}
    return {"metadata": metadata, "spec": spec, "status": status, **fields}


class BoundTarget:
    """A target, and its link."""

    def __init__(self, name: str, clock: Clock, namespace: str = SPACE) -> None:
        self.server = APIServer(name, clock)
        self.link = links.link_to(self.server, TargetKey(namespace, name), US, clock)
        self._clock = clock
        self.server.add(kinds.NAMESPACES, {"metadata": {"name": SPACE}})
        self.server.add(
            kinds.CLUSTER_SUMMARIES,
            {"metadata": {"name": keys.SUMMARY_NAME, "annotations": {keys.AGENT_VERSION: "1"}}},
        )

    @property
    def node(self) -> str:
        return self.link.node_name

    @property
    def writes(self) -> list[tuple[str, str]]:
        """Verb and subresource of what was asked about chaperons, but for reading."""
        asked = self.server.received(kind=kinds.POD_CHAPERONS)
        return [(r.verb, r.subresource) for r in asked if r.verb not in ("get", "list", "watch")]

    def add(self, pod: Object, *, allowed: bool = True, **status: Any) -> Object:
        """Store the chaperon of a pod."""
        built = chaperons.build(
            pod, PARENT, str(self.link.target), manifests=MANIFESTS, allowed=allowed, finalizer=True
        )
        return self.server.add(kinds.POD_CHAPERONS, {**built, "status": status})

    def chaperon(self, name: str = "web") -> Object | None:
        return self.server.find(kinds.POD_CHAPERONS, names.chaperon(name, name), SPACE)

    def change(self, change: Callable[[Object], object], name: str = "web") -> None:
        def do(obj: Object) -> None:
            change(obj)

        self.server.change(kinds.POD_CHAPERONS, names.chaperon(name, name), SPACE, do)

    def report(self, name: str = "web", **status: Any) -> None:
        self.change(lambda obj: obj.update(status={**objects.status(obj), **status}), name)

    def annotate(self, *annotations: str, name: str = "web", **more: str) -> None:
        added = dict.fromkeys(annotations, "") | more
        self.change(lambda obj: obj["metadata"]["annotations"].update(added), name)

    def remove(self, name: str = "web") -> None:
        """Remove a chaperon, as the target's agent does when the delegate is gone."""
        self.server.remove(kinds.POD_CHAPERONS, names.chaperon(name, name), SPACE)

    def set_answering(self, answers: bool) -> None:
        """Tell the link what its prober finds."""
        reason = "Ready" if answers else UNREACHABLE
        self.link.set_health(LinkHealth(answers, reason, "", self._clock.now()))


class BoundPodsEnvironment:
    """A source with the targets c2, c3, ...; `existing` are the nodes whose Targets exist.

    They are ClusterTargets if `namespace` is "".
    """

    def __init__(
        self,
        clock: Clock,
        count: int = 1,
        *,
        namespace: str = SPACE,
        label_required: bool = False,
        overrides: Overrides | None = None,
        policy: Policy | None = None,
        manifests: SavedManifests = MANIFESTS,
    ) -> None:
        self.policies = Fixed(policy)
        self.source = APIServer("c1", clock)
        self.targets = [BoundTarget(f"c{number + 2}", clock, namespace) for number in range(count)]
        self.links = Links()
        self.existing = {target.node for target in self.targets}
        self.brought: list[str] = []
        self.services = asyncio.Event()  # set: the target has the Services of the namespace
        self.services.set()
        self.tokens: tuple[str, ...] = ()  # Secrets for which the target has tokens
        client = self.source.client()
        self.events = EventRecorder(client, "vnode", clock)
        self.proxies = Informer(
            client,
            kinds.PODS,
            field_selector=f"spec.schedulerName={keys.PROXY_SCHEDULER}",
            trim=proxy_state.trim,
            indexes=proxy_state.INDEXES,
        )
        self.namespaces = Informer(client, kinds.NAMESPACES)
        self.factory = ChaperonFactory(
            PARENT, manifests, overrides or NoOverrides(), self._ensure_copies
        )
        self.gangs = Gangs(lambda _key: GroupStanding())
        self.controller = ProxyController(
            client,
            self.proxies,
            self.links,
            self.factory,
            enabled_namespaces=EnabledNamespaces(self.namespaces, label_required=label_required),
            target_exists=self.existing.__contains__,
            trim=proxy_state.trim,
            ensure_bound=self._ensure_bound,
            events=self.events,
            clock=clock,
            policies=self.policies,
            gangs=self.gangs,
        )

    async def _ensure_copies(self, pod: Object, _link: Link) -> tuple[str, tuple[str, ...]]:
        self.brought.append(objects.name(pod))
        return "", self.tokens

    async def _ensure_bound(self, _pod: Object, _link: Link) -> None:
        await self.services.wait()

    @property
    def target(self) -> BoundTarget:
        return self.targets[0]

    @asynccontextmanager
    async def running(self, *, seconds: float = 1) -> AsyncIterator[None]:
        """Have the controller at work; inside, it has had that many seconds."""
        connected = [target.link for target in self.targets]
        async with links.connected(*connected), links.following(self.proxies, self.namespaces):
            for link in connected:
                self.links.add(link)

            runs = (self.events.run(), self.controller.run(), self.controller.bound.run())
            async with background.running(*runs):
                await asyncio.sleep(seconds)
                yield

    def add(self, name: str = "web", node: str | None = None, **fields: Any) -> Object:
        """Store a pod, which is bound to the first target's node unless it is said otherwise."""
        bound_to = self.target.node if node is None else node
        return self.source.add(kinds.PODS, new_pod(name, bound_to, **copy.deepcopy(fields)))

    def label_namespace(self) -> None:
        """Store the namespace with the label that a cluster administrator sets to enable it."""
        label, value = keys.WEBHOOK_NAMESPACE_LABEL
        self.source.add(kinds.NAMESPACES, {"metadata": {"name": SPACE, "labels": {label: value}}})

    def pod(self, name: str = "web") -> Object | None:
        return self.source.find(kinds.PODS, name, SPACE)

    def status(self, name: str = "web") -> Object:
        return objects.status(self.pod(name) or {})

    def is_ending(self, name: str = "web") -> bool:
        pod = self.pod(name)
        return pod is None or objects.is_terminating(pod)

    def change(self, change: Callable[[Object], object], name: str = "web") -> Object:
        def do(obj: Object) -> None:
            change(obj)

        return self.source.change(kinds.PODS, name, SPACE, do)

    async def delete(self, name: str = "web", *, grace: int | None = None) -> None:
        """Delete a pod as its user does."""
        await self.source.client("user").delete(kinds.PODS, name, SPACE, grace=grace)

    def written(self, name: str = "web") -> list[tuple[str, str]]:
        """List the verb and subresource of each write of vnode to a pod."""
        asked = [r for r in self.source.received(kind=kinds.PODS) if r.client == "admin"]
        return [
            (r.verb, r.subresource)
            for r in asked
            if r.name == name and r.verb not in ("get", "list", "watch")
        ]

    def event_messages(self, reason: str) -> list[str]:
        """List the messages of Events of that reason."""
        return [e["message"] for e in self.source.all(kinds.EVENTS) if e["reason"] == reason]

    def times_told(self, reason: str) -> int:
        """Count how often an Event of that reason happened."""
        return sum(e["count"] for e in self.source.all(kinds.EVENTS) if e["reason"] == reason)


def is_allowed(chaperon: Object | None) -> bool:
    """Tell whether there is such a chaperon, with leave to run."""
    return keys.IS_ALLOWED in objects.annotations(chaperon or {})

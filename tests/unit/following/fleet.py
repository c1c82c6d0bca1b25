"""A source with proxy pods that refer to something, two targets, and the following between them."""

from __future__ import annotations

import asyncio
import copy
from contextlib import asynccontextmanager
from typing import Final

from tests import background
from tests.apiserver import links
from tests.apiserver.server import APIServer
from vnode.api import kinds, renaming
from vnode.api.identity import Identity
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.following import config
from vnode.following.following import Following
from vnode.kube.events import EventRecorder
from vnode.kube.informer import Informer
from vnode.kube.namespace_scope import NamespaceScope
from vnode.runtime.enabled_namespaces import EnabledNamespaces
from vnode.runtime.links import Links
from vnode.runtime.target_options import TargetOptions

US: Final = Identity("c1", "us")
GPU, CPU = TargetKey("", "gpu"), TargetKey("ns", "cpu")
SOON: Final = 1.0  # seconds in which what is due at once has been done
COPIED: Final = (kinds.CONFIG_MAPS, kinds.SECRETS, kinds.SERVICES, kinds.CLAIMS)
UNUSED: Final = (kinds.CONFIG_MAPS, kinds.SECRETS, kinds.SERVICES)  # go with their last user
BODIES: Final[dict[Kind, Object]] = {
    kinds.CONFIG_MAPS: {"data": {"a": "1"}},
    kinds.SECRETS: {"data": {"a": "MQ=="}, "type": "Opaque"},
    kinds.SERVICES: {"spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}},
    kinds.CLAIMS: {"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast"}},
}
SPEC: Final = {
    "containers": [{"name": "main", "env": [{"valueFrom": {"secretKeyRef": {"name": "web"}}}]}],
    "volumes": [
        {"name": "config", "configMap": {"name": "web"}},
        {"name": "data", "persistentVolumeClaim": {"claimName": "web"}},
    ],
}
EVERYTHING: Final = config.FollowingConfig()


class FollowingFleet:
    """A source with proxy pods, two targets, and the following of the source's agent.

    The agent is held to namespaces, if any are named.
    """

    def __init__(self, clock, *, follows=EVERYTHING, servers=(), named=()):
        self.source, self.gpu, self.cpu = servers or (
            APIServer(name, clock, latency=lambda: 0.002, seed=seed)
            for seed, name in enumerate(("c1", "gpu", "cpu"))
        )
        for target in (self.gpu, self.cpu):
            if target.find(kinds.NAMESPACES, "ns") is None:
                target.add(kinds.NAMESPACES, {"metadata": {"name": "ns"}})

        options = TargetOptions(storage_classes={"fast": "ssd"})
        self.link = links.link_to(self.gpu, GPU, US, clock, cluster_uid="gpu", options=options)
        self.other = links.link_to(self.cpu, CPU, US, clock, cluster_uid="cpu")
        self.links = Links()
        local = self.source.client()
        local.scope = NamespaceScope(named)
        self.proxies = Informer(local, kinds.PODS)
        self.namespaces = Informer(local, kinds.NAMESPACES)
        self.events = EventRecorder(local, "vnode", clock)
        self.following = Following(
            local,
            self.links,
            US,
            follows,
            relabel=lambda own, kept: renaming.renamed(own, renaming.kept_labels(kept)),
            target_exists=lambda _node: True,
            enabled_namespaces=EnabledNamespaces(self.namespaces, label_required=False),
            complete=lambda _node, namespace: self.proxies.knows(namespace),
            events=self.events,
            clock=clock,
        )
        self.proxies.subscribe(self.following.on_pod)

    def successor(self, clock, **options):
        """Return a fleet of the same clusters with another agent of the source."""
        return FollowingFleet(clock, servers=(self.source, self.gpu, self.cpu), **options)

    def add_originals(self):
        """Store an original of each kind in the source."""
        for kind in COPIED:
            self.add_original(kind)

    def add_original(self, kind, name="web"):
        """Store an object in the source that a pod refers to, or a Service that selects it."""
        metadata = {"name": name, "namespace": "ns", "labels": {"team": "blue"}}
        return self.source.add(kind, {"metadata": metadata, **copy.deepcopy(BODIES[kind])})

    def add_pod(self, name="web", *, node=GPU.node_name, namespace="ns", phase="Pending"):
        """Store a proxy pod that refers to an object of each kind and is behind the Service."""
        metadata = {"name": name, "namespace": namespace, "uid": name, "labels": {"app": "web"}}
        spec = {**SPEC, "nodeName": node} if node else SPEC
        pod = {"metadata": metadata, "spec": spec, "status": {"phase": phase}}
        return self.source.add(kinds.PODS, pod)

    def remove_pod(self, name="web"):
        self.source.remove(kinds.PODS, name, "ns")

    def copy(self, kind, target=None):
        """Return the target's copy of the original of that kind, or None."""
        return (target or self.gpu).find(kind, "web", "ns")

    def copied(self, target=None):
        """Return the kinds of which the target has a copy."""
        return {kind for kind in COPIED if self.copy(kind, target)}

    @property
    def events_about(self):
        """What Events say, by name of the pod that they are about."""
        events = self.source.all(kinds.EVENTS)
        return sorted((event["involvedObject"]["name"], event["message"]) for event in events)

    @asynccontextmanager
    async def running(self):
        """Have pods followed to both targets."""
        for link in (self.link, self.other):
            self.links.add(link)

        async with (
            links.connected(*self.links),
            links.following(self.proxies, self.namespaces),
            background.running(self.following.run(), self.events.run()),
        ):
            await asyncio.sleep(SOON)
            yield self

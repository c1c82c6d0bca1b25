"""Two clusters in memory in which something is wrong with a pod, as `vnode explain` meets them.

A situation is what the API servers of both clusters hold: nothing runs. What agents, schedulers and
kubelets would have written is written here, in their words.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from tests.apiserver.server import APIServer
from tests.unit.cli.explained_pods import NODE, refused
from vnode.api import keys, kinds, names, objects
from vnode.api.clock import Clock
from vnode.api.errors import ConfigError
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.insight import collecting, story
from vnode.insight.verdicts import Verdict
from vnode.kube.client import Client
from vnode.kube.events import WARNING
from vnode.pods.source.proxy_events import REPORTER

UID = "uid-of-web"


class Situation:
    """A source with the Target c2, and the cluster behind it."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.unseen = ""  # why whoever asks cannot ask the target
        self.source, self.target = APIServer("c1", clock), APIServer("c2", clock)
        label, value = keys.WEBHOOK_NAMESPACE_LABEL
        self.source.change(
            kinds.NAMESPACES, "default", "", lambda obj: _labelled(obj, {label: value})
        )
        self.source.add(kinds.TARGETS, a_target())
        holder = {"holderIdentity": "a", "leaseDurationSeconds": 15}
        now = objects.micro_timestamp(clock.now())
        metadata = {"name": "vnode-agent", "namespace": "vnode"}
        self.source.add(kinds.LEASES, {"metadata": metadata, "spec": {**holder, "renewTime": now}})

    @property
    def name_there(self) -> str:
        """The name of the pod's PodChaperon, and of its delegate."""
        return names.chaperon("web", UID)

    def ago(self, seconds: float) -> str:
        """Return the timestamp of that many seconds ago."""
        return objects.timestamp(self.clock.now() - timedelta(seconds=seconds))

    def pod(
        self, line: str = "", *, node: str = "", status: Object | None = None, **spec: Any
    ) -> None:
        """Have an elected pod; `line` is what the agent says of why it has no node."""
        annotations = {keys.ELECT: "", **spec.pop("annotations", {})}
        metadata = {"name": "web", "namespace": "default", "uid": UID, "annotations": annotations}
        containers = spec.pop("containers", [{"name": "main", "image": "registry.example/app:1"}])
        told = refused(line) if line else []
        if node:
            since = self.ago(120)
            told = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": since}]
            spec["nodeName"] = node

        body: Object = {
            "metadata": {**metadata, "creationTimestamp": self.ago(130)},
            "spec": {"schedulerName": keys.PROXY_SCHEDULER, "containers": containers, **spec},
            "status": {"phase": "Pending", "conditions": told, **(status or {})},
        }
        self.source.add(kinds.PODS, body)

    def sent(self, status: Object | None = None, *, node: str = "worker-1", **more: Any) -> None:
        """Have the pod bound to c2, and its delegate there with that status."""
        self.pod(node=NODE, **more)
        reserved = {keys.IS_RESERVED: "true", keys.IS_ALLOWED: "true"}
        self.chaperon(reserved)
        found = self.source.find(kinds.PODS, "web", "default") or {}
        spec = {**objects.spec(found), "nodeName": node}
        if not node:
            del spec["nodeName"]

        metadata = {"name": names.chaperon("web", UID), "uid": "uid-of-delegate"}
        status = {"phase": "Pending", **(status or {})}
        self.target.add(kinds.PODS, {"metadata": metadata, "spec": spec, "status": status})

    def chaperon(self, annotations: dict[str, str], line: str = "") -> None:
        """Have a PodChaperon of the pod in c2; `line` is why it has no place there."""
        metadata = {
            "name": names.chaperon("web", UID),
            "labels": {keys.PARENT_UID: UID},
            "annotations": annotations,
        }
        status = {"conditions": refused(line)} if line else {}
        self.target.add(kinds.POD_CHAPERONS, {"metadata": metadata, "status": status})

    def event(self, reason: str, message: str, *, about: str = "web", kind: str = "Pod") -> None:
        """Have the agent tell an Event of the delegate, or Kubernetes one of an owner."""
        involved = {"kind": kind, "name": about, "namespace": "default"}
        if kind == "Pod":
            involved["uid"] = UID

        body = {
            "metadata": {"name": f"e{len(self.source.all(kinds.EVENTS))}"},
            "involvedObject": involved,
            "type": WARNING,
            "reason": reason,
            "message": message,
            "lastTimestamp": self.ago(5),
            "reportingComponent": REPORTER if kind == "Pod" else "controller",
        }
        self.source.add(kinds.EVENTS, body)

    def here(self, kind: Kind, name: str, **more: Any) -> None:
        """Have an object in the source."""
        self.source.add(kind, {"metadata": {"name": name, "namespace": "default"}, **more})

    def there(self, kind: Kind, name: str, **more: Any) -> None:
        """Have an object in the target."""
        self.target.add(kind, {"metadata": {"name": name, "namespace": "default"}, **more})

    async def explain(self) -> Verdict:
        """Explain the pod as `vnode explain web` does."""

        @asynccontextmanager
        async def connect(_local: Client, _target: Object) -> AsyncIterator[Client]:
            if self.unseen:
                raise ConfigError(self.unseen)

            yield self.target.client("system:serviceaccount:vnode:c1")

        facts = await collecting.collect(
            self.source.client(),
            "web",
            "default",
            agent_namespace="vnode",
            clock=self.clock,
            connect=connect,
        )
        return story.build(facts).verdict


def a_target(name: str = "c2", **condition: Any) -> Object:
    """Return a Target that is ready unless its condition says otherwise."""
    ready = {"type": "Ready", "status": "True", "reason": "Connected", **condition}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"kubeconfigSecret": {"name": name}},
        "status": {"conditions": [ready]},
    }


def waiting(reason: str, message: str = "", **more: Any) -> Object:
    """Return the status of a pod whose container waits for that reason."""
    state = {"waiting": {"reason": reason, "message": message}}
    container = {"name": "main", "state": state, "restartCount": 0, "ready": False}
    return {"phase": "Pending", "containerStatuses": [container], **more}


def _labelled(obj: Object, labels: dict[str, str]) -> None:
    obj["metadata"]["labels"] = {**objects.labels(obj), **labels}

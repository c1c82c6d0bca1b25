"""A target cluster in memory, its agent's chaperon controller, and who else acts in it.

The API server is some milliseconds away, so that the informers of the agent are behind. A source
makes chaperons, allows and deletes them; a scheduler and a kubelet do with delegates what the test
says.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from tests import background
from tests.apiserver import links
from tests.apiserver.server import APIServer
from vnode.api import keys, kinds, objects
from vnode.api.objects import Object
from vnode.pods.target import chaperon_controller
from vnode.pods.target.chaperon_controller import ChaperonController

NAMESPACE: Final = "shop"
WRITES: Final = ("create", "update", "patch", "delete")
SETTLED: Final = 1.0  # seconds after which nothing is under way any more, but for what waits longer


class TargetCluster:
    """What is in the target; `ends` are the last states of chaperons that are gone."""

    def __init__(self, clock, server=None, *, goes_on=False, sources=()):
        self.clock = clock
        self.server = server or APIServer("c2", clock, latency=lambda: 0.002)
        self.source = self.server.client("source")
        agent = self.server.client("agent")
        self.chaperons, self.delegates = chaperon_controller.informers(agent)
        self.controller = ChaperonController(
            *(agent, self.chaperons, self.delegates),
            goes_on=lambda _chaperon: goes_on,
            sources=lambda _namespace: sources,
            clock=clock,
        )
        self.ends = []
        self.server.store.changed.add(self._on_change)

    def _on_change(self, kind, change):
        if kind is kinds.POD_CHAPERONS and change.new is None:
            self.ends.append(change.old)

    @asynccontextmanager
    async def informed(self) -> AsyncIterator[None]:
        """Have the agent know what is there."""
        async with links.following(self.chaperons, self.delegates):
            yield

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Have the agent's controller at work."""
        async with self.informed(), background.running(self.controller.run()):
            yield

    # What the source does.

    def send(self, name="web", *, finalizers=(keys.DELEGATE_FINALIZER,), spec=None, **metadata):
        """Make a chaperon."""
        metadata.setdefault("labels", {keys.PARENT_UID: f"parent-of-{name}"})
        metadata.setdefault("namespace", NAMESPACE)
        metadata |= {"name": name, "finalizers": list(finalizers)}
        main = {"name": "main", "image": "busybox"}
        body = {"metadata": metadata, "spec": {"containers": [main], **(spec or {})}}
        return self.server.add(kinds.POD_CHAPERONS, body)

    def annotate(self, name="web", *, kind=kinds.POD_CHAPERONS, **annotations):
        """Set annotations, whose keys are given with "_" for "-", in the words of `keys`."""

        def change(obj):
            present = obj["metadata"].setdefault("annotations", {})
            for key, value in annotations.items():
                present.pop(_KEYS[key], None)
                if value is not None:
                    present[_KEYS[key]] = value

        self.server.change(kind, name, NAMESPACE, change)

    async def end(self, name="web"):
        """Delete the chaperon."""
        await self.source.delete(kinds.POD_CHAPERONS, name, NAMESPACE)

    # What others do in the target.

    def bind(self, name="web"):
        """Bind the delegate to a node."""
        binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": "n1"}}
        self.server.writer.bind(objects.join_key(NAMESPACE, name), binding)

    async def run(self, name="web", **status):
        """Have the delegate run on a node."""
        self.bind(name)
        self.report(name, phase="Running", containerStatuses=[{"name": "main"}], **status)
        await asyncio.sleep(SETTLED)

    async def send_running(self, **chaperon):
        """Make a chaperon, and have its delegate run."""
        self.send(**chaperon)
        await self.until(self.pod)
        await self.run()

    def report(self, name="web", **status):
        """Write fields of the delegate's status, as its kubelet does."""
        self.server.change(
            kinds.PODS, name, NAMESPACE, lambda pod: pod.setdefault("status", {}).update(status)
        )

    async def evict(self, name="web"):
        """Delete the delegate, which takes its grace period to end."""
        await self.server.client("somebody").delete(kinds.PODS, name, NAMESPACE)

    def stop(self, name="web"):
        """Have the containers of the delegate stopped, as its kubelet says at last."""
        self.server.remove(kinds.PODS, name, NAMESPACE)

    # What tests look at.

    def pod(self, name="web") -> Object:
        """Return the pod of that name; empty if there is none."""
        return self.server.find(kinds.PODS, name, NAMESPACE) or {}

    def chaperon(self, name="web") -> Object:
        """Return the chaperon of that name; empty if it is gone."""
        return self.server.find(kinds.POD_CHAPERONS, name, NAMESPACE) or {}

    def noted(self, key, name="web"):
        """Return the value of an annotation on the chaperon, or None."""
        return objects.annotations(self.chaperon(name)).get(key)

    @property
    def rejection(self):
        """Why there is no delegate, as the chaperon says; None if it says nothing."""
        return (objects.condition(self.chaperon(), "PodScheduled") or {}).get("message")

    @property
    def asked(self):
        """What the agent wrote, as (verb, resource)."""
        return [
            (each.verb, "/".join(filter(None, (each.kind.plural, each.subresource))))
            for each in self.server.requests
            if each.client == "agent" and each.kind and each.verb in WRITES
        ]

    def count(self, verb, resource):
        """Count the agent's writes of that kind."""
        return self.asked.count((verb, resource))

    async def until(self, condition, seconds=300):
        """Wait for changes until the condition holds."""
        await self.server.until(condition, seconds)


_KEYS: Final = {
    "grace_period": keys.GRACE_PERIOD,
    "is_allowed": keys.IS_ALLOWED,
    "is_reserved": keys.IS_RESERVED,
    "placeholder": keys.PLACEHOLDER,
    "sent": keys.SENT,
    "team": "example.com/team",
}

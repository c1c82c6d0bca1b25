"""Targets that answer candidates as the test says: API servers in memory, real links to them.

The agent of a target lets go of whatever is deleted there, at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from tests.apiserver import links
from tests.apiserver.server import APIServer
from tests.apiserver.store import Change
from vnode.api import class_names, keys, kinds, names, objects
from vnode.api.clock import Clock
from vnode.api.identity import Identity
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.runtime.link_health import CONNECTING, LinkHealth

LATENCY: Final = 0.005  # seconds, each way
US: Final = Identity("c1", "uid-of-c1")
AT_ONCE: Final = 0.5
"""Seconds: less than any stagger, back-off or patience."""

Answer = Callable[["Target", Object], None]
"""What a target does about a new candidate."""


def rejects(target: Target, candidate: Object) -> None:
    """Find no place, as its scheduler."""
    entry = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    target.report(candidate, {"conditions": [{**entry, "message": "no room here"}]})


def reserves(target: Target, candidate: Object) -> None:
    """Find a place, as its scheduler."""
    target.annotate(candidate, **{keys.IS_RESERVED: "true"})


def is_silent(_target: Target, _candidate: Object) -> None:
    """Do nothing: no scheduler runs there."""


class Target:
    """A target cluster and its connection; its agent lets go of what is deleted."""

    def __init__(
        self,
        name: str,
        clock: Clock,
        answer: Answer = reserves,
        *,
        home: str = "default",
        **room: str,
    ) -> None:
        self.server = APIServer(name, clock, latency=lambda: LATENCY)
        self.answer = answer
        self.taints: list[Object] = []
        self.lets_go = True  # of what is deleted
        self.created_at: list[float] = []
        self._clock = clock
        self.set_room(**room)
        self._key = TargetKey(home, name)
        self.reconnect()
        self.server.store.changed.add(self._on_change)

    def reconnect(self) -> None:
        """Make another connection, as an agent does that has started again."""
        self.link = links.link_to(self.server, self._key, US, self._clock)

    @property
    def node(self) -> str:
        return self.link.node_name

    def set_room(self, **room: str) -> None:
        """Publish how much is free on the only node of the target."""
        free = {"pods": "1000", "cpu": "0", **room}
        self._publish(free, {"sum": free, "largest": free})

    def set_nodes(self, *cpus: str) -> None:
        """Publish how much CPU is free on each node of the target."""
        rows = [{"pods": "100", "cpu": cpu} for cpu in cpus]
        sum_ = {"pods": str(100 * len(rows)), "cpu": str(sum(map(int, cpus)))}
        free = {"sum": sum_, "largest": rows[0], "nodes": len(rows), "rows": rows}
        self._publish(sum_, free)

    def _publish(self, allocatable: Object, free: Object) -> None:
        annotations = {keys.AGENT_VERSION: "1", keys.FREE_RESOURCES: json.dumps(free)}
        metadata = {"name": keys.SUMMARY_NAME, "annotations": annotations}
        self.server.add(kinds.CLUSTER_SUMMARIES, {"metadata": metadata, "allocatable": allocatable})

    def set_classes(self, runtime: list[str], priority: list[str]) -> None:
        """Publish which RuntimeClasses and PriorityClasses the target has."""
        classes = {keys.CLASSES: class_names.encode(runtime, priority)}

        def change(summary: Object) -> None:
            summary["metadata"]["annotations"].update(classes)

        self.server.change(kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME, "", change)

    def connect(self) -> None:
        """Be connected anew, as when an agent starts; it is not known yet whether this answers."""
        health = LinkHealth(False, CONNECTING, "connecting to the target", self._clock.now())
        self.link.set_health(health)

    def set_healthy(self, healthy: bool) -> None:
        links.set_healthy(self.link, healthy, self._clock)

    def asked(self, *verbs: str) -> int:
        """Count the requests about candidates that arrived, by default all but reading."""
        counted = verbs or ("create", "patch", "delete")
        return sum(self.server.count(verb, kinds.POD_CHAPERONS) for verb in counted)

    def find(self, pod: str) -> Object | None:
        """Return the candidate of a pod as it is there, None if there is none."""
        return self.server.find(kinds.POD_CHAPERONS, names.chaperon(pod, pod), "default")

    def candidate(self, pod: str) -> Object:
        """Return the candidate of a pod, which must be there."""
        found = self.find(pod)
        assert found is not None
        return found

    def report(self, candidate: Object, status: Object) -> None:
        """Report the status of a candidate, as its agent."""
        self._change(candidate, lambda obj: obj.update(status=status))

    def annotate(self, candidate: Object, **annotations: str) -> None:
        """Annotate a candidate, as its agent."""
        self._change(candidate, lambda obj: obj["metadata"]["annotations"].update(annotations))

    def _change(self, candidate: Object, change: Callable[[Object], None]) -> None:
        self.server.change(kinds.POD_CHAPERONS, objects.name(candidate), "default", change)

    def remove(self, candidate: Object) -> None:
        self.server.remove(kinds.POD_CHAPERONS, objects.name(candidate), "default")

    def _on_change(self, kind: Kind, change: Change) -> None:
        if kind is not kinds.POD_CHAPERONS or change.new is None:
            return

        if change.old is None:
            self.created_at.append(self._clock.monotonic())
            self.answer(self, change.new)
        elif objects.is_terminating(change.new) and self.lets_go:
            self.remove(change.new)


def only(target: Target) -> Object:
    """Build the spec of a pod for that target alone."""
    return {"nodeSelector": {"target": target.node}}


def prefer(*targets: Target) -> None:
    """Have scheduling rank targets in this order."""
    for place, target in enumerate(targets):
        target.taints = [{"key": str(n), "effect": "PreferNoSchedule"} for n in range(place)]

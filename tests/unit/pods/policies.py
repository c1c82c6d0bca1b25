"""Placement policies for tests, and targets with room for so many pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from tests.apiserver.store import Change
from tests.unit.pods.clusters import SourceCluster
from tests.unit.pods.targets import Target, rejects, reserves
from vnode.api import keys, kinds, objects, placeholders
from vnode.api.clock import Clock
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.planning.policy import (
    Clusters,
    Mode,
    Overflow,
    PlacementTarget,
    Policy,
)
from vnode.pods.source import proxy_state
from vnode.scheduling.events import ClusterEvent, EventKind


class Fixed:
    """One policy for all pods, or none."""

    def __init__(self, policy: Policy | None) -> None:
        self.policy = policy
        self._listeners: list[Callable[[str], None]] = []
        self.others: dict[str, tuple[Policy | None, Object]] = {}
        """Policies that no pod has, by key, with their statuses."""

    def subscribe(self, changed: Callable[[str], None]) -> None:
        self._listeners.append(changed)

    def change(self, policy: Policy | None, namespace: str = "") -> None:
        """Have another policy, and tell that it is about pods of a namespace, "" for all."""
        self.policy = policy
        for changed in self._listeners:
            changed(namespace)

    def __bool__(self) -> bool:
        return self.policy is not None

    def of(self, _pod: Object) -> Policy | None:
        return self.policy

    def in_force(self) -> dict[str, Policy]:
        found = {"default/web": self.policy} if self.policy else {}
        return found | {key: policy for key, (policy, _) in self.others.items() if policy}

    def get(self, key: str) -> Object | None:
        metadata = {"name": key.rpartition("/")[2], "namespace": "default", "uid": "policy"}
        if key in self.others:
            return {"metadata": metadata, "status": self.others[key][1]}

        return {"metadata": metadata} if key == "default/web" and self.policy else None


def entry(node: str, **fields: Any) -> PlacementTarget:
    return PlacementTarget(Clusters(names=frozenset((node,))), **fields)


def spread(*targets: PlacementTarget, after: float = 120, **fields: Any) -> Policy:
    fields.setdefault("mode", Mode.SPREAD)
    keeps = fields.pop("keep_unschedulable", True)
    overflow = Overflow(after, fields.pop("max_candidates", 3), keeps)
    return Policy(
        "placementpolicy/web", "default", None, targets=targets, overflow=overflow, **fields
    )


class Room(Target):
    """Has places for so many pods, which its own scheduler knows only."""

    def __init__(self, name: str, clock: Clock, places: int) -> None:
        self.places = places
        self.taken: set[str] = set()
        self._aside: set[str] = set()
        super().__init__(name, clock, _by_room, cpu="1000")

    def grow(self, places: int) -> None:
        """Get places for so many, as by an autoscaler, for those that wait there first."""
        self.places = places
        self._fill()

    def remove(self, candidate: Object) -> None:
        super().remove(candidate)
        self.taken.discard(objects.name(candidate))
        self._fill()

    def set_aside(self, candidate: Object) -> None:
        """Give a placeholder no place, but tell whether there is one."""
        if objects.name(candidate) not in self._aside:
            self._aside.add(objects.name(candidate))
            self.report_openings()

    def report_openings(self) -> None:
        """Tell placeholders whether there is room, as the agent and its scheduler do."""
        is_open = len(self.taken) < self.places
        for candidate in self.server.all(kinds.POD_CHAPERONS):
            if objects.name(candidate) not in self._aside:
                continue

            if is_open and not placeholders.could_start(candidate):
                refusal = {"type": "PodScheduled", "status": "False", "reason": "SchedulerError"}
                self.report(candidate, {"conditions": [{**refusal, "message": keys.COULD_START}]})
            elif not is_open and placeholders.could_start(candidate) is not False:
                rejects(self, candidate)

    def _fill(self) -> None:
        for candidate in self.server.all(kinds.POD_CHAPERONS):
            if len(self.taken) >= self.places:
                break

            if objects.name(candidate) not in self.taken | self._aside:
                self.taken.add(objects.name(candidate))
                reserves(self, candidate)

        self.report_openings()


def _by_room(target: Target, candidate: Object) -> None:
    assert isinstance(target, Room)
    if len(target.taken) < target.places:
        target.taken.add(objects.name(candidate))
        reserves(target, candidate)
        target.report_openings()
    else:
        rejects(target, candidate)


class Planned(SourceCluster):
    """A source with a policy. Candidates that have lost go, and so do pods that are deleted."""

    def __init__(
        self, clock: Clock, policy: Policy | None, *targets: Target, **fields: Any
    ) -> None:
        self.policy = Fixed(policy)
        super().__init__(clock, *targets, policies=self.policy, **fields)
        self.server.store.changed.add(self._on_pod)
        self.policy.subscribe(lambda _: self.queue.move(ClusterEvent(EventKind.POLICY_CHANGED)))

    def change_policy(self, policy: Policy | None) -> None:
        self.policy.change(policy)

    def remove(self, name: str) -> None:
        self.server.remove(kinds.PODS, name, "default")

    def _on_pod(self, kind: Kind, change: Change) -> None:
        if kind is not kinds.PODS:
            return

        name = objects.name(change.new or change.old or {})
        for target in self.targets:
            candidate = target.find(name)
            if candidate is None:
                continue

            if change.new is None or proxy_state.is_loser(candidate, change.new, target.node):
                target.remove(candidate)
            elif objects.node_name(change.new) not in ("", target.node) and isinstance(
                target, Room
            ):
                target.set_aside(candidate)


def add_replicas(
    source: SourceCluster, count: int, first: int = 0, owner: str = "web-1", **fields: Any
) -> list[str]:
    """Create pods of a Deployment, as its ReplicaSet controller does."""
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner}
    labels = {"app": "web", "pod-template-hash": owner.rpartition("-")[2]}
    made = [f"{owner}-{number}" for number in range(first, first + count)]
    for name in made:
        owners = [{**reference, "controller": True}]
        source.add(name, cpu="1", labels=labels, ownerReferences=owners, **fields)

    return made


def places(source: SourceCluster, pods: Iterable[str]) -> dict[str, int]:
    """Count pods by target; those that wait are under ""."""
    known = {target.node: target.link.target.name for target in source.targets}
    return dict(Counter(known.get(source.node_of(pod), "") for pod in pods))

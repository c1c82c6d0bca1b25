"""A Deployment in memory, whose controllers follow Kubernetes' rules, over the product's own plans.

The Deployment controller's: how many pods a ReplicaSet may have more or less at each moment of a
rolling update, which of those that are not ready go first, and how a change of `replicas` is
divided while there are several. The ReplicaSet controller's: which pods it deletes. What the
scheduler and the deletion costs do is asked of the code that does it in the agent.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from vnode.planning import choosing, deletion_cost
from vnode.planning.deletion_cost import PlacedPod
from vnode.planning.policy import Overflow
from vnode.planning.seats import Share, plan
from vnode.planning.workload import Workload

_OVERFLOW = Overflow(after=60.0)
TRIES: Final = 400  # steps after which a rollout hangs


@dataclass(slots=True)
class Strategy:
    """RollingUpdate with percentages, or Recreate."""

    surge: int = 25
    unavailable: int = 25
    recreate: bool = False

    def bounds(self, replicas: int) -> tuple[int, int]:
        """Return how many more pods there may be, and how many fewer."""
        more, fewer = math.ceil(replicas * self.surge / 100), replicas * self.unavailable // 100
        return (more, fewer) if more or fewer else (0, 1)


@dataclass(slots=True, eq=False)
class RolledPod:
    """A pod of the Deployment."""

    uid: str
    revision: int
    made: int
    node: str = ""
    ready: bool = False
    cost: int = 0

    def object(self, name: str) -> dict[str, Any]:
        """Build the pod as informers have it."""
        template = f"t{self.revision}"
        owner = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": f"{name}-{template}",
            "uid": f"{name}-{template}",
            "controller": True,
        }
        return {
            "metadata": {
                "name": self.uid,
                "namespace": "default",
                "uid": self.uid,
                "labels": {"pod-template-hash": template},
                "creationTimestamp": f"2026-01-01T{self.made // 3600:02}:"
                f"{self.made // 60 % 60:02}:{self.made % 60:02}Z",
                "ownerReferences": [owner],
            },
            "spec": {"nodeName": self.node} if self.node else {},
            "status": {"phase": "Pending"},
        }


@dataclass(slots=True)
class DrivenWorkload:
    """Where the pods of one Deployment or several go, by their shares of the clusters."""

    shares: tuple[Share, ...]
    rooms: dict[str, int] = field(default_factory=dict)
    """Clusters that are no larger than that."""
    counted: Workload = field(default_factory=lambda: Workload("w"))
    pods: dict[str, tuple[str, RolledPod]] = field(default_factory=dict)
    """UID -> name of the Deployment, pod."""
    clock: int = 0

    def on_nodes(self) -> dict[str, int]:
        """Return node -> pods."""
        return dict(Counter(pod.node for _, pod in self.pods.values() if pod.node))

    def plan(self) -> dict[str, int]:
        """Return node -> pods by the plan."""
        return dict(plan(len(self.pods), self.shares, "w").planned)

    def put(self, name: str, pod: RolledPod) -> None:
        """Have a pod, or a newer version of it."""
        self.pods[pod.uid] = name, pod
        self.counted.put(pod.object(name))

    def remove(self, pod: RolledPod) -> None:
        """Have a pod no more."""
        del self.pods[pod.uid]
        self.counted.remove(pod.uid)

    def schedule(self) -> None:
        """Try all pods that have no node."""
        for member in list(self.counted.pending()):
            choice = choosing.choose(
                self.counted, member, self.shares, _OVERFLOW, float(self.clock)
            )
            self.counted.plan(member, choice.aim, choice.opened)
            there = self.on_nodes()
            free = [n for n in choice.nodes() if there.get(n, 0) < self.rooms.get(n, 10**9)]
            name, pod = self.pods[member.uid]
            if free:
                pod.node = free[0]
                self.put(name, pod)

    def write_costs(self) -> None:
        """Have all pods their costs."""
        placed = [
            PlacedPod(m.uid, m.node, m.revision, self._made(m.uid), self.pods[m.uid][1].cost)
            for m in self.counted.members.values()
            if m.node
        ]
        found = deletion_cost.costs(placed, self.counted.seats(self.shares))
        for uid, cost in found.items():
            self.pods[uid][1].cost = cost

    def _made(self, uid: str) -> str:
        name, pod = self.pods[uid]
        made: str = pod.object(name)["metadata"]["creationTimestamp"]
        return made


class RolledDeployment:
    """Its controllers take one step at a time; `ready` tells which pods become ready in it."""

    def __init__(
        self,
        workload: DrivenWorkload,
        replicas: int,
        strategy: Strategy,
        name: str = "web",
        dice: random.Random | None = None,
    ) -> None:
        self.workload = workload
        self.replicas = replicas
        self.strategy = strategy
        self.name = name
        self.dice = dice
        """Pods become ready, and costs are written, by chance; at once without it."""
        self.wanted: dict[int, int] = {0: replicas}
        """Revision -> pods that its ReplicaSet is to have, oldest first."""
        self.current = 0
        self.is_paused = False
        self._made = 0

    def roll_out(self, revision: int | None = None) -> None:
        """Have another template, or that of a former revision."""
        self.current = max(self.wanted) + 1 if revision is None else revision
        self.wanted.setdefault(self.current, 0)

    def scale(self, replicas: int) -> None:
        """Have another number of pods, as by an autoscaler."""
        before, self.replicas = self.replicas, replicas
        active = [each for each, count in self.wanted.items() if count]
        if len(active) <= 1:
            self.wanted[active[0] if active else self.current] = replicas
        elif self.wanted[self.current] == before:
            self.wanted = dict.fromkeys(self.wanted, 0) | {self.current: replicas}
        else:
            self._scale_in_proportion(before)

        self._replace_pods()

    def step(self) -> bool:
        """Take a step; return whether the Deployment is complete."""
        self.workload.clock += 1
        if not self.is_paused:
            self._recreate() if self.strategy.recreate else self._roll()

        self._replace_pods()
        self.workload.schedule()
        for pod in self.pods():
            pod.ready |= bool(pod.node) and (self.dice is None or self.dice.random() < 0.5)

        if self.dice is None or self.dice.random() < 0.5:
            self.workload.write_costs()

        pods = self.pods(self.current)
        return len(self.pods()) == len(pods) == self.replicas and all(p.ready for p in pods)

    def finish(self) -> None:
        """Take steps until the rollout is complete."""
        for _ in range(TRIES):
            if self.step():
                self.workload.write_costs()
                return

        raise AssertionError(f"the rollout hangs: {self.workload.on_nodes()}")

    def settle(self) -> None:
        """Have all pods ready, and their costs."""
        self._replace_pods()
        self.workload.schedule()
        for pod in self.pods():
            pod.ready = bool(pod.node)

        self.workload.write_costs()

    def pods(self, revision: int | None = None) -> list[RolledPod]:
        """List its pods, or those of a revision."""
        mine = [pod for name, pod in self.workload.pods.values() if name == self.name]
        return [pod for pod in mine if revision in (None, pod.revision)]

    def _roll(self) -> None:
        more, fewer = self.strategy.bounds(self.replicas)
        total, new = sum(self.wanted.values()), self.wanted[self.current]
        if new > self.replicas:
            self.wanted[self.current] = self.replicas
        elif new < self.replicas and total < self.replicas + more:
            self.wanted[self.current] += min(self.replicas + more - total, self.replicas - new)
        else:
            self._scale_down_old(self.replicas - fewer)

    def _scale_down_old(self, least: int) -> None:
        ready = {each: sum(p.ready for p in self.pods(each)) for each in self.wanted}
        total, new = sum(self.wanted.values()), self.wanted[self.current]
        left = total - least - (new - ready[self.current])
        for each in [each for each in self.wanted if each != self.current]:
            gone = max(0, min(left, self.wanted[each] - ready[each]))
            self.wanted[each] -= gone
            left -= gone

        left = sum(ready.values()) - least
        for each in [each for each in self.wanted if each != self.current]:
            gone = max(0, min(left, self.wanted[each]))
            self.wanted[each] -= gone
            left -= gone

    def _recreate(self) -> None:
        for each in self.wanted:
            if each != self.current:
                self.wanted[each] = 0

        if not [pod for pod in self.pods() if pod.revision != self.current]:
            self.wanted[self.current] = self.replicas

    def _scale_in_proportion(self, before: int) -> None:
        more, _ = self.strategy.bounds(self.replicas)
        former_more, _ = self.strategy.bounds(before)
        allowed = self.replicas + more if self.replicas else 0
        left = allowed - sum(self.wanted.values())
        is_growing = left > 0
        in_order = sorted(
            self.wanted, key=lambda each: (-self.wanted[each], -each if is_growing else each)
        )
        for each in in_order:
            share = self.wanted[each] * allowed / max(1, before + former_more)
            change = math.floor(share + 0.5) - self.wanted[each]
            change = max(0, min(change, left)) if is_growing else min(0, max(change, left))
            self.wanted[each] += change
            left -= change

        self.wanted[in_order[0]] = max(0, self.wanted[in_order[0]] + left)

    def _replace_pods(self) -> None:
        """Make and delete pods as ReplicaSet controllers do."""
        for revision, wanted in self.wanted.items():
            pods = self.pods(revision)
            for _ in range(wanted - len(pods)):
                self._made += 1
                uid = f"{self.name}-{self._made}"
                self.workload.put(self.name, RolledPod(uid, revision, self.workload.clock))

            related = Counter(pod.node for pod in self.pods())
            pods.sort(
                key=lambda p: (bool(p.node), p.ready, p.cost, -related[p.node], -p.made, p.uid)
            )
            for pod in pods[: max(0, len(pods) - wanted)]:
                self.workload.remove(pod)

"""The source of a golden log: a Deployment under a policy as users write it, and a leader's work.

The Deployment is rolled out and shrinks as Kubernetes' controllers do it: of the pods of a
ReplicaSet those without a node go first, then those that are not ready, then those of the lowest
deletion cost. Targets can be lost; their pods then terminate until the target is back.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from tests import background
from tests.apiserver.links import following
from tests.apiserver.store import Change
from tests.simulation.owners import RollingUpdate
from tests.unit.placement.indexed import Nobody
from tests.unit.placement.losing_environment import RecordedConditions
from tests.unit.placement.moving_acts import planned
from tests.unit.placement.moving_environment import FrankRoom, MovingEnvironment
from tests.unit.pods.policies import add_replicas
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.kinds import Kind
from vnode.api.objects import Object, Objects
from vnode.api.taints import NO_EXECUTE
from vnode.kube.events import EventRecorder
from vnode.kube.informer import Informer
from vnode.placement.failover.controller import Failovers
from vnode.placement.failover.lost_targets import LostTargets
from vnode.placement.policies.decoding import decode
from vnode.pods.source import proxy_state
from vnode.targets.probing import Prober


class DeploymentEnvironment(MovingEnvironment):
    """Has the Deployment `web`, and `spec`, that of its PlacementPolicy."""

    def __init__(self, clock: Clock, rooms: Mapping[str, int], spec: Object) -> None:
        self.spec = spec
        self._revision = 1
        self._is_due = False
        self._lost: set[str] = set()  # targets that do not answer
        self._held: list[str] = []  # pods that terminate there
        super().__init__(clock, None, *(FrankRoom(n, clock, p) for n, p in rooms.items()))
        self.room = {room.link.target.name: room for room in self.rooms}
        self.names = {room.node: name for name, room in self.room.items()}
        self.conditions = RecordedConditions(clock)
        self.policy.policy = self._decoded()
        for name, room in self.room.items():
            self.conditions.targets[room.link.target] = {"metadata": {"name": name}}
            labels = {"target": room.node, keys.TARGET_NAME: name}
            self.server.add(kinds.NODES, {"metadata": {"name": room.node, "labels": labels}})

    @asynccontextmanager
    async def led(self) -> AsyncIterator[None]:
        """Schedule, move, and replace the pods of lost targets, as a leader does."""
        client = self.server.client()
        proxies = Informer(client, kinds.PODS, trim=proxy_state.trim, indexes=proxy_state.INDEXES)
        lost = LostTargets(self.links, self.conditions, self._clock)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(planned(self, self._clock))
            await stack.enter_async_context(following(proxies))
            lost.watch()
            events = EventRecorder(client, "vnode", self._clock)
            failovers = Failovers(
                client,
                proxies,
                lambda node: proxies.store.by_index(proxy_state.NODE_INDEX, node),
                Nobody(),
                lost,
                self.policy,
                self.replacements,
                events=events,
                clock=self._clock,
            )
            probers = [Prober(room.link, self._clock) for room in self.rooms]
            for room in self.rooms:
                room.link.on_health(lambda link=room.link: self.conditions.find(link))

            work = (failovers.run(), events.run(), *(prober.run() for prober in probers))
            await stack.enter_async_context(background.running(*work))
            yield

    def label(self, name: str, **labels: str) -> None:
        """Label the virtual node of a target."""

        def change(node: Object) -> None:
            node["metadata"]["labels"].update(labels)

        self.server.change(kinds.NODES, self.room[name].node, "", change)

    def change_spec(self, **fields: Any) -> None:
        """Change fields of the policy's spec; None removes one."""
        self.spec = {k: v for k, v in {**self.spec, **fields}.items() if v is not None}
        self.change_policy(self._decoded())

    def roll_out(self) -> None:
        """Have another template in the Deployment."""
        self._revision += 1
        self.owner = f"web-{self._revision}"
        self._replace()

    def scale(self, replicas: int) -> None:
        """Have so many pods, by deletion costs if they are fewer."""
        self.replicas = replicas
        self._replace()

    def lose(self, name: str) -> None:
        """Have a target answer nothing."""
        self._lost.add(name)
        self.room[name].server.stop()

    def find(self, name: str) -> None:
        """Have a target answer again; what terminates there ends."""
        self._lost.discard(name)
        self.room[name].server.start()
        held, self._held = self._held, []
        for pod in held:
            asyncio.get_running_loop().call_later(1, self._gone, pod)

    def live(self) -> Objects:
        """List the pods that do not terminate, the newest first."""
        pods = [p for p in self.server.all(kinds.PODS) if not objects.is_terminating(p)]
        return sorted(pods, key=lambda pod: -number_of(objects.name(pod)))

    def _decoded(self) -> Any:
        return decode({"metadata": {"name": "web", "namespace": "default"}, "spec": self.spec})

    def _own(self, kind: Kind, change: Change) -> None:
        super()._own(kind, change)
        if kind is kinds.PODS and not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._reconcile)

    def _reconcile(self) -> None:
        self._is_due = False
        self._replace()

    def _replace(self) -> None:
        update = RollingUpdate(self.replicas, str(self._revision), tuple(self.live()))
        missing = max(0, update.missing)
        add_replicas(self, missing, self._made, self.owner, **self._admission())
        self._made += missing
        for pod in update.surplus():
            self.server.writer.delete(kinds.PODS, objects.key(pod))

    def _admission(self) -> Object:
        """Return what the API server and the webhook write into a pod about lost nodes."""
        is_marked = "failover" in self.spec
        tolerations = [
            {"key": key, "operator": "Exists", "effect": NO_EXECUTE}
            | ({} if is_marked else {"tolerationSeconds": 300})
            for key in keys.NODE_FAILURES
        ]
        annotations = {keys.FAILOVER: ""} if is_marked else {}
        return {"spec": {"tolerations": tolerations}, "annotations": annotations}

    def _gone(self, name: str) -> None:
        pod = self.server.find(kinds.PODS, name, "default") or {}
        if self.names.get(objects.node_name(pod)) in self._lost:
            self._held.append(name)
        else:
            super()._gone(name)


def number_of(pod: str) -> int:
    """Return the number in a pod's name: pods are counted in the order in which they are made."""
    return int(pod.rpartition("-")[2])

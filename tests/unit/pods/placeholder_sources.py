"""A source whose placeholders are kept, and the pods that leave them."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import NamedTuple

from tests import background
from tests.apiserver import links
from tests.unit.placement.indexed import indexed
from tests.unit.pods.policies import Planned, Room, add_replicas, entry, places, spread
from vnode.api import keys, kinds, objects, placeholders
from vnode.api.listeners import subscription_scope
from vnode.kube.informer import Informer
from vnode.placement.placeholders.controller import Placeholders
from vnode.planning.policy import Mode
from vnode.pods.source import proxy_state

WEB = "deployment/default/web"
SETTLED = 20.0
PATIENCE = 60.0


class FoundNode(NamedTuple):
    name: str
    labels: dict[str, str]


class Keeping(Planned):
    """A source whose placeholders are kept."""

    keeper: Placeholders

    @asynccontextmanager
    async def keeping(self, clock):
        client = self.server.client()
        proxies = Informer(client, kinds.PODS, trim=proxy_state.trim)
        nodes = Informer(client, kinds.NODES)
        with subscription_scope():
            async with self.running(), links.following(proxies, nodes):
                index = indexed(proxies, self.policy, clock)
                self.keeper = Placeholders(
                    client, proxies, nodes, self.links, self.cache, self.policy, index, clock
                )
                async with background.running(index.run(), self.keeper.run()):
                    yield

    def waiting(self):
        """Count candidates of bound pods that are not on the pod's node, by target."""
        return {
            target.link.target.name: len(self.kept_in(target))
            for target in self.targets
            if self.kept_in(target)
        }

    def kept_in(self, target):
        """List the names of the pods that have a placeholder in the target."""
        names = []
        for candidate in target.server.all(kinds.POD_CHAPERONS):
            pod = objects.annotations(candidate)[keys.PARENT_NAME]
            if self.node_of(pod) not in ("", target.node):
                names.append(pod)

        return sorted(names)

    def recorded(self, pods):
        """Count placeholders by the annotations of pods."""
        found = {}
        for pod in pods:
            for node in placeholders.of(self.pod(pod)):
                found[node] = found.get(node, 0) + 1

        names = {target.node: target.link.target.name for target in self.targets}
        return {names[node]: count for node, count in found.items()}


def fleet(clock, *rooms, kind=Keeping, server=None, each=None, **fields):
    targets = [Room(f"c{number}", clock, count) for number, count in enumerate(rooms, 1)]
    entries = (
        entry(t.node, weight=w, **(each or {"minimum": 2}))
        for t, w in zip(targets, (40, 40, 20), strict=True)
    )
    return kind(clock, spread(*entries, **fields), *targets)


def fill(clock, *rooms, after=60, **fields):
    targets = [Room(f"c{number}", clock, count) for number, count in enumerate(rooms, 1)]
    policy = spread(*(entry(t.node) for t in targets), mode=Mode.FILL, after=after, **fields)
    return Keeping(clock, policy, *targets)


async def overflowed(source):
    """Add twenty pods of the example and wait until four of them have overflowed."""
    pods = add_replicas(source, 20)
    await source.until_bound(*pods)
    await asyncio.sleep(SETTLED)
    assert places(source, pods) == {"c1": 6, "c2": 6, "c3": 8}
    return pods

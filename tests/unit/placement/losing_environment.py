"""A source whose targets are lost, and come back: whole API servers that answer or do not.

Probers are the real ones. Conditions of Targets outlive terms and agents, as in production.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from tests import background
from tests.apiserver.links import following, link_to
from tests.apiserver.server import APIServer
from tests.unit.placement.moving_environment import AwaitedPods
from tests.unit.pods.policies import Fixed, spread
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.kube.events import EventRecorder
from vnode.kube.informer import Handler, Informer
from vnode.placement.failover.controller import Failovers
from vnode.placement.failover.lost_targets import LostTargets
from vnode.planning.failover import Failover
from vnode.planning.policy import Policy
from vnode.pods.source import proxy_state
from vnode.runtime.link import Link
from vnode.runtime.link_health import CONNECTING, LinkHealth
from vnode.runtime.links import Links
from vnode.targets import conditions, target_conditions
from vnode.targets.probing import Prober

US = Identity("c1", "uid-of-c1")
NOTICED = 25.0
"""Seconds after which a target that does not answer has been found lost, at most."""


def node_of(target: str) -> str:
    return TargetKey("", target).node_name


class RecordedConditions:
    """What Targets say, and what this process has found; `record` writes one into the other."""

    def __init__(self, clock: Clock) -> None:
        self.targets: dict[TargetKey, Object] = {}
        self.may_write = True
        self._clock = clock
        self._found: dict[TargetKey, Object] = {}
        self._listeners: list[Callable[[TargetKey], None]] = []

    def restart(self) -> None:
        self._found.clear()
        self._listeners.clear()

    def find(self, link: Link) -> None:
        """Do what a leader does when the health of a link has changed."""
        if link.health.reason == CONNECTING or link.target not in self.targets:
            return

        key, target = link.target, self.targets[link.target]
        found = self._found[key] = target_conditions.link_condition(target, link, self._clock.now())
        if self.may_write:
            self.targets[key] = {**target, "status": {"conditions": [found]}}

        for changed in self._listeners:
            changed(key)

    def fail(self, target: str) -> None:
        """Find that no connection can be made: the Secret has gone, say."""
        key, now = TargetKey("", target), self._clock.now()
        found = conditions.connected(self.targets[key], False, "Invalid", "no such Secret", now)
        self._found[key] = found
        self.targets[key] = {**self.targets[key], "status": {"conditions": [found]}}
        for changed in self._listeners:
            changed(key)

    def delete(self, target: str) -> None:
        """Delete a Target."""
        key = TargetKey("", target)
        del self.targets[key]
        self._found.pop(key, None)
        for changed in self._listeners:
            changed(key)

    def of_node(self, node: str) -> TargetKey | None:
        return next((key for key in self.targets if key.node_name == node), None)

    def found(self, key: TargetKey) -> Object | None:
        return self._found.get(key)

    def recorded(self, key: TargetKey) -> Object | None:
        return conditions.recorded(self.targets.get(key) or {})

    def subscribe(self, changed: Callable[[TargetKey], None]) -> None:
        self._listeners.append(changed)


class _Bound:
    """Pods that others bound, from one informer for all nodes."""

    def __init__(self, pods: Informer) -> None:
        self.pods = pods

    def get(self, _key: str) -> Object | None:
        return None

    def subscribe(self, handler: Handler) -> None:
        self.pods.subscribe(handler)

    def pods_on(self, node_name: str) -> Iterator[Object]:
        return iter([p for p in self.pods.store.values() if objects.node_name(p) == node_name])


class LosingEnvironment:
    """A source with targets c2, c3 and so on; its proxies have a finalizer."""

    def __init__(self, clock: Clock, failover: Failover | None, *targets: str) -> None:
        self.server = APIServer("c1", clock)
        self.policies = Fixed(spread(failover=failover))
        self.replacements = AwaitedPods()
        self.conditions = RecordedConditions(clock)
        self.targets: dict[str, APIServer] = {}
        self.links = Links()
        self.clock = clock
        for target in targets:
            self.targets[target] = APIServer(target, clock)
            summary = {"metadata": {"name": keys.SUMMARY_NAME}}
            self.targets[target].add(kinds.CLUSTER_SUMMARIES, summary)
            self.conditions.targets[TargetKey("", target)] = {"metadata": {"name": target}}

    @asynccontextmanager
    async def agent(self, clock: Clock | None = None) -> AsyncIterator[None]:
        """Run a process that is connected to the targets; it does not lead by itself."""
        self.links = Links()
        self.conditions.restart()
        clock = clock or self.clock
        async with AsyncExitStack() as stack:
            for target, server in self.targets.items():
                link = link_to(server, TargetKey("", target), US, clock)
                self.links.add(link)
                link.set_health(LinkHealth(False, CONNECTING, "connecting", clock.now()))
                link.on_health(lambda link=link: self.conditions.find(link))
                informers = (link.chaperons.run(), link.summaries.run())
                prober = Prober(link, clock)
                await stack.enter_async_context(background.running(*informers, prober.run()))

            yield

    @asynccontextmanager
    async def leading(self, clock: Clock | None = None) -> AsyncIterator[None]:
        """Lead in the process that runs, or in one of its own."""
        async with AsyncExitStack() as stack:
            if not len(self.links):
                await stack.enter_async_context(self.agent(clock))
                stack.callback(self._forget)

            await stack.enter_async_context(self._term(clock or self.clock))
            yield

    def _forget(self) -> None:
        self.links = Links()

    @asynccontextmanager
    async def _term(self, clock: Clock) -> AsyncIterator[None]:
        client = self.server.client()
        selected = f"spec.schedulerName{{}}={keys.PROXY_SCHEDULER}"
        proxies, others = (
            Informer(
                client,
                kinds.PODS,
                field_selector=selected.format(sign),
                trim=proxy_state.trim,
                indexes=proxy_state.INDEXES,
            )
            for sign in ("", "!")
        )
        events = EventRecorder(client, "vnode", clock)
        lost = LostTargets(self.links, self.conditions, clock)
        lost.watch()
        failovers = Failovers(
            client,
            proxies,
            lambda node: proxies.store.by_index(proxy_state.NODE_INDEX, node),
            _Bound(others),
            lost,
            self.policies,
            self.replacements,
            events=events,
            clock=clock,
        )
        running = background.running(failovers.run(), events.run())
        async with following(proxies, others), running:
            yield

    def change_policy(self, policy: Policy | None) -> None:
        self.policies.change(policy)

    def lose(self, *targets: str) -> None:
        """Have targets answer nothing; watches end."""
        for target in targets:
            self.targets[target].stop()

    def find(self, *targets: str) -> None:
        for target in targets:
            self.targets[target].start()

    async def until_lost(self, *targets: str) -> None:
        """Wait until the agent has found targets lost, that stop to answer now."""
        found = asyncio.Event()
        for target in targets:
            self.links_of(target).on_health(found.set)

        self.lose(*targets)
        async with asyncio.timeout(NOTICED):
            while any(self.links_of(target).health.healthy for target in targets):
                found.clear()
                await found.wait()

    def links_of(self, target: str) -> Link:
        link = self.links.get(node_of(target))
        assert link is not None
        return link

    def add(
        self,
        name: str,
        target: str = "c2",
        *,
        priority: int = 0,
        tolerates: float | None = None,
        proxy: bool = True,
        namespace: str = "default",
    ) -> None:
        """Add a pod that tolerates a lost node so long; without it, one of a failover policy."""
        is_marked, lasts = tolerates is None, tolerates in (None, math.inf)
        metadata: Any = {
            "name": name,
            "namespace": namespace,
            "finalizers": ["example.com/kept"],
            "annotations": {keys.FAILOVER: ""} if is_marked else {},
        }
        spec: Any = {
            "nodeName": node_of(target),
            "priority": priority,
            "containers": [{"name": "c", "image": "i"}],
            "schedulerName": keys.PROXY_SCHEDULER if proxy else "default-scheduler",
            "tolerations": [
                {"key": key, "operator": "Exists", "effect": "NoExecute"}
                | ({} if lasts else {"tolerationSeconds": tolerates})
                for key in keys.NODE_FAILURES
            ],
        }
        self.server.add(kinds.PODS, {"metadata": metadata, "spec": spec})

    def ending(self) -> list[str]:
        """List the pods that terminate, in the order of their deletions."""
        return [
            each.name
            for each in self.server.received("delete", kinds.PODS)
            if objects.is_terminating(self.server.find(kinds.PODS, each.name, each.namespace) or {})
        ]

    def event_messages(self) -> list[str]:
        return [e["message"] for e in self.server.all(kinds.EVENTS) if e["reason"] == "FailedOver"]

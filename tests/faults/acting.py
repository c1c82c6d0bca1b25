"""Does what a plan says users do: objects to create, pods to end, Targets to change.

A request that fails because something is broken is tried again, as people do, until the time is up.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from tests.faults import followed_objects, workloads
from tests.faults.evicting import evict, evict_within_budget
from tests.faults.harness import Harness
from tests.faults.leaving import Leaver
from tests.faults.plan import EVICTIONS, LEAVING, Action, Verb
from tests.faults.snapshot import ALIVE, FleetSnapshot, Violation, node_of, phase
from tests.faults.targets import NAMESPACE, Targets
from tests.faults.timing import PROBE, Timer
from vnode.api import kinds, objects
from vnode.api.errors import (
    AlreadyExists,
    Conflict,
    Invalid,
    NotFound,
    TooManyRequests,
    VnodeError,
)
from vnode.api.objects import Object
from vnode.kube.client import Client

PERSISTENCE = 90.0  # seconds for which a user tries
_AGAIN = 0.5


class Actor:
    """Acts on the clusters of a harness; `snapshot` gives what they show now."""

    def __init__(self, harness: Harness, snapshot: Callable[[], FleetSnapshot]) -> None:
        self._harness = harness
        self._snapshot = snapshot
        self.leaver = Leaver(harness)
        self.targets = Targets(harness)
        self.timer = Timer(harness.source, NAMESPACE)
        self.violations: list[Violation] = []
        self.refused = 0  # evictions that budgets were against to the end
        self.deleted_chaperons: set[str] = set()  # UIDs of their proxies

    async def act(self, action: Action, *, timed: bool = False) -> None:
        """Do it; gives up, silently, when what it is about is gone.

        With `timed`, it is measured until a pod that it creates runs.
        """
        if action.verb in LEAVING:
            await self.leaver.leave(action)
            return

        if action.verb is Verb.EVICT_ALL:
            await self._evict_all(action)
            return

        await self._persist(action, self._how(action))
        if action.verb is Verb.EXCHANGE_SECRET:
            await asyncio.sleep(action.seconds)
            await self._persist(action, self.targets.exchange_back)
        elif action.verb is Verb.CREATE and timed and action.workload is not None:
            await self.timer.until_running(action, action.workload.name)

    async def _persist(self, action: Action, do: Callable[[Action], Awaitable[None]]) -> None:
        """Repeat until done; TimeoutError if that takes too long, unless a budget is against it."""
        refused = False
        try:
            async with asyncio.timeout(PERSISTENCE):
                while True:
                    try:
                        await do(action)
                    except (NotFound, AlreadyExists):
                        return
                    except Invalid:
                        raise  # the harness is wrong, not the snapshot
                    except VnodeError as error:
                        refused = isinstance(error, TooManyRequests) and action.verb in EVICTIONS
                        await asyncio.sleep(_AGAIN)
                    else:
                        return
        except TimeoutError:
            if not refused:
                raise

            self.refused += 1

    def _how(self, action: Action) -> Callable[[Action], Awaitable[None]]:
        verbs: dict[Verb, Callable[[Action], Awaitable[None]]] = {
            Verb.CREATE: self._apply,
            Verb.CHANGE: self._apply,
            Verb.REMOVE: self._remove,
            Verb.EDIT_TARGET: self.targets.edit,
            Verb.ROTATE_TOKEN: self.targets.rotate_token,
            Verb.EXCHANGE_SECRET: self.targets.exchange,
            Verb.REMOVE_TARGET: self.targets.remove,
            Verb.PUT_THING: self._put_thing,
            Verb.REMOVE_THING: self._remove_thing,
            Verb.ANNOTATE_DELEGATE: self._annotate,
        }
        return verbs.get(action.verb, self._end_pod)

    async def _apply(self, action: Action) -> None:
        workload = action.workload
        assert workload is not None
        bodies = [(workloads.RESOURCES[workload.kind], workloads.build(workload))]
        if workload.budget:
            bodies.append((workloads.BUDGETS, workloads.budget(workload)))

        for kind, body in bodies:
            body["metadata"]["namespace"] = NAMESPACE
            await self._harness.source.apply(kind, body, manager="faults")

    async def _remove(self, action: Action) -> None:
        workload, source = action.workload, self._harness.source
        assert workload is not None
        kind = workloads.RESOURCES[workload.kind]
        if workload.budget:
            with suppress(NotFound):
                await source.delete(workloads.BUDGETS, workload.name, NAMESPACE)

        await source.delete(kind, workload.name, NAMESPACE, propagation="Background")

    async def _put_thing(self, action: Action) -> None:
        assert action.thing is not None
        body = followed_objects.build(action.thing)
        body["metadata"]["namespace"] = NAMESPACE
        kind = followed_objects.RESOURCES[action.thing.kind]
        await self._harness.source.apply(kind, body, manager="faults")

    async def _remove_thing(self, action: Action) -> None:
        assert action.thing is not None
        kind, name = (
            followed_objects.RESOURCES[action.thing.kind],
            followed_objects.name_of(action.thing),
        )
        await self._harness.source.delete(kind, name, NAMESPACE)

    def _pods(self, action: Action) -> list[Object]:
        """Return those of a workload that have not ended, nor are about to."""
        assert action.workload is not None
        found = self._snapshot().of(action.workload)
        return [p for p in found if phase(p) in ALIVE and not objects.is_terminating(p)]

    async def _end_pod(self, action: Action) -> None:
        pods = self._pods(action)
        if not pods:
            return

        pod, source = pods[action.number % len(pods)], self._harness.source
        match action.verb:
            case Verb.DELETE_POD:
                await source.discard(kinds.PODS, pod)
            case Verb.FORCE_DELETE_POD:
                await source.discard(kinds.PODS, pod, grace=0)
            case Verb.EVICT_POD:
                await self._evict(action, pod)
            case _:
                await self._end_there(action, pod)

    async def _evict(self, action: Action, pod: Object) -> None:
        assert action.workload is not None
        self.violations += await evict_within_budget(self._harness.source, action.workload, pod)

    async def _evict_all(self, action: Action) -> None:
        """Evict each of the pods there are now, one after the other, as their budget allows."""
        for pod in self._pods(action):
            await self._persist(action, lambda action, pod=pod: self._evict_if_there(action, pod))

    async def _evict_if_there(self, action: Action, pod: Object) -> None:
        if objects.uid(pod) in map(objects.uid, self._pods(action)):
            await self._evict(action, pod)

    async def _end_there(self, action: Action, proxy: Object) -> None:
        for cluster, chaperon in self._snapshot().chaperons_of(objects.uid(proxy)):
            client, name = self._harness.clients[cluster], objects.name(chaperon)
            if action.verb is Verb.DELETE_CHAPERON:
                self.deleted_chaperons.add(objects.uid(proxy))
                await client.discard(kinds.POD_CHAPERONS, chaperon)
                return

            pod = await client.get(kinds.PODS, name, NAMESPACE)
            if action.verb is Verb.EVICT_DELEGATE:
                await evict(client, pod)
            else:
                await client.discard(kinds.PODS, pod)

            return

        if phase(proxy) == "Pending":  # nothing is anywhere yet; the user ends what there is
            if action.verb is Verb.EVICT_DELEGATE:  # a deletion would be a failure to a Job
                await evict(self._harness.source, proxy)
            else:
                await self._harness.source.discard(kinds.PODS, proxy)
        elif node_of(proxy):
            raise Conflict(409, "Conflict", "its chaperon has not been seen yet")

    async def _annotate(self, action: Action) -> None:
        """Annotate a delegate in its target, and measure until its proxy shows that."""
        pods = self._pods(action)
        if not pods:
            return

        proxy, value = pods[action.number % len(pods)], time.monotonic_ns()
        for cluster, chaperon in self._snapshot().chaperons_of(objects.uid(proxy)):
            body = {"metadata": {"annotations": {PROBE: str(value)}}}
            name = objects.name(chaperon)
            await self._harness.clients[cluster].patch(kinds.PODS, name, body, NAMESPACE)
            await self.timer.until_shown(action, objects.name(proxy), value)
            return

        raise Conflict(409, "Conflict", "its chaperon has not been seen yet")


async def remove_all(client: Client) -> None:
    """Have everything of earlier runs deleted."""
    for resource in (*workloads.RESOURCES.values(), workloads.BUDGETS):
        query = {"propagationPolicy": "Background"}
        await client.request("DELETE", resource.path(NAMESPACE), query=query)

    for resource in followed_objects.RESOURCES.values():
        for thing in await client.list(
            resource, NAMESPACE, label_selector=followed_objects.SELECTOR
        ):
            await client.discard(resource, thing)

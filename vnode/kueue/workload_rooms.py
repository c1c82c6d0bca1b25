"""Judges one workload by what all targets have now, beside what others were promised.

The answer to its check is this decision. What is made of it, and when, is the controller's affair.
A new leader reads the placement of a workload that was let in before it from the same assignments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from vnode.api import objects, resources, virtual_constraints
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.api.slices import Slices, in_slices
from vnode.kube.informer import Informer
from vnode.kueue import deciding, judging, workloads
from vnode.kueue.deciding import AskedPodSet, Placement, RoomAnswer, RoomDecision, TargetRoom
from vnode.kueue.judging import JudgedBy
from vnode.kueue.promised_room import PromisedPodSet, PromisedRoom
from vnode.kueue.workloads import PodSet
from vnode.runtime.served_informer import ServedInformer


class WorkloadRooms:
    """Knows targets by the scheduler's cache and their virtual nodes, and flavors of Kueue."""

    def __init__(
        self,
        judged_by: JudgedBy,
        nodes: Informer,
        flavors: ServedInformer,
        promised: PromisedRoom,
        clock: Clock,
    ) -> None:
        self._judged_by = judged_by
        self._nodes = nodes
        self._flavors = flavors
        self._promised = promised
        self._clock = clock

    def are_targets_known(self) -> bool:
        """Tell whether each target is connected, and has said what it has free."""
        nodes = {node.name: node for node in self._judged_by.cache.snapshot()}
        return nodes.keys() >= set(self._nodes.store) and not any(
            node.virtual.connecting or node.known_free() is None for node in nodes.values()
        )

    def pods(self, workload: Object, sets: list[PodSet]) -> dict[str, PromisedPodSet]:
        """Return what each pod of each pod set takes; ConfigError if it can be no proxy."""
        return judging.proxies(self._judged_by, workload, sets, self._flavors.get)

    async def decide(
        self,
        key: str,
        sets: list[PodSet],
        pods: Mapping[str, PromisedPodSet],
        *,
        all_known: bool,
    ) -> RoomDecision:
        """Return where a workload can go now, or why it can go nowhere."""
        await self._judged_by.cache.promising.over(self._clock)
        beside = judging.beside(self._judged_by, pods)
        parts = self._promised.parts(self._clock.now(), but=key)
        async for _ in in_slices(beside.steps(parts), self._clock):
            pass

        judged = judging.rooms(self._judged_by, pods, beside)
        rooms = [room async for room in in_slices(judged, self._clock)]
        asked = [AskedPodSet(each.name, each.count, self._places(each)) for each in sets]
        decision = await self._decide(asked, rooms, all_known=all_known)
        if decision.answer is not RoomAnswer.LATER:
            return decision

        return replace(decision, is_soon=await self._comes_soon(asked, rooms))

    async def _decide(
        self, asked: list[AskedPodSet], rooms: list[TargetRoom], *, all_known: bool
    ) -> RoomDecision:
        """Decide, and let others have their turn after some targets."""
        slices = Slices(self._clock)
        for decision in deciding.steps(asked, rooms, all_known=all_known):
            if decision is not None:
                return decision

            await slices.give_way()

        raise AssertionError("there is no decision")

    async def _comes_soon(self, asked: list[AskedPodSet], rooms: list[TargetRoom]) -> bool:
        """Tell whether what is ending would leave room, in sums: on which nodes is not known."""
        ending = self._judged_by.cache.ending()
        if not ending:
            return False

        ended = [
            replace(room, free=resources.add(room.free, ending.get(room.node, {})), rows=None)
            for room in rooms
            if room.free is not None
        ]
        return (await self._decide(asked, ended, all_known=False)).answer is RoomAnswer.NOW

    def selector(self, node: str) -> dict[str, str]:
        """Return the labels that hold a pod in the target of a virtual node."""
        target = self._judged_by.cache.snapshot().get(node)
        assert target is not None
        return virtual_constraints.identity_labels(*target.virtual.target)

    def recalled(self, sets: list[PodSet], entry: Object) -> Placement:
        """Return the placement of a workload that was let in with that answer."""
        placement: Placement = {}
        for name, nodes, count in self._held(sets, entry):
            there = placement.setdefault(name, {})
            there[min(nodes)] = there.get(min(nodes), 0) + count

        return placement

    def held(self, sets: list[PodSet], entry: Object) -> set[str]:
        """Return the nodes that some pods of such a workload are held on, without another one."""
        return {min(nodes) for _name, nodes, _count in self._held(sets, entry) if len(nodes) == 1}

    def _held(self, sets: list[PodSet], entry: Object) -> Iterator[tuple[str, frozenset[str], int]]:
        """Yield for each pod set on which nodes how many of its pods may be."""
        held = workloads.held_in(entry)
        for each in sets:
            selector = held.get(each.name)
            places = self._places(each)
            if not places and selector:
                places = ((self._nodes_with(selector), each.count),)

            yield from ((each.name, nodes, count) for nodes, count in places if nodes)

    def target_name(self, node: str) -> str:
        """Return the name of the Target of a virtual node, for messages."""
        return self._judged_by.cache.snapshot().target_name(node)

    def _places(self, pod_set: PodSet) -> tuple[tuple[frozenset[str], int], ...]:
        return tuple((self._nodes_with(domain.labels), domain.count) for domain in pod_set.domains)

    def _nodes_with(self, labels: Mapping[str, str]) -> frozenset[str]:
        return frozenset(
            objects.name(node)
            for node in self._nodes.store.values()
            if labels.items() <= objects.labels(node).items()
        )
